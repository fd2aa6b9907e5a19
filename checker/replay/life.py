"""The life of a block or of a branch: every event of a log that touched it, by name or through a branch's table.

Computed from the table entries alone, in one pass of its own, so that the replay pays nothing for it. Where a log
starts mid-run, entries from before its first line are not known, and what touches the block through them is left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from kvsan.traces import events as ev
from kvsan.traces.read import Gap

from .suppress import nearest

LISTED, FEW = 1000, 5
"""Branches among which a misspelt one is looked for, and those that are listed."""

Batches = Iterable[list[tuple[int, ev.Event | Gap]]]


class Readable(Protocol):
    """A log, as far as a life needs it."""

    @property
    def header(self) -> ev.Trace | None: ...

    def batches(self) -> Batches: ...


@dataclass(frozen=True)
class Life:
    """about: `block 7`, `block 7 of pool cpu` or `branch r1`. events: (line, event), in log order. hint: what the log
    has instead, where there are none."""

    about: str
    events: tuple[tuple[int, ev.Event], ...]
    hint: str = ""


def life_of_block(log: Readable, block: int, pool: str = "gpu", until: int | None = None) -> Life:
    """Every event up to line `until` that names the block, or touches it through a table that holds it."""
    about = f"block {block}" if pool == "gpu" else f"block {block} of pool {pool}"
    if log.header is None:
        return Life(about, ())
    watch = BlockWatch(log.header, block, pool)
    events = tuple((line, e) for line, e in events_until(log, until) if watch.touched_by(e))
    pools = {str(name): info.blocks for name, info in (log.header.pools or {}).items()}
    count = pools.get(pool, log.header.blocks)
    return Life(about, events, f"pool {pool} has blocks 0 to {count - 1}" if block >= count else "")


def life_of_branch(log: Readable, branch: str, until: int | None = None) -> Life:
    """Every event up to line `until` that names the branch; `branch` as text, so that 1 and "1" are one."""
    watch = BranchWatch(branch)
    events = tuple((line, e) for line, e in events_until(log, until) if watch.touched_by(e))
    hint = ""
    if not events:
        begun = (e for _, e in events_until(log, until) if isinstance(e, ev.Admit | ev.Fork))
        names = [str(e.branch) for e in islice(begun, LISTED)]
        hint = nearest(branch, names, f"branches are {', '.join(names[:FEW])}" if names else "")
    return Life(f"branch {branch}", events, hint)


def events_until(log: Readable, until: int | None) -> Iterator[tuple[int, ev.Event]]:
    for batch in log.batches():
        for line, event in batch:
            if until is not None and line > until:
                return
            if not isinstance(event, Gap):
                yield line, event


class Ops:
    """Completions of ops that touched the subject touch it too."""

    def __init__(self) -> None:
        self.ops: set[str | int] = set()

    def follow(self, e: ev.Event, touched: bool) -> bool:
        op = getattr(e, "op", None)
        if op is None:
            return touched
        if isinstance(e, ev.Done | ev.Run):
            return op in self.ops
        if touched:
            self.ops.add(op)
        return touched


class BranchWatch:
    """Tells the events that name one branch."""

    def __init__(self, branch: str) -> None:
        self.branch = branch
        self.ops = Ops()

    def touched_by(self, e: ev.Event) -> bool:
        return self.ops.follow(e, self._named(e))

    def _named(self, e: ev.Event) -> bool:
        if isinstance(e, ev.Step):
            branches = [w[0] for w in e.writes] + [read_of(r)[0] for r in e.reads]
            return any(str(branch) == self.branch for branch in branches)
        named = (getattr(e, "branch", None), getattr(e, "parent", None) if isinstance(e, ev.Fork) else None)
        return any(name is not None and str(name) == self.branch for name in named)


Row = tuple[str | int, str]
"""A branch's table in one cache group."""


class BlockWatch:
    """Tells the events that touch one block, and keeps which table entries hold it: positions a row."""

    def __init__(self, header: ev.Trace, block: int, pool: str) -> None:
        self.block, self.pool = block, pool
        self.sizes = {str(name): info.block_size for name, info in (header.groups or {}).items()}
        self.size = header.block_size
        self.held: defaultdict[Row, set[int]] = defaultdict(set)
        self.ops = Ops()

    def touched_by(self, e: ev.Event) -> bool:
        return self.ops.follow(e, self._touched(e))

    def _touched(self, e: ev.Event) -> bool:
        match e:
            case ev.Map():
                return self._map(e)
            case ev.Unmap():
                return self._unmap(e)
            case ev.Fork():
                return self._fork(e)
            case ev.Finish() | ev.Cancel() | ev.Preempt():
                return self._end(e.branch)
            case ev.Copy():
                src_pool, dst_pool = e.src_pool or e.pool, e.dst_pool or e.pool
                return self._is(e.src, src_pool) or self._is(e.dst, dst_pool)
            case ev.Step():
                return self._step(e)
            case ev.Read() if e.branch is not None:
                return self._reads(e.branch, e.group, e.upto)
            case ev.Table():
                return self._is(e.blocks, e.pool) or bool(self.held.get(row(e.branch, e.group)))
            case _:
                return self._is(getattr(e, "block", None), e.pool)

    def _is(self, named: int | tuple[int | None, ...] | None, pool: str | int | None) -> bool:
        """Whether a field that names blocks of a pool names this one."""
        if ("gpu" if pool is None else str(pool)) != self.pool:
            return False
        return self.block in named if isinstance(named, tuple) else named == self.block

    def _map(self, e: ev.Map) -> bool:
        entries = e.block if isinstance(e.block, tuple) else (e.block,)
        positions = self.held[row(e.branch, e.group)]
        touched = False
        for pos, entry in enumerate(entries, e.pos):
            if self._is(entry, e.pool):
                positions.add(pos)
                touched = True
            elif pos in positions:
                positions.discard(pos)
                touched = True
        return touched

    def _unmap(self, e: ev.Unmap) -> bool:
        positions = self.held[row(e.branch, e.group)]
        count = len(e.block) if isinstance(e.block, tuple) else 1
        gone = positions & set(range(e.pos, e.pos + count))
        positions -= gone
        return bool(gone) or self._is(e.block, e.pool)

    def _fork(self, e: ev.Fork) -> bool:
        touched = False
        for (branch, group), positions in list(self.held.items()):
            if branch == e.parent and positions:
                size = self.sizes.get(group) or self.size
                shared = {p for p in positions if e.upto is None or p * size < e.upto}
                self.held[(e.branch, group)] |= shared
                touched = touched or bool(shared)
        return touched

    def _end(self, branch: str | int) -> bool:
        rows = [key for key in self.held if key[0] == branch]
        return any([bool(self.held.pop(key)) for key in rows])  # noqa: C419 - every row ends

    def _step(self, e: ev.Step) -> bool:
        return (
            any(self._is((src, dst), e.pool) for src, dst, _, _ in e.copies)
            or any(self._is(block, e.pool) for _, block, _, _ in e.writes)
            or any(self._reads(branch, e.group, upto) for branch, upto in map(read_of, e.reads))
        )

    def _reads(self, branch: str | int, group: str | int | None, upto: int | None) -> bool:
        """Whether attention over the branch's first `upto` tokens reads the block."""
        key = row(branch, group)
        size = self.sizes.get(key[1]) or self.size
        return any(upto is None or pos * size < upto for pos in self.held.get(key, ()))


def read_of(read: str | int | tuple[str | int, int]) -> tuple[str | int, int | None]:
    """Branch and `upto` of a step's read."""
    return read if isinstance(read, tuple) else (read, None)


def row(branch: str | int, group: str | int | None) -> Row:
    return branch, "0" if group is None else str(group)
