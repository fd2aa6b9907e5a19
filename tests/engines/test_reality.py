"""The verdict on a log agrees with what the model computed.

Forked runs of vLLM 0.6.2, each as it is, with a worker that forgets the copies, and with the copies of a launch in
another order. Their logprobs are compared with those of independent runs of the same tokens, the logs are checked.
`pytest -s` shows the table.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from kvsan.checker import check
from kvsan.traces.engines.reality import (
    AS_IT_IS,
    LAST_FIRST,
    REJECTED,
    RUNS,
    SAME_LOGPROB,
    WAYS,
    WITHOUT,
    Copies,
    Difference,
    difference,
    log_path,
)
from test_recorded_vllm import CORPUS, header, needs, renamed

RUNS_MADE = [(name, copies) for name in RUNS for copies in WAYS]
each_run = pytest.mark.parametrize(
    ("name", "copies"), RUNS_MADE, ids=[f"{name}-{copies}" for name, copies in RUNS_MADE]
)
DID_NOT_BITE = ("chained_copies", AS_IT_IS)
"""A race in the engine's own log that came out right: another order of the same launch does not."""


def say(log: Path, logprobs: Sequence[float], alone: Sequence[float]) -> Difference:
    outputs = [{"logprobs": list(logprobs), "alone": list(alone)}, {"logprobs": [-1.0], "alone": [-1.0]}]
    log.with_suffix(".outputs.json").write_text(json.dumps(outputs))
    return difference(log)


def test_a_difference_counts_outputs_and_not_the_noise_of_floats(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    assert not say(log, [-1.0, -2.0], [-1.0, -2.0 + SAME_LOGPROB / 2]).differs
    assert say(log, [-1.0, -2.0], [-1.0, -2.5]) == Difference(outputs=2, wrong=1, largest=0.5)
    assert say(log, [-1.0, float("nan")], [-1.0, -2.0]).wrong == 1


MADE_WITHOUT_COPIES = sorted(CORPUS.glob("*/vllm-0.6.2-reality-*-without-copies.jsonl"))


def test_the_corpus_holds_every_run_without_copies() -> None:
    assert {path.name for path in MADE_WITHOUT_COPIES} == {log_path(name, WITHOUT, Path()).name for name in RUNS}
    rejected = {path.name for path in MADE_WITHOUT_COPIES if path.parent.name == "reject"}
    assert rejected == {log_path(name, WITHOUT, Path()).name for name, copies in REJECTED if copies == WITHOUT}


@pytest.mark.parametrize("log", MADE_WITHOUT_COPIES, ids=lambda log: log.stem)
def test_a_run_without_its_copies_is_rejected_where_a_branch_first_reads_what_was_not_copied(log: Path) -> None:
    says, report = header(log), check(log)
    assert report.verdict == says["x_expect"]
    assert {violation.rule for violation in report.violations} == ({says["x_rule"]} if "x_rule" in says else set())
    assert min((violation.line for violation in report.violations), default=None) == says.get("x_line")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every run, recorded, and its outputs computed again on their own; each mode is a process."""
    interpreter, folder = needs("vllm-0.6.2"), tmp_path_factory.mktemp("reality")
    for arguments in ([*RUNS], [f"--{WITHOUT}", *RUNS], [f"--{LAST_FIRST}", *RUNS], ["--alone"]):
        command = [str(interpreter), "-m", "kvsan.traces.engines.reality", *arguments, "--into", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
        assert done.returncode == 0, done.stderr[-3000:]
    return folder


def steps_with_copies(log: Path) -> int:
    return sum('"copies"' in line for line in log.read_text().splitlines())


@pytest.mark.engine
@each_run
def test_verdict_and_reality_agree(made: Path, name: str, copies: Copies) -> None:
    """Rejected exactly when an output's logprobs are not those of an independent run, or can be others."""
    log = log_path(name, copies, made)
    found, report = difference(log), check(log)
    broken = ", ".join(sorted({violation.rule for violation in report.violations}))
    print(
        f"\n{name:14} copies {copies:15}  outputs that differ {found.wrong} of {found.outputs}, "
        f"by up to {found.largest:.1e}  {report.verdict} {broken}"
    )
    assert report.verdict == ("VIOLATED" if (name, copies) in REJECTED else "HOLDS")
    assert found.differs == ((name, copies) in REJECTED and (name, copies) != DID_NOT_BITE)


@pytest.mark.engine
@pytest.mark.parametrize("name", ["fork_three", "fork_five", "one_slot_tail", "two_prompts"])
def test_as_many_branches_are_reported_as_outputs_are_wrong(made: Path, name: str) -> None:
    """Branches that live to the end, one output each, in blocks of their own. Beams die, and hand their harm on."""
    log = log_path(name, WITHOUT, made)
    assert len(check(log).violations) == difference(log).wrong


@pytest.mark.engine
@each_run
def test_the_log_shows_the_copies_that_ran(made: Path, name: str, copies: Copies) -> None:
    assert (steps_with_copies(log_path(name, copies, made)) > 0) == (copies != WITHOUT and name != "full_prompt")


@pytest.mark.engine
@pytest.mark.parametrize("name", RUNS)
def test_the_order_in_which_a_launch_happened_to_copy_is_not_in_the_log(made: Path, name: str) -> None:
    assert renamed(log_path(name, LAST_FIRST, made)) == renamed(log_path(name, AS_IT_IS, made))


@pytest.mark.engine
@pytest.mark.parametrize("log", MADE_WITHOUT_COPIES, ids=lambda log: log.stem)
def test_recording_without_copies_again_gives_the_same_events(made: Path, log: Path) -> None:
    assert renamed(made / log.name) == renamed(log)
