"""What may still race: for each block the accesses that nothing later has covered, slot by slot.

An access that comes after another in order, and conflicts with it wherever a later one would, stands for it. So at most
one write a slot is kept, and of each timeline its latest reads: what is kept is bounded by the blocks, not by the log.
A race reported taints its block, whose accesses are then forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from kvsan.spec.ownership.accesses import COPYING, ORDER_RULES, WRITING, Use, rule_between, rule_within
from kvsan.spec.ownership.rules import no_reuse_in_flight

from .clocks import Clocks
from .timeline import Known

if TYPE_CHECKING:
    from .attention import Row

USES = len(Use)


def _number(earlier: Use, later: Use, same_life: bool) -> int:
    rule = rule_between(earlier, later, same_life)
    return -1 if rule is None else ORDER_RULES.index(rule)


BETWEEN = [[[_number(Use(a), Use(b), same) for b in range(USES)] for a in range(USES)] for same in (False, True)]
"""The number of the rule between an earlier and a later use, by whether they are of one life; -1: no conflict."""

WRITES = [Use(u) in WRITING for u in range(USES)]
COPIES = [Use(u) in COPYING for u in range(USES)]


NOBODY, MIXED = -2, -1
NOTHING: Known = {}
FORMER = 1 << USES
NO_REUSE = ORDER_RULES.index(no_reuse_in_flight)


Kept = tuple[int, int, int, int, int, int, Hashable | None]
"""An access as it is kept: mask, lane, at, life, use, line, op, as in `Access`. A tuple, for there are many."""


class Access(NamedTuple):
    """Accesses to slots of one block, `mask`, at count `at` of timeline `lane`, in the block's `life`."""

    mask: int
    lane: int
    at: int
    life: int
    use: int
    line: int
    op: Hashable | None


@dataclass(frozen=True)
class Race:
    """Two accesses of one block that nothing orders. rule: its number in `ORDER_RULES`. known: of the later one.

    earlier is a copy. later: where it happens, its slots and use, and the branch whose attention it is, if any.
    """

    rule: int
    block: int
    earlier: Access
    later: Access
    known: Known
    branch: int | None = None


class Block:
    """What is kept of a block. life: counts its allocs. lane, at: a place that every access comes before or is at, so
    that who comes after that place comes after them all; lane is MIXED where there is none such.

    union: the slots of all accesses. seen: a bit for each use that occurs among them, and FORMER where one is of a
    former life. holders: the table entries that hold it, by row and position, see `attention`.
    """

    __slots__ = ("accesses", "at", "holders", "lane", "life", "seen", "union")

    def __init__(self) -> None:
        self.accesses: list[Kept] = []
        self.lane, self.at, self.life, self.seen, self.union = NOBODY, 0, 0, 0, 0
        self.holders: dict[tuple[int, int], tuple[Row, int, int, int]] = {}

    def keep(self, accesses: list[Kept]) -> None:
        """Of the accesses so far, only these."""
        self.accesses, self.seen, self.union = accesses, 0, 0
        for mask, _, _, life, use, _, _ in accesses:
            self.union |= mask
            self.seen |= 1 << use | (FORMER if life != self.life else 0)
        if not accesses:
            self.lane, self.at = NOBODY, 0
        elif self.lane == MIXED and len({a[1] for a in accesses}) == 1:
            self.lane, self.at = accesses[0][1], max(a[2] for a in accesses)

    def reach(self, lane: int, at: int, known: Known) -> None:
        """An access was added there, where so much was known."""
        if self.lane == lane:
            if self.at < at:
                self.at = at
        elif self.lane == NOBODY or known.get(self.lane, 0) >= self.at:
            self.lane, self.at = lane, at
        else:
            self.lane = MIXED


class History:
    """The accesses of each block. `races` is drained by the caller, whom `wake` calls; `checked` counts judged pairs by
    rule number. tally: how many reads had nothing to fear, by what their blocks had `seen` of the slots they read."""

    def __init__(self, clocks: Clocks, wake: Callable[[], None]) -> None:
        self.clocks, self.wake = clocks, wake
        self.blocks: dict[int, Block] = {}
        self.races: list[Race] = []
        self.pairs = [0] * len(ORDER_RULES)
        self.tally = [0] * (2 * FORMER)

    def block(self, number: int) -> Block:
        known = self.blocks.get(number)
        if known is None:
            known = self.blocks[number] = Block()
        return known

    def begin(self, number: int) -> None:
        """The block's next life: what is kept is of a former one, and what all that follows comes after is judged."""
        block = self.block(number)
        block.life += 1
        accesses = block.accesses
        if accesses:
            settled = self.clocks.settled
            left = [] if settled(block.lane, block.at) else [a for a in accesses if not settled(a[1], a[2])]
            self.pairs[NO_REUSE] += len(accesses) - len(left)
            block.keep(left)

    def forget(self, number: int) -> None:
        self.block(number).keep([])

    @property
    def checked(self) -> list[int]:
        """How many pairs were judged, by the number of the rule. A read that comes after all accesses of a block is
        counted once for each kind of pair there."""
        total = list(self.pairs)
        for seen, count in enumerate(self.tally):
            for use in range(USES) if count else ():
                if seen >> use & 1 and WRITES[use]:
                    total[BETWEEN[not seen & FORMER][use][Use.ATTENTION]] += count
        return total

    def read(self, number: int, mask: int, use: int, line: int, op: Hashable | None) -> None:
        """A read that is judged now and kept."""
        self.judge(number, mask, use, line, op, None)
        now, at, _ = self.clocks.here
        self.keep_read(number, mask, use, now, at, line, op)

    def judge(self, number: int, mask: int, use: int, line: int, op: Hashable | None, branch: int | None) -> None:
        """Compare a read with the writes before it."""
        block = self.blocks.get(number)
        if block is None:
            return
        now, at, known = self.clocks.here
        for a in block.accesses:
            touched, lane, when, life, former, _, _ = a
            if touched & mask and WRITES[former]:
                rule = BETWEEN[life == block.life][former][use]
                if lane == now:
                    if when == at and COPIES[use] and COPIES[former]:
                        self._within(number, a, mask, use, line, op)
                        continue
                elif known.get(lane, 0) < when:
                    self._race(rule, number, a, mask, use, line, op, branch)
                self.pairs[rule] += 1

    def keep_read(self, number: int, mask: int, use: int, lane: int, at: int, line: int, op: Hashable | None) -> None:
        """Remember a read, in the place of what it stands for."""
        block = self.block(number)
        kept: list[Kept] = []
        for a in block.accesses:
            if a[4] == use and a[1] == lane and a[2] <= at:
                if a[0] & ~mask:
                    kept.append((a[0] & ~mask, *a[1:]))
            else:
                kept.append(a)
        kept.append((mask, lane, at, block.life, use, line, op))
        now, when, known = self.clocks.here
        block.reach(lane, at, known if (lane, at) == (now, when) else NOTHING)
        block.keep(kept)

    def cover(self, block: Block, number: int, mask: int, use: int, line: int, op: Hashable | None) -> None:
        """Compare a write with every access before it; it stands for those to its slots that it comes after."""
        now, at, known = self.clocks.here
        kept: list[Kept] = []
        for a in block.accesses:
            touched, lane, when, life, former, _, _ = a
            if not touched & mask:
                kept.append(a)
                continue
            rule = BETWEEN[life == block.life][former][use]
            if lane == now:
                if when == at and COPIES[former]:
                    if COPIES[use]:
                        self._within(number, a, mask, use, line, op)
                    kept.append(a)  # the launch may have more copies
                    continue
            elif known.get(lane, 0) < when:
                self._race(rule, number, a, mask, use, line, op, None)
                self.pairs[rule] += 1
                kept.append(a)
                continue
            self.pairs[rule] += 1
            if touched & ~mask:
                kept.append((touched & ~mask, *a[1:]))
        block.keep(kept)

    def _within(self, number: int, a: Kept, mask: int, use: int, line: int, op: Hashable | None) -> None:
        """Two copies of one launch."""
        rule = rule_within(Use(a[4]), Use(use))
        if rule is not None:
            broken = ORDER_RULES.index(rule)
            self.pairs[broken] += 1
            self._race(broken, number, a, mask, use, line, op, None)

    def _race(
        self, rule: int, number: int, a: Kept, mask: int, use: int, line: int, op: Hashable | None, branch: int | None
    ) -> None:
        now, at, known = self.clocks.here
        shared = a[0] & mask
        earlier = Access(shared, *a[1:])
        later = Access(shared, now, at, self.blocks[number].life, use, line, op)
        self.races.append(Race(rule, number, earlier, later, known, branch))
        self.wake()

    def against_attention(
        self, number: int, reads: Iterable[Kept], use: int, line: int, op: Hashable | None, branch: int
    ) -> None:
        """Compare a write with the attention of a branch whose table still holds the block; masks: what both touch."""
        now, _, known = self.clocks.here
        rule = BETWEEN[True][Use.ATTENTION][use]
        for a in reads:
            if a[1] != now and known.get(a[1], 0) < a[2]:
                self._race(rule, number, a, a[0], use, line, op, branch)
            self.pairs[rule] += 1
