"""`kvsan record` runs a command as it is, passes its exit code on, and never claims a recording that is not there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from kvsan.traces.engines.record_command import record
from kvsan.traces.read import open_log

RECORDING = """
from kvsan.traces.engines.output import open_recorder
for _ in range({managers}):
    log = open_recorder(engine="vllm", version="0", discipline="paged_cow", block_size=4, blocks=8)
    log.emit("admit", branch="r0", tokens=3)
raise SystemExit({code})
"""


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_a_recorded_command_keeps_its_exit_code(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run.jsonl"
    assert record(python(RECORDING.format(managers=1, code=5)), out) == 5
    assert "1 events (vllm 0, paged_cow)" in capfd.readouterr().err
    assert [event.branch for _, event in next(iter(open_log(out).batches()))] == ["r0"]  # type: ignore[union-attr]


def test_every_block_manager_gets_a_log_of_its_own(tmp_path: Path) -> None:
    assert record(python(RECORDING.format(managers=2, code=0)), tmp_path / "run.jsonl.zst") == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.2.jsonl.zst", "run.jsonl.zst"]


def test_an_earlier_recording_is_replaced(tmp_path: Path) -> None:
    out = tmp_path / "run.jsonl"
    assert record(python(RECORDING.format(managers=2, code=0)), out) == 0
    assert record(python(RECORDING.format(managers=1, code=0)), out) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["run.jsonl"]


def test_a_command_that_records_nothing_is_not_a_success(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert record(python("pass"), tmp_path / "run.jsonl") == 2
    assert "nothing was recorded" in capfd.readouterr().err


def test_a_command_that_cannot_start_says_so(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert record([str(tmp_path / "absent")], tmp_path / "run.jsonl") == 127
    assert "cannot run" in capfd.readouterr().err


def test_a_command_ended_by_a_signal_is_told_as_a_shell_tells_it(tmp_path: Path) -> None:
    assert record(python("import os, signal; os.kill(os.getpid(), signal.SIGKILL)"), tmp_path / "run.jsonl") == 137


def test_the_header_names_the_command(tmp_path: Path) -> None:
    out = tmp_path / "run.jsonl"
    command = python(RECORDING.format(managers=1, code=0))
    record(command, out, header={"x_scenario": "a test"})
    first = out.read_text().splitlines()[0]
    assert '"x_scenario":"a test"' in first
    assert '"x_command":' in first


def test_a_list_of_allowed_plugins_gets_the_recorder_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_PLUGINS", "mine")
    check = 'import os; raise SystemExit(os.environ["VLLM_PLUGINS"] != "mine,kvsan")'
    code = RECORDING.format(managers=1, code=0).replace("raise SystemExit(0)", check)
    assert record(python(code), tmp_path / "run.jsonl") == 0


def test_a_command_killed_midway_leaves_what_it_wrote(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    kill = "log.flush(); import os; os.kill(os.getpid(), 9)"
    code = RECORDING.format(managers=1, code=0).replace("raise SystemExit(0)", kill)
    assert record(python(code), tmp_path / "run.jsonl") == 137
    assert "1 events" in capfd.readouterr().err
