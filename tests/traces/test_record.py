"""The recorder writes what the reader accepts, and refuses the rest where it is made."""

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from kvsan.traces.decode import Extension, decode_line
from kvsan.traces.events import Alloc, Grow, Map, Quiescent, Window
from kvsan.traces.read import Gap, Log, open_log
from kvsan.traces.record import Recorder, RecordError
from kvsan.traces.writer import LINES_A_FLUSH
from toy_logs import events_of
from valid_lines import FULL, OTHER

HEADER: dict[str, Any] = {"engine": "toy", "version": "1", "discipline": "paged_cow", "block_size": 4, "blocks": 8}
each_form = pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".jsonl.zst"])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.jsonl"


def read_whole(path: Path) -> tuple[Log, list[Any]]:
    log = open_log(path)
    events = events_of(log)
    assert log.problem is None
    return log, events


@each_form
def test_what_is_recorded_reads_back(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"run{suffix}"
    with Recorder(path, **HEADER, null_block=0, x_command="here") as recorder:
        for number in range(2 * LINES_A_FLUSH):
            recorder.emit("grow", branch="r0", tokens=number)
    log, events = read_whole(path)
    assert events == [Grow(seq=n + 1, branch="r0", tokens=n) for n in range(2 * LINES_A_FLUSH)]
    assert log.header is not None
    assert log.header.null_block == 0
    assert log.header_fields["x_command"] == "here"


@pytest.mark.parametrize("line", [*FULL, *OTHER], ids=lambda line: line["ev"])
def test_every_kind_of_event_can_be_recorded(path: Path, line: dict[str, Any]) -> None:
    fields = {name: value for name, value in line.items() if name not in ("ev", "seq")}
    with Recorder(path, **HEADER, pools={"cpu": {"blocks": 8}}) as recorder:
        recorder.emit(line["ev"], **fields)
    expected = decode_line(json.dumps(line | {"seq": 1}).encode())
    assert read_whole(path)[1] == ([] if isinstance(expected, Extension) else [expected])


def test_a_field_that_is_none_is_left_out_and_an_entry_that_is_none_is_kept(path: Path) -> None:
    with Recorder(path, **HEADER) as recorder:
        recorder.emit("alloc", block=1, branch=None)
        recorder.emit("map", branch="r0", pos=0, block=None)
    assert path.read_text().splitlines()[1:] == [
        '{"ev":"alloc","seq":1,"block":1}',
        '{"ev":"map","seq":2,"branch":"r0","pos":0,"block":null}',
        '{"ev":"x_closed","seq":3}',
    ]


def test_a_discipline_that_does_not_exist_is_refused_with_the_nearest(path: Path) -> None:
    with pytest.raises(RecordError, match="known is paged_cow"):
        Recorder(path, **{**HEADER, "discipline": "pagedcow"})


def test_from_may_be_written_with_an_underscore(path: Path) -> None:
    with Recorder(path, **HEADER) as recorder:
        recorder.emit("window", branch="r0", from_=1)
        recorder.emit("window", branch="r0", **{"from": 2})
    assert read_whole(path)[1] == [Window(seq=1, branch="r0", from_=1), Window(seq=2, branch="r0", from_=2)]


class Counted:
    """A whole number of some other library."""

    def __index__(self) -> int:
        return 3


def test_numbers_of_other_libraries_are_taken(path: Path) -> None:
    with Recorder(path, **HEADER) as recorder:
        recorder.emit("alloc", block=[Counted(), 4])
    assert read_whole(path)[1] == [Alloc(seq=1, block=(3, 4))]


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("aloc", {"block": 1}, 'aloc is refused: there is no event "aloc"; did you mean alloc?'),
    ("alloc", {"blok": 1}, 'alloc is refused: alloc has no field "blok"; did you mean block?'),
    ("alloc", {}, "alloc is refused: alloc lacks block; add block"),
    ("alloc", {"block": "one"}, 'alloc is refused: block is "one", a string'),
    ("alloc", {"block": 1.0}, "alloc is refused: block is 1.0, a number with a fraction"),
    ("alloc", {"block": True}, "alloc is refused: block is true, a boolean"),
    ("free", {"block": 8}, "free is refused: block is 8, and the pool has blocks 0 to 7"),
    ("free", {"block": 1, "pool": "cpu"}, "free is refused: pool cpu is not in the header"),
    ("free", {"block": object()}, "free cannot be written: "),
    ("free", {"block": 1, "seq": 5}, "free is refused: seq and ev are the recorder's to write"),
    ("free", {"block": 1, "ev": "alloc"}, "free is refused: seq and ev are the recorder's to write"),
    ("window", {"branch": 1, "from_": 1, "from": 2}, "window is refused: from and from_ are one field"),
    ("free", {"block": 1, "note": "\ud800"}, "free cannot be written: "),
    ("sync", {}, "sync is refused: sync names neither stream nor event nor device"),
    ("trace", {}, "trace is refused: the recorder has written the header"),
    ("write", {"branch": "r0", "block": 1, "slots": [2, 2]}, "write is refused: slots is [2, 2), an empty range"),
]


@pytest.mark.parametrize(("ev", "fields", "text"), REFUSED, ids=[text[:50] for _, _, text in REFUSED])
def test_what_no_log_may_hold_is_refused_where_it_is_made(
    path: Path, ev: str, fields: dict[str, Any], text: str
) -> None:
    with Recorder(path, **HEADER) as recorder:
        with pytest.raises(RecordError) as caught:
            recorder.emit(ev, **fields)
        recorder.emit("quiescent")
    assert str(caught.value).startswith(text)
    assert read_whole(path)[1] == [Gap(None, 2, 1), Quiescent(seq=2)]  # the refused event is missed, and is seen to be


def test_an_impossible_id_that_alloc_hands_out_is_recorded(path: Path) -> None:
    with Recorder(path, **HEADER) as recorder:
        recorder.emit("alloc", block=900)
    assert read_whole(path)[1] == [Alloc(seq=1, block=900)]


def test_a_wrong_header_is_refused_before_there_is_a_file(path: Path) -> None:
    with pytest.raises(RecordError, match='the header has no field "nul_block"; did you mean null_block'):
        Recorder(path, **HEADER, nul_block=0)
    assert not path.exists()


@each_form
def test_events_of_many_threads_are_all_there_in_the_order_of_their_numbers(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"run{suffix}"
    with Recorder(path, **HEADER) as recorder:

        def work(branch: int) -> None:
            for number in range(500):
                recorder.emit("grow", branch=branch, tokens=number)

        threads = [threading.Thread(target=work, args=(branch,), name=f"worker-{branch}") for branch in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    events = read_whole(path)[1]
    assert [event.seq for event in events] == list(range(1, 3001))
    for branch in range(6):
        own = [event for event in events if event.branch == branch]
        assert [event.tokens for event in own] == list(range(500))
        assert {event.thread for event in own} == {f"worker-{branch}"}


def test_the_events_of_a_group_stay_together(path: Path) -> None:
    with Recorder(path, **HEADER) as recorder:

        def work(branch: int) -> None:
            for number in range(200):
                with recorder.group():
                    recorder.emit("grow", branch=branch, tokens=number)
                    recorder.emit("map", branch=branch, pos=number, block=1)

        threads = [threading.Thread(target=work, args=(branch,)) for branch in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    events = read_whole(path)[1]
    for first, second in zip(events[::2], events[1::2], strict=True):
        assert isinstance(first, Grow)
        assert isinstance(second, Map)
        assert (first.branch, first.tokens) == (second.branch, second.pos)


@each_form
def test_what_was_flushed_can_be_read_while_the_recorder_is_open(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"run{suffix}"
    with Recorder(path, **HEADER) as recorder:
        for number in range(3):
            recorder.emit("grow", branch="r0", tokens=number)
            recorder.flush()
            log = open_log(path)
            assert len(events_of(log)) == number + 1
            assert log.problem is not None and log.problem.kind == "cut"  # it may still grow


def test_closing_twice_does_nothing(path: Path) -> None:
    recorder = Recorder(path, **HEADER)
    recorder.close()
    recorder.close()
    recorder.flush()


def test_a_closed_recorder_takes_no_events(path: Path) -> None:
    recorder = Recorder(path, **HEADER)
    recorder.close()
    with pytest.raises(RecordError, match="the recorder is closed"):
        recorder.emit("quiescent")


def test_an_error_in_the_engine_leaves_what_was_recorded(path: Path) -> None:
    with pytest.raises(ZeroDivisionError), Recorder(path, **HEADER) as recorder:
        recorder.emit("quiescent")
        raise ZeroDivisionError
    assert read_whole(path)[1] == [Quiescent(seq=1)]


def test_a_place_that_cannot_be_written_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Recorder(tmp_path / "none" / "run.jsonl", **HEADER)
    with pytest.raises(IsADirectoryError):
        Recorder(tmp_path, **HEADER)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_an_os_error_at_once() -> None:
    with pytest.raises(OSError, match="No space left"):
        Recorder("/dev/full", **HEADER)


def test_a_disk_that_fills_up_later_raises_and_keeps_what_was_written(tmp_path: Path) -> None:
    """A pipe whose reader has gone stands for the disk: the write fails after others have succeeded."""
    pipe = tmp_path / "run.jsonl"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    recorder = Recorder(pipe, **HEADER)
    os.close(reading)
    recorder.emit("quiescent")
    with pytest.raises(RecordError, match="Broken pipe; events are lost"):
        recorder.flush()
    with pytest.raises(RecordError, match="Broken pipe; events are lost"):
        recorder.emit("quiescent")
    with pytest.raises(RecordError, match="Broken pipe; events are lost"):
        recorder.close()
    recorder.close()


def test_memory_is_bounded_when_the_disk_is_slow(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller waits for the writer rather than queueing without end."""
    monkeypatch.setattr("kvsan.traces.record.LINES_QUEUED_MAX", LINES_A_FLUSH)
    recorder = Recorder(path, **HEADER)
    longest = 0
    for number in range(10 * LINES_A_FLUSH):
        recorder.emit("grow", branch="r0", tokens=number)
        longest = max(longest, len(recorder._lines))
    recorder.close()
    assert longest <= 2 * LINES_A_FLUSH
    assert len(read_whole(path)[1]) == 10 * LINES_A_FLUSH
