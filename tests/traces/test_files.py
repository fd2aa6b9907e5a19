"""A log reads the same however it is stored, and a broken file gives a problem, never an exception."""

import gzip
import io
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from kvsan.traces.events import Quiescent
from kvsan.traces.read import Limits, open_log
from toy_logs import HEAD, events_of, grow_lines, grows, items_of, save, stream, toy_log

zst = zstandard.ZstdCompressor().compress
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "plain": lambda data: data,
    "gzip": gzip.compress,
    "zstd": zst,
    "gzip members": lambda data: b"".join(gzip.compress(line) for line in data.splitlines(keepends=True)),
    "zstd frames": lambda data: b"".join(zst(line) for line in data.splitlines(keepends=True)),
    "a zstd frame without its size": lambda data: zstandard.ZstdCompressor(write_content_size=False).compress(data),
}
each_form = pytest.mark.parametrize("pack", PACKERS.values(), ids=list(PACKERS))


@each_form
def test_a_log_reads_the_same_in_every_form(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    log = open_log(save(tmp_path / "run", pack(toy_log(20))))
    assert items_of(log) == list(enumerate(grows(1, 20), 2))
    assert log.problem is None


@each_form
def test_a_stream_reads_twice(pack: Callable[[bytes], bytes]) -> None:
    log = open_log(stream(pack(toy_log(20))))
    assert events_of(log) == events_of(log) == grows(1, 20)


def test_an_iteration_that_was_left_early_can_be_repeated() -> None:
    log = open_log(stream(toy_log(50_000)))
    next(log.batches())
    assert events_of(log) == grows(1, 50_000)


def test_batches_are_bounded_and_in_order(tmp_path: Path) -> None:
    log = open_log(save(tmp_path / "run.jsonl", toy_log(100_000)))
    batches = list(log.batches())
    assert max(map(len, batches)) < 10_000
    assert [item for batch in batches for item in batch] == list(enumerate(grows(1, 100_000), 2))


def peak_of_reading(path: Path) -> int:
    """The most memory, in bytes, that Python held while it went through a log."""
    log = open_log(path)
    tracemalloc.start()
    for _ in log.batches():
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@pytest.mark.parametrize("form", ["plain", "gzip", "zstd"])
def test_reading_takes_no_more_memory_for_a_longer_log(tmp_path: Path, form: str) -> None:
    short = save(tmp_path / "short", PACKERS[form](toy_log(20_000)))
    long = save(tmp_path / "long", PACKERS[form](toy_log(80_000)))
    assert peak_of_reading(long) < 1.5 * peak_of_reading(short)


STANDARD_INPUT = (
    "from kvsan.traces.read import open_log; log = open_log('-');"
    "print([sum(len(batch) for batch in log.batches()) for _ in range(2)], log.problem)"
)


@each_form
def test_standard_input_reads_twice(pack: Callable[[bytes], bytes]) -> None:
    run = subprocess.run(
        [sys.executable, "-c", STANDARD_INPUT], input=pack(toy_log(300)), capture_output=True, check=True
    )
    assert run.stdout == b"[300, 300] None\n"


def test_a_pipe_is_read_as_it_comes() -> None:
    reading, writing = os.pipe()
    os.write(writing, toy_log(3))
    with open(reading, "rb") as pipe:  # noqa: PTH123 - a descriptor has no path
        log = open_log(pipe)
        assert next(log.batches()) == list(enumerate(grows(1, 3), 2))
        os.write(writing, grow_lines(4, 5))
        os.close(writing)
        assert events_of(log) == grows(1, 5)


def test_a_pipe_with_a_name_reads_twice() -> None:
    command = f'{sys.executable} -c "$0" <(cat)'
    script = STANDARD_INPUT.replace("'-'", "__import__('sys').argv[1]")
    run = subprocess.run(["bash", "-c", command, script], input=toy_log(300), capture_output=True, check=True)
    assert run.stdout == b"[300, 300] None\n"


ODD_BUT_RIGHT = {
    "a byte order mark": b"\xef\xbb\xbf" + toy_log(3),
    "carriage returns": toy_log(3).replace(b"\n", b"\r\n"),
    "blank lines": b"\n \n" + toy_log(3).replace(b"\n", b"\n\n\t\n"),
    "no last newline": toy_log(3).removesuffix(b"\n"),
    "spaces": toy_log(3).replace(b":", b" : ").replace(b"\n", b"  \n  "),
    "fields of its own": toy_log(3).replace(b',"branch"', b',"x_mine":{"block":[null]},"branch"'),
}


@pytest.mark.parametrize("data", ODD_BUT_RIGHT.values(), ids=list(ODD_BUT_RIGHT))
def test_odd_but_right_logs_read(data: bytes) -> None:
    log = open_log(stream(data))
    assert events_of(log) == grows(1, 3)
    assert log.problem is None


def test_blank_lines_count() -> None:
    log = open_log(stream(HEAD.encode() + b'\n\n{"ev":"quiescent"}\n\n\n{"ev":"quiescent"}\n'))
    assert items_of(log) == [(3, Quiescent()), (6, Quiescent())]


def test_two_events_on_a_line_do_not_shift_the_lines_after() -> None:
    """As many events as lines, one line with two and one blank: the count alone would not notice."""
    good = b'{"ev":"quiescent"}'
    log = open_log(stream(HEAD.encode() + b"\n" + good + good + b"\n\n" + good + b"\n"))
    assert events_of(log) == []
    assert log.problem is not None
    assert log.problem.line == 2


def test_an_event_over_two_lines_is_refused() -> None:
    log = open_log(stream(HEAD.encode() + b'\n{"ev":\n"quiescent"}\n\n'))
    assert log.problem is None
    assert events_of(log) == []
    assert log.problem is not None
    assert log.problem.line == 2


def test_events_of_its_own_take_lines_and_numbers_and_are_not_yielded() -> None:
    log = open_log(stream(HEAD.encode() + b'\n{"ev":"x_mine","seq":1,"any":[{}]}\n{"ev":"quiescent","seq":2}\n'))
    assert items_of(log) == [(3, Quiescent(seq=2))]


def test_the_header_as_written_is_at_hand() -> None:
    log = open_log(stream(HEAD.replace("}", ',"x_command":["a",{"b":1}]}').encode()))
    assert log.header_fields["x_command"] == ["a", {"b": 1}]
    assert log.problem is None


def cut(data: bytes, keep: float) -> bytes:
    return data[: int(len(data) * keep)]


@pytest.mark.parametrize("form", ["gzip", "zstd", "gzip members", "zstd frames", "plain"])
def test_a_cut_log_yields_what_precedes_the_cut(form: str) -> None:
    log = open_log(stream(cut(PACKERS[form](toy_log(2000)), 0.7)))
    events = events_of(log)
    assert events == grows(1, len(events))
    assert len(events) > 1000 or form == "zstd"  # one frame gives up only whole blocks of 128 KiB
    assert log.problem is not None
    assert log.problem.kind == "cut"


@pytest.mark.parametrize("form", ["gzip members", "zstd frames"])
def test_a_cut_between_frames_loses_only_what_follows(form: str) -> None:
    whole = PACKERS[form](toy_log(10))
    log = open_log(stream(PACKERS[form](toy_log(9)) + whole[:0]))
    assert events_of(log) == grows(1, 9)
    assert log.problem is None


def test_a_log_cut_in_its_last_line_says_which() -> None:
    log = open_log(stream(toy_log(5)[:-10]))
    assert events_of(log) == grows(1, 4)
    assert str(log.problem) == (
        "log cut short: the file ends in the middle of this line\n"
        "  at        <stream>:6\n"
        "  fix       the log was cut here: what precedes is all there is"
    )


def flip(data: bytes, at: int) -> bytes:
    damaged = bytearray(data)
    damaged[at] ^= 0xFF
    return bytes(damaged)


def test_a_field_of_its_own_that_is_nested_too_deeply_is_refused() -> None:
    log = open_log(stream(toy_log(1) + b'{"ev":"quiescent","x_deep":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"))
    assert events_of(log) == grows(1, 1)
    assert log.problem is not None
    assert log.problem.what == "the line is nested too deeply"


BROKEN = {
    "an empty file": (b"", "cut", "the log is empty"),
    "blank lines only": (b"\n\n\n", "cut", "the log is empty"),
    "UTF-16": (toy_log(2).decode().encode("utf-16"), "malformed", "the file is UTF-16"),
    "damaged gzip": (gzip.compress(toy_log(2))[:12] + b"\xff" * 30, "unreadable", "the gzip data is damaged"),
    "damaged zstd": (flip(zst(toy_log(200)), -30), "unreadable", "the zstd data is damaged"),
    "garbage after gzip": (gzip.compress(toy_log(2)) + b"garbage", "unreadable", "the gzip data is damaged"),
    "gzip cut in its head": (gzip.compress(toy_log(2))[:5], "cut", "the gzip data ends too soon"),
    "zstd cut in its head": (zst(toy_log(2))[:5], "cut", "the zstd data ends in the middle of a frame"),
    "a header without an end": (HEAD.encode()[:40], "cut", "the file ends in the middle of this line"),
}


@pytest.mark.parametrize(("data", "kind", "what"), BROKEN.values(), ids=list(BROKEN))
def test_a_broken_file_is_a_problem(data: bytes, kind: str, what: str) -> None:
    log = open_log(stream(data))
    events_of(log)
    assert log.problem is not None
    assert log.problem.kind == kind
    assert log.problem.what.startswith(what)


def test_missing_files_and_directories_are_problems(tmp_path: Path) -> None:
    missing, directory = open_log(tmp_path / "none.jsonl"), open_log(tmp_path)
    assert str(missing.problem) == (
        f"unreadable log: there is no file {tmp_path}/none.jsonl\n"
        f"  at        {tmp_path}/none.jsonl\n"
        "  fix       check the name; - reads standard input"
    )
    assert str(directory.problem) == (
        f"unreadable log: {tmp_path} is a directory\n"
        f"  at        {tmp_path}\n"
        f"  fix       name the logs in it, such as '{tmp_path}/*.jsonl'"
    )
    assert list(missing.batches()) == list(directory.batches()) == []


def test_a_name_that_no_file_can_have_is_a_problem() -> None:
    assert open_log("run\0.jsonl").problem is not None
    assert open_log("x" * 5000).problem is not None


class Failing(io.RawIOBase):
    """A stream whose device fails after the header."""

    def __init__(self) -> None:
        self.first = True

    def read(self, size: int = -1) -> bytes:
        if not self.first:
            raise OSError(5, "Input/output error")
        self.first = False
        return toy_log(2)


def test_a_device_that_fails_is_a_problem_after_what_it_gave() -> None:
    log = open_log(Failing())  # type: ignore[arg-type]
    assert events_of(log) == grows(1, 2)
    assert log.problem is not None
    assert log.problem.kind == "unreadable"


@pytest.mark.parametrize("pack", [gzip.compress, zst])
def test_a_bomb_is_refused(pack: Callable[[bytes], bytes]) -> None:
    bomb = pack(toy_log(3) + b"\n" * 3_000_000)
    log = open_log(stream(bomb), Limits(ratio=200, ratio_from=1 << 19))
    assert events_of(log) == grows(1, 3)
    assert log.problem is not None
    assert log.problem.kind == "limit"
    assert "more than 200 times" in log.problem.what


@pytest.mark.parametrize("pack", PACKERS.values(), ids=list(PACKERS))
def test_a_line_without_end_is_refused(pack: Callable[[bytes], bytes]) -> None:
    log = open_log(stream(pack(toy_log(3) + b'{"ev":"' + b"a" * 3_000_000)), Limits(line_bytes=1 << 20))
    assert events_of(log) == grows(1, 3)
    assert log.problem is not None
    assert log.problem.kind == "limit"
    assert log.problem.line == 5
