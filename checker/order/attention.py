"""What attention reads, without touching each block of the context at each step.

A branch has one read clock: its latest reads on each timeline, each with how far it reached. An entry of its table
remembers how many reads there were when it was made; when it goes, the reads since are folded into its block. What a
read must look at is what changed since the branch's last read that comes before it: new tokens, new entries, and blocks
written meanwhile; only where no such read comes before it, the whole table.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from kvsan.spec.ownership.accesses import Use, slots_attended

from .history import History, Kept

POSITION_BITS = 63  # the format's largest position
POSITION = (1 << POSITION_BITS) - 1


class Reach:
    """One read of a branch: its first `upto` tokens; `turn` counts the branch's reads."""

    __slots__ = ("at", "lane", "line", "op", "turn", "upto")

    def __init__(self, lane: int, at: int, upto: int, turn: int, line: int, op: Hashable | None) -> None:
        self.lane, self.at, self.upto, self.turn = lane, at, upto, turn
        self.line, self.op = line, op


class Row:
    """What is known of the reads of one row. `lane`, `at`, `upto`: the last read that was looked at whole.

    reach: no kept read reaches further. dirty: positions to look at once more.
    """

    __slots__ = ("at", "dirty", "lane", "reach", "reads", "turn", "upto")

    def __init__(self) -> None:
        self.lane, self.at, self.upto, self.turn, self.reach = -1, 0, 0, 0, 0
        self.reads: list[Reach] = []
        self.dirty: set[int] = set()


class Attention:
    """The read clocks of all rows, and which entries of which rows hold each block."""

    def __init__(self, history: History, sizes: list[int]) -> None:
        self.history, self.clocks, self.sizes = history, history.clocks, sizes
        self.rows: dict[int, Row] = {}

    def row(self, r: int) -> Row:
        known = self.rows.get(r)
        if known is None:
            known = self.rows[r] = Row()
        return known

    # --- the table ----------------------------------------------------------------------------------------------------

    def enter(self, r: int, p: int, block: int) -> None:
        row = self.row(r)
        self.history.block(block).holders[r << POSITION_BITS | p] = row.turn
        row.dirty.add(p)

    def leave(self, r: int, p: int, block: int) -> None:
        """The entry goes, or falls below the window: the reads since it was made stay with the block."""
        row = self.row(r)
        row.dirty.add(p)
        turn = self.history.block(block).holders.pop(r << POSITION_BITS | p, None)
        if turn is None:
            return
        for read in row.reads:
            count = slots_attended(self.sizes[r], read.upto, p)
            if read.turn > turn and count and not self.clocks.settled(read.lane, read.at):
                mask = (1 << count) - 1
                self.history.keep_read(block, mask, Use.ATTENTION, read.lane, read.at, read.line, read.op)

    def end(self, r: int) -> None:
        """The row is empty and starts anew."""
        self.rows.pop(r, None)

    def forget(self, block: int) -> None:
        """The block is not trusted: nobody's entry any more."""
        self.history.block(block).holders.clear()

    # --- reads and writes ---------------------------------------------------------------------------------------------

    def reaching(self, row: Row, turn: int, size: int, p: int, mask: int, life: int) -> Iterator[Kept]:
        """The kept reads of a row that reach into these slots of the entry that was made at `turn` at position p."""
        for read in row.reads:
            touched = mask & ((1 << slots_attended(size, read.upto, p)) - 1)
            if read.turn > turn and touched:
                yield touched, read.lane, read.at, life, Use.ATTENTION, read.line, read.op

    def lost(self, block: int) -> None:
        """The block's contents changed: whoever holds it looks at it once more."""
        for key in self.history.block(block).holders:
            self.rows[key >> POSITION_BITS].dirty.add(key & POSITION)

    def positions(self, row: Row, size: int, upto: int, start: int) -> Iterable[int]:
        """The positions that a read of a row's first `upto` tokens has to look at, none below `start`; marks it as
        looked at."""
        clocks, dirty = self.clocks, row.dirty
        end = -(-upto // size)
        if row.lane != clocks.now and not clocks.known.get(row.lane, 0) >= row.at > 0:
            dirty.clear()
            row.lane, row.at, row.upto = clocks.now, clocks.at, upto
            return range(start, end)
        row.lane, row.at = clocks.now, clocks.at
        first = row.upto // size
        if first < start:
            first = start
        if upto < row.upto:
            older = sorted(p for p in dirty if start <= p < min(first, end))
            dirty.difference_update([p for p in older if (p + 1) * size <= upto])
            return [*older, *range(first, end)]
        row.upto = upto
        if not dirty:
            return range(first, end)
        if end - first == 1 and len(dirty) == 1 and first in dirty:  # a branch that decodes: its tail was written
            dirty.clear()
            return (first,)
        older = sorted([p for p in dirty if start <= p < first]) if min(dirty) < first else []
        dirty.clear()
        return [*older, *range(first, end)] if older else range(first, end)

    def read(self, row: Row, upto: int, line: int, op: Hashable | None) -> None:
        """Keep a read, in the place of those that it stands for."""
        clocks = self.clocks
        now, reads = clocks.now, row.reads
        row.turn += 1
        if len(reads) == 1 and reads[0].lane == now and reads[0].upto <= upto:  # a branch that decodes
            read = reads[0]
            read.at, read.upto, read.turn, read.line, read.op = clocks.at, upto, row.turn, line, op
            row.reach = upto
            return
        known = clocks.known
        if reads:
            row.reads = reads = [
                x for x in reads if x.upto > upto or not (x.lane == now or known.get(x.lane, 0) >= x.at)
            ]
        reads.append(Reach(now, clocks.at, upto, row.turn, line, op))
        row.reach = max(x.upto for x in reads)
