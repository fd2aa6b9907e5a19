"""Replay: every event of a log is performed on the ledger that the specification lowers to, and judged there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, cast  # rendered values of any sort

from kvsan.checker.order.analysis import MARK, Order
from kvsan.checker.order.telling import Told, tell
from kvsan.spec.lang import ir
from kvsan.spec.lang.effects import writes
from kvsan.spec.lang.load import load
from kvsan.spec.ownership.accesses import ORDER_RULES
from kvsan.spec.ownership.disciplines import DISCIPLINES
from kvsan.traces import events as ev
from kvsan.traces.read import Gap

from .emit import TAINTED, Machine
from .feed import Feed
from .outcome import Violation
from .program import Obligation
from .recorded import kinds_of, unknown_variables
from .taint import taint_block, taint_queues
from .wording import event_fields

KEPT = 1000
"""Findings of one rule that are kept in full; the others are counted."""


@cache
def ownership() -> ir.Spec:
    """The discipline, read and lowered once a process."""
    return load("kvsan.spec.ownership")


@dataclass(frozen=True)
class Finding:
    """A violation or lint with the ids that an explanation needs. obligation: None, and `told`, for an order rule."""

    violation: Violation
    obligation: Obligation | None
    block: int | None
    branch: int | None
    told: Told | None = None

    @property
    def kind(self) -> str:
        return "order" if self.obligation is None else self.obligation.kind


class Replay:
    """One pass over one log. `perform` performs its events; `findings` and `lints` collect what they broke.

    recorded / occurring: what the log can show, see `recorded.unknown_variables`. one_thread: no event names one.
    with_order: the order of device work is judged, too, by what `hears` makes. elsewhere: other ranks may pass on what
    a thread signals, see `Clocks`.
    """

    def __init__(
        self,
        header: ev.Trace,
        recorded: frozenset[str],
        occurring: frozenset[str],
        spec: ir.Spec | None = None,
        one_thread: bool = False,
        with_order: bool = True,
        hears: Callable[..., Order] = Order,
        elsewhere: bool = False,
    ) -> None:
        self.one_thread, self.with_order, self.hears = one_thread, with_order, hears
        self.elsewhere = elsewhere
        self.unheard: tuple[int, Hashable] | None = None
        self.header, self.spec = header, spec or ownership()
        self.discipline = DISCIPLINES[header.discipline]
        self.silenced = unknown_variables(recorded, occurring, header.complete is not None)
        self.findings: list[Finding] = []
        self.lints: list[Finding] = []
        self.totals: Counter[str] = Counter()
        self.checked: Counter[str] = Counter()
        self.unknown: Counter[str] = Counter()
        self.told: dict[int, set[str]] = {}
        self.bad_lengths: set[int] = set()
        self.performed: set[type] = set()
        self.gaps: list[Gap] = []
        self.was_spread = self.was_mixed = False
        self._begin(header.started == "mid_run")

    @cached_property
    def queue_events(self) -> frozenset[str]:
        """The events after whose breaches a pool's counts are wrong, too."""
        return moves_owned_queues() if self.spec is ownership() else moves_queues(self.spec)

    def _begin(self, unknown_past: bool) -> None:
        constants = {**self.discipline.constants, "counts_pins": self.header.ref_counts == "owners+pins"}
        self.machine = Machine(self.spec, constants=constants, unreliable=frozenset(self.silenced))
        self.feed = Feed(self.machine, self.header, unknown_past)
        self.handlers = self.feed.handlers
        self.failures = self.machine.failures
        self.bad_lengths.clear()
        unreliable = self.machine.unreliable
        self.order = self.hears(
            self.feed, self.header.legacy_stream, self.failures, unreliable, self.bad_lengths, self.one_thread
        )
        self.order.clocks.elsewhere = self.elsewhere
        if not self.with_order:
            self.handlers.update(self.order.plain)
        if unknown_past:
            taint_queues(self.feed)

    def lose_track(self, gap: Gap) -> None:
        """Events are missing: what was known before is void."""
        self.gaps.append(gap)
        self._tally()
        self.was_spread |= self.order.too_early
        self.was_mixed |= self.order.clocks.mixed
        self.unheard = self.unheard or self.order.unheard
        running = self.order.clocks.running()
        self._begin(unknown_past=True)
        self.order.clocks.doubtful = running

    @property
    def awaits_others(self) -> tuple[int, Hashable] | None:
        """Line and channel of the first await that only another rank can have signalled, where ranks are told apart."""
        return None if self.header.rank is None else self.unheard or self.order.unheard

    @property
    def misjudged(self) -> bool:
        """A launch whose events are spread may be, or a breach may have another line: see `order.spread`."""
        mixed = self.was_mixed or self.order.clocks.mixed
        return self.was_spread or self.order.too_early or (mixed and any(f.told is not None for f in self.findings))

    def perform(self, batch: Sequence[tuple[int, ev.Event | Gap]]) -> None:
        """The hot loop."""
        self.performed.update({type(event) for _, event in batch})
        handlers, failures, order = self.handlers, self.failures, self.order
        for line, event in batch:
            kind = type(event)
            order.line = line
            if kind is Gap:
                self.lose_track(cast(Gap, event))
                handlers, failures, order = self.handlers, self.failures, self.order
                continue
            handlers[kind](event)
            if failures:
                self._collect(line, cast(ev.Event, event))
        self.machine.still_fuzzy()  # once nothing unknown is left, the plain code runs again

    @property
    def rules(self) -> tuple[str, ...]:
        """The names of every rule of the discipline, lints aside."""
        return tuple(rule.name for rule in self.spec.rules.values() if rule.kind != "lint")

    def seen_kinds(self) -> frozenset[str]:
        """The event kinds that were performed."""
        return frozenset(tag for tag, record in ev.EVENT_TYPES.items() if record in self.performed)

    def missed(self) -> frozenset[str]:
        """The unknown variables for whose sake an obligation of an event that occurred was not judged."""
        seen = self.seen_kinds()
        silent = (o for o in self.machine.obligations if set(kinds_of(o.event)) & seen)
        return frozenset(variable for obligation in silent for variable in obligation.silenced)

    def finish(self) -> None:
        """Adds up what was judged how often."""
        self._tally()

    def _tally(self) -> None:
        for obligation, checked, unknown in zip(
            self.machine.obligations, self.machine.checked, self.machine.unknown, strict=True
        ):
            self.checked[obligation.rule] += checked
            self.unknown[obligation.rule] += unknown
        for rule, judged in zip(ORDER_RULES, self.order.checked, strict=True):
            self.checked[rule.name] += judged

    def _collect(self, line: int, event: ev.Event) -> None:
        """The failures of one event become findings; independent ones are all kept."""
        failures, self.failures[:] = list(self.failures), []
        for r in self.feed.released:  # another branch may go by that id now
            self.told.pop(r, None)
            self.bad_lengths.discard(r)
        self.feed.released.clear()
        seen: set[tuple[str, int | None, int | None]] = set()
        tainted: list[tuple[int, Obligation]] = []
        for k, values in failures:
            if k == MARK:
                continue
            obligation = self.machine.obligations[k]
            finding = self._finding(obligation, values, line, event)
            key = (obligation.rule, finding.block, None if finding.block is not None else finding.branch)
            if key in seen or self._is_old(finding):
                continue
            seen.add(key)
            is_lint = obligation.kind == "lint"
            self.totals[obligation.rule] += 1
            if self.totals[obligation.rule] <= KEPT:
                (self.lints if is_lint else self.findings).append(finding)
            if not is_lint:
                self._taint_published(obligation, values)
                if finding.block is not None:
                    tainted.append((finding.block, obligation))
                if obligation.rule == "rollback_exact" and finding.branch is not None:
                    self.bad_lengths.add(finding.branch)
        for b, obligation in tainted:
            taint_block(self.feed, b, obligation.event in self.queue_events)
            self.order.forget(b)
        for told in tell(self.order, self.order.breaches, (b for b, _ in tainted)):
            self._take(told, line, event)

    def _taint_published(self, obligation: Obligation, values: tuple[int, ...]) -> None:
        """The stream is wrong about a hash: its later disagreements about it are the same breach."""
        for (_, kind), value in zip(obligation.names, values, strict=True):
            if sort_of(kind) == "Published":
                self.machine.blur("Published", value, TAINTED)

    def _take(self, told: Told, line: int, event: ev.Event) -> None:
        """A breach of order becomes a finding, and what it is about is not trusted any more."""
        for b in told.tainted:
            taint_block(self.feed, b, queue=False)
            self.order.forget(b)
        if told.block is None and told.branch is not None:
            known = self.told.setdefault(told.branch, set())
            if told.rule in known:
                return
            known.add(told.rule)
        self.totals[told.rule] += 1
        if self.totals[told.rule] <= KEPT:
            violation = Violation(
                rule=told.rule,
                line=line,
                seq=event.seq,
                event=event_fields(event),
                message=told.message,
                block=None if told.block is None else self.feed.describe("Block", told.block),
                branch=None if told.branch is None else self.feed.describe("Branch", told.branch),
                missing=told.missing,
                earlier=told.earlier,
            )
            self.findings.append(Finding(violation, None, told.block, told.branch, told))

    def _is_old(self, finding: Finding) -> bool:
        """The same breach once more: about the branch alone, or about a length that is already known to be wrong."""
        r = finding.branch
        if r is None or finding.obligation is None or finding.kind == "lint":
            return False
        if r in self.bad_lengths and any(access.variable == "length" for access in finding.obligation.reads):
            return True
        if finding.block is not None:
            return False
        told = self.told.setdefault(r, set())
        if finding.violation.rule in told:
            return True
        told.add(finding.violation.rule)
        return False

    def _finding(self, obligation: Obligation, values: tuple[int, ...], line: int, event: ev.Event) -> Finding:
        ids: dict[str, int] = {}
        words: dict[str, Any] = {}
        for (name, kind), value in zip(obligation.names, values, strict=True):
            sort = sort_of(kind)
            words[name] = value if sort is None else self.feed.describe(sort, value)
            if sort is not None and value >= 0:
                ids.setdefault(sort, value)
        block, branch = ids.get("Block"), ids.get("Branch")
        violation = Violation(
            rule=obligation.rule,
            line=line,
            seq=event.seq,
            event=event_fields(event),
            message=obligation.message.format(**words),
            block=None if block is None else self.feed.describe("Block", block),
            branch=None if branch is None else self.feed.describe("Branch", branch),
        )
        return Finding(violation, obligation, block, branch)


def sort_of(kind: ir.Type) -> str | None:
    """The sort of a member, or of an optional one."""
    bare = ir.bare(kind)
    return bare.name if isinstance(bare, ir.SortType) else None


def moves_queues(spec: ir.Spec) -> frozenset[str]:
    """The events that change what is counted per pool."""
    counts = {
        v.name
        for v in spec.variables.values()
        if v.keys and v.keys[0] == ir.SortType("Pool") and not isinstance(v.value, ir.BoolType)
    }
    return frozenset(
        event.name
        for event in spec.of_kind("event", "settling")
        if any(a.variable in counts for a in writes(event, spec.variables))
    )


@cache
def moves_owned_queues() -> frozenset[str]:
    """The same of the discipline, once a process."""
    return moves_queues(ownership())


def decides_everything(occurring: frozenset[str]) -> bool:
    """What a log may leave out unsaid is shown by the kinds seen so far: others change nothing that can be judged."""
    return not unknown_variables(occurring, occurring, declared=False)


def with_because(finding: Finding, **changes: Any) -> Finding:
    """The finding with its violation completed."""
    return replace(finding, violation=replace(finding.violation, **changes))
