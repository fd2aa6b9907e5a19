"""What replays say of some events of a log: the breaches that they report, by the lines that the events have there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from kvsan.checker.replay.outcome import Violation
from kvsan.checker.replay.replay import Replay
from kvsan.spec.ownership.accesses import ORDER_RULES
from kvsan.traces import events as ev

from .placed import hearer
from .reordered import Cut
from .schedule import Line, NoWitness
from .spread import Spread, Survey

ORDER_NAMES = frozenset(rule.name for rule in ORDER_RULES)


@dataclass(frozen=True)
class Said:
    """A breach that a replay reports, with the lines that its event, and the access that it is with, have in the log.

    head: of several blocks with one root cause, that which the report names.
    """

    rule: str
    block: str | None
    branch: str | None
    line: int
    earlier: int | None
    head: str | None

    def turned(self, found: Violation, cut: Cut) -> bool:
        """It is between the same two accesses, or others of their launches, whichever came first."""
        begins = cut.begins if not cut.within else lambda line: line
        places = {begins(self.line), begins(self.earlier)} == {begins(found.line), begins(found.earlier)}
        return places and self.block == found.block and self.rule in ORDER_NAMES

    def same(self, found: Violation) -> bool:
        """It is the breach itself."""
        where = (self.rule, self.block, self.line, self.earlier) == (found.rule, found.block, found.line, found.earlier)
        return where and (found.earlier is not None or self.branch == found.branch)

    def instead(self, found: Violation, cut: Cut) -> bool:
        """It is about the block or whoever reads it, or one of the two launches, and no race."""
        about = self.block == found.block or (self.block is None and self.branch == found.branch)
        launched = cut.begins(self.line) in map(cut.begins, (found.line, found.earlier))
        return (about or launched) and self.earlier is None and (self.rule, self.line) not in cut.broken


class Replays:
    """Of parts of a log, under a header. fresh: makes them."""

    def __init__(self, fresh: Callable[..., Replay], header: ev.Trace) -> None:
        self.fresh, self.header = fresh, header

    def performed(self, events: Sequence[ev.Event]) -> Replay:
        """As `check` does it. Raises NoWitness."""
        numbered = [*enumerate(events, 2)]
        replay = self.fresh(self.header)
        replay.perform(numbered)
        if replay.misjudged:
            spread = Spread()
            self.fresh(self.header, partial(Survey, spread)).perform(numbered)
            if spread.full:
                raise NoWitness("too much of its launches is spread over the log")
            replay = self.fresh(self.header, hearer(spread))
            replay.perform(numbered)
        return replay

    def said(self, lines: Sequence[Line]) -> set[Said]:
        replay = self.performed([event for _, event in lines])
        old = [0, 0, *(line for line, _ in lines)]
        found = set()
        for f in replay.findings:
            v = f.violation
            several = [] if f.told is None else [replay.feed.describe("Block", b) for b in f.told.blocks]
            blocks: list[str | None] = [*several] or [v.block]
            for block in blocks:
                earlier = None if v.earlier is None else old[v.earlier]
                found.add(Said(v.rule, block, v.branch, old[v.line], earlier, v.block))
        return found
