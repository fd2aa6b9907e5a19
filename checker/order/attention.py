"""What attention reads, without touching each block of the context at each step.

A branch has one read clock: its latest reads on each timeline, each with how far it reached. An entry of its table
remembers the line that made it; when it goes, the reads since are folded into its block. What a read must look at is
what changed since the branch's last read that comes before it: new tokens, new entries, and blocks written meanwhile;
only where no such read comes before it, the whole table.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping

from kvsan.spec.ownership.accesses import Use, slots_attended

from .clocks import Clocks
from .history import History, Kept


class Reach:
    """One read of a branch: its first `upto` tokens."""

    __slots__ = ("at", "lane", "line", "op", "upto")

    def __init__(self, lane: int, at: int, upto: int, line: int, op: Hashable | None) -> None:
        self.lane, self.at, self.upto = lane, at, upto
        self.line, self.op = line, op


NEVER = Reach(-1, 0, 0, 0, None)
"""Stands for a read that there was not: on no timeline."""


class Row:
    """What is known of the reads of one row. looked: the last read that was looked at whole.

    reach: no kept read, nor `looked`, reaches further. dirty: positions to look at once more, all of them below those
    that `looked` did not cover. alone: the one kept read, where that is `looked` itself, as with a branch that decodes.
    """

    __slots__ = ("alone", "dirty", "looked", "reach", "reads", "size")

    def __init__(self, size: int) -> None:
        self.size, self.reach = size, 0
        self.looked = self.alone = NEVER
        self.reads: list[Reach] = []
        self.dirty: set[int] = set()

    def again(self, p: int) -> None:
        """What position p holds has changed. Positions that `looked` did not cover are looked at anyway."""
        if p < self.looked.upto // self.size:
            self.dirty.add(p)

    def forget_looks(self) -> None:
        """The next read looks at everything."""
        self.looked = self.alone = NEVER

    def positions(self, clocks: Clocks, upto: int, start: int) -> Iterable[int]:
        """The positions that a read of the first `upto` tokens has to look at, none below `start`; marks it as looked
        at."""
        (now, at, known), size, dirty, looked = clocks.here, self.size, self.dirty, self.looked
        end = -(-upto // size)
        if at < looked.at if looked.lane == now else known.get(looked.lane, 0) < looked.at or looked is NEVER:
            dirty.clear()
            self.looked = Reach(now, at, upto, 0, None)
            return range(start, end)
        first = max(looked.upto // size, start)
        self.looked = Reach(now, at, max(upto, looked.upto), 0, None)
        if not dirty:
            return range(first, end)
        if upto < looked.upto:
            older = sorted(p for p in dirty if start <= p < min(first, end))
            dirty.difference_update([p for p in older if (p + 1) * size <= upto])
        else:
            older = sorted(p for p in dirty if start <= p < first)
            dirty.clear()
        return [*older, *range(first, end)]

    def read(self, clocks: Clocks, upto: int, line: int, op: Hashable | None) -> None:
        """Keep a read that was looked at, in the place of those that it stands for."""
        now, at, known = clocks.here
        reads = [
            x for x in self.reads if x.upto > upto or (at < x.at if x.lane == now else known.get(x.lane, 0) < x.at)
        ]
        last = Reach(now, at, upto, line, op)
        reads.append(last)
        self.reads, self.reach = reads, max(x.upto for x in reads)
        self.alone = NEVER
        if len(reads) == 1 and self.looked.upto == upto:
            self.looked = self.alone = last

    def reaching(self, since: int, p: int, mask: int, life: int) -> Iterator[Kept]:
        """The kept reads that reach into these slots of the entry that line `since` made at position p."""
        for read in self.reads:
            touched = mask & ((1 << slots_attended(self.size, read.upto, p)) - 1)
            if read.line > since and touched:
                yield touched, read.lane, read.at, life, Use.ATTENTION, read.line, read.op


class Attention:
    """The read clocks of all rows, and which entries of which rows hold each block."""

    def __init__(self, history: History, sizes: list[int]) -> None:
        self.history, self.clocks, self.sizes = history, history.clocks, sizes
        self.rows: dict[int, Row] = {}

    def row(self, r: int) -> Row:
        known = self.rows.get(r)
        if known is None:
            known = self.rows[r] = Row(self.sizes[r])
        return known

    def enter(self, r: int, p: int, block: int, line: int) -> None:
        """An entry is made by this line."""
        row = self.row(r)
        self.history.block(block).holders[r, p] = (row, p, p * row.size, line)
        row.again(p)

    def leave(self, r: int, p: int, block: int) -> None:
        """The entry goes, or falls below the window: the reads since it was made stay with the block."""
        held = self.history.block(block).holders.pop((r, p), None)
        row = self.row(r)
        row.again(p)
        if held is not None:
            self.fold(row, row.reads, p, block, held[3])

    def fold(self, row: Row, reads: Iterable[Reach], p: int, block: int, since: int) -> None:
        """The reads, as far as they reach into the entry that line `since` made, are remembered of the block."""
        for read in reads:
            count = slots_attended(row.size, read.upto, p)
            if read.line > since and count and not self.clocks.settled(read.lane, read.at):
                mask = (1 << count) - 1
                self.history.keep_read(block, mask, Use.ATTENTION, read.lane, read.at, read.line, read.op)

    def end(self, r: int, entries: Mapping[int, int]) -> None:
        """All these entries go: the row is empty and starts anew."""
        row = self.rows.pop(r, None)
        if row is None:
            return
        settled, blocks = self.clocks.settled, self.history.blocks
        reads = [read for read in row.reads if not settled(read.lane, read.at)]
        for p, block in entries.items():
            known = blocks.get(block)
            held = None if known is None else known.holders.pop((r, p), None)
            if reads and held is not None:
                self.fold(row, reads, p, block, held[3])

    def forget(self, block: int) -> None:
        """The block is not trusted: nobody's entry any more."""
        self.history.block(block).holders.clear()

    def lost(self, block: int) -> None:
        """The block's contents changed: whoever holds it looks at it once more."""
        for row, p, _, _ in self.history.block(block).holders.values():
            row.again(p)
