"""`seq`: repeats and steps back are errors, gaps stand in their places."""

import pytest
from kvsan.traces.events import Grow
from kvsan.traces.read import Gap, Log, open_log
from toy_logs import HEAD, events_of, grow_lines, grows, items_of, stream, toy_log


def numbered(*numbers: int | None, header: str = HEAD) -> Log:
    lines = [b'{"ev":"grow","branch":"r0"%s}\n' % (b"" if n is None else b',"seq":%d' % n) for n in numbers]
    return open_log(stream(header.encode() + b"\n" + b"".join(lines)))


@pytest.mark.parametrize("numbers", [(1, 2, 3), (0, 1, 2), (None, None), (1, None, 2), (None, 1, None)])
def test_numbers_without_gaps_read_without_remark(numbers: tuple[int | None, ...]) -> None:
    log = numbered(*numbers)
    assert events_of(log) == [Grow(branch="r0", seq=n) for n in numbers]
    assert log.problem is None


def test_a_gap_stands_where_events_are_missing() -> None:
    log = numbered(1, 2, 6, 7)
    assert items_of(log) == [
        (2, Grow(branch="r0", seq=1)),
        (3, Grow(branch="r0", seq=2)),
        (4, Gap(after=3, before=4, missing=3)),
        (4, Grow(branch="r0", seq=6)),
        (5, Grow(branch="r0", seq=7)),
    ]
    assert log.problem is None


def test_a_gap_after_events_without_a_number_names_the_last_numbered_line() -> None:
    assert (5, Gap(after=2, before=5, missing=1)) in items_of(numbered(1, None, None, 3))


def test_a_log_that_starts_empty_and_late_has_a_gap_at_its_head() -> None:
    assert items_of(numbered(5))[0] == (2, Gap(after=None, before=2, missing=4))


def test_a_log_that_starts_mid_run_may_start_at_any_number() -> None:
    assert events_of(numbered(5, header=HEAD.replace("}", ',"started":"mid_run"}'))) == [Grow(branch="r0", seq=5)]


def test_the_number_of_the_header_is_the_one_before_the_first() -> None:
    assert events_of(numbered(8, header=HEAD.replace("}", ',"seq":7}'))) == [Grow(branch="r0", seq=8)]


@pytest.mark.parametrize(("numbers", "what"), [((1, 1), "seq 1 comes twice"), ((1, 2, 1), "seq 1 comes after 2")])
def test_a_number_that_repeats_or_goes_back_is_an_error(numbers: tuple[int, ...], what: str) -> None:
    log = numbered(*numbers)
    assert events_of(log) == [Grow(branch="r0", seq=n) for n in numbers[:-1]]
    assert log.problem is not None
    assert (log.problem.line, log.problem.path, log.problem.what) == (len(numbers) + 1, "seq", what)


def test_numbers_are_followed_across_batches() -> None:
    whole = toy_log(30_000)
    assert events_of(open_log(stream(whole))) == grows(1, 30_000)
    gapped = open_log(stream(whole + grow_lines(30_002, 40_000)))
    assert [item for item in items_of(gapped) if isinstance(item[1], Gap)] == [(30_002, Gap(30_001, 30_002, 1))]
