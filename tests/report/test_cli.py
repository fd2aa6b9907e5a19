"""The command line, called as the installed command is: what each option does, and which exit code comes out."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import jsonschema
import pytest
from golden import check_golden
from kvsan.checker import cli
from kvsan.checker.report import html, sarif
from kvsan.checker.report.rulebook import rulebook
from outcomes import RULES
from report_logs import e, write_log

CORPUS = Path(__file__).parents[2] / "traces" / "corpus"
BAD, GOOD = "reject/vllm-1556.jsonl", "accept/vllm-1556-fixed.jsonl"
FORMATS = {"text": "txt", "json": "json", "sarif": "sarif", "junit": "xml", "html": "html"}


@dataclass
class Result:
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


Kvsan = Callable[..., Result]


@pytest.fixture
def kvsan(monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Kvsan:
    """Runs the entry point in the corpus, so that kept reports hold no path of a machine."""
    monkeypatch.chdir(CORPUS)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sarif, "version", lambda: "1.2.3")
    monkeypatch.setattr(sarif, "rulebook", lambda: RULES)
    monkeypatch.setattr(html, "rulebook", lambda: RULES)

    def run(*arguments: object) -> Result:
        monkeypatch.setattr("sys.argv", ["kvsan", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capfdbinary.readouterr()
        code = ended.value.code
        assert code is None or isinstance(code, int)
        return Result(code or 0, out.decode(), err.decode())

    return run


@pytest.mark.parametrize("chosen", FORMATS)
@pytest.mark.parametrize(("log", "code"), [(BAD, 1), (GOOD, 0)])
def test_a_corpus_log_gives_the_kept_report(kvsan: Kvsan, log: str, code: int, chosen: str) -> None:
    result = kvsan("check", log, "--format", chosen)
    assert (result.code, result.err) == (code, "")
    check_golden(f"{Path(log).stem}.{FORMATS[chosen]}", result.out)


def test_the_last_line_of_a_failure_replays_it(kvsan: Kvsan) -> None:
    first = kvsan("check", BAD)
    label, command = first.lines[-1].split(None, 1)
    assert label == "replay"
    again = kvsan(*command.split()[1:])
    assert again.code == 1
    assert again.lines[-1] == first.lines[-1]
    assert [line for line in first.lines if line.startswith("violated")] == [
        line for line in again.lines if line.startswith("violated")
    ]


def test_a_block_is_shown_with_its_life(kvsan: Kvsan) -> None:
    made = json.loads(kvsan("check", BAD, "--block", 15, "--format", "json").out)
    assert [life["about"] for life in made["lives"]] == ["block 15"]
    assert [event["line"] for event in made["lives"][0]["events"]] == [3, 4, 5, 7, 9, 10, 11, 13]
    assert [v["block"] for v in made["violations"]] == ["15"]
    other = json.loads(kvsan("check", BAD, "--block", 14, "--format", "json").out)
    assert (other["verdict"], other["violations"], other["hidden"]) == ("VIOLATED", [], 1)


def test_a_branch_is_shown_with_its_life(kvsan: Kvsan) -> None:
    text = kvsan("check", GOOD, "--branch", "c").out
    assert text.startswith(f"branch c in {GOOD}: ")
    assert "fork branch=c parent=p" in text


def test_a_block_or_branch_that_is_not_there_gets_a_hint(kvsan: Kvsan) -> None:
    block = kvsan("check", GOOD, "--block", 9999).out
    assert block.startswith(f"block 9999 in {GOOD}: 0 events; pool gpu has blocks 0 to ")
    assert kvsan("check", GOOD, "--branch", "cc").out.startswith(f"branch cc in {GOOD}: 0 events; did you mean c?")
    other = kvsan("check", GOOD, "--branch", "zebra").out
    assert other.startswith(f"branch zebra in {GOOD}: 0 events; branches are p, ")


def test_until_stops_before_the_violation(kvsan: Kvsan) -> None:
    assert kvsan("check", BAD, "--until", 12).code == 0
    assert kvsan("check", BAD, "--until", 13).code == 1


def test_the_worst_of_several_logs_counts(kvsan: Kvsan, tmp_path: Path) -> None:
    broken = write_log(tmp_path / "broken.jsonl", e("alloc", block="x"), note="broken")
    unknown = write_log(tmp_path / "unknown.jsonl")
    assert kvsan("check", GOOD, unknown).code == 3
    assert kvsan("check", GOOD, unknown, broken).code == 2
    result = kvsan("check", GOOD, unknown, broken, BAD)
    assert result.code == 1
    assert "VIOLATED  4 logs: 1 VIOLATED, 2 UNKNOWN, 1 HOLDS" in result.lines
    made = json.loads(kvsan("check", GOOD, BAD, "--format", "json").out)
    assert (made["verdict"], made["exit_code"], [log["verdict"] for log in made["logs"]]) == (
        "VIOLATED",
        1,
        ["HOLDS", "VIOLATED"],
    )


def test_a_broken_log_is_exit_2_with_place_and_remedy(kvsan: Kvsan, tmp_path: Path) -> None:
    log = write_log(tmp_path / "a.jsonl", e("alloc", block=1), e("alloc", block="x"))
    result = kvsan("check", log)
    assert result.code == 2
    assert f"  at        {log}:3    block" in result.lines
    assert any(line.startswith("  fix       ") for line in result.lines)
    assert kvsan("check", tmp_path / "none.jsonl").code == 2


def test_a_violation_before_a_break_counts_more_than_the_break(kvsan: Kvsan, tmp_path: Path) -> None:
    cut = tmp_path / "cut.jsonl"
    cut.write_text(Path(BAD).read_text() + '{"ev":"al')
    result = kvsan("check", cut)
    assert result.code == 1
    assert "log cut short" in result.out and "violated free_once" in result.out


def test_a_gap_is_unknown(kvsan: Kvsan, tmp_path: Path) -> None:
    log = write_log(tmp_path / "a.jsonl", e("admit", branch="a", seq=1), e("alloc", block=1, seq=5))
    result = kvsan("check", log)
    assert result.code == 3
    assert "  reason    3 events are missing before line 3: what they did is unknown" in result.lines


def test_a_required_rule_that_was_not_checked_is_unknown(kvsan: Kvsan) -> None:
    assert kvsan("check", GOOD, "--require", "free_once").code == 0
    assert kvsan("check", GOOD, "--require", "free_once", "--require", "ref_count_agrees").code == 3
    result = kvsan("check", GOOD, "--require", "all")
    assert result.code == 3
    assert "  reason    rule ref_count_agrees is required but was never checked" in result.lines


def test_suppressed_violations_do_not_fail_but_are_told(kvsan: Kvsan, tmp_path: Path) -> None:
    known = tmp_path / "known.txt"
    known.write_text(f"free_once file={BAD} block=15 -- fixed upstream\nno_leak -- stale\n")
    result = kvsan("check", BAD, "--suppress", known)
    assert result.code == 0
    assert "  reason    fixed upstream" in result.lines
    assert "unused    suppression no_leak: it covers nothing here" in result.lines
    assert result.lines[-1].startswith(f"HOLDS     {BAD}: 0 violations, 1 suppressed in 12 events")
    made = json.loads(kvsan("check", BAD, "--suppress", known, "-f", "json").out)
    assert (made["violations"], [v["suppressed"] for v in made["suppressed"]]) == ([], ["fixed upstream"])
    assert made["unused_suppressions"] == ["no_leak"]
    [found] = json.loads(kvsan("check", BAD, "--suppress", known, "-f", "sarif").out)["runs"][0]["results"]
    assert found["suppressions"][0]["justification"] == "fixed upstream"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["check", BAD, "--require", "free_onse"], "kvsan: there is no rule 'free_onse': did you mean free_once?"),
        (["check", BAD, "--suppress", "none.txt"], "the file cannot be read"),
        (["check", BAD, "--output", "no/such/folder/x"], "cannot be written"),
        (["check", BAD, "--output", BAD], "is one of the logs"),
        (["check", BAD, "--witness", "/dev/null/x"], "--witness /dev/null/x cannot be made"),
        (["check", BAD, "--block", "1", "--pool", "cpu"], "there is no pool 'cpu': did you mean gpu?"),
        (["check", BAD, "--format", "yaml"], "'yaml' is not one of"),
        (["check", BAD, "--until", "0"], "--until"),
        (["check"], "Missing argument"),
        (["chek", BAD], "did you mean"),
        (["rules", "free_onse"], "did you mean free_once?"),
        (["rules", "--format", "html"], "'html' is not one of 'text', 'json'"),
    ],
)
def test_bad_usage_is_exit_2_with_a_remedy(kvsan: Kvsan, arguments: list[str], says: str) -> None:
    result = kvsan(*arguments)
    assert result.code == 2
    assert says.lower() in result.err.lower()
    assert result.out == "" and "Traceback" not in result.err
    assert Path(BAD).stat().st_size > 0


def test_an_unknown_discipline_is_exit_2_and_the_other_logs_are_checked(kvsan: Kvsan, tmp_path: Path) -> None:
    log = write_log(tmp_path / "a.jsonl", e("quiescent"), discipline="pagd_cow")
    result = kvsan("check", log, BAD)
    assert result.code == 1
    assert "malformed line: there is no discipline 'pagd_cow'" in result.lines
    assert "  fix       did you mean paged_cow?" in result.lines
    assert kvsan("check", log).code == 2


def test_a_report_can_go_to_a_file(kvsan: Kvsan, tmp_path: Path) -> None:
    result = kvsan("check", BAD, "--format", "json", "--output", tmp_path / "r.json")
    assert (result.code, result.out, result.err) == (1, "", f"kvsan check: wrote {tmp_path / 'r.json'}\n")
    assert json.loads((tmp_path / "r.json").read_text())["verdict"] == "VIOLATED"
    assert kvsan("check", BAD, "-f", "json", "-o", tmp_path / "r.json", "--quiet").err == ""


def test_quiet_leaves_failures_and_the_verdict(kvsan: Kvsan) -> None:
    assert len(kvsan("check", GOOD, "--quiet").lines) == 1
    lines = kvsan("check", BAD, "--quiet").lines
    assert lines[0].startswith("violated free_once") and lines[-2].startswith("VIOLATED")
    assert not any(line.startswith(("assumed", "rules")) for line in lines)


def test_color_is_for_terminals_unless_forced(kvsan: Kvsan) -> None:
    plain = kvsan("check", BAD).out
    assert "\x1b" not in plain
    assert "\x1b[31m" in kvsan("check", BAD, "--color", "always").out
    assert "\x1b" not in kvsan("check", BAD, "--color", "always", "-f", "json").out


def test_segments_are_one_log_and_lines_are_shown_in_their_files(kvsan: Kvsan, tmp_path: Path) -> None:
    lines = Path(BAD).read_text().splitlines(keepends=True)
    first, second = tmp_path / "a.1.jsonl", tmp_path / "a.2.jsonl"
    first.write_text("".join(lines[:8]))
    second.write_text("".join(lines[8:]))
    result = kvsan("check", first, second)
    assert result.code == 1
    assert f"  at        {second}:5    free block=15" in result.lines
    assert result.lines[-1] == f"  replay    kvsan check {first} {second} --until 13 --block 15"


def test_rules_are_printed_with_their_four_labels(kvsan: Kvsan) -> None:
    everything = kvsan("rules").out
    for name, doc in rulebook().items():
        assert f"\n{name}\n" in everything
        assert set(doc.labels) >= {"Source", "Catches", "Except", "Deviates"}
    one = kvsan("rules", "free_once").out
    assert "free_once" in one and "exclusive_write" not in one
    for label in ("Source:", "Catches:", "Except:", "Deviates:"):
        assert label in one
    made = json.loads(kvsan("rules", "--format", "json").out)
    assert [rule["name"] for rule in made["rules"]] == list(rulebook())


def test_the_printed_schema_accepts_a_log_and_refuses_a_wrong_type(kvsan: Kvsan) -> None:
    validator = jsonschema.Draft202012Validator(json.loads(kvsan("schema").out))
    for line in Path(BAD).read_text().splitlines()[:4]:
        assert validator.is_valid(json.loads(line))
    assert not validator.is_valid({"ev": "alloc", "block": "x"})


def test_help_teaches_with_examples_and_exit_codes(kvsan: Kvsan) -> None:
    assert "kvsan check run.jsonl" in kvsan("--help").out
    text = kvsan("check", "--help").out
    for word in ("Examples:", "--until 42 --block 7", "--require all", "Exit code: 0 HOLDS, 1 VIOLATED", "-- fixed"):
        assert word in text
    assert kvsan("--version").out.startswith("kvsan ")


def test_a_defect_is_a_sentence_and_no_verdict(kvsan: Kvsan, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr("kvsan.checker.command.check.check", broken)
    result = kvsan("check", GOOD)
    assert result.code == 3
    assert result.err.startswith("kvsan: a defect of kvsan, no verdict: RuntimeError: boom\n")


def test_an_interrupt_before_there_is_anything_to_report_is_said(kvsan: Kvsan, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kvsan.checker.command.explore.prepare", interrupt)
    result = kvsan("explore", "tail_copy")
    assert (result.code, result.out, result.err) == (130, "", "kvsan: interrupted: there is no verdict\n")


def test_an_interrupt_reports_what_was_found_so_far(kvsan: Kvsan, monkeypatch: pytest.MonkeyPatch) -> None:
    from kvsan.checker.command.progress import Progress

    def interrupt(self: Progress, events: int, line: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Progress, "tell", interrupt)
    result = kvsan("check", BAD, GOOD)
    assert result.code == 130
    assert "violated free_once" in result.out and ", interrupted" in result.out
    assert GOOD not in result.out
    assert result.err.startswith("kvsan check: interrupted")
