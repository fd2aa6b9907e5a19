"""Suppression files: what they cover, and what their mistakes say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from kvsan.checker.replay.outcome import Violation
from kvsan.checker.replay.suppress import Suppression, SuppressionError, read_suppressions
from kvsan.traces.read import Log, open_log
from report_logs import e, write_log

RULES = ("exclusive_write", "free_once", "no_leak")
FOUND = Violation("free_once", 13, None, {"ev": "free"}, "block 15 freed twice", block="15", branch="c")


@pytest.fixture
def log(tmp_path: Path) -> Log:
    opened = open_log(write_log(tmp_path / "beam.jsonl", e("quiescent")))
    assert opened.problem is None
    return opened


def one(tmp_path: Path, line: str) -> Suppression:
    file = tmp_path / "known.txt"
    file.write_text(line + "\n")
    [suppression] = read_suppressions(file, RULES)
    return suppression


@pytest.mark.parametrize(
    "where",
    ["", "engine=vllm", "version=0.3.*", "file=beam.jsonl", "line=13", "line=10-13", "block=15", "branch=[cd]"],
)
def test_a_finding_is_covered_when_every_glob_matches(tmp_path: Path, log: Log, where: str) -> None:
    suppression = one(tmp_path, f"free_once {where} -- known")
    assert suppression.covers(FOUND, log.header, log.name)
    assert suppression.reason == "known"
    assert not suppression.covers(replace(FOUND, rule="no_leak"), log.header, log.name)


@pytest.mark.parametrize(
    "where", ["engine=sglang", "version=0.4*", "file=x.jsonl", "line=12", "line=14-20", "block=1", "branch=p"]
)
def test_one_glob_that_does_not_match_is_enough(tmp_path: Path, log: Log, where: str) -> None:
    assert not one(tmp_path, f"free_once engine=* {where} -- known").covers(FOUND, log.header, log.name)


def test_a_finding_about_no_block_is_covered_by_no_block_glob(tmp_path: Path, log: Log) -> None:
    assert not one(tmp_path, "free_once block=* -- known").covers(replace(FOUND, block=None), log.header, log.name)


def test_comments_and_blank_lines_are_skipped_and_values_may_be_quoted(tmp_path: Path, log: Log) -> None:
    file = tmp_path / "known.txt"
    file.write_text('# ours\n\nfree_once block="7 of pool cpu" -- a -- b\n')
    [suppression] = read_suppressions(file, RULES)
    assert suppression.where == (("block", "7 of pool cpu"),)
    assert suppression.reason == "a -- b"
    assert suppression.place == f"{file}:3"
    assert str(suppression) == "free_once block='7 of pool cpu'"


@pytest.mark.parametrize(
    ("line", "what", "fix"),
    [
        ("free_once", "it gives no reason", "end the line with ` -- ` and why"),
        ("free_once -- ", "it gives no reason", "end the line with"),
        ("-- why", "it names no rule", "start the line with one"),
        ("free_onse -- why", "there is no rule 'free_onse'", "did you mean free_once?"),
        ("free_once blok=3 -- why", "'blok=3' is no KEY=GLOB", "did you mean block?"),
        ("free_once 7 -- why", "'7' is no KEY=GLOB", "keys: engine, version, file, block, branch, line"),
        ("free_once line=x -- why", "line=x is no line", "write line=42 or line=40-45"),
        ("free_once line=9-3 -- why", "line=9-3 ends before it begins", "write line=3-9"),
        ('free_once block="3 -- why', "a quotation mark is not closed", 'write block="7 of pool cpu"'),
    ],
)
def test_a_mistake_names_its_line_and_the_remedy(tmp_path: Path, line: str, what: str, fix: str) -> None:
    file = tmp_path / "known.txt"
    file.write_text(f"# first\n{line}\n")
    with pytest.raises(SuppressionError) as caught:
        read_suppressions(file, RULES)
    first, at, remedy = str(caught.value).splitlines()
    assert first == f"bad suppression: {what}"
    assert at == f"  at        {file}:2"
    assert remedy.startswith(f"  fix       {fix}")


def test_a_missing_file_is_a_mistake_too(tmp_path: Path) -> None:
    with pytest.raises(SuppressionError, match="No such file"):
        read_suppressions(tmp_path / "none", RULES)
