"""The installed command as a process: pipes, signals, standard input, and nothing on a terminal that is none."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

CORPUS = Path(__file__).parents[2] / "traces" / "corpus"
BAD, GOOD = CORPUS / "reject" / "vllm-1556.jsonl", CORPUS / "accept" / "vllm-1556-fixed.jsonl"
KVSAN = [sys.executable, "-c", "from kvsan.checker.cli import main; main()"]


def run(*arguments: object, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [*KVSAN, *map(str, arguments)]
    return subprocess.run(command, input=stdin, capture_output=True, timeout=120, check=False)


def test_standard_input_is_a_log() -> None:
    done, again = (run("check", "-", stdin=BAD.read_bytes()) for _ in range(2))
    assert done.stdout == again.stdout, "the same log gives the same bytes in another process"
    assert done.returncode == 1 and done.stderr == b""
    assert done.stdout.splitlines()[-1] == b"  replay    kvsan check - --until 13 --block 15"
    assert run("check", "-", stdin=b"").returncode == 2


def test_a_reader_that_leaves_early_changes_no_exit_code() -> None:
    command = [*KVSAN, "check", str(GOOD), str(BAD)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        errors = process.stderr.read()
    assert (process.returncode, errors) == (1, b"")


def test_a_full_disk_is_no_traceback() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    done = run("check", GOOD, "--output", "/dev/full")
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr and b"No space left" in done.stderr


def test_ctrl_c_while_reading_ends_with_130_and_no_traceback() -> None:
    with subprocess.Popen(
        [*KVSAN, "check", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        # More than a pipe holds: that it was taken shows that the command is reading.
        line = b'{"ev":"admit","branch":"a"}\n{"ev":"finish","branch":"a"}\n'
        process.stdin.write(BAD.read_bytes() + line * 20000)
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        errors = process.stderr.read()
        process.stdout.read()
    assert process.returncode == 130
    assert b"Traceback" not in errors and b"interrupted" in errors


def test_a_terminal_gets_color_and_a_pipe_none() -> None:
    master, slave = pty.openpty()
    try:
        environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
        code = subprocess.run([*KVSAN, "check", str(GOOD), "-q"], stdout=slave, env=environment, check=False).returncode
        shown = os.read(master, 65536)
    finally:
        os.close(master)
        os.close(slave)
    assert code == 0
    assert shown.startswith(b"\x1b[32m\x1b[1mHOLDS\x1b[0m")
    assert not run("check", GOOD, "-q").stdout.startswith(b"\x1b")


def test_a_recorded_command_keeps_its_arguments_and_its_exit_code(tmp_path: Path) -> None:
    out = tmp_path / "run.jsonl"
    child = "import sys; print(sys.argv[1:]); raise SystemExit(7)"
    done = run("record", "--out", out, "--", sys.executable, "-c", child, "--out", "x", "--help")
    assert (done.returncode, done.stdout.strip()) == (7, b"['--out', 'x', '--help']")
    assert b"Traceback" not in done.stderr


def test_a_command_that_records_nothing_is_no_success(tmp_path: Path) -> None:
    done = run("record", "--out", tmp_path / "run.jsonl", "--", sys.executable, "-c", "pass")
    assert done.returncode == 2 and b"nothing was recorded" in done.stderr
