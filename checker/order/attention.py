"""What attention reads, without touching each block of the context at each step.

A branch has one read clock: its latest reads on each timeline, each with how far it reached. An entry of its table
remembers how many reads there were when it was made; when it goes, the reads since are folded into its block. What a
read must look at is what changed since the branch's last read that comes before it: new tokens, new entries, and blocks
written meanwhile; only where no such read comes before it, the whole table.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from kvsan.spec.ownership.accesses import Use, slots_attended

from .history import Access, History

POSITION_BITS = 63  # the format's largest position
POSITION = (1 << POSITION_BITS) - 1


class Reach:
    """One read of a branch: its first `upto` tokens; `turn` counts the branch's reads."""

    __slots__ = ("at", "lane", "line", "op", "turn", "upto")

    def __init__(self, lane: int, at: int, upto: int, turn: int, line: int, op: Hashable | None) -> None:
        self.lane, self.at, self.upto, self.turn = lane, at, upto, turn
        self.line, self.op = line, op


class Row:
    """What is known of the reads of one row. `lane`, `at`, `upto`: the last read that was looked at whole."""

    __slots__ = ("at", "dirty", "lane", "reads", "turn", "upto")

    def __init__(self) -> None:
        self.lane, self.at, self.upto, self.turn = -1, 0, 0, 0
        self.reads: list[Reach] = []
        self.dirty: set[int] = set()


class Attention:
    """The read clocks of all rows, and which entries of which rows hold each block."""

    def __init__(self, history: History, sizes: list[int]) -> None:
        self.history, self.clocks, self.sizes = history, history.clocks, sizes
        self.rows: dict[int, Row] = {}
        self.holders: dict[int, dict[int, int]] = {}

    def row(self, r: int) -> Row:
        known = self.rows.get(r)
        if known is None:
            known = self.rows[r] = Row()
        return known

    # --- the table ----------------------------------------------------------------------------------------------------

    def enter(self, r: int, p: int, block: int) -> None:
        row = self.row(r)
        self.holders.setdefault(block, {})[r << POSITION_BITS | p] = row.turn
        row.dirty.add(p)

    def leave(self, r: int, p: int, block: int) -> None:
        """The entry goes, or falls below the window: the reads since it was made stay with the block."""
        row = self.row(r)
        row.dirty.add(p)
        holders = self.holders.get(block)
        turn = None if holders is None else holders.pop(r << POSITION_BITS | p, None)
        if turn is None:
            return
        if not holders:
            del self.holders[block]
        for read in row.reads:
            count = slots_attended(self.sizes[r], read.upto, p)
            if read.turn > turn and count:
                mask = (1 << count) - 1
                self.history.keep_read(block, mask, Use.ATTENTION, read.lane, read.at, read.line, read.op)

    def end(self, r: int) -> None:
        """The row is empty and starts anew."""
        self.rows.pop(r, None)

    def forget(self, block: int) -> None:
        """The block is not trusted: nobody's entry any more."""
        for key in self.holders.pop(block, ()):
            self.row(key >> POSITION_BITS).dirty.discard(key & POSITION)

    # --- reads and writes ---------------------------------------------------------------------------------------------

    def written(self, block: int, lo: int, mask: int, use: int, line: int, op: Hashable | None) -> None:
        """A write, compared with the attention of the branches that hold the block; they look at it once more."""
        holders = self.holders.get(block)
        if holders is None:
            return
        for key, turn in holders.items():
            r, p = key >> POSITION_BITS, key & POSITION
            row = self.rows[r]
            row.dirty.add(p)
            reads = row.reads
            if reads:
                first = p * self.sizes[r] + lo
                if any(read.turn > turn and read.upto > first for read in reads):
                    found = self._reaching(reads, turn, self.sizes[r], p, mask, self.history.lives.get(block, 0))
                    self.history.against_attention(block, found, use, line, op, r)

    def _reaching(self, reads: list[Reach], turn: int, size: int, p: int, mask: int, life: int) -> Iterator[Access]:
        for read in reads:
            touched = mask & ((1 << slots_attended(size, read.upto, p)) - 1)
            if read.turn > turn and touched:
                yield Access(touched, read.lane, read.at, life, Use.ATTENTION, read.line, read.op)

    def lost(self, block: int) -> None:
        """The block's contents changed: whoever holds it looks at it once more."""
        for key in self.holders.get(block, ()):
            self.rows[key >> POSITION_BITS].dirty.add(key & POSITION)

    def positions(self, r: int, upto: int, start: int) -> Iterator[int]:
        """The positions that a read of a row's first `upto` tokens has to look at, none below `start`."""
        row, size, clocks = self.row(r), self.sizes[r], self.clocks
        end = -(-upto // size)
        if row.lane == clocks.now or clocks.known.get(row.lane, 0) >= row.at > 0:
            first = max(row.upto // size, start)
            older = [p for p in row.dirty if start <= p < min(first, end)] if row.dirty else []
            if upto >= row.upto:
                row.dirty.clear()
                row.upto = upto
            elif older:
                row.dirty.difference_update(p for p in older if (p + 1) * size <= upto)
            row.lane, row.at = clocks.now, clocks.at
            older.sort()
            yield from older
            yield from range(first, end)
        else:
            row.dirty.clear()
            row.lane, row.at, row.upto = clocks.now, clocks.at, upto
            yield from range(start, end)

    def read(self, r: int, upto: int, line: int, op: Hashable | None) -> None:
        """Keep a read, in the place of those that it stands for."""
        row, clocks = self.row(r), self.clocks
        row.turn += 1
        now, known = clocks.now, clocks.known
        if row.reads:
            row.reads = [x for x in row.reads if x.upto > upto or not (x.lane == now or known.get(x.lane, 0) >= x.at)]
        row.reads.append(Reach(now, clocks.at, upto, row.turn, line, op))
