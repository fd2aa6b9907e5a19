"""Breadth first through every state of a model, in compiled code."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any  # numpy arrays, which carry no types that help here

from kvsan.checker.explore.emit import BATCH, Generated, Model
from kvsan.checker.explore.module import Module
from kvsan.checker.explore.packed import pack
from kvsan.spec.lang.interpret import Plain

LOAD = 0.6
"""How full the hash table may become."""
PIECE = 1 << 16
"""States expanded between two looks at the clock, the memory and the keyboard."""
FIRST_BITS = 14
WIDEST_TABLE = 31


@dataclass(frozen=True)
class Limits:
    """states: at most so many are kept. memory: bytes for states and table. depth: expand no deeper."""

    states: int = 1 << 62
    memory: int = 4 << 30
    depth: int = 1 << 62


UNLIMITED = Limits()


@dataclass(frozen=True)
class Progress:
    """states found, transitions made, states not yet expanded, the depth under expansion, seconds so far."""

    states: int
    transitions: int
    queue: int
    depth: int
    seconds: float


@dataclass(frozen=True)
class Failure:
    """Judge number `judge` failed at state `at`, in the step `code` (-1: in the state itself)."""

    judge: int
    at: int
    code: int
    depth: int


@dataclass
class _Arrays:
    table: Any
    bits: int
    buf: Any
    codes: Any
    hashes: Any
    fail_at: Any
    fail_code: Any
    pair: Any


@dataclass
class Search:
    """What a search found. stopped: why it ended early, '' where it exhausted the design.

    levels: the number of the first state of each depth. fan: states by how many successors they have. taken: per
    action, transitions. judged: per judge, evaluations (obligations). failures: the first of each judge, shortest
    first. ends: states without a successor.
    """

    model: Model
    generated: Generated
    module: Module
    states: Any
    count: int = 0
    levels: list[int] = field(default_factory=lambda: [0])
    fan: Any = None
    taken: Any = None
    judged: Any = None
    failures: list[Failure] = field(default_factory=list)
    stopped: str = ""
    expanded: int = 0
    seconds: float = 0.0
    bytes: int = 0
    arrays: _Arrays | None = None

    @property
    def transitions(self) -> int:
        return int(self.taken.sum())

    @property
    def depth(self) -> int:
        return len(self.levels) - 1


def search(
    model: Model,
    generated: Generated,
    module: Module,
    starts: Sequence[Plain],
    limits: Limits = UNLIMITED,
    tell: Callable[[Progress], None] = lambda _: None,
    stop: bool = True,
) -> Search:
    """Explore. stop: end with the depth at which something failed. A KeyboardInterrupt ends it with what it has."""
    np = module.np
    words = model.layout.words
    fan = max(1, model.bases[-1])
    room = min(limits.states + BATCH + fan, limits.memory // (8 * words) + BATCH + fan)
    found = Search(model, generated, module, np.empty(room * words, np.int64))
    found.fan = np.zeros(fan + 1, np.int64)
    found.taken = np.zeros(len(model.actions), np.int64)
    judges = len(generated.judges)
    found.judged = np.zeros(max(1, judges), np.int64)
    arrays = _Arrays(
        np.zeros(1 << FIRST_BITS, np.uint32),
        FIRST_BITS,
        np.zeros((BATCH + fan) * words, np.int64),
        np.zeros(BATCH + fan, np.int64),
        np.zeros(BATCH + fan, np.uint64),
        np.full(max(1, judges), -1, np.int64),
        np.full(max(1, judges), -1, np.int64),
        np.zeros(2, np.int64),
    )
    found.arrays = arrays
    begun = time.perf_counter()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    _begin(found, arrays, starts)
    try:
        _run(found, arrays, limits, tell, stop, begun)
    except KeyboardInterrupt:
        found.stopped = "interrupted"
    found.seconds = time.perf_counter() - begun
    found.bytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    found.failures = _failures(found, arrays)
    return found


def _begin(found: Search, arrays: _Arrays, starts: Sequence[Plain]) -> None:
    words = found.model.layout.words
    for k, state in enumerate(starts):
        arrays.buf[k * words : (k + 1) * words] = pack(state, found.model.layout)
    found.module.canonical(arrays.buf, 0, len(starts))
    found.count = found.module.store(found.states, 0, arrays.table, arrays.bits, arrays.buf, len(starts), arrays.hashes)


def _run(
    found: Search, arrays: _Arrays, limits: Limits, tell: Callable[[Progress], None], stop: bool, begun: float
) -> None:
    fan = max(1, found.model.bases[-1])
    most = min(limits.states, limits.memory // (8 * found.model.layout.words))
    while found.levels[-1] < found.count:
        end = found.count
        if found.depth > limits.depth:
            found.stopped = f"depth {limits.depth}"
            return
        while found.expanded < end:
            full = int((1 << arrays.bits) * LOAD)
            found.module.sweep(
                found.states, found.count, arrays.table, arrays.bits, found.expanded,
                min(end, found.expanded + PIECE), min(full, most + BATCH + fan), -1, arrays.buf, arrays.codes,
                arrays.hashes, found.fan, found.taken, found.judged, arrays.fail_at, arrays.fail_code, arrays.pair,
            )  # fmt: skip
            found.expanded, found.count = map(int, arrays.pair)
            queue = found.count - found.expanded
            tell(Progress(found.count, found.transitions, queue, found.depth, time.perf_counter() - begun))
            if found.count > most:
                found.stopped = "the limit of states" if most == limits.states else "the limit of memory"
                return
            if found.expanded < end and found.count + BATCH + 2 * fan > full:
                _widen(found, arrays)
        if stop and any(f.kind in STOPPING and arrays.fail_at[k] >= 0 for k, f in enumerate(found.generated.judges)):
            return
        found.levels.append(end)
    found.levels.pop()


STOPPING = ("rule", "invariant", "counted", "undefined", "deadlock")


def _widen(found: Search, arrays: _Arrays) -> None:
    """A table twice as wide, or four times while it is small."""
    np = found.module.np
    bits = arrays.bits + (2 if arrays.bits < 20 else 1)
    if bits > WIDEST_TABLE:
        raise MemoryError("more states than the table can number")
    arrays.table = np.zeros(0, np.uint32)
    arrays.table, arrays.bits = np.zeros(1 << bits, np.uint32), bits
    found.module.rehash(found.states, found.count, arrays.table, bits, arrays.hashes)


def _failures(found: Search, arrays: _Arrays) -> list[Failure]:
    out = []
    for k in range(len(found.generated.judges)):
        at, code = int(arrays.fail_at[k]), int(arrays.fail_code[k])
        if at >= 0:
            level = max(d for d, first in enumerate(found.levels) if first <= at)
            out.append(Failure(k, at, code, level + (1 if code >= 0 else 0)))
    return sorted(out, key=lambda f: (f.depth, f.at, f.judge))
