"""Breadth first through every state of a model, in compiled code."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any  # numpy arrays, which carry no types that help here

from kvsan.checker.explore.emit import BATCH, Generated, Model
from kvsan.checker.explore.module import Module
from kvsan.checker.explore.packed import pack
from kvsan.checker.explore.pieces import Buffer, Pieces, Tally, Worker
from kvsan.checker.explore.store import Store
from kvsan.spec.lang.interpret import Plain

PIECE = 1 << 16
"""States expanded between two looks at the clock, the memory and the keyboard."""


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
class Search:
    """What a search found. stopped: why it ended early, '' where it exhausted the design.

    levels: the number of the first state of each depth. tally: transitions per action, obligations judged, and the
    first failure of each judge. failures: those, shortest first.
    """

    model: Model
    generated: Generated
    module: Module
    store: Store
    tally: Tally
    levels: list[int] = field(default_factory=lambda: [0])
    failures: list[Failure] = field(default_factory=list)
    stopped: str = ""
    expanded: int = 0
    seconds: float = 0.0
    bytes: int = 0

    @property
    def count(self) -> int:
        return self.store.count

    @property
    def fan(self) -> Any:
        """States by how many successors they have."""
        return self.tally.fan

    @property
    def taken(self) -> Any:
        """Transitions per action."""
        return self.tally.taken

    @property
    def judged(self) -> Any:
        """Evaluations of obligations, per judge."""
        return self.tally.judged

    @property
    def transitions(self) -> int:
        return int(self.taken.sum())

    @property
    def depth(self) -> int:
        return len(self.levels) - 1

    @cached_property
    def states(self) -> Any:
        """The words of every state, one after the other; of a search that is over."""
        return self.store.all()


def search(
    model: Model,
    generated: Generated,
    module: Module,
    starts: Sequence[Plain],
    limits: Limits = UNLIMITED,
    tell: Callable[[Progress], None] = lambda _: None,
    stop: bool = True,
    threads: int = 1,
    partial: bool = False,
) -> Search:
    """Explore. stop: end with the depth at which something failed.

    threads: how many expand states; the outcome does not depend on it. partial: a KeyboardInterrupt ends it with what
    it has; else it ends whatever asked for the search, which may have more to come.
    """
    store = Store(module, model.layout, limits.states, limits.memory, model.fan)
    found = Search(model, generated, module, store, Tally.zero(module.np, model, len(generated.judges)))
    begun = time.perf_counter()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    _begin(found, starts)
    try:
        _run(found, limits, tell, stop, threads, begun)
    except KeyboardInterrupt:
        if not partial:
            raise
        found.stopped = "interrupted"
    found.seconds = time.perf_counter() - begun
    found.bytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    found.failures = _failures(found)
    return found


def _begin(found: Search, starts: Sequence[Plain]) -> None:
    np, layout = found.module.np, found.model.layout
    rows = np.array([word for state in starts for word in pack(state, layout)], np.int64)
    found.module.canonical(rows, 0, len(starts))
    found.store.make_room(len(starts))
    found.module.store(found.store.sets, rows, 0, len(starts), np.zeros(2 * len(starts), np.uint64))


def _run(
    found: Search, limits: Limits, tell: Callable[[Progress], None], stop: bool, threads: int, begun: float
) -> None:
    most = min(limits.states, limits.memory // (8 * found.model.layout.widths[0]))
    buffer, pair = Buffer.of(found.module.np, found.model, BATCH + found.model.fan), found.module.np.zeros(2, "int64")

    crew: list[Worker] = []

    def look() -> None:
        queue = found.count - found.expanded
        tell(Progress(found.count, found.transitions, queue, found.depth, time.perf_counter() - begun))

    while found.levels[-1] < found.count:
        end = found.count
        if found.depth > limits.depth:
            found.stopped = f"depth {limits.depth}"
            return
        while found.expanded < end:
            if threads > 1 and end - found.expanded > 2 * found.model.chunk:
                crew = crew or [Worker.of(found.module.np, found.model, len(found.judged)) for _ in range(threads)]
                _together(found, end, most, limits, crew, look)
                found.stopped = _limit(found, end, most, limits)
            if not found.stopped and found.expanded < end:
                _alone(found, end, most, buffer, pair)
                found.stopped = _limit(found, end, most, limits)
            look()
            if found.stopped:
                return
        if stop and any(
            f.kind in STOPPING and found.tally.fail_at[k] >= 0 for k, f in enumerate(found.generated.judges)
        ):
            return
        found.levels.append(end)
    found.levels.pop()


STOPPING = ("rule", "invariant", "counted", "undefined", "deadlock")


def _alone(found: Search, end: int, most: int, buffer: Buffer, pair: Any) -> None:
    """Expand a piece in this thread, or as much of it as there is room for."""
    found.store.make_room(BATCH + 2 * found.model.fan)
    stop = min(end, found.expanded - found.expanded % PIECE + PIECE)
    found.module.sweep(found.store.sets, found.expanded, stop, most, 0, pair, *buffer.arrays, *found.tally.arrays, pair)
    found.expanded = int(pair[0])


def _together(found: Search, end: int, most: int, limits: Limits, crew: list[Worker], look: Callable[[], None]) -> None:
    """Expand the rest of a depth in several threads; where a limit is near, as much of it as is far from it."""

    def may_go_on(rows: int) -> bool:
        found.expanded = pieces.stored
        near = found.count + rows > most or not found.store.has_room(rows)
        return not near and not _limit(found, end, most, limits)

    pieces = Pieces(found.module, found.model, found.store, found.tally, found.expanded, end, may_go_on)
    try:
        pieces.run(crew, look)
    finally:
        found.expanded = pieces.stored


def _limit(found: Search, end: int, most: int, limits: Limits) -> str:
    """The limit that is passed, judged where it does not matter how many threads there are."""
    if found.count > most:
        return "the limit of states" if most == limits.states else "the limit of memory"
    if found.expanded < end and not found.store.has_room(BATCH + found.model.fan):
        return "the limit of memory"
    whole = found.expanded == end or found.expanded % PIECE == 0
    return "the limit of memory" if whole and found.store.bytes > limits.memory else ""


def _failures(found: Search) -> list[Failure]:
    out = []
    for k in range(len(found.generated.judges)):
        at, code = int(found.tally.fail_at[k]), int(found.tally.fail_code[k])
        if at >= 0:
            level = max(d for d, first in enumerate(found.levels) if first <= at)
            out.append(Failure(k, at, code, level + (1 if code >= 0 else 0)))
    return sorted(out, key=lambda f: (f.depth, f.at, f.judge))
