"""Text for people: first each violation, with both its facts; then what was assumed and checked; then the verdict.

The last line of a failure is the command that replays it.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from kvsan.checker.replay.life import Life
from kvsan.checker.replay.outcome import Outcome, RuleCoverage, Status, Violation
from kvsan.checker.replay.wording import event_text

from .places import shown_place
from .view import View, verdict_of

SHOWN = 20
"""Findings of one rule that are written out; the rest are counted. The formats for machines list all."""

WIDTH = 100
"""Lists are folded at this column, so that the bytes do not depend on the terminal."""

STATUSES: tuple[Status, ...] = ("checked", "not_exercised", "not_checkable")


def render(views: Sequence[View], brief: bool = False) -> str:
    """The report on each log. brief: failures and verdicts alone."""
    text = "\n".join(map(shown, lines(views, brief)))
    return text + "\n" if text else ""


def lines(views: Sequence[View], brief: bool) -> Iterator[str]:
    for view in views:
        yield from report(view, brief)
        if len(views) > 1:
            yield ""
    if len(views) > 1:
        yield from total_lines(views)


def total(views: Sequence[View]) -> str:
    """The last lines of a report on several logs whose parts were written one by one, each with an empty line after."""
    return "".join(f"{shown(line)}\n" for line in total_lines(views))


def shown(text: str) -> str:
    """What a log names may hold control characters: a report shows them, and obeys none."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def report(view: View, brief: bool) -> Iterator[str]:
    outcome = view.outcome
    for life in view.lives:
        yield from life_lines(view, life)
        yield ""
    yield from findings("violated", outcome, view.violations)
    if not brief:
        yield from findings("lint", outcome, view.lints)
        yield from findings("suppressed", outcome, view.suppressed)
        yield from known_gaps(view)
        yield from coverage(outcome)
    if outcome.problem is not None:
        yield from str(outcome.problem).splitlines()
    yield verdict(view)
    yield from (f"  reason    {reason}" for reason in outcome.reasons)
    first = next(iter((*view.violations, *outcome.violations)), None)
    if first is not None and first.replay:
        yield f"  replay    {first.replay}"


def findings(word: str, outcome: Outcome, found: Iterable[Violation]) -> Iterator[str]:
    """Every finding as a block, a blank line after each."""
    told = Counter[str]()
    for finding in found:
        told[finding.rule] += 1
        if told[finding.rule] <= SHOWN:
            yield from block(word, outcome, finding)
            yield ""
    for rule, count in told.items():
        if count > SHOWN:
            yield f"{word} {rule}: {count - SHOWN} more; --format json lists all that were kept"
            yield ""


def block(word: str, outcome: Outcome, finding: Violation) -> Iterator[str]:
    """One finding: what happened, where, the earlier facts, how to fix it, whose rule it is, how to replay it."""
    yield f"{word} {finding.rule}: {finding.message}"
    yield f"  at        {shown_place(outcome, finding.line)}    {event_text(finding.event)}"
    for fact in finding.because:
        yield f"  because   {shown_place(outcome, fact.line)}    {fact.text}"
    rest = (
        ("missing", finding.missing),
        ("source", finding.source.rstrip(".")),
        ("reason", finding.suppressed),
        ("replay", finding.replay),
    )
    yield from (f"  {label:<9} {value}" for label, value in rest if value)


def life_lines(view: View, life: Life) -> Iterator[str]:
    """A block's or branch's events, those that broke a rule marked."""
    outcome = view.outcome
    broken = {f.line: f.rule for f in (*view.lints, *view.suppressed, *view.violations)}
    count = len(life.events)
    yield f"{life.about} in {outcome.name}: {count} event{'s' * (count != 1)}{f'; {life.hint}' * bool(life.hint)}"
    places = [shown_place(outcome, line) for line, _ in life.events]
    width = max(map(len, places), default=0)
    for where, (line, event) in zip(places, life.events, strict=True):
        mark = f"    <- {broken[line]}" if line in broken else ""
        yield f"  {where:<{width}}    {event_text(event)}{mark}"


def known_gaps(view: View) -> Iterator[str]:
    """What the tool assumed, and what it leaves out."""
    yield from (f"assumed   {assumption}" for assumption in view.outcome.assumptions)
    yield from (f"unused    suppression {suppression}: it covers nothing here" for suppression in view.outcome.unused)
    if view.hidden:
        yield f"hidden    {count_of(view.hidden, 'finding')} about other blocks and branches"


def coverage(outcome: Outcome) -> Iterator[str]:
    """How many rules were checked, and each rule under its status."""
    if not outcome.coverage:
        return
    groups = {s: {n: c for n, c in outcome.coverage.items() if c.status == s} for s in STATUSES}
    yield "rules     " + ", ".join(f"{len(group)} {words(status)}" for status, group in groups.items())
    for status, group in groups.items():
        if group:
            text = ", ".join(rule_coverage(name, c) for name, c in group.items())
            indent = " " * 18
            yield from textwrap.wrap(
                text, WIDTH, initial_indent=f"  {words(status):<16}", subsequent_indent=indent, break_on_hyphens=False
            )


def words(status: str) -> str:
    return status.replace("_", " ")


def rule_coverage(name: str, c: RuleCoverage) -> str:
    """`free_once 12`, `free_once 12 (3 unknown)` or `no_leak (needs quiescent)`."""
    notes = [f"{c.unknown} unknown"] if c.unknown else []
    if c.status == "not_checkable" and c.needs:
        notes.append("needs " + " ".join(c.needs))
    count = f" {c.checked}" if c.status == "checked" else ""
    return f"{name}{count}" + (f" ({', '.join(notes)})" if notes else "")


def verdict(view: View) -> str:
    """`VIOLATED  beam.jsonl: 1 violation, 2 lints in 40 events`."""
    outcome = view.outcome
    found = [
        count_of(len(outcome.violations), "violation"),
        *([count_of(len(outcome.lints), "lint")] if outcome.lints else []),
        *([f"{len(outcome.suppressed)} suppressed"] if outcome.suppressed else []),
    ]
    checked = sum(c.status == "checked" for c in outcome.coverage.values())
    rules = f"; {checked} of {count_of(len(outcome.coverage), 'rule')} checked" if outcome.coverage else ""
    stopped = ", interrupted" if outcome.interrupted else ""
    events = count_of(outcome.events, "event")
    return f"{outcome.verdict:<9} {outcome.name}: {', '.join(found)} in {events}{rules}{stopped}"


def count_of(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def total_lines(views: Sequence[View]) -> Iterator[str]:
    """The verdict on all logs together, and the first failure's command."""
    counts = Counter(view.outcome.verdict for view in views)
    parts = ", ".join(f"{counts[v]} {v}" for v in ("VIOLATED", "UNKNOWN", "HOLDS") if counts[v])
    yield f"{verdict_of(views):<9} {len(views)} logs: {parts}"
    commands = (v.replay for view in views for v in view.outcome.violations if v.replay)
    if command := next(commands, None):
        yield f"  replay    {command}"
