"""Launches whose events are spread over the log: each stands where its first event is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kvsan.checker import check
from kvsan.checker.order.placed import Placed, hearer
from kvsan.checker.order.schedule import NoWitness
from kvsan.checker.order.spread import Spread
from kvsan.checker.order.witness import witness
from kvsan.checker.replay.memory import memory_log
from kvsan.checker.replay.replay import Replay
from kvsan.traces import events as ev
from oracle import Model
from test_interleavings import agree, reported
from test_knowledge import log_of

Event = dict[str, Any]
HEADER: Event = {
    "ev": "trace", "schema": "kvsan/1", "engine": "toy", "version": "1", "discipline": "paged_cow", "block_size": 2,
    "blocks": 8,
}  # fmt: skip
BLOCKS: list[Event] = [{"ev": "alloc", "block": b} for b in (1, 2, 3)]
JOINED = [{"ev": "record", "event": "e", "stream": "s"}, {"ev": "wait", "event": "e", "stream": "t"}]
FULL = "kvsan.checker.order.spread.LATE_MAX"


def write(op: str, block: int, stream: str = "s", lo: int = 0, hi: int = 2) -> Event:
    return {"ev": "write", "op": op, "holder": "h", "block": block, "slots": [lo, hi], "stream": stream}


def read(op: str, stream: str, upto: int = 2) -> Event:
    return {"ev": "read", "op": op, "branch": "a", "upto": upto, "stream": stream}


def copy(op: str, src: int, dst: int, stream: str) -> Event:
    return {"ev": "copy", "op": op, "src": src, "dst": dst, "slots": [0, 2], "stream": stream}


def own(block: int | None, pos: int = 0) -> Event:
    return {"ev": "map", "branch": "a", "pos": pos, "block": block}


MID_RUN: Event = {**HEADER, "started": "mid_run"}
ADMIT: Event = {"ev": "admit", "branch": "a", "tokens": 2}
SPREAD = [*BLOCKS, write("a", 1), *JOINED, write("b", 2, "t"), write("a", 2)]
NEXT: list[Event] = [
    {"ev": "unmap", "branch": "a", "pos": 0, "block": 2}, {"ev": "free", "block": 2}, {"ev": "alloc", "block": 2},
]  # fmt: skip

PROGRAMS: dict[str, tuple[str, list[int]]] = {
    "what comes behind it does not race with it": ("a=s1, record e s, wait e t, b=t2, a=s2", []),
    "nor on its own stream": ("a=s1, b=s2, a=s2", []),
    "nor behind a sync of an earlier place": ("a=s1, c=t0, record e s, done c, wait e t, b=t2, a=s2", []),
    "what was replaced meanwhile does": ("b=t2, a=s1, record e t, wait e s, c=s2, a=s2", [10]),
    "it replaces nothing that came behind it": ("a=s1, b=s2, a=s2, c=t2", [8]),
    "what the thread did between is of no help": ("a=t2, b=s1, 0, free 2, alloc 2, b=s2", [10]),
    "nor what it learned": ("a=t2, b=s1, done a, free 2, alloc 2, b=s2", [10]),
    "legacy: the legacy stream comes behind it": ("a=t1, b=s2, a=t2", []),
    "an op that goes on and on stays in its place": ("a=s1, b=s2, a=s0, a=s2, record e s, wait e t, c=t2", []),
    "what the thread does between is judged in its place": ("a=t1, 0, free 0, alloc 0, a=t0", [6]),
    "the later of two launches is the one that begins later": ("a=s1, b=t2, a=s2, c=u0", [6]),
}  # fmt: skip


@pytest.mark.parametrize("what", PROGRAMS)
def test_it_is_judged_where_it_begins(what: str) -> None:
    program, lines = PROGRAMS[what]
    log = log_of(program, legacy=what.startswith("legacy"))
    agree(log, Model(log).races())
    assert sorted({line for line, _ in reported(log)[0]}) == lines


CASES: dict[str, tuple[list[Event], list[tuple[str, int]]]] = {
    "it writes what is read behind it":
        ([ADMIT, *BLOCKS, own(2), write("a", 1), *JOINED, read("r", "t"), write("a", 2)], []),
    "it reads what is written behind it only":
        ([ADMIT, *BLOCKS, own(2), write("a", 1), *JOINED, write("b", 2, "t"), read("a", "s")],
         [("read_is_initialised", 11)]),
    "it reads what it wrote in an event between":
        ([ADMIT, *BLOCKS, own(2), write("a", 1), write("a", 2), *JOINED, write("b", 1, "t"), read("a", "s")], []),
    "a copy of it brings nothing that is written behind it":
        ([ADMIT, *BLOCKS, own(2), write("a", 1), *JOINED, write("b", 3, "t"), copy("a", 3, 2, "s"), read("r", "s")],
         [("read_is_initialised", 12)]),
    "it reads a token without an entry":
        ([{**ADMIT, "tokens": 4}, *BLOCKS, own(2), write("a", 2), *JOINED, write("b", 1, "t"), read("a", "s", 4)],
         [("read_is_initialised", 11)]),
    "it reads nothing below the window":
        ([{**ADMIT, "tokens": 4}, *BLOCKS, own(2), own(3, 1), write("a", 3), *JOINED, write("b", 1, "t"),
          {"ev": "window", "branch": "a", "from": 1}, read("a", "s", 4)], []),
    "its reads are remembered":
        ([ADMIT, *BLOCKS, own(2), write("x", 2), *JOINED, write("a", 1), write("b", 1), read("a", "s"),
          write("c", 2, "t")], [("accesses_ordered", 13)]),
    "its reads of a block with a breach are not":
        ([ADMIT, *BLOCKS, own(2), write("x", 2), write("y", 2, "t"), write("a", 1), write("b", 1), read("a", "s"),
          *NEXT, write("c", 2, "t")], [("accesses_ordered", 8)]),
    "what it copies may have been written before the log":
        ([MID_RUN, ADMIT, BLOCKS[0], own(1), write("a", 2), copy("b", 3, 2, "s"), copy("a", 5, 1, "s"), read("r", "s")],
         []),
    "so may what is read behind it":
        ([MID_RUN, ADMIT, BLOCKS[0], own(1), write("a", 2), *JOINED, write("b", 2, "t"), read("r", "t"),
          copy("a", 5, 1, "s")], []),
    "so may what it reads": ([MID_RUN, ADMIT, own(1), write("a", 2), write("b", 2), read("a", "s")], []),
    "where writes are not recorded, anything may have been written":
        ([{**HEADER, "complete": ["alloc", "admit", "map", "read"]}, ADMIT, *BLOCKS, own(2), write("a", 1),
          write("b", 1), read("a", "s")], []),
    "a null entry is read by nobody":
        ([{**ADMIT, "tokens": 4}, *BLOCKS, own(None), own(3, 1), write("a", 3), write("b", 1), read("a", "s", 4)], []),
    "nor is an entry below the window missed":
        ([{**ADMIT, "tokens": 4}, *BLOCKS, own(3, 1), write("a", 3), {"ev": "window", "branch": "a", "from": 1},
          write("b", 1), read("a", "s", 4)], []),
    "its blocks are of a pool":
        ([{**HEADER, "pools": {"cpu": {"blocks": 8}}}, *BLOCKS, {**BLOCKS[1], "pool": "cpu"},
          {**write("x", 2, "u"), "pool": "cpu"}, write("a", 1), write("b", 1),
          {**copy("a", 2, 3, "s"), "src_pool": "cpu"}, write("c", 3, "u"), {**write("d", 2, "t"), "pool": "cpu"}],
         [("accesses_ordered", 9)]),
    "copies of one launch are not ordered by its writes":
        ([*BLOCKS, write("x", 1), write("x", 2), copy("a", 1, 2, "s"), write("a", 2), copy("a", 2, 3, "s")],
         [("source_stable", 9)]),
    "what a branch still holds it read in a former life":
        ([ADMIT, *BLOCKS, own(2), write("b", 2), *JOINED, read("r", "t"), write("a", 1), write("c", 1), *NEXT,
          write("a", 2)], [("no_reuse_in_flight", 16)]),
    "what is lost later was written before":
        ([ADMIT, *BLOCKS, own(2), write("a", 1), {"ev": "invalidate", "block": 2}, write("b", 1), write("a", 2),
          {"ev": "invalidate", "block": 2}, read("r", "s")], [("read_is_initialised", 12)]),
    "of a block with a breach it breaks nothing more":
        ([*BLOCKS, write("x", 2, "u"), write("a", 1), *JOINED, write("b", 2, "t"), write("a", 2)],
         [("accesses_ordered", 9)]),
    "what its copies pass on is not trusted":
        ([*BLOCKS, write("x", 2, "u"), write("a", 1), *JOINED, write("b", 1, "t"), copy("a", 2, 3, "s"),
          write("c", 3, "u")], [("accesses_ordered", 10)]),
    "nor what was copied where it begins":
        ([*BLOCKS, write("x", 2, "u"), copy("a", 2, 3, "s"), *JOINED, write("b", 1, "t"), copy("a", 1, 2, "s"),
          write("c", 3, "u")], [("accesses_ordered", 6)]),
}  # fmt: skip


@pytest.mark.parametrize("what", CASES)
def test_breaches(what: str) -> None:
    log, told = CASES[what]
    log = log if log[0]["ev"] == "trace" else [HEADER, *log]
    assert [(v.rule, v.line) for v in check(log).violations] == told


def test_launches_that_take_turns_are_judged_at_once_where_none_comes_behind_another() -> None:
    told = check([HEADER, *BLOCKS, write("a", 1), write("b", 2, "t"), write("a", 1), write("b", 2, "t"), *JOINED])
    assert (told.verdict, told.reasons) == ("HOLDS", ())


def test_where_too_much_is_spread_the_verdict_is_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FULL, 0)
    told = check([HEADER, *SPREAD])
    assert (told.verdict, told.violations) == ("UNKNOWN", ())
    assert told.reasons == (
        "the order of device work was judged before line 5 alone: op a, launched there, goes on at line 9, after what "
        "may come behind it; write the events of a launch together",
    )


def test_then_what_was_launched_before_it_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FULL, 0)
    told = check([HEADER, *BLOCKS, write("x", 1, "u"), write("y", 1), *SPREAD[3:], write("z", 2, "u")])
    assert [(v.rule, v.line) for v in told.violations] == [("accesses_ordered", 6)]


def test_then_launches_that_take_turns_are_judged_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FULL, 0)
    told = check([HEADER, *BLOCKS, write("a", 1), write("b", 2, "t"), write("a", 2)])
    assert [(v.rule, v.line) for v in told.violations] == [("accesses_ordered", 7)]


def test_then_the_first_that_is_spread_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FULL, 0)
    for ops in ("abcba", "abcab"):
        told = check([HEADER, *BLOCKS, *(write(op, 1) for op in ops)])
        assert told.reasons[0].startswith("the order of device work was judged before line 5 alone: op a,")
    legacy = check([{**HEADER, "legacy_stream": "t"}, *BLOCKS, write("a", 1), write("b", 2, "t"), write("a", 2)])
    assert (legacy.verdict, legacy.violations) == ("UNKNOWN", ())


def test_what_was_found_stands_when_events_are_missing_later() -> None:
    hidden = [*BLOCKS, write("x", 2), write("a", 1, "t"), *JOINED, write("b", 2, "t"), write("a", 2, "t")]
    turns = [*BLOCKS, write("a", 1), write("b", 2, "t"), write("a", 2)]
    for log, line in ((hidden, 10), (turns, 6)):
        numbered = [{**event, "seq": n} for n, event in enumerate([*log, BLOCKS[0]], 1)]
        numbered[-1]["seq"] += 5
        assert [v.line for v in check([HEADER, *numbered]).violations] == [line]


def test_what_may_have_begun_where_events_are_missing_is_not_judged() -> None:
    def judged(*more: Event) -> tuple[str, list[str], bool]:
        events = [*BLOCKS, write("a", 1), *JOINED, None, write("b", 2, "t"), *more]
        log = [{**e, "seq": n} for n, e in enumerate(events) if e is not None]
        found = check([HEADER, *log])
        return found.verdict, [v.rule for v in found.violations], any("op a was running" in r for r in found.reasons)

    assert judged(write("a", 2)) == ("UNKNOWN", [], True)
    assert judged(write("c", 2)) == ("VIOLATED", ["accesses_ordered"], False)
    assert judged({"ev": "done", "op": "a"}, write("a", 2)) == ("VIOLATED", ["accesses_ordered"], False)


def test_a_check_that_is_interrupted_before_it_knows_tells_no_race() -> None:
    def interrupt(events: int, line: int) -> None:
        calls.append(line)
        if len(calls) == 2:
            raise KeyboardInterrupt

    calls: list[int] = []
    told = check([HEADER, *SPREAD], interruptible=True, progress=interrupt)
    assert (told.verdict, told.violations, told.interrupted) == ("UNKNOWN", (), True)


def test_an_op_on_two_streams_at_once_is_not_judged() -> None:
    race = [*BLOCKS, write("x", 1), write("y", 1, "t")]
    for before, line, rules in (([], 5, []), (race[3:], 7, ["accesses_ordered"])):
        told = check([HEADER, *BLOCKS, *before, write("a", 2), write("a", 3, "t"), write("c", 3, "s")])
        assert [v.rule for v in told.violations] == rules
        assert told.reasons == (
            f"the order of device work was judged before line {line} alone: op a, launched there and still running, "
            f"is on stream t at line {line + 1}; give each launch an id of its own",
        )


def test_an_event_that_leaves_out_the_stream_of_its_op_goes_on_with_it() -> None:
    more = {key: value for key, value in write("a", 2).items() if key != "stream"}
    assert check([HEADER, *BLOCKS, write("a", 1), more, write("b", 2)]).verdict == "HOLDS"
    told = check([HEADER, *BLOCKS, write("a", 1), more, write("b", 2, "t")])
    assert [(v.rule, v.line) for v in told.violations] == [("accesses_ordered", 7)]


def test_a_log_is_left_where_it_shows_that_it_has_to_be_read_again() -> None:
    seen: list[int] = []
    log = [HEADER, *SPREAD, *[{"ev": "signal", "channel": "c"}] * 12_000]
    check(log, progress=lambda events, line: seen.append(line))
    assert seen.count(len(log)) == 2


def test_its_races_are_shown_again_and_have_a_witness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = [*BLOCKS, write("a", 1), write("b", 2, "t"), write("c", 1), write("a", 2)]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(event) + "\n" for event in (HEADER, *log)))
    (race,) = check(path).violations
    assert "--until 8 " in (race.replay or "")
    hidden = log_of(PROGRAMS["what was replaced meanwhile does"][0], legacy=False)
    (other,) = check(hidden).violations
    ops = [event.op for event in witness(memory_log(hidden), other).events if isinstance(event, ev.Run)]
    assert ops == ["a", "b"]
    monkeypatch.setattr(FULL, 0)
    with pytest.raises(NoWitness, match="too much"):
        witness(memory_log(hidden), other)


def test_a_race_with_it_is_told_and_shown() -> None:
    log = [HEADER, *BLOCKS, write("a", 1), write("b", 2, "t"), write("c", 1), write("a", 2)]
    (race,) = check(log).violations
    assert (race.line, race.earlier) == (6, 8)
    assert race.message == (
        "stream t writes slots [0,2) of block 2, not ordered after the write on stream s, launched at line 5"
    )
    assert [fact.line for fact in race.because] == [8]
    assert [event.op for event in witness(memory_log(log), race).events[1:]] == ["a", "b", "b", "a"]  # type: ignore[union-attr]


def test_of_what_it_reads_itself_is_told_where_it_stands() -> None:
    log = [HEADER, *CASES["it reads what is written behind it only"][0]]
    (breach,) = check(log).violations
    assert breach.message.endswith("of block 2, launched at line 7, which were not written in this life")
    assert (breach.missing or "").endswith("before line 7")
    assert [event.op for event in witness(memory_log(log), breach).events[-2:]] == ["a", "a"]  # type: ignore[union-attr]


def test_what_is_kept_of_contents_does_not_grow_with_the_log() -> None:
    life = [{"ev": "free", "block": 1}, {"ev": "alloc", "block": 1}, write("w", 1)]
    opened = memory_log([HEADER, BLOCKS[0], write("a", 1), *life * 50])
    assert opened.header is not None
    replay = Replay(opened.header, frozenset(), frozenset(), one_thread=True, hears=hearer(Spread()))
    for batch in opened.batches():
        replay.perform(batch)
    assert isinstance(replay.order, Placed)
    assert len(replay.order.contents.written.masks) == 1
