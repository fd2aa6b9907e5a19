"""Replay: every event of a log is performed on the ledger that the specification lowers to, and judged there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any  # rendered values of any sort

from kvsan.spec.lang import load
from kvsan.spec.lang.spec import Spec
from kvsan.spec.ownership.disciplines import DISCIPLINES
from kvsan.traces import events as ev
from kvsan.traces.read import Gap

from .emit import Machine, Obligation
from .feed import Feed
from .outcome import Violation
from .recorded import kinds_of_all, unreliable
from .taint import TAINTED, taint_block
from .wording import event_fields

KEPT = 1000
"""Findings of one rule that are kept in full; the others are counted."""


@cache
def ownership() -> Spec:
    """The discipline, read and lowered once a process."""
    return load("kvsan.spec.ownership")


@dataclass(frozen=True)
class Finding:
    """A violation or lint with the ids that an explanation needs."""

    violation: Violation
    obligation: Obligation
    block: int | None
    branch: int | None


class Replay:
    """One pass over one log. `feed_event` performs an event; `findings` and `lints` collect what it broke.

    recorded / occurring / declared: what the log can show, see `recorded.unreliable`.
    """

    def __init__(
        self, header: ev.Trace, recorded: frozenset[str], occurring: frozenset[str], spec: Spec | None = None
    ) -> None:
        self.header, self.spec = header, spec or ownership()
        self.discipline = DISCIPLINES[header.discipline]
        feeders, drainers = traffic(self.spec)
        self.silenced = unreliable(feeders, drainers, recorded, occurring, header.complete is not None)
        self.findings: list[Finding] = []
        self.lints: list[Finding] = []
        self.totals: Counter[str] = Counter()
        self.checked: Counter[str] = Counter()
        self.unknown: Counter[str] = Counter()
        self.told: set[tuple[str, int]] = set()
        self.bad_lengths: set[int] = set()
        self._begin(header.started == "mid_run")

    def _begin(self, unknown_past: bool) -> None:
        constants = {**self.discipline.constants, "counts_pins": self.header.ref_counts == "owners+pins"}
        self.machine = Machine(self.spec, constants=constants, unreliable=frozenset(self.silenced))
        self.feed = Feed(self.machine, self.header, unknown_past)
        self.handlers = self.feed.handlers
        self.failures = self.machine.failures
        if unknown_past:
            for q in range(len(self.feed.pool_ids.names)):
                self.feed.fuzzy["Pool"][q] |= TAINTED

    def lose_track(self, gap: Gap) -> None:
        """Events are missing: what was known before is void."""
        self._tally()
        self._begin(unknown_past=True)

    def perform(self, batch: Iterable[tuple[int, ev.Event | Gap]]) -> None:
        """The hot loop."""
        handlers, failures = self.handlers, self.failures
        for line, event in batch:
            if type(event) is Gap:
                self.lose_track(event)
                handlers, failures = self.handlers, self.failures
                continue
            handlers[type(event)](event)
            if failures:
                self._collect(line, event)

    def finish(self) -> None:
        """Adds up what was judged how often."""
        self._tally()

    def _tally(self) -> None:
        for k, obligation in enumerate(self.machine.obligations):
            self.checked[obligation.rule.name] += self.machine.checked[k]
            self.unknown[obligation.rule.name] += self.machine.unknown[k]
            self.machine.checked[k] = self.machine.unknown[k] = 0

    def _collect(self, line: int, event: ev.Event) -> None:
        """The failures of one event become findings; independent ones are all kept."""
        failures, self.failures[:] = list(self.failures), []
        seen: set[tuple[str, int | None, int | None]] = set()
        tainted: list[tuple[int, Obligation]] = []
        for k, values in failures:
            obligation = self.machine.obligations[k]
            finding = self._finding(obligation, values, line, event)
            key = (obligation.rule.name, finding.block, None if finding.block is not None else finding.branch)
            if key in seen or self._is_old(finding):
                continue
            seen.add(key)
            is_lint = obligation.rule.kind == "lint"
            self.totals[obligation.rule.name] += 1
            if self.totals[obligation.rule.name] <= KEPT:
                (self.lints if is_lint else self.findings).append(finding)
            if not is_lint:
                if finding.block is not None:
                    tainted.append((finding.block, obligation))
                if obligation.rule.name == "rollback_exact" and finding.branch is not None:
                    self.bad_lengths.add(finding.branch)
        for b, obligation in tainted:
            taint_block(self.feed, b, "free" in self.spec.step(obligation.event).writes)

    def _is_old(self, finding: Finding) -> bool:
        """The same breach once more: about the branch alone, or about a length that is already known to be wrong."""
        r = finding.branch
        if r is None or finding.obligation.rule.kind == "lint":
            return False
        if r in self.bad_lengths and finding.obligation.reads_variable("length"):
            return True
        if finding.block is not None:
            return False
        key = (finding.obligation.rule.name, r)
        if key in self.told:
            return True
        self.told.add(key)
        return False

    def _finding(self, obligation: Obligation, values: tuple[int, ...], line: int, event: ev.Event) -> Finding:
        ids: dict[str, int] = {}
        words: dict[str, Any] = {}
        for (name, sort), value in zip(obligation.names, values, strict=True):
            if sort is None:
                words[name] = value
            else:
                words[name] = self.feed.describe(sort, value)
                if value >= 0:
                    ids.setdefault(sort, value)
        block, branch = ids.get("Block"), ids.get("Branch")
        violation = Violation(
            rule=obligation.rule.name,
            line=line,
            seq=event.seq,
            event=event_fields(event),
            message=obligation.message.format(**words),
            block=None if block is None else self.feed.describe("Block", block),
            branch=None if branch is None else self.feed.describe("Branch", branch),
        )
        return Finding(violation, obligation, block, branch)


@cache
def traffic(spec: Spec) -> tuple[dict[str, frozenset[str]], dict[str, frozenset[str]]]:
    """Per variable the event kinds of a log that set it to something, and those that set it back to its default."""
    feeders: dict[str, set[str]] = {}
    drainers: dict[str, set[str]] = {}
    for step in spec.events:
        for variable in step.feeds:
            feeders.setdefault(variable, set()).add(step.name)
        for variable in step.writes - step.feeds:
            drainers.setdefault(variable, set()).add(step.name)
    return (
        {variable: kinds_of_all(names) for variable, names in feeders.items()},
        {variable: kinds_of_all(names) for variable, names in drainers.items()},
    )


def with_because(finding: Finding, **changes: Any) -> Finding:
    """The finding with its violation completed."""
    return replace(finding, violation=replace(finding.violation, **changes))
