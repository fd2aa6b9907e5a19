"""A whole log written at once reads back as it was."""

from pathlib import Path

import pytest
from kvsan.traces.events import Alloc, Quiescent, Step
from kvsan.traces.read import open_log
from kvsan.traces.write import encode_log, write_log
from toy_logs import HEADER, events_of, items_of

EVENTS = [
    Alloc(block=(3, 4), branch="r0"),
    Step(op=1, stream="s", copies=((3, 4, 0, 2),), writes=(("r0", 3, 0, 1),), reads=("r0", ("r1", 5))),
    Quiescent(),
]


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".jsonl.zst"])
def test_a_written_log_reads_back(tmp_path: Path, suffix: str) -> None:
    log = open_log(write_log(tmp_path / f"run{suffix}", HEADER, EVENTS))
    assert log.header == HEADER
    assert items_of(log) == list(enumerate(EVENTS, 2))
    assert log.problem is None


def test_events_can_be_numbered_by_their_place(tmp_path: Path) -> None:
    log = open_log(write_log(tmp_path / "run.jsonl", HEADER, EVENTS, number=True))
    assert [getattr(event, "seq", None) for event in events_of(log)] == [1, 2, 3]


def test_the_header_is_the_first_line() -> None:
    assert encode_log(HEADER, []) == (
        b'{"ev":"trace","schema":"kvsan/1","engine":"toy","version":"1","discipline":"paged_cow",'
        b'"block_size":4,"blocks":8}\n'
    )
