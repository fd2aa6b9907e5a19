"""Launches whose events are spread over the log: each stands where its first event is."""

from __future__ import annotations

from typing import Any

from kvsan.checker import check

Event = dict[str, Any]
HEADER: Event = {
    "ev": "trace", "schema": "kvsan/1", "engine": "toy", "version": "1", "discipline": "paged_cow", "block_size": 2,
    "blocks": 8,
}  # fmt: skip
BLOCKS = [{"ev": "alloc", "block": 1}, {"ev": "alloc", "block": 2}]
JOINED = [{"ev": "record", "event": "e", "stream": "s"}, {"ev": "wait", "event": "e", "stream": "t"}]


def write(op: str, block: int, stream: str = "s") -> Event:
    return {"ev": "write", "op": op, "holder": "h", "block": block, "slots": [0, 2], "stream": stream}


def test_a_launch_that_goes_on_behind_what_comes_after_it_leaves_the_verdict_open() -> None:
    told = check([HEADER, *BLOCKS, write("a", 1), *JOINED, write("b", 2, "t"), write("a", 2)])
    assert (told.verdict, told.violations) == ("UNKNOWN", ())
    assert told.reasons == (
        "the order of device work was judged before line 4 alone: op a, launched there, goes on at line 8, after what "
        "may come behind it; write the events of a launch together",
    )


def test_what_was_launched_before_it_is_judged() -> None:
    race = [write("x", 1, "u"), write("y", 1)]
    told = check([HEADER, *BLOCKS, *race, write("a", 2), *JOINED, write("b", 2, "t"), write("a", 2), write("z", 2)])
    assert [(v.rule, v.line) for v in told.violations] == [("accesses_ordered", 5)]


def test_launches_that_take_turns_are_judged_at_once_where_none_comes_behind_another() -> None:
    told = check([HEADER, *BLOCKS, write("a", 1), write("b", 2, "t"), write("a", 1), write("b", 2, "t"), *JOINED])
    assert (told.verdict, told.reasons) == ("HOLDS", ())
