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


@dataclass(frozen=True, order=True)
class Said:
    """A breach that a replay reports, with the lines that its event and the access that it is with have in the log."""

    rule: str
    block: str
    branch: str
    line: int
    earlier: int

    @classmethod
    def of(cls, found: Violation, line: int, earlier: int) -> Said:
        """earlier: 0 where there is none. Empty where it is about no block, or no branch."""
        return cls(found.rule, found.block or "", found.branch or "", line, earlier)

    def turned(self, found: Violation, cut: Cut) -> bool:
        """It is the breach, or between the same two accesses, or others of their launches, whichever came first."""
        pair, places = (self.line, self.earlier), (found.line, found.earlier or 0)
        same = {*pair} == {*places} if cut.within else {*map(cut.begins, pair)} == {*map(cut.begins, places)}
        return same and self.block == (found.block or "") and self.rule in ORDER_NAMES

    def instead(self, found: Violation, cut: Cut) -> bool:
        """It is about the block or whoever reads it, and no race; and the log does not have it."""
        about = self.block == found.block or (not self.block and self.branch == found.branch)
        return about and not self.earlier and (self.rule, self.line) not in cut.broken


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
        return {Said.of(f.violation, old[f.violation.line], old[f.violation.earlier or 0]) for f in replay.findings}
