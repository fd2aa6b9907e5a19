"""SARIF 2.1.0 (OASIS, 2020), for services that show findings beside the file: one run, one result a finding.

The log is the artifact; a result's region is its line. Earlier facts are related locations, suppressed findings carry a
suppression with its reason, and what kept a verdict from being one is a notification.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Any  # JSON values
from urllib.parse import quote

from kvsan.checker.replay.outcome import Outcome, Violation
from kvsan.checker.replay.wording import event_text

from .places import files, place
from .rulebook import RuleDoc, rulebook
from .version import version
from .view import View, worst

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def render(views: Sequence[View], brief: bool = False) -> str:
    """One SARIF log with one run. brief: nothing is left out for machines."""
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run(views)]}, indent=2) + "\n"


def run(views: Sequence[View]) -> dict[str, Any]:
    docs = rulebook()
    names = sorted({file for view in views for file in files(view.outcome)})
    indexes = {name: i for i, name in enumerate(docs)}
    return {
        "tool": {"driver": {"name": "kvsan", "version": version(), "rules": [rule_object(d) for d in docs.values()]}},
        "artifacts": [{"location": {"uri": uri(name)}} for name in names],
        "invocations": [invocation(views)],
        "results": [result(view.outcome, f, level, indexes) for view in views for f, level in graded(view)],
        "columnKind": "unicodeCodePoints",
        "properties": {
            "logs": [
                {"name": v.outcome.name, "verdict": v.outcome.verdict, "assumptions": list(v.outcome.assumptions)}
                for v in views
            ]
        },
    }


def graded(view: View) -> Iterator[tuple[Violation, str]]:
    """Every finding with its level."""
    lints = {name for name, doc in rulebook().items() if doc.kind == "lint"}
    yield from ((v, "error") for v in view.violations)
    yield from ((v, "note") for v in view.lints)
    yield from ((v, "note" if v.rule in lints else "error") for v in view.suppressed)


def rule_object(doc: RuleDoc) -> dict[str, Any]:
    """A reportingDescriptor: the fact, and the labels as help."""
    text = "\n".join(f"{label}: {sentence}" for label, sentence in doc.labels.items())
    markdown = "\n\n".join(f"**{label}:** {sentence}" for label, sentence in doc.labels.items())
    return {
        "id": doc.name,
        "name": "".join(part.capitalize() for part in doc.name.split("_")),
        "shortDescription": {"text": first_sentence(doc.statement)},
        "fullDescription": {"text": doc.statement},
        "help": {"text": text, "markdown": markdown},
        "defaultConfiguration": {"level": "note" if doc.kind == "lint" else "error"},
        "properties": {"kind": doc.kind},
    }


def first_sentence(text: str) -> str:
    return text.partition(". ")[0].rstrip(".") + "."


def result(outcome: Outcome, v: Violation, level: str, indexes: dict[str, int]) -> dict[str, Any]:
    """One finding."""
    logical = [{"name": name, "kind": kind} for kind, name in (("block", v.block), ("branch", v.branch)) if name]
    location = {**physical(outcome, v.line, event_text(v.event)), **({"logicalLocations": logical} if logical else {})}
    optional: dict[str, Any] = {}
    if v.rule in indexes:
        optional["ruleIndex"] = indexes[v.rule]
    if v.because:
        optional["relatedLocations"] = [
            {"id": i, **physical(outcome, fact.line), "message": {"text": fact.text}}
            for i, fact in enumerate(v.because)
        ]
    if v.suppressed is not None:
        optional["suppressions"] = [{"kind": "external", "status": "accepted", "justification": v.suppressed}]
    more = {name: getattr(v, name) for name in ("seq", "missing", "source", "replay") if getattr(v, name) is not None}
    return {
        "ruleId": v.rule,
        "level": level,
        "message": {"text": v.message},
        "locations": [location],
        **optional,
        "properties": {**more, "event": v.event},
    }


def physical(outcome: Outcome, line: int, snippet: str | None = None) -> dict[str, Any]:
    """A location in a log."""
    file, number = place(outcome, line)
    region: dict[str, Any] = {"startLine": number}
    if snippet is not None:
        region["snippet"] = {"text": snippet}
    return {"physicalLocation": {"artifactLocation": {"uri": uri(file)}, "region": region}}


def uri(file: str) -> str:
    """A relative reference for a relative path, a file URI for an absolute one."""
    path = PurePath(file)
    if path.is_absolute():
        return path.as_uri()
    text = quote(path.as_posix())
    return f"./{text}" if ":" in text.partition("/")[0] else text


def invocation(views: Sequence[View]) -> dict[str, Any]:
    """Whether the logs could be read and judged."""
    code = worst([view.outcome.exit_code for view in views])
    notes = [note(view.outcome, reason) for view in views for reason in view.outcome.reasons]
    return {"executionSuccessful": code in (0, 1), "exitCode": code, "toolExecutionNotifications": notes}


def note(outcome: Outcome, reason: str) -> dict[str, Any]:
    """A reason why the verdict is not HOLDS, as a notification."""
    level = "error" if outcome.problem is not None else "warning"
    where = {"physicalLocation": {"artifactLocation": {"uri": uri(files(outcome)[0])}}}
    return {"level": level, "message": {"text": reason}, "locations": [where]}
