"""`check`: one log in, one outcome out; the same for the command line and for an engine's own tests."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any  # dict events, as an engine's test writes them

import msgspec
from kvsan.checker.order.analysis import Order
from kvsan.checker.order.placed import hearer
from kvsan.checker.order.spread import Spread, Survey
from kvsan.spec.ownership.disciplines import DISCIPLINES
from kvsan.traces.read import Gap, Log, LogProblem, open_log

from .again import replay_command
from .because import explain
from .collecting import without_collections
from .coverage import coverage_of
from .kinds import names_threads, occurring_kinds
from .memory import memory_log
from .outcome import Outcome, Violation, place
from .recorded import recorded_kinds
from .replay import KEPT, Finding, Replay, decides_everything, ownership
from .suppress import Suppression

Source = str | Path | Log | Iterable[Any]
Progress = Callable[[int, int], None]


class UsageError(ValueError):
    """A rule or discipline that does not exist; the message names the nearest one."""


def check(
    source: Source,
    *,
    until: int | None = None,
    require: Sequence[str] = (),
    suppressions: Sequence[Suppression] = (),
    progress: Progress | None = None,
    interruptible: bool = False,
    order: bool = True,
) -> Outcome:
    """Replay a log against the rules and say what holds.

    source: a path, a list of paths (the segments of one log), a `Log`, or events in order, the header first: records of
    `kvsan.traces.events` or dicts with the fields of the trace format. until: the last line that is replayed. require:
    rules (or `all`) that must have been checked for HOLDS. suppressions: findings to live with. progress: called with
    (events, line) now and then. interruptible: Ctrl-C ends the replay, and the outcome holds what was found by then.
    order: judge the order of device work, too; a huge log is checked faster without.

    Raises UsageError for a rule or discipline that does not exist. A broken log raises nothing: the outcome says where.
    """
    return Check(log_of(source), until, require, suppressions, progress, interruptible, order).outcome()


def log_of(source: Source) -> Log:
    """The log that a source stands for."""
    if isinstance(source, Log):
        return source
    if isinstance(source, str | Path):
        return open_log(source)
    if isinstance(source, list | tuple) and source and all(isinstance(part, str | Path) for part in source):
        return open_log(list(source))
    return memory_log(source)


class Check:
    """The state of one check; `outcome` does the work."""

    def __init__(
        self,
        log: Any,
        until: int | None,
        require: Sequence[str],
        suppressions: Sequence[Suppression],
        progress: Progress | None,
        interruptible: bool,
        order: bool,
    ) -> None:
        self.log, self.until, self.require = log, until, require
        self.suppressions, self.progress = suppressions, progress
        self.interruptible, self.interrupted, self.order = interruptible, False, order
        self.segments: tuple[tuple[str, int], ...] = ()
        self.events, self.last_line = 0, 1
        self.gaps: list[Gap] = []
        self.spread: Spread | None = None
        self.passed_on: tuple[int, Hashable] | None = None

    def outcome(self) -> Outcome:
        header = self.log.header
        if header is None:
            return self._unreadable()
        known(header.discipline, DISCIPLINES, "discipline")
        occurring, reads = occurring_kinds(self.log, never if header.complete is not None else decides_everything)
        recorded = recorded_kinds(occurring, header.complete, reads)

        one_thread = self.order and not names_threads(self.log)

        def fresh(hears: Callable[..., Order] = Order, elsewhere: bool = False) -> Replay:
            return Replay(header, recorded, occurring, None, one_thread, self.order, hears=hears, elsewhere=elsewhere)

        again: Callable[..., Replay] = fresh
        replay = fresh()
        for name in self.require:
            if name != "all":
                known(name, replay.rules, "rule")
        try:
            with without_collections():
                self._perform(replay)
                if replay.misjudged:
                    again = self._survey(fresh)
                    replay = again()
                    self._perform(replay)
                if replay.awaits_others and any(f.violation.earlier for f in replay.findings):
                    again = partial(again, elsewhere=True)
                    replay = self._passed_on(replay, again())
        except KeyboardInterrupt:
            if not self.interruptible:
                raise
            self.interrupted = True
            if (again is fresh and replay.misjudged) or (replay.awaits_others and not replay.elsewhere):
                replay.findings[:] = [f for f in replay.findings if f.told is None]
        replay.finish()
        self.gaps = replay.gaps
        self.events -= len(self.gaps)
        problem, self.segments = self.log.problem, self.log.segments
        findings = [*replay.findings, *replay.lints]
        explained = explain(sorted(findings, key=lambda f: f.violation.line), again, lambda: self._batches(count=False))
        return self._judge(replay, explained, occurring, recorded, problem)

    def _survey(self, fresh: Callable[..., Replay]) -> Callable[[], Replay]:
        """Makes replays that judge the order of launches which are spread over the log."""
        spread = Spread()
        self._perform(fresh(partial(Survey, spread)))
        self.spread = spread if spread.full else None
        return partial(fresh, hearer(spread))

    def _passed_on(self, alone: Replay, passed: Replay) -> Replay:
        """What is told where other ranks pass on what was signalled; the other races may be none."""
        self._perform(passed)
        left = [races_of(replay) for replay in (alone, passed)]
        if not left[0] <= left[1]:
            self.passed_on = alone.awaits_others
        return passed

    def _perform(self, replay: Replay) -> None:
        """All of the log, or up to where it shows that it has to be read in another way."""
        self.events, self.last_line = 0, 1
        for batch in self._batches(count=True):
            replay.perform(batch)
            if self.progress:
                self.progress(self.events, self.last_line)
            if replay.order.too_early:
                break

    def _batches(self, count: bool) -> Iterator[list[tuple[int, Any]]]:
        for batch in self.log.batches():
            if self.until is not None and batch and batch[-1][0] > self.until:
                batch = [item for item in batch if item[0] <= self.until]
                if not batch:
                    return
            if count and batch:
                self.last_line = batch[-1][0]
                self.events += len(batch)
            yield batch

    def _judge(
        self,
        replay: Replay,
        findings: list[Finding],
        occurring: frozenset[str],
        recorded: frozenset[str],
        problem: LogProblem | None,
    ) -> Outcome:
        coverage = coverage_of(replay, occurring | replay.seen_kinds())
        complete = [self._complete(f) for f in findings]
        kinds = {f.violation.rule: f.kind for f in findings}
        reported = [v for v in complete if v.suppressed is None]
        lints = tuple(v for v in reported if kinds[v.rule] == "lint")
        violations = tuple(v for v in reported if kinds[v.rule] != "lint")
        reasons = self._reasons(replay, coverage, problem)
        if violations:
            verdict, code = "VIOLATED", 1
        elif problem is not None:
            verdict, code = "UNKNOWN", 2
        else:
            verdict, code = ("UNKNOWN", 3) if reasons else ("HOLDS", 0)
        return Outcome(
            verdict=verdict,  # type: ignore[arg-type]  # the three literals above
            exit_code=code,
            log=self._header(),
            name=self.log.name,
            events=self.events,
            last_line=self.last_line,
            violations=violations,
            lints=lints,
            assumptions=tuple(self._assumptions(replay)),
            coverage=coverage,
            reasons=tuple(reasons),
            problem=problem,
            suppressed=tuple(v for v in complete if v.suppressed is not None),
            segments=self.segments,
            unused=tuple(str(s) for s in self.suppressions if not any(self._covers(s, v) for v in complete)),
            interrupted=self.interrupted,
        )

    def _complete(self, finding: Finding) -> Violation:
        """The violation with its source, and the command that shows it again."""
        v, said = finding.violation, ownership().rules[finding.violation.rule].labels
        suppressed = next((s.reason for s in self.suppressions if self._covers(s, v)), None)
        return replace(
            v,
            source=said.get("Source", ""),
            missing=v.missing or said.get("Mend", "").rstrip(".") or None,
            replay=replay_command([file for file, _ in self.segments], v),
            suppressed=suppressed,
        )

    def _covers(self, suppression: Suppression, v: Violation) -> bool:
        return suppression.covers(v, self.log.header, place(self.segments, v.line)[0])

    def _reasons(self, replay: Replay, coverage: dict[str, Any], problem: LogProblem | None) -> list[str]:
        reasons = [
            f"{gap.missing} events are missing before line {gap.before}: what they did is unknown" for gap in self.gaps
        ]
        if self.interrupted:
            reasons.append(f"the check was interrupted after line {self.last_line}")
        if self.spread is not None and self.spread.begins:
            reasons.append(self.spread.reason)
        if self.passed_on is not None:
            line, channel = self.passed_on
            reasons.append(
                f"accesses may be ordered through another rank: line {line} awaits channel {channel}, which "
                "nobody signals before it in this rank's log; each rank's order is judged alone"
            )
        if problem is not None:
            reasons.append(f"the log breaks off after line {self.last_line}: {problem.what}")
        wanted = replay.rules if "all" in self.require else self.require
        reasons += [f"rule {name} is required but was never checked" for name in wanted if not coverage[name].checked]
        if not self.events:
            reasons.append("no rule was checked: the log has no events")
        return reasons

    def _assumptions(self, replay: Replay) -> Iterator[str]:
        header = self.log.header
        if not self.order:
            yield "the order of device work was not asked for"
        if header.started == "mid_run":
            yield "the log starts mid-run: owners and contents of blocks before their first event are unknown"
        if self.gaps:
            yield "after a gap nothing of what was known before it is used"
        if header.complete is not None:
            yield f"only these event kinds are recorded without gaps: {', '.join(sorted(header.complete))}"
        for variable, kinds in sorted(replay.silenced.items()):
            if variable not in replay.missed():
                continue
            yield f"{variable.replace('_', ' ')} is unknown: the log records no {' or '.join(sorted(kinds))}"
        for name, count in sorted(replay.totals.items()):
            if count > KEPT:
                yield f"{name}: the first {KEPT} of {count} findings are listed"

    def _header(self) -> dict[str, Any]:
        fields: dict[str, Any] = msgspec.to_builtins(self.log.header)
        return {**fields, **self.log.header_fields}

    def _unreadable(self) -> Outcome:
        problem = self.log.problem
        return Outcome(
            verdict="UNKNOWN",
            exit_code=2,
            log={},
            name=self.log.name,
            events=0,
            last_line=0,
            violations=(),
            lints=(),
            assumptions=(),
            coverage={},
            reasons=("nothing was checked: the log's header cannot be read",),
            problem=problem,
        )


def races_of(replay: Replay) -> set[tuple[str, int, str | None]]:
    return {(f.violation.rule, f.violation.line, f.violation.block) for f in replay.findings if f.violation.earlier}


def never(_: frozenset[str]) -> bool:
    return False


def known(name: str, names: Iterable[str], what: str) -> None:
    """Raises UsageError unless the name is one of `names`."""
    every = list(names)
    if name not in every:
        near = get_close_matches(name, every, 1)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(every))}"
        raise UsageError(f"there is no {what} {name!r}: {hint}")


__all__ = ["UsageError", "check"]
