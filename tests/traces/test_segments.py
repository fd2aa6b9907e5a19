"""Several files: segments of one log, or several logs."""

from pathlib import Path

import pytest
from kvsan.traces.events import Trace
from kvsan.traces.read import Gap, open_log, open_logs
from toy_logs import HEAD, events_of, grow_lines, grows, save, stream, toy_log

RENAMED = HEAD.replace('"toy"', '"other"').encode() + b"\n"


def head(data: bytes) -> bytes:
    return HEAD.encode() + b"\n" + data


@pytest.fixture
def rotated(tmp_path: Path) -> Path:
    """A log of 12 segments; the later ones repeat the header or leave it out, in turn."""
    for index in range(12):
        lines = grow_lines(10 * index + 1, 10 * index + 10)
        save(tmp_path / f"run.{index}.jsonl", lines if index % 2 else head(lines))
    return tmp_path


def test_segments_are_one_log_whether_or_not_they_repeat_the_header(rotated: Path) -> None:
    log = open_log([rotated / f"run.{index}.jsonl" for index in range(12)])
    assert events_of(log) == events_of(log) == grows(1, 120)
    assert log.problem is None


def test_a_glob_gives_segments_in_natural_order(rotated: Path) -> None:
    assert events_of(open_log(str(rotated / "run.*.jsonl"))) == grows(1, 120)


def test_lines_count_through_the_segments_and_lead_back_to_them(rotated: Path) -> None:
    log = open_log(str(rotated / "run.*.jsonl"))
    lines = [line for batch in log.batches() for line, _ in batch]
    assert lines == sorted(set(lines))
    assert log.place(lines[0]) == (str(rotated / "run.0.jsonl"), 2)
    assert log.place(lines[10]) == (str(rotated / "run.1.jsonl"), 1)
    assert log.place(lines[25]) == (str(rotated / "run.2.jsonl"), 7)


def test_a_break_names_the_segment_and_its_own_line(rotated: Path) -> None:
    broken = save(rotated / "run.3.jsonl", grow_lines(31, 33) + b"nonsense\n" + grow_lines(34, 40))
    log = open_log(str(rotated / "run.*.jsonl"))
    assert events_of(log) == grows(1, 33)
    assert log.problem is not None
    assert log.problem.place == f"{broken}:4"


def test_places_are_known_after_a_break_and_after_an_early_end(rotated: Path) -> None:
    broken = save(rotated / "run.3.jsonl", grow_lines(31, 33) + b"nonsense\n")
    log = open_log(str(rotated / "run.*.jsonl"))
    before = log.place(1), log.lines
    lines = [line for batch in log.batches() for line, _ in batch]
    assert log.place(lines[-1]) == (str(broken), 3)
    assert log.lines == lines[-1] + 1
    next(log.batches())
    assert (log.place(1), log.lines) == ((str(rotated / "run.0.jsonl"), 1), 11)
    assert before == ((str(rotated / "run.0.jsonl"), 1), 0)


def test_a_missing_segment_is_a_gap(rotated: Path) -> None:
    (rotated / "run.3.jsonl").unlink()
    gaps = [event for event in events_of(open_log(str(rotated / "run.*.jsonl"))) if isinstance(event, Gap)]
    assert [gap.missing for gap in gaps] == [10]


def test_segments_in_the_wrong_order_are_an_error(rotated: Path) -> None:
    log = open_log([rotated / "run.2.jsonl", rotated / "run.1.jsonl"])
    assert [event for event in events_of(log) if not isinstance(event, Gap)] == grows(21, 30)
    assert log.problem is not None
    assert log.problem.what == "seq 11 comes after 30"


def test_a_segment_of_another_log_is_an_error(rotated: Path) -> None:
    other = save(rotated / "other.jsonl", RENAMED + grow_lines(11, 12))
    log = open_log([rotated / "run.0.jsonl", other])
    assert events_of(log) == grows(1, 10)
    assert log.problem is not None
    assert log.problem.place == f"{other}:1"
    assert log.problem.what == "a header of another log"


def test_segments_may_be_joined_into_one_stream(rotated: Path) -> None:
    """As `cat` does it: the repeated headers stand in the middle."""
    joined = b"".join((rotated / f"run.{index}.jsonl").read_bytes() for index in range(12))
    log = open_log(stream(joined))
    assert events_of(log) == grows(1, 120)
    assert log.problem is None


def test_two_logs_joined_into_one_stream_are_refused_at_the_second_header() -> None:
    log = open_log(stream(toy_log(3) + RENAMED + grow_lines(4, 5)))
    assert events_of(log) == grows(1, 3)
    assert log.problem is not None
    assert (log.problem.line, log.problem.what) == (5, "a header of another log")


def test_an_empty_later_segment_adds_nothing(rotated: Path) -> None:
    save(rotated / "run.12.jsonl", b"")
    log = open_log(str(rotated / "run.*.jsonl"))
    assert events_of(log) == grows(1, 120)
    assert log.problem is None


def test_a_cut_segment_ends_the_log_there(rotated: Path) -> None:
    """What follows a cut would be checked against a state that nobody knows."""
    save(rotated / "run.1.jsonl", grow_lines(11, 15)[:-5])
    log = open_log(str(rotated / "run.*.jsonl"))
    assert events_of(log) == grows(1, 14)
    assert log.problem is not None
    assert log.problem.kind == "cut"


def test_segments_of_one_log_are_told_from_several_logs(rotated: Path) -> None:
    again = save(rotated / "again.jsonl", toy_log(3))
    other = save(rotated / "other.jsonl", RENAMED + grow_lines(4, 5))
    more = save(rotated / "other-2.jsonl", grow_lines(6, 7))
    logs = open_logs([rotated / "run.*.jsonl", again, other, more])
    assert [len(log.sources) for log in logs] == [12, 1, 2]
    assert [len(events_of(log)) for log in logs] == [120, 3, 5]  # the last begins with a gap
    assert [log.header.engine if isinstance(log.header, Trace) else None for log in logs] == ["toy", "toy", "other"]


def test_files_that_cannot_be_read_are_logs_with_problems(rotated: Path) -> None:
    broken = save(rotated / "broken.jsonl", b"nonsense\n")
    logs = open_logs([rotated / "none.jsonl", rotated / "run.0.jsonl", rotated / "no*.jsonl", broken])
    assert [log.problem is None for log in logs] == [False, True, False, False]


def test_logs_without_numbers_and_with_equal_headers_are_several(tmp_path: Path) -> None:
    quiet = head(b'{"ev":"quiescent"}\n')
    paths = [save(tmp_path / "a.jsonl", quiet), save(tmp_path / "b.jsonl", quiet)]
    assert len(open_logs(paths)) == 2
    assert len(events_of(open_log(paths))) == 2


def test_no_file_at_all_is_a_problem() -> None:
    assert open_log([]).problem is not None
    assert open_logs([]) == []
