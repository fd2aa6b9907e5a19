"""However the process ends, what was recorded before can be read."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from kvsan.traces.events import Grow
from kvsan.traces.read import Log, open_log
from toy_logs import events_of

SUFFIXES = [".jsonl", ".jsonl.gz", ".jsonl.zst"]
each_form = pytest.mark.parametrize("suffix", SUFFIXES)

OPEN = """
import os, signal, sys, threading, time
from kvsan.traces.record import Recorder, RecordError
recorder = Recorder(sys.argv[1], engine="toy", version="1", discipline="paged_cow", block_size=4, blocks=8)
def grow(count):
    for number in range(count):
        recorder.emit("grow", branch="r0", tokens=1)
"""


def start(path: Path, script: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", OPEN + script, str(path)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def finish(process: subprocess.Popen[bytes]) -> tuple[int, bytes, bytes]:
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def wait_for(process: subprocess.Popen[bytes], word: bytes) -> None:
    assert process.stdout is not None
    assert process.stdout.readline().strip() == word


def count(path: Path) -> tuple[int, Log]:
    """How many events the log holds; they must be the first ones, in order."""
    log = open_log(path)
    events = events_of(log)
    assert events == [Grow(seq=n + 1, branch="r0", tokens=1) for n in range(len(events))]
    return len(events), log


@each_form
def test_a_recorder_that_nobody_closes_is_closed_at_exit(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"run{suffix}"
    assert finish(start(path, "grow(100)")) == (0, b"", b"")
    assert count(path)[0] == 100


def test_an_exception_that_ends_the_process_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    assert finish(start(path, "grow(100); 1 / 0"))[0] == 1
    assert count(path)[0] == 100


@each_form
def test_after_kill_9_everything_flushed_is_readable(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"run{suffix}"
    process = start(path, "grow(5000); recorder.flush(); print('flushed', flush=True); grow(10**9)")
    wait_for(process, b"flushed")
    time.sleep(0.05)
    process.kill()
    finish(process)
    number, log = count(path)
    assert number >= 5000
    assert log.problem is not None and log.problem.kind == "cut"


def test_an_idle_process_has_its_last_events_on_disk_within_a_second(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    process = start(path, "grow(7); print('idle', flush=True); time.sleep(60)")
    wait_for(process, b"idle")
    deadline = time.monotonic() + 30
    while count(path)[0] < 7 and time.monotonic() < deadline:
        time.sleep(0.05)
    process.kill()
    finish(process)
    assert count(path)[0] == 7


@each_form
def test_sigterm_flushes_and_then_ends_the_process(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"run{suffix}"
    process = start(path, "grow(100); print('ready', flush=True); time.sleep(60)")
    wait_for(process, b"ready")
    process.terminate()
    assert finish(process)[0] == -signal.SIGTERM
    assert count(path)[0] == 100


def test_sigterm_in_the_middle_of_recording_leaves_a_whole_log(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    process = start(path, "print('ready', flush=True); grow(10**9)")
    wait_for(process, b"ready")
    time.sleep(0.1)
    process.terminate()
    assert finish(process)[0] == -signal.SIGTERM
    number, log = count(path)
    assert number > 0
    assert log.problem is not None and log.problem.kind == "cut"  # whole lines, and no end mark


def test_an_earlier_signal_handler_is_called_after_the_flush(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    script = f"""
recorder.close()
def ours(number, frame):
    print("lines", open({str(path)!r}).read().count("grow"), flush=True)
    sys.exit(7)
signal.signal(signal.SIGTERM, ours)
recorder = Recorder(sys.argv[1], engine="toy", version="1", discipline="paged_cow", block_size=4, blocks=8)
grow(100); print("ready", flush=True); time.sleep(60)
"""
    process = start(path, script)
    wait_for(process, b"ready")
    process.terminate()
    assert finish(process) == (7, b"lines 100\n", b"")


def test_handlers_that_lie_between_two_of_ours_are_called_once(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    script = """
def over(before):
    def theirs(number, frame):
        print("theirs", flush=True)
        before(number, frame)
    return theirs
signal.signal(signal.SIGTERM, over(signal.getsignal(signal.SIGTERM)))
second = Recorder(sys.argv[1] + "2", engine="toy", version="1", discipline="paged_cow", block_size=4, blocks=8)
grow(3); os.kill(os.getpid(), signal.SIGTERM)
"""
    assert finish(start(path, script)) == (-signal.SIGTERM, b"theirs\n", b"")
    assert count(path)[0] == 3


def test_a_recorder_of_another_thread_is_closed_at_exit(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    script = """
def work():
    other = Recorder(sys.argv[1] + "2", engine="toy", version="1", discipline="paged_cow", block_size=4, blocks=8)
    other.emit("grow", branch="r0", tokens=1, thread="main")
thread = threading.Thread(target=work); thread.start(); thread.join()
"""
    assert finish(start(path, script)) == (0, b"", b"")
    assert len(events_of(open_log(f"{path}2"))) == 1


def test_sigint_is_still_a_keyboard_interrupt(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    script = """
grow(100)
try:
    print("ready", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    grow(5)
    recorder.close()
    print("interrupted", flush=True)
"""
    process = start(path, script)
    wait_for(process, b"ready")
    process.send_signal(signal.SIGINT)
    assert finish(process) == (0, b"interrupted\n", b"")
    assert count(path)[0] == 105


def test_an_ignored_signal_stays_ignored(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    script = """
recorder.close(); signal.signal(signal.SIGTERM, signal.SIG_IGN)
recorder = Recorder(sys.argv[1], engine="toy", version="1", discipline="paged_cow", block_size=4, blocks=8)
grow(3); os.kill(os.getpid(), signal.SIGTERM); grow(4)
"""
    assert finish(start(path, script)) == (0, b"", b"")
    assert count(path)[0] == 7


def test_the_earlier_handlers_return_with_the_last_close(tmp_path: Path) -> None:
    script = """
recorder.close()
assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
assert signal.getsignal(signal.SIGINT) == signal.default_int_handler
"""
    assert finish(start(tmp_path / "run.jsonl", script)) == (0, b"", b"")


def test_a_signal_while_another_thread_holds_a_group_still_flushes(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    script = """
def hold():
    with recorder.group():
        grow(20); print("ready", flush=True); time.sleep(60)
threading.Thread(target=hold, daemon=True, name="holder").start()
time.sleep(60)
"""
    process = start(path, script)
    wait_for(process, b"ready")
    process.terminate()
    assert finish(process)[0] == -signal.SIGTERM
    log = open_log(path)
    assert len(events_of(log)) == 20
    assert log.problem is not None and log.problem.kind == "cut"  # whole lines, and no end mark


def test_a_forked_child_does_not_write_to_its_parents_log(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    script = """
grow(50)
child = os.fork()
if child == 0:
    try:
        recorder.emit("grow", branch="r0", tokens=1)
    except RecordError as error:
        print(error, flush=True)
    recorder.flush(); recorder.close()
    sys.exit(0)
os.waitpid(child, 0)
grow(50)
"""
    code, out, err = finish(start(path, script))
    assert (code, err) == (0, b"")
    assert out == f"this process was forked from the recorder's: {path} takes no more events\n".encode()
    assert count(path)[0] == 100


def test_a_child_forked_while_a_thread_records_is_not_stuck(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    script = """
thread = threading.Thread(target=grow, args=(20000,)); thread.start()
for _ in range(20):
    child = os.fork()
    if child == 0:
        try:
            recorder.emit("grow", branch="r0", tokens=1)
        except RecordError:
            pass
        name = sys.argv[1] + ".child"
        own = Recorder(name, engine="toy", version="1", discipline="paged_cow", block_size=4, blocks=8)
        own.emit("quiescent"); own.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
thread.join()
"""
    code, _, err = finish(start(path, script))
    assert (code, err) == (0, b"")
    log = open_log(path)
    assert len(events_of(log)) == 20_000
    assert log.problem is None
    assert len(events_of(open_log(f"{path}.child"))) == 1


def test_a_child_that_is_told_to_end_leaves_its_parents_log_alone(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    script = """
grow(10)
reading, writing = os.pipe()
child = os.fork()
if child == 0:
    os.write(writing, b"x")
    time.sleep(60)
    os._exit(0)
os.read(reading, 1)
os.kill(child, signal.SIGTERM)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGTERM
grow(10)
"""
    assert finish(start(path, script)) == (0, b"", b"")
    assert count(path)[0] == 20
