"""The order of a log with spread launches: what their later events access is judged where the launch stands.

A breach is told at the line of the access that was launched later. What is written is known by launches, not by lines,
so it is kept here beside the ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any  # what `Order` takes, and names

from kvsan.traces import events as ev

from .analysis import Order
from .history import History
from .judge import ATTENTION, NONE, TAINTED, WRITE, WRITE_BIT, Breach, Judge, Unwritten
from .spread import JUDGED, Access, Late, Spread


def hearer(spread: Spread) -> Callable[..., Order]:
    """What judges the order of such a log, as far as it can."""
    if not spread.full:
        return partial(Placed, spread)
    return partial(Until, spread) if spread.begins else Order


class Placed(Order):
    """Hears of the accesses of later events behind the events where their launches stand."""

    def __init__(self, spread: Spread, *args: Any) -> None:
        super().__init__(*args)
        self.spread = spread
        self.owed: dict[int, list[tuple[Breach, Late]]] = {}

    def judging(self, *args: Any) -> Judge:
        self.contents = Contents(*args)
        return self.contents

    too_early = False

    def begun(self, line: int) -> int:
        return self.spread.begun.get(line, line)

    def on_alloc(self, e: ev.Alloc) -> None:
        super().on_alloc(e)
        for b in self.feed.several(e.block, e.pool):
            self.contents.written.begin(b)

    def on_invalidate(self, e: ev.Invalidate) -> None:
        super().on_invalidate(e)
        for b in self.feed.several(e.block, e.pool):
            lo, hi = (0, self.state["slots_of"][b]) if e.slots is None else e.slots
            self.contents.written[b] &= ~span(lo, hi)

    def _hear(self, e: Access) -> None:
        if self.line in self.spread.begun:
            self._go_on(e)
            return
        JUDGED[type(e)](self, e)
        late = self.spread.behind.get(self.line)
        if late:
            mine, copied = self.judge.breaches, self.judge.copied
            for access in late:
                self._place(access)
                self.owed.setdefault(access.line, []).extend((breach, access) for breach in self.judge.breaches)
            self.judge.copied = copied
            for breach in mine:
                self.judge.tell(breach)

    on_write = on_read = on_copy = on_step = _hear

    def _place(self, a: Late) -> None:
        """An access of a later event, where the launch stands."""
        b, judge = self.feed.block(a.block), self.judge
        with ExitStack() as lives:
            lives.enter_context(self._in_life(b, a.life))
            if a.source is not None:
                src = self.feed.block(a.source[0])
                lives.enter_context(self._in_life(src, a.source[1]))
                judge.copy(src, b, a.lo, a.hi, a.line, a.op)
            elif a.use == WRITE:
                judge.write(b, a.lo, a.hi, a.line, a.op)
            elif a.use == ATTENTION:
                self.contents.attend_late(b, a)
            else:
                judge.read(b, a.lo, a.hi, a.use, a.line, a.op)

    @contextmanager
    def _in_life(self, b: int, life: int) -> Iterator[None]:
        """The block as in a later life of it: who holds it now, has read it in a former one."""
        block = self.history.block(b)
        if block.life == life:
            yield
            return
        former = block.life
        for row, p, _, since in block.holders.values():
            self.attention.fold(row, row.reads, p, b, since)
        block.life = life
        yield
        block.life = former

    def _go_on(self, e: Access) -> None:
        """More of a launch: the ledger hears of it; what it accesses was judged, and is told now."""
        self.plain[type(e)](e)
        for branch, upto in reads_of(e):
            self.contents.look_for_entries(self.feed.row(branch, e.group), upto)
        for breach, access in self.owed.pop(self.line, ()):
            if access.branch is not None:
                breach = replace(breach, branch=self.feed.branches[access.branch])
            if breach.block is not None and not self.contents.fuzzy[breach.block] & TAINTED:
                self.judge.tell(breach)
        self.judge.copied = self.line, [*self._copies(e)]

    def _copies(self, e: Access) -> Iterator[tuple[int, int]]:
        """From block to block."""
        feed, pairs = self.feed, [(src, e.pool, dst, e.pool) for src, dst, _, _ in getattr(e, "copies", ())]
        if isinstance(e, ev.Copy):
            pairs = [(e.src, e.src_pool or e.pool, e.dst, e.dst_pool or e.pool)]
        for src, src_pool, dst, dst_pool in pairs:
            yield feed.block(src, src_pool), feed.block(dst, dst_pool)


def reads_of(e: Access) -> Iterator[tuple[Hashable, int | None]]:
    """The branches whose attention is part of an event, and how far it goes, None for all their tokens."""
    if isinstance(e, ev.Read) and e.branch is not None:
        yield e.branch, e.upto
    elif isinstance(e, ev.Step):
        for what in e.reads:
            yield what if isinstance(what, tuple | list) else (what, None)


class Written:
    """What is written of each block, in each of its lives."""

    def __init__(self, history: History) -> None:
        self.blocks = history.blocks
        self.masks: dict[tuple[int, int], int] = {}

    def _now(self, b: int) -> tuple[int, int]:
        known = self.blocks.get(b)
        return b, 0 if known is None else known.life

    def __getitem__(self, b: int) -> int:
        return self.masks.get(self._now(b), 0)

    def __setitem__(self, b: int, mask: int) -> None:
        self.masks[self._now(b)] = mask

    def begin(self, b: int) -> None:
        """A life has begun: nobody asks of the former one any more."""
        _, life = self._now(b)
        self.masks.pop((b, life - 1), None)


class Contents(Judge):
    """A judge that knows by launches what is written."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.written = Written(self.history)

    def write(
        self, b: int, lo: int, hi: int, line: int, op: Hashable | None, use: int = WRITE, bit: int = WRITE_BIT
    ) -> None:
        if use == WRITE:
            self.written[b] |= span(lo, hi)
        super().write(b, lo, hi, line, op, use, bit)

    def copy(self, src: int, dst: int, lo: int, hi: int, line: int, op: Hashable | None) -> None:
        mask = span(lo, hi)
        brought = mask if self.fuzzy[src] else self.written[src] & mask
        self.written[dst] = self.written[dst] & ~mask | brought
        super().copy(src, dst, lo, hi, line, op)

    def attend_late(self, b: int, a: Late) -> None:
        """Attention at one entry of a table. Whose, is said when it is told."""
        if self.fuzzy[b] & TAINTED:
            return
        mask, (now, at, _) = span(a.lo, a.hi), self.clocks.here
        self.history.judge(b, mask, ATTENTION, a.line, a.op, NONE)
        if self.shows_writes and not self.fuzzy[b]:
            self.positions += 1
            missing = mask & ~self.written[b]
            if missing:
                self.tell(Unwritten(b, NONE, a.pos, missing, now))
        self.history.keep_read(b, mask, ATTENTION, now, at, a.line, a.op)

    def look_for_entries(self, r: int, upto: int | None) -> None:
        """A token without an entry, in the table of the event's own line."""
        upto = self.all_tokens(r) if upto is None else upto
        size = self.attention.sizes[r]
        for p in range(self.window_from[r], -(-upto // size)):
            if p not in self.table[r] and p not in self.skipped[r]:
                self.no_entry(r, p)
                break


def span(lo: int, hi: int) -> int:
    """The mask of slots [lo,hi)."""
    return (1 << hi) - (1 << lo)


class Until(Order):
    """Judges no access from that line on where the first spread launch begins."""

    def __init__(self, spread: Spread, *args: Any) -> None:
        super().__init__(*args)
        self.end = spread.begins

    too_early = False

    def _hear(self, e: Access) -> None:
        if self.line < self.end:
            JUDGED[type(e)](self, e)
        else:
            self.feed.handlers.update(self.plain)
            self.plain[type(e)](e)

    on_write = on_read = on_copy = on_step = _hear
