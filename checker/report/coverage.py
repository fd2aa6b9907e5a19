"""What an exploration exercised: every guard and every obligation, action by action."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any  # JSON values

from kvsan.checker.explore.coverage import GuardCount
from kvsan.checker.explore.explore import Exploration


def coverage_lines(found: Exploration, guards: Sequence[GuardCount]) -> Iterator[str]:
    """For people: what was taken, what each `require` did, and which obligations were judged."""
    yield "coverage"
    for action, taken in found.actions.items():
        yield f"  {action}  taken {taken:,}"
        for count in guards:
            if count.guard.action == action:
                note = f"  {count.said}" if count.said else ""
                figures = f"refused {count.refused:,}, passed {count.passed:,}{note}"
                yield f"    {count.guard.span.line:>4}  {count.guard.text}  {figures}"
        for o in found.obligations:
            if o.action == action:
                yield f"          {o.rule} at {o.place}  judged {o.judged:,}{'' if o.judged else '  never'}"
    idle = sum(bool(c.said) for c in guards)
    never = sum(not o.judged for o in found.obligations)
    yield (
        f"  {idle} of {len(guards)} guards do not both refuse and pass,"
        f" {never} of {len(found.obligations)} obligations are never judged"
    )
    yield "  kvsan mutants says whether a guard is needed: it drops each in turn"


def coverage_object(found: Exploration, guards: Sequence[GuardCount]) -> dict[str, Any]:
    """For programs; without guards where they were not counted."""
    counts = [
        {
            "action": c.guard.action,
            "guard": c.guard.text,
            "at": c.guard.place,
            "refused": c.refused,
            "passed": c.passed,
        }
        for c in guards
    ]
    judged = [{"action": o.action, "rule": o.rule, "at": o.place, "judged": o.judged} for o in found.obligations]
    return {"obligations": judged, **({"guards": counts} if counts else {})}
