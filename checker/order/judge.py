"""What the accesses of a launch meet, block by block: other accesses that nothing orders, and slots nobody wrote.

What is written, whose table holds what, and what is tainted is the ledger's.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kvsan.spec.ownership.accesses import Use, slots_attended

from .attention import Attention, Row
from .clocks import Clocks
from .history import Block, History, Race
from .timeline import Known

if TYPE_CHECKING:
    from kvsan.checker.replay.feed import Feed

TAINTED = 2
NONE = -1

COPY_SOURCE, COPY_TARGET, WRITE = int(Use.COPY_SOURCE), int(Use.COPY_TARGET), int(Use.WRITE)
ATTENTION, TRANSFER = int(Use.ATTENTION), int(Use.TRANSFER)
WRITE_BIT = 1 << WRITE


@dataclass(frozen=True)
class Unwritten:
    """A branch reads slots that were not written in this life, or a token for which its table has no entry.

    block: None where there is no entry. mask: the slots. pos: the position in the table of `branch`.
    """

    block: int | None
    branch: int
    pos: int
    mask: int
    lane: int


Breach = Race | Unwritten


class Judge:
    """Hears of each access of the launch where the clocks stand. `wake` tells that `breaches` has something to drain.

    distrusted: rows whose length is known to be wrong. copied: the last line that copied, and from where to where.
    """

    def __init__(
        self, feed: Feed, clocks: Clocks, unreliable: frozenset[str], distrusted: set[int], wake: Callable[[], None]
    ) -> None:
        state = feed.state
        self.clocks, self.distrusted, self.wake = clocks, distrusted, wake
        self.history = History(clocks, wake)
        self.attention = Attention(self.history, state["block_size"])
        self.blocks, self.rows = self.history.blocks, self.attention.rows
        self.races, self.tally = self.history.races, self.history.tally
        self.table, self.written, self.window_from = state["table"], state["written"], state["window_from"]
        self.length, self.skipped = state["length"], state["skipped"]
        self.fuzzy, self.fuzzy_rows = feed.fuzzy["Block"], feed.fuzzy["Branch"]
        self.shows_writes = "written" not in unreliable
        self.shows_tables = not unreliable & {"table", "places", "held"}
        self.shows_length = "length" not in unreliable
        self.unwritten: list[Unwritten] = []
        self.copied: tuple[int, list[tuple[int, int]]] = (0, [])
        self.positions = 0

    @property
    def checked_positions(self) -> int:
        """How many times a read looked at a position, to see whether it was written."""
        return self.positions + (sum(self.tally) if self.shows_writes else 0)

    @property
    def breaches(self) -> Sequence[Breach]:
        """What the latest event broke; draining."""
        found: list[Breach] = [*self.races, *self.unwritten]
        self.races.clear()
        self.unwritten.clear()
        return found

    def tell(self, breach: Breach) -> None:
        """One more of the latest event."""
        if isinstance(breach, Race):
            self.races.append(breach)
        else:
            self.unwritten.append(breach)
        self.wake()

    def forget(self, block: int) -> None:
        """The block is tainted: silence until its next alloc."""
        self.history.forget(block)
        self.attention.forget(block)

    # --- writes, copies, transfers ------------------------------------------------------------------------------------

    def write(
        self, b: int, lo: int, hi: int, line: int, op: Hashable | None, use: int = WRITE, bit: int = WRITE_BIT
    ) -> None:
        """A write, or with its `use` and the bit of that the target of a copy."""
        if self.fuzzy[b] & TAINTED:
            return
        try:
            block = self.blocks[b]
        except KeyError:
            block = self.history.block(b)
        now, at, known = self.clocks.here
        mask = (1 << hi) - (1 << lo)
        if block.union & mask:
            self.history.cover(block, b, mask, use, line, op)
        block.accesses.append((mask, now, at, block.life, use, line, op))
        block.union |= mask
        block.seen |= bit
        if block.lane == now:
            block.at = at
        else:
            block.reach(now, at, known)
        for row, _, start, _ in block.holders.values():
            if row.reach > start + lo:
                self._write_below(b, block, mask, use, line, op)
                break

    def _write_below(self, b: int, block: Block, mask: int, use: int, line: int, op: Hashable | None) -> None:
        """A write of slots that some branch may have read already: it is compared, and they look there once more."""
        for (r, _), (row, p, _, since) in block.holders.items():
            row.again(p)
            self.history.against_attention(b, row.reaching(since, p, mask, block.life), use, line, op, r)

    def read(self, b: int, lo: int, hi: int, use: int, line: int, op: Hashable | None) -> None:
        """A read that is no attention."""
        if not self.fuzzy[b] & TAINTED:
            self.history.read(b, (1 << hi) - (1 << lo), use, line, op)

    def copy(self, src: int, dst: int, lo: int, hi: int, line: int, op: Hashable | None) -> None:
        """Reads the source, writes the target. What is unknown of the source, is of the target for the ledger, too."""
        if src == dst:
            return
        if self.copied[0] != line:
            self.copied = (line, [])
        self.copied[1].append((src, dst))
        self.read(src, lo, hi, COPY_SOURCE, line, op)
        self.write(dst, lo, hi, line, op, COPY_TARGET, 1 << COPY_TARGET)

    # --- attention ----------------------------------------------------------------------------------------------------

    def attend(self, r: int, upto: int | None, line: int, op: Hashable | None) -> None:
        """Attention of a row over its first `upto` tokens, or all it has."""
        if upto is None:
            upto = self.all_tokens(r)
            if not upto:
                return
        try:
            row = self.rows[r]
        except KeyError:
            row = self.attention.row(r)
        now, at, known = self.clocks.here
        last = row.alone
        if last.lane == now and last.upto <= upto and not row.dirty:  # a branch that decodes
            size = row.size
            p = last.upto // size
            count = upto - p * size
            if count <= size:
                b, mask = self.table[r].get(p, NONE), (1 << count) - 1
                if self._all_well(b, mask, now, at, known):
                    last.at, last.line, last.op = at, line, op
                    last.upto = row.reach = upto
                    return
        self._attend(r, row, upto, line, op)

    def all_tokens(self, r: int) -> int:
        """How many tokens a row has; none where that is not known."""
        return self.length[r] if self.shows_length and r not in self.distrusted else 0

    def _all_well(self, b: int, mask: int, now: int, at: int, known: Known) -> bool:
        """What a read sees of a block was written, and comes before it: nothing more is to be said. Counted then."""
        try:
            block = self.blocks[b]
        except KeyError:
            return False
        if block.at > at if block.lane == now else known.get(block.lane, 0) < block.at:
            return False
        if self.fuzzy[b] or (self.shows_writes and mask & ~self.written[b]):
            return False
        self.tally[block.seen if block.union & mask else 0] += 1
        return True

    def _attend(self, r: int, row: Row, upto: int, line: int, op: Hashable | None) -> None:
        table, size = self.table[r], row.size
        here = self.clocks.here
        for p in row.positions(self.clocks, upto, self.window_from[r]):
            b = table.get(p, NONE)
            if b == NONE:
                if p in self.skipped[r]:
                    continue
                self.no_entry(r, p)
                for further in sorted(at for at in table if p < at and at * size < upto):
                    self._attend_entry(r, further, table[further], upto, size, line, op)
                break
            count = upto - p * size
            if not self._all_well(b, (1 << (count if count < size else size)) - 1, *here):
                self._attend_entry(r, p, b, upto, size, line, op)
        row.read(self.clocks, upto, line, op)

    def _attend_entry(self, r: int, p: int, b: int, upto: int, size: int, line: int, op: Hashable | None) -> None:
        """Attention over the first `upto` tokens of a row, at one of its entries."""
        mask = (1 << slots_attended(size, upto, p)) - 1
        self.history.judge(b, mask, ATTENTION, line, op, r)
        if self.shows_writes and not self.fuzzy[b]:
            self.positions += 1
            missing = mask & ~self.written[b]
            if missing:
                self.tell(Unwritten(b, r, p, missing, self.clocks.here[0]))

    def no_entry(self, r: int, p: int) -> None:
        if self.shows_tables and not self.fuzzy_rows[r]:
            self.positions += 1
            self.tell(Unwritten(None, r, p, 0, self.clocks.here[0]))
