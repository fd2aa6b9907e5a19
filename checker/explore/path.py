"""The shortest way to a state, found again: nothing of it is stored while the search runs.

A state's first predecessor lies one level up; with a symmetry both stand for their orbits, and the way is then walked
forward from a start, at each step by a successor whose orbit is the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any  # numpy arrays

from kvsan.checker.explore.packed import pack
from kvsan.checker.explore.pieces import Buffer, Tally
from kvsan.checker.explore.search import Failure, Search
from kvsan.checker.explore.store import single
from kvsan.spec.lang.interpret import Plain

PREDECESSOR, SUCCESSORS = 1, 2
"""What a sweep of the kernel may be asked for beside storing."""


def codes_to(found: Search, failure: Failure, starts: Sequence[Plain]) -> tuple[int, list[int]]:
    """The start and the codes of the steps of a shortest way to a failure, the failing step included."""
    orbits = _back(found, failure.at)
    start, codes, words = _forward(found, orbits, starts)
    if failure.code >= 0:
        codes.append(_failing(found, words, failure))
    return start, codes


def _back(found: Search, at: int) -> list[int]:
    """The numbers of the states of a shortest way, the first one first."""
    way = [at]
    while way[0] >= (found.levels[1] if len(found.levels) > 1 else found.count):
        level = max(d for d, first in enumerate(found.levels) if first <= way[0])
        goal = found.store.row(way[0]).copy()
        first, stop = found.levels[level - 1], found.levels[level]
        before, _, _ = _sweep(found, found.store.sets, first, stop, PREDECESSOR, goal, _unheeded(found))
        way.insert(0, before)
    return way


def _sweep(found: Search, sets: Any, at: int, stop: int, mode: int, goal: Any, tally: Tally) -> tuple[int, int, Buffer]:
    """What a sweep that stores nothing found, and its buffer: room for what one state leads to."""
    np, model = found.module.np, found.model
    pair, buffer = np.zeros(2, np.int64), Buffer.of(np, model, model.fan)
    found.module.sweep(sets, at, stop, 0, mode, goal, *buffer.arrays, *tally.arrays, pair)
    return int(pair[0]), int(pair[1]), buffer


def _unheeded(found: Search) -> Tally:
    return Tally.zero(found.module.np, found.model, len(found.generated.judges))


def successors(found: Search, words: Any) -> list[tuple[int, Any, Any]]:
    """The code, the words and the orbit's words of each successor."""
    width = found.model.layout.words
    sets, _keep = single(found.model.layout, found.module, words)
    _, n, buffer = _sweep(found, sets, 0, 1, SUCCESSORS, sets, _unheeded(found))
    plain = buffer.words[: n * width].copy()
    found.module.canonical(buffer.words, 0, n)
    rows = [slice(k * width, (k + 1) * width) for k in range(n)]
    return [(int(buffer.codes[k]), plain[row], buffer.words[row]) for k, row in enumerate(rows)]


def _orbit(found: Search, words: Sequence[int]) -> tuple[int, ...]:
    np = found.module.np
    row = np.array(words, np.int64)
    found.module.canonical(row, 0, 1)
    return tuple(row.tolist())


def _forward(found: Search, orbits: list[int], starts: Sequence[Plain]) -> tuple[int, list[int], Any]:
    rows = [tuple(found.store.row(n).tolist()) for n in orbits]
    packed = [pack(s, found.model.layout) for s in starts]
    start = next(k for k, words in enumerate(packed) if _orbit(found, words) == rows[0])
    words: Any = packed[start]
    codes: list[int] = []
    for row in rows[1:]:
        code, words = next((c, w) for c, w, o in successors(found, words) if tuple(o.tolist()) == row)
        codes.append(code)
    return start, codes, words


def _failing(found: Search, words: Any, failure: Failure) -> int:
    """The code of a step that fails the same judge from this member of the orbit."""
    sets, _keep = single(found.model.layout, found.module, words)
    tally = _unheeded(found)
    _sweep(found, sets, 0, 1, SUCCESSORS, sets, tally)
    return int(tally.fail_code[failure.judge])
