"""The logs reduced by hand: those of `bugs.json`, the traps, and the smallest ones beside each rule.

A log says in its header what is expected of it: `x_expect` the verdict, `x_rule` the rule (in a log that holds: the
rule it stays within), `x_line` the line where that rule must fire, `x_also` rules that truly fire beside it, `x_lint` a
lint it shows.
"""

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from kvsan.checker import check
from kvsan.traces.read import open_log
from plain_replay import findings

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "traces" / "corpus"
MINIMAL = ROOT / "tests" / "replay" / "minimal"

ORDER_RULES = {"no_reuse_in_flight", "copy_precedes_use", "source_stable", "read_is_initialised", "accesses_ordered"}
STATE_RULES = {
    "alloc_from_free", "free_once", "entry_is_held", "exclusive_write", "write_within_table", "sealed_is_immutable",
    "seal_is_earned", "hit_is_live", "ref_count_agrees", "free_count_agrees", "tables_agree", "append_only_table",
    "private_copy_target", "pins_balanced", "no_leak", "rollback_exact", "reservation_covers", "events_match_cache",
    "survivors_unharmed",
}  # fmt: skip
LINTS = {
    "needless_copy", "dead_copy", "duplicate_full_block", "late_release", "recomputed_sealed", "sealed_twice",
    "full_block_unsealed",
}  # fmt: skip
DISCIPLINES = {"paged_cow", "append_only", "append_only_cow", "page_tree"}


def lines_of(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def header_of(log: Path) -> dict[str, Any]:
    with log.open() as file:
        header: dict[str, Any] = json.loads(file.readline())
    return header


def reduced_by_hand(*folders: Path) -> list[Path]:
    logs = [log for folder in folders for log in sorted(folder.rglob("*.jsonl"))]
    return [log for log in logs if header_of(log).get("x_by") == "reduced by hand"]


def name_of(log: Path) -> str:
    return f"{log.parent.name}/{log.stem}"


LOGS = reduced_by_hand(CORPUS, MINIMAL)
BUGS: list[dict[str, Any]] = json.loads((CORPUS / "bugs.json").read_text())
FROM_THE_START = [log for log in LOGS if header_of(log)["started"] == "empty"]

each_log = pytest.mark.parametrize("log", LOGS, ids=name_of)


@each_log
def test_header_says_what_is_expected_and_where_it_comes_from(log: Path) -> None:
    header = header_of(log)
    assert header["ev"] == "trace"
    assert header["schema"] == "kvsan/1"
    assert header["discipline"] in DISCIPLINES
    assert header["x_provenance"]
    assert header["x_summary"].endswith(".")
    assert header["x_expect"] in {"HOLDS", "VIOLATED"}
    assert header.get("x_rule", "no_leak") in STATE_RULES | ORDER_RULES | LINTS
    assert header.get("x_lint", "dead_copy") in LINTS


@each_log
def test_expected_violation_names_a_rule_and_an_event_of_the_log(log: Path) -> None:
    header, *events = lines_of(log)
    violated = header["x_expect"] == "VIOLATED"
    assert violated == ("x_line" in header)
    if violated:
        assert header["x_rule"] in STATE_RULES | ORDER_RULES
        assert 2 <= header["x_line"] <= 1 + len(events)


@each_log
def test_folder_agrees_with_the_expected_verdict(log: Path) -> None:
    violated = header_of(log)["x_expect"] == "VIOLATED"
    assert violated == (log.parent.name == "reject" or log.stem.endswith("-breaks"))


@each_log
def test_every_line_decodes(log: Path) -> None:
    opened = open_log(log)
    decoded = sum(len(batch) for batch in opened.batches())
    assert opened.problem is None
    assert decoded == len(lines_of(log)) - 1


@pytest.mark.parametrize("log", FROM_THE_START, ids=name_of)
def test_specification_run_as_plain_python_finds_what_is_expected(log: Path) -> None:
    header, found = header_of(log), findings(log)
    rules = {(finding.rule, finding.line) for finding in found if not finding.is_lint}
    lints = {finding.rule for finding in found if finding.is_lint}
    by_state = header["x_expect"] == "VIOLATED" and header["x_rule"] not in ORDER_RULES
    expected = {(header["x_rule"], header["x_line"])} if by_state else set()
    assert {rule for rule in rules if rule[0] not in header.get("x_also", [])} == expected
    assert header.get("x_lint") in {None, *lints}


def obligations() -> set[str]:
    """The message of every `obey` and `advise` of the discipline, read from its source."""
    calls = [
        node
        for file in (ROOT / "spec" / "ownership").glob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"obey", "advise"}
    ]
    return {ast.literal_eval(call.args[2]) for call in calls}


def test_every_obligation_is_broken_by_a_reduced_log() -> None:
    """But one: the entry that a fork shares can name a free block only after the free broke `free_once`."""
    broken = {finding.message for log in FROM_THE_START for finding in findings(log)}
    assert obligations() - broken == {"branch {c} forked block {b} from {r}, but the block is free"}


@each_log
def test_checker_gives_the_expected_verdict_rule_and_line(log: Path) -> None:
    header = header_of(log)
    report = check(log)
    assert report.verdict == header["x_expect"]
    if header["x_expect"] == "VIOLATED":
        found = {(violation.rule, violation.line) for violation in report.violations}
        assert (header["x_rule"], header["x_line"]) in found
        assert {rule for rule, _ in found} == {header["x_rule"], *header.get("x_also", [])}
    if "x_lint" in header:
        assert header["x_lint"] in {lint.rule for lint in report.lints}


def test_every_bug_has_its_logs() -> None:
    for bug in BUGS:
        assert bug["logs"], bug["id"]
        for log in bug["logs"]:
            assert (CORPUS / log).is_file(), f"{bug['id']} names {log}, which is not there"
        verdicts = {header_of(CORPUS / log)["x_expect"] for log in bug["logs"]}
        assert verdicts == ({"HOLDS"} if bug["rule"] in LINTS else {"HOLDS", "VIOLATED"}), bug["id"]


def test_every_bug_is_caught_by_the_rule_its_entry_names() -> None:
    for bug in BUGS:
        rules = {header_of(CORPUS / log).get("x_rule") for log in bug["logs"]}
        assert bug["rule"] in rules, bug["id"]


def test_every_log_of_a_bug_is_listed_once() -> None:
    listed = [log for bug in BUGS for log in bug["logs"]]
    there = [f"{log.parent.name}/{log.name}" for log in reduced_by_hand(CORPUS)]
    assert sorted(listed) == sorted(log for log in there if not Path(log).name.startswith("trap-"))


def test_list_of_bugs_is_complete() -> None:
    assert len(BUGS) == 52
    assert len({bug["id"] for bug in BUGS}) == 52


@pytest.mark.parametrize("rule", sorted((STATE_RULES | ORDER_RULES) - {"survivors_unharmed"}))
def test_rule_has_a_log_that_breaks_it_and_one_that_just_does_not(rule: str) -> None:
    """`survivors_unharmed` is a property of a step of a design: no event of a log ends a branch and harms another."""
    endings = {log.stem.rsplit("-", 1)[1] for log in MINIMAL.glob(f"{rule}-*.jsonl")}
    assert endings == {"breaks", "holds"}


@pytest.mark.parametrize("lint", sorted(LINTS))
def test_lint_has_a_log_that_shows_it(lint: str) -> None:
    assert lint in {header_of(log).get("x_lint") for log in MINIMAL.glob("*.jsonl")}
