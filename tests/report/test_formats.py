"""Rendering: every format on outcomes built by hand, against kept bytes and against what each format promises."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import jsonschema
import pytest
from golden import check_golden
from kvsan.checker.report import html, sarif
from kvsan.checker.report.formats import Format, render
from kvsan.checker.report.paint import paint
from kvsan.checker.report.view import View, worst
from outcomes import BROKEN, HOLDS, LIFE, LINT, RULES, VIOLATED, WRITE

SUFFIX = {"text": "txt", "json": "json", "sarif": "sarif", "junit": "xml", "html": "html"}

CASES = {
    "violated": [View(VIOLATED)],
    "broken": [View(BROKEN)],
    "several": [View(HOLDS), View(VIOLATED), View(BROKEN)],
    "block": [View(VIOLATED, (LIFE,), block="7")],
}

# The style guide's own example: the block has to come out letter for letter.
STYLE = """\
violated exclusive_write: branch r2 wrote slot 3 of block 7, which branch r1 also owns
  at        beam.jsonl:42    write branch=r2 block=7 slots=[3,4) stream=compute
  because   beam.jsonl:17    fork r1 -> r2 shared block 7 (owners 1 -> 2)
  missing   a copy of block 7 for r2, or r1's release of it, between lines 17 and 42
  source    PagedAttention (SOSP'23) section 4.4, copy-on-write at block granularity
  replay    kvsan check beam.jsonl --until 42 --block 7
"""


@pytest.fixture(autouse=True)
def some_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """No kept file pins the version of this installation, nor the wording of a rule."""
    monkeypatch.setattr(sarif, "version", lambda: "1.2.3")
    monkeypatch.setattr(sarif, "rulebook", lambda: RULES)
    monkeypatch.setattr(html, "rulebook", lambda: RULES)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("chosen", list(Format))
def test_a_report_is_the_kept_bytes(case: str, chosen: Format) -> None:
    made = render(chosen, CASES[case])
    assert made == render(chosen, CASES[case])
    check_golden(f"{case}.{SUFFIX[chosen]}", made)


def test_a_violation_reads_as_the_style_guide_has_it() -> None:
    text = render(Format.text, [View(VIOLATED)])
    assert text.startswith(STYLE)


def test_a_failure_ends_with_the_command_that_replays_it() -> None:
    for case in ("violated", "several", "block"):
        assert render(Format.text, CASES[case]).splitlines()[-1].split(None, 1) == ["replay", WRITE.replay], case


def test_a_brief_report_is_failures_and_the_verdict() -> None:
    text = render(Format.text, [View(VIOLATED)], brief=True)
    assert text.startswith(STYLE)
    assert "lint" not in text.replace("1 lint", "") and "assumed" not in text and "rules  " not in text


def test_control_characters_of_a_log_reach_no_terminal() -> None:
    text = render(Format.text, [View(VIOLATED)])
    assert "\x1b" not in text and "\\x1b[31m" in text


def test_color_adds_escapes_and_changes_no_character() -> None:
    text = render(Format.text, [View(VIOLATED), View(BROKEN)])
    colored = paint(text)
    assert colored != text
    for code in ("31", "32", "33", "1", "2", "0"):
        colored = colored.replace(f"\x1b[{code}m", "")
    assert colored == text


def test_many_findings_of_one_rule_are_counted_in_text_and_listed_in_json() -> None:
    many = replace(VIOLATED, violations=tuple(replace(WRITE, line=n) for n in range(100, 150)))
    text = render(Format.text, [View(many)])
    assert text.count("violated exclusive_write: branch") == 20
    assert "violated exclusive_write: 30 more" in text
    assert len(json.loads(render(Format.json, [View(many)]))["violations"]) == 50


def test_a_view_of_a_block_hides_other_findings_and_says_so() -> None:
    made = json.loads(render(Format.json, [View(VIOLATED, block="3")]))
    assert [made["violations"], [lint["rule"] for lint in made["lints"]], made["hidden"]] == [[], [LINT.rule], 3]
    assert made["verdict"] == "VIOLATED"
    assert "hidden    3 findings about other blocks" in render(Format.text, [View(VIOLATED, block="3")])


def test_json_has_the_documented_shape() -> None:
    made = json.loads(render(Format.json, [View(VIOLATED)]))
    assert made["log"]["ev"] == "trace" and made["events"] == 49
    first = made["violations"][0]
    assert {"rule", "line", "seq", "event", "message", "because"} <= set(first)
    assert first["because"] == [{"line": 17, "text": "fork r1 -> r2 shared block 7 (owners 1 -> 2)"}]
    assert set(first) == set(made["lints"][0])
    assert made["coverage"]["copy_precedes_use"] == {
        "checked": 0,
        "status": "not_checkable",
        "unknown": 0,
        "needs": ["copy", "step"],
    }
    assert made["suppressed"][0]["suppressed"].startswith("the nightly run")


def test_a_line_of_a_later_segment_is_shown_in_its_file() -> None:
    split = replace(VIOLATED, name="a.jsonl, b.jsonl", segments=(("a.jsonl", 0), ("b.jsonl", 40)))
    text = render(Format.text, [View(split)])
    assert "  at        b.jsonl:2    write" in text and "  because   a.jsonl:17    fork" in text
    violation = json.loads(render(Format.json, [View(split)]))["violations"][0]
    assert (violation["line"], violation["file"], violation["file_line"]) == (42, "b.jsonl", 2)


def required(properties: dict[str, Any], *names: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(names)}


def many(item: dict[str, Any], least: int = 0) -> dict[str, Any]:
    return {"type": "array", "items": item, "minItems": least}


TEXT = {"type": "string", "minLength": 1}
MESSAGE = required({"text": TEXT}, "text")
LEVEL = {"enum": ["none", "note", "warning", "error"]}
REGION = required({"startLine": {"type": "integer", "minimum": 1}, "snippet": MESSAGE}, "startLine")
PHYSICAL = required({"artifactLocation": required({"uri": TEXT}, "uri"), "region": REGION}, "artifactLocation")
LOCATION = required({"physicalLocation": PHYSICAL, "message": MESSAGE}, "physicalLocation")
RULE = required(
    {
        "id": TEXT,
        "shortDescription": MESSAGE,
        "fullDescription": MESSAGE,
        "help": required({"text": TEXT, "markdown": TEXT}, "text"),
        "defaultConfiguration": required({"level": LEVEL}, "level"),
    },
    "id",
    "fullDescription",
    "help",
)
RESULT = required(
    {
        "ruleId": TEXT,
        "ruleIndex": {"type": "integer", "minimum": 0},
        "level": LEVEL,
        "message": MESSAGE,
        "locations": many(LOCATION, 1),
        "relatedLocations": many(LOCATION, 1),
        "suppressions": many(required({"kind": {"enum": ["inSource", "external"]}}, "kind"), 1),
    },
    "ruleId",
    "message",
    "locations",
)
DRIVER = required({"name": TEXT, "version": TEXT, "rules": many(RULE, 1)}, "name", "rules")
RUN = required(
    {
        "tool": required({"driver": DRIVER}, "driver"),
        "results": many(RESULT),
        "invocations": many(required({"executionSuccessful": {"type": "boolean"}}, "executionSuccessful"), 1),
    },
    "tool",
    "results",
)
SARIF = required({"version": {"const": "2.1.0"}, "$schema": TEXT, "runs": many(RUN, 1)}, "version", "runs")
"""What SARIF 2.1.0 (OASIS, sections 3.13 to 3.52) requires of the objects that are written."""


@pytest.mark.parametrize("case", CASES)
def test_sarif_has_the_properties_that_the_standard_requires(case: str) -> None:
    made = json.loads(render(Format.sarif, CASES[case]))
    jsonschema.validate(made, SARIF)
    [run] = made["runs"]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    uris = {artifact["location"]["uri"] for artifact in run["artifacts"]}
    assert {r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for r in run["results"]} <= uris


def test_sarif_names_files_as_uri_references() -> None:
    assert sarif.uri("logs/a b.jsonl") == "logs/a%20b.jsonl"
    assert sarif.uri("/tmp/a#1.jsonl") == "file:///tmp/a%231.jsonl"
    assert sarif.uri("<stdin>") == "%3Cstdin%3E"


def test_junit_counts_what_it_holds() -> None:
    root = ET.fromstring(render(Format.junit, CASES["several"]))
    for suite in (*root, root):
        cases = list(suite.iter("testcase"))
        assert int(suite.get("tests", "")) == len(cases)
        for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.get(name, "")) == sum(case.find(tag) is not None for case in cases), name
    assert {case.get("name") for case in root.iter("testcase") if case.find("failure") is not None} == {
        "exclusive_write",
        "free_once",
    }


class Page(HTMLParser):
    """Collects tags, and the attributes that could fetch something."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.fetches: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.fetches += [name for name, _ in attrs if name in ("src", "href")]
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("case", CASES)
def test_html_is_one_page_that_fetches_nothing_and_believes_nothing(case: str) -> None:
    made = render(Format.html, CASES[case])
    page = Page()
    page.feed(made)
    assert page.open == [] and page.fetches == []
    assert not page.tags & {"script", "link", "img", "b"}
    assert "\x1b" not in made


def test_the_worst_exit_code_of_several_logs_is_a_violation_then_broken_input_then_unknown() -> None:
    assert [worst(codes) for codes in ([0, 3, 2, 1], [0, 3, 2], [3, 0], [0], [])] == [1, 2, 3, 0, 0]
