"""Events in one line of text."""

from __future__ import annotations

from kvsan.checker.replay.wording import event_text
from kvsan.traces.events import Alloc, Write


def test_who_did_it_comes_first_and_evidence_is_left_out() -> None:
    write = Write(seq=9, t=5, block=7, slots=(3, 4), branch="r2", stream="compute", note="why")
    assert event_text(write) == "write branch=r2 block=7 slots=[3,4) stream=compute"


def test_a_long_list_is_begun_and_counted() -> None:
    text = event_text(Alloc(block=tuple(range(100))))
    assert text.startswith("alloc block=[0,1,2,") and text.endswith(",15,... 84 more]")


def test_a_long_name_is_shortened() -> None:
    assert len(event_text(Alloc(block=1, branch="r" * 500))) < 100
