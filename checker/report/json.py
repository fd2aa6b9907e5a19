"""JSON for programs: one object for one log; for several, the worst verdict and a list of such objects."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any  # JSON values

import msgspec
from kvsan.checker.replay.life import Life
from kvsan.checker.replay.outcome import Outcome, RuleCoverage, Violation
from kvsan.traces.problem import LogProblem

from .places import place
from .view import View, verdict_of, worst


def render(views: Sequence[View], brief: bool = False) -> str:
    """Indented, ASCII, in a fixed order of fields. brief: nothing is left out for machines."""
    objects = [as_object(view) for view in views]
    if len(objects) == 1:
        return json.dumps(objects[0], indent=2) + "\n"
    code = worst([view.outcome.exit_code for view in views])
    return json.dumps({"verdict": verdict_of(views), "exit_code": code, "logs": objects}, indent=2) + "\n"


def as_object(view: View) -> dict[str, Any]:
    """The outcome on one log."""
    outcome = view.outcome
    more = {"lives": [life_object(outcome, life) for life in view.lives]} if view.lives else {}
    return {
        "verdict": outcome.verdict,
        "exit_code": outcome.exit_code,
        "name": outcome.name,
        "log": outcome.log,
        "events": outcome.events,
        "last_line": outcome.last_line,
        "violations": [finding_object(outcome, v) for v in view.violations],
        "lints": [finding_object(outcome, v) for v in view.lints],
        "suppressed": [finding_object(outcome, v) for v in view.suppressed],
        "hidden": view.hidden,
        "assumptions": list(outcome.assumptions),
        "reasons": list(outcome.reasons),
        "problem": problem_object(outcome.problem),
        "unused_suppressions": list(outcome.unused),
        "interrupted": outcome.interrupted,
        "coverage": {name: coverage_object(c) for name, c in outcome.coverage.items()},
        **more,
    }


def finding_object(outcome: Outcome, v: Violation) -> dict[str, Any]:
    """A violation, lint or suppressed finding. `line` counts through all segments, `file_line` in `file`."""
    file, file_line = place(outcome, v.line)
    return {
        "rule": v.rule,
        "line": v.line,
        "file": file,
        "file_line": file_line,
        "seq": v.seq,
        "event": v.event,
        "message": v.message,
        "block": v.block,
        "branch": v.branch,
        "because": [{"line": fact.line, "text": fact.text} for fact in v.because],
        "missing": v.missing,
        "source": v.source,
        "replay": v.replay,
        "suppressed": v.suppressed,
    }


def coverage_object(c: RuleCoverage) -> dict[str, Any]:
    needs = {"needs": list(c.needs)} if c.needs else {}
    return {"checked": c.checked, "status": c.status, "unknown": c.unknown, **needs}


def problem_object(problem: object | None) -> dict[str, Any] | None:
    """Why reading stopped, field by field."""
    if isinstance(problem, LogProblem):
        fields: dict[str, Any] = msgspec.to_builtins(problem)
        return fields
    return None if problem is None else {"what": str(problem)}


def life_object(outcome: Outcome, life: Life) -> dict[str, Any]:
    events = [{"line": line, "event": msgspec.to_builtins(event)} for line, event in life.events]
    return {"about": life.about, "events": events}
