"""JUnit XML, for test dashboards: one suite a log, one case a rule.

A violated rule fails, a rule that could not be checked or never was is skipped with what the log lacks, and what kept
the verdict from being one is an error. No times and no host name: the same log gives the same bytes.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence

from kvsan.checker.replay.outcome import Violation

from .text import block, count_of, shown
from .view import View

Element = ET.Element


def render(views: Sequence[View], brief: bool = False) -> str:
    """One document. brief: nothing is left out for machines."""
    root = Element("testsuites", name="kvsan")
    for view in views:
        root.append(suite(view))
    for name in ("tests", "failures", "errors", "skipped"):
        root.set(name, str(sum(int(child.get(name, "0")) for child in root)))
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def suite(view: View) -> Element:
    outcome = view.outcome
    element = Element("testsuite", name=shown(outcome.name))
    names = [*outcome.coverage, *(f.rule for f in (*view.violations, *view.lints, *view.suppressed))]
    for rule in dict.fromkeys(names):
        element.append(case(view, rule))
    if outcome.reasons or outcome.problem is not None:
        element.append(verdict_case(view))
    counts = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    element.set("tests", str(len(element)))
    for name, tag in counts.items():
        element.set(name, str(sum(child.find(tag) is not None for child in element)))
    notes = [f"verdict: {outcome.verdict}", *(f"assumed: {a}" for a in outcome.assumptions)]
    notes += [f"unused suppression: {suppression}" for suppression in outcome.unused]
    ET.SubElement(element, "system-out").text = shown_lines(notes)
    return element


def case(view: View, rule: str) -> Element:
    """One rule on one log."""
    outcome = view.outcome
    element = Element("testcase", name=rule, classname=shown(outcome.name))
    failed = [v for v in view.violations if v.rule == rule]
    coverage = outcome.coverage.get(rule)
    if failed:
        message = failed[0].message if len(failed) == 1 else count_of(len(failed), "violation")
        failure = ET.SubElement(element, "failure", type=rule, message=shown(message))
        failure.text = blocks("violated", view, failed)
    elif coverage is not None and coverage.status != "checked":
        needs = f": the log records no {' or '.join(coverage.needs)}" if coverage.needs else ""
        ET.SubElement(element, "skipped", message=coverage.status.replace("_", " ") + needs)
    others = [
        ("lint", [v for v in view.lints if v.rule == rule]),
        ("suppressed", [v for v in view.suppressed if v.rule == rule]),
    ]
    if text := "\n".join(blocks(word, view, found) for word, found in others if found):
        ET.SubElement(element, "system-out").text = text
    return element


def verdict_case(view: View) -> Element:
    """What kept the verdict from being one."""
    outcome = view.outcome
    element = Element("testcase", name="verdict", classname=shown(outcome.name))
    message = outcome.reasons[0] if outcome.reasons else "the log cannot be read"
    error = ET.SubElement(element, "error", type=outcome.verdict, message=shown(message))
    error.text = shown_lines([*outcome.reasons, *(str(outcome.problem or "").splitlines())])
    return element


def blocks(word: str, view: View, found: Sequence[Violation]) -> str:
    return "\n".join(shown_lines(list(block(word, view.outcome, v))) for v in found)


def shown_lines(lines: Sequence[str]) -> str:
    """Lines without the control characters that XML cannot hold."""
    return "".join(f"{shown(line)}\n" for line in lines)
