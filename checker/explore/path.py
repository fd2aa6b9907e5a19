"""The shortest way to a state, found again: nothing of it is stored while the search runs.

A state's first predecessor lies one level up; with a symmetry both stand for their orbits, and the way is then walked
forward from a start, at each step by a successor whose orbit is the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any  # numpy arrays

from kvsan.checker.explore.packed import pack
from kvsan.checker.explore.search import Failure, Search
from kvsan.spec.lang.interpret import Plain


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
        before, _ = _sweep(found, found.states, found.levels[level - 1], found.levels[level], way[0])
        way.insert(0, before)
    return way


def _sweep(found: Search, states: Any, at: int, stop: int, target: int) -> tuple[int, int]:
    np = found.module.np
    a = found.arrays
    assert a is not None
    dull = [np.zeros_like(x) for x in (found.fan, found.taken, found.judged)]
    found.module.sweep(
        states, 0, a.table, a.bits, at, stop, 1 << 62, target, a.buf, a.codes, a.hashes,
        *dull, np.zeros_like(a.fail_at), np.zeros_like(a.fail_code), a.pair,
    )  # fmt: skip
    return int(a.pair[0]), int(a.pair[1])


def successors(found: Search, words: Any) -> list[tuple[int, Any, Any]]:
    """The code, the words and the orbit's words of each successor."""
    np = found.module.np
    a, width = found.arrays, found.model.layout.words
    assert a is not None
    _, n = _sweep(found, np.array(words, np.int64), 0, 1, -2)
    plain = a.buf[: n * width].copy()
    found.module.canonical(a.buf, 0, n)
    return [
        (int(a.codes[k]), plain[k * width : (k + 1) * width], a.buf[k * width : (k + 1) * width].copy())
        for k in range(n)
    ]


def _orbit(found: Search, words: Sequence[int]) -> tuple[int, ...]:
    np = found.module.np
    row = np.array(words, np.int64)
    found.module.canonical(row, 0, 1)
    return tuple(row.tolist())


def _forward(found: Search, orbits: list[int], starts: Sequence[Plain]) -> tuple[int, list[int], Any]:
    width = found.model.layout.words
    rows = [tuple(found.states[n * width : (n + 1) * width].tolist()) for n in orbits]
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
    np = found.module.np
    a = found.arrays
    assert a is not None
    fail_at, fail_code = np.full_like(a.fail_at, -1), np.full_like(a.fail_code, -1)
    dull = [np.zeros_like(x) for x in (found.fan, found.taken, found.judged)]
    found.module.sweep(
        np.array(words, np.int64), 0, a.table, a.bits, 0, 1, 1 << 62, -2, a.buf, a.codes, a.hashes,
        *dull, fail_at, fail_code, a.pair,
    )  # fmt: skip
    return int(fail_code[failure.judge])
