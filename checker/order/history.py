"""What may still race: for each block the accesses that nothing later has covered, slot by slot.

An access that comes after another in order, and conflicts with it wherever a later one would, stands for it. So at most
one write a slot is kept, and of each timeline its latest reads: what is kept is bounded by the blocks, not by the log.
A race reported taints its block, whose accesses are then forgotten.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from kvsan.spec.ownership.accesses import COPYING, ORDER_RULES, WRITING, Use, rule_between, rule_within

from .clocks import Clocks, Known

USES = len(Use)


def _number(earlier: Use, later: Use, same_life: bool) -> int:
    rule = rule_between(earlier, later, same_life)
    return -1 if rule is None else ORDER_RULES.index(rule)


BETWEEN = [[[_number(Use(a), Use(b), same) for b in range(USES)] for a in range(USES)] for same in (False, True)]
"""The number of the rule between an earlier and a later use, by whether they are of one life; -1: no conflict."""

WRITES = [Use(u) in WRITING for u in range(USES)]
COPIES = [Use(u) in COPYING for u in range(USES)]


class Access:
    """Accesses to slots of one block, `mask`, at count `at` of timeline `lane`, in the block's `life`."""

    __slots__ = ("at", "lane", "life", "line", "mask", "op", "use")

    def __init__(self, mask: int, lane: int, at: int, life: int, use: int, line: int, op: Hashable | None) -> None:
        self.mask, self.lane, self.at, self.life = mask, lane, at, life
        self.use, self.line, self.op = use, line, op


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


class History:
    """The accesses of each block. `races` is drained by the caller; `checked` counts judged pairs by rule number."""

    def __init__(self, clocks: Clocks) -> None:
        self.clocks = clocks
        self.kept: dict[int, list[Access]] = {}
        self.lives: dict[int, int] = {}
        self.races: list[Race] = []
        self.checked = [0] * len(ORDER_RULES)

    def forget(self, block: int) -> None:
        self.kept.pop(block, None)

    def read(self, block: int, mask: int, use: int, line: int, op: Hashable | None) -> None:
        """A read that is judged now and kept."""
        self.judge(block, mask, use, line, op, None)
        self.keep_read(block, mask, use, self.clocks.now, self.clocks.at, line, op)

    def judge(self, block: int, mask: int, use: int, line: int, op: Hashable | None, branch: int | None) -> None:
        """Compare a read with the writes before it."""
        accesses = self.kept.get(block)
        if not accesses:
            return
        clocks = self.clocks
        now, at, known = clocks.now, clocks.at, clocks.known
        life, between, checked = self.lives.get(block, 0), BETWEEN, self.checked
        for a in accesses:
            if a.mask & mask and WRITES[a.use]:
                rule = between[a.life == life][a.use][use]
                if a.lane == now:
                    if a.at == at and COPIES[use] and COPIES[a.use]:
                        self._within(block, a, mask, use, line, op)
                        continue
                elif known.get(a.lane, 0) < a.at:
                    self._race(rule, block, a, mask, use, line, op, branch)
                checked[rule] += 1

    def keep_read(self, block: int, mask: int, use: int, lane: int, at: int, line: int, op: Hashable | None) -> None:
        """Remember a read, in the place of what it stands for."""
        accesses = self.kept.setdefault(block, [])
        gone = False
        for a in accesses:
            if a.use == use and a.lane == lane and a.at <= at:
                a.mask &= ~mask
                gone = gone or not a.mask
        if gone:
            accesses[:] = [a for a in accesses if a.mask]
        accesses.append(Access(mask, lane, at, self.lives.get(block, 0), use, line, op))

    def write(self, block: int, mask: int, use: int, line: int, op: Hashable | None) -> None:
        """Compare a write with every access before it, and keep it in the place of those to its slots."""
        clocks = self.clocks
        now, at, known = clocks.now, clocks.at, clocks.known
        life, checked = self.lives.get(block, 0), self.checked
        accesses = self.kept.get(block)
        if accesses is None:
            self.kept[block] = [Access(mask, now, at, life, use, line, op)]
            return
        gone = False
        for a in accesses:
            if a.mask & mask:
                rule = BETWEEN[a.life == life][a.use][use]
                if a.lane == now:
                    if a.at == at and COPIES[use] and COPIES[a.use]:
                        self._within(block, a, mask, use, line, op)
                        continue
                elif known.get(a.lane, 0) < a.at:
                    self._race(rule, block, a, mask, use, line, op, None)
                checked[rule] += 1
                a.mask &= ~mask
                gone = gone or not a.mask
        if gone:
            accesses[:] = [a for a in accesses if a.mask]
        accesses.append(Access(mask, now, at, life, use, line, op))

    def _within(self, block: int, a: Access, mask: int, use: int, line: int, op: Hashable | None) -> None:
        """Two copies of one launch."""
        rule = rule_within(Use(a.use), Use(use))
        if rule is not None:
            number = ORDER_RULES.index(rule)
            self.checked[number] += 1
            self._race(number, block, a, mask, use, line, op, None)

    def _race(
        self, rule: int, block: int, a: Access, mask: int, use: int, line: int, op: Hashable | None, branch: int | None
    ) -> None:
        clocks = self.clocks
        shared = a.mask & mask
        earlier = Access(shared, a.lane, a.at, a.life, a.use, a.line, a.op)
        later = Access(shared, clocks.now, clocks.at, self.lives.get(block, 0), use, line, op)
        self.races.append(Race(rule, block, earlier, later, clocks.known, branch))

    def against_attention(
        self, block: int, reads: Iterable[Access], use: int, line: int, op: Hashable | None, branch: int
    ) -> None:
        """Compare a write with the attention of a branch whose table still holds the block; masks: what both touch."""
        clocks = self.clocks
        rule = BETWEEN[True][Use.ATTENTION][use]
        for a in reads:
            if a.lane != clocks.now and clocks.known.get(a.lane, 0) < a.at:
                self._race(rule, block, a, a.mask, use, line, op, branch)
            self.checked[rule] += 1
