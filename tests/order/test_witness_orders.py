"""Witnesses keep to all recorded order: what happens in each, by its `run` events, against the waits of its log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from kvsan.checker import check
from kvsan.checker.order.reordered import Cut, Launch
from kvsan.checker.order.said import ORDER_NAMES, Said
from kvsan.checker.order.schedule import NoWitness
from kvsan.checker.order.witness import Witness, witness
from kvsan.checker.replay.memory import memory_log
from kvsan.checker.replay.outcome import Violation
from kvsan.traces import events as ev
from oracle import Model, Node, node_at
from programs import logs
from test_knowledge import log_of
from test_spread import ADMIT, BLOCKS, HEADER, NEXT, copy, own, read, write

Event = dict[str, Any]


def happenings(made: Witness, nodes: dict[int, Node]) -> Iterator[Node]:
    """What the accesses of a witness are in the model of its log, in the order in which they happen."""
    launched: dict[object, Node] = {}
    for line, event in zip(made.lines, made.events, strict=True):
        if isinstance(event, ev.Run):
            if event.op in launched:
                yield launched[event.op]
        elif line in nodes and event.op is None:  # type: ignore[union-attr]  # an access
            yield nodes[line]
        elif line in nodes:
            launched.setdefault(event.op, nodes[line])  # type: ignore[union-attr]  # the same


def shown(log: list[Event], race: Violation) -> str:
    """The rules that the witness of a breach breaks; it turns the two accesses round, and nothing else."""
    model = Model(log)
    nodes = {touch.line: node_at(where) for touch, where in model.touches}
    made = witness(memory_log(log), race)
    hosts = [n for n, e in zip(made.lines, made.events, strict=True) if n not in nodes and not isinstance(e, ev.Run)]
    assert hosts == sorted(hosts)
    happen = [*happenings(made, nodes)]
    for i, node in enumerate(happen):
        assert not model.before[node] & set(happen[i + 1 :])
    if race.earlier is not None and nodes[race.earlier] != nodes[race.line]:
        assert happen.index(nodes[race.line]) < happen.index(nodes[race.earlier])
    return " ".join(v.rule for v in check([made.header, *made.events]).violations)


def witnessed(log: list[Event]) -> list[str]:
    """What the witness of each breach in a log breaks."""
    return [shown(log, race) for race in check(log).violations if race.rule in ORDER_NAMES]


PROGRAMS: dict[str, tuple[str, list[str]]] = {
    "an id names a second launch": ("?a=t0, t2, a=t1, two:1", ["accesses_ordered"]),
    "an id names two, and not all know that the first is complete": ("a=s1, done a, two:a=t1", ["accesses_ordered"]),
    "the thread that freed the block writes it, in the life that another began":
        ("1, two:free 1, alloc 1, two:a=u1", ["write_within_table"]),
    "what a launch goes on with begins another life": ("a=t1, b=s0, free 2, alloc 2, a=t2, c=s2", ["accesses_ordered"]),
    "a launch comes behind the earlier access": ("a=s1, record e s, wait e u, b=u2, c=t1", ["accesses_ordered"]),
    "the earlier access is waited for": ("two:s1, two:record e s, wait e u, b=u2, c=t1", ["accesses_ordered"]),
    "legacy: the earlier access is on the legacy stream": ("two:s1, b=1", ["accesses_ordered"]),
}  # fmt: skip


@pytest.mark.parametrize("what", PROGRAMS)
def test_a_program(what: str) -> None:
    program, rules = PROGRAMS[what]
    assert witnessed(log_of(program, legacy=what.startswith("legacy"))) == rules


def ids(program: str) -> list[object]:
    """The ops that run in the witness of the race of a program."""
    log = log_of(program, legacy=False)
    (race,) = check(log).violations
    return [event.op for event in witness(memory_log(log), race).events if isinstance(event, ev.Run)]


def test_an_op_keeps_its_id_but_where_another_has_it() -> None:
    assert ids("?a=t0, t2, a=t1, two:1") == ["a"]
    assert ids("a=s1, a=s2, done a, two:a=t1") == ["a, launch 2", "a"]


FOUND = Violation("accesses_ordered", 5, None, {}, "", block="1", branch="r", earlier=4)
OTHERS = {
    "of another block": Said("free_once", "2", "", 3, 0),
    "of another branch": Said("read_is_initialised", "", "q", 3, 0),
    "with a third access": Said("accesses_ordered", "1", "", 5, 3),
    "that the log has": Said("free_once", "1", "", 2, 0),
}


@pytest.mark.parametrize("what", OTHERS)
def test_no_witness_shows_a_breach(what: str) -> None:
    cut = Cut(5, 4, mid_run=False, broken={("free_once", 2)})
    assert not OTHERS[what].turned(FOUND, cut)
    assert not OTHERS[what].instead(FOUND, cut)


def test_of_one_launch_the_copies_themselves_are_shown() -> None:
    launch = Launch(3)
    cut = Cut(5, 4, mid_run=False, kept=[(line, ev.Signal(channel="c"), launch) for line in (3, 4, 5)], within=True)
    assert Said("source_stable", "1", "", 4, 5).turned(FOUND, cut)
    assert not Said("source_stable", "1", "", 5, 3).turned(FOUND, cut)


def by(thread: str, *events: Event) -> list[Event]:
    return [{**event, "thread": thread} for event in events]


CASES: dict[str, tuple[list[Event], list[str]]] = {
    "one access races for two blocks":
        ([*BLOCKS, {"ev": "copy", "src": 1, "dst": 2, "slots": [0, 2]},
          *by("two", {**write("a", 1, "t"), "block": [1, 2]})], ["accesses_ordered", "accesses_ordered"]),
    "the entry that it reads is made behind the earlier access":
        ([{**ADMIT, "tokens": 4}, *BLOCKS, own(1), write("x", 1), {"ev": "done", "op": "x"}, write("y", 2), own(2, 1),
          *by("two", read("r", "t", 4))], ["read_is_initialised"]),
    "a copy is known complete":
        ([{**ADMIT, "tokens": 4}, *BLOCKS, own(2), own(3, 1), write("v", 1), copy("c", 1, 2, "s"),
          {"ev": "done", "op": "c"}, read("r", "t", 3)], ["read_is_initialised"]),
    "that is learned later":
        ([*BLOCKS, write("v", 1), copy("c", 1, 2, "s"), {**ADMIT, "tokens": 4}, own(2), own(3, 1),
          {"ev": "done", "op": "c"}, read("r", "t", 3)], ["read_is_initialised"]),
    "copies of one launch, which has others":
        ([*BLOCKS, copy("c", 1, 2, "s"), copy("c", 1, 2, "s"), *NEXT[1:], copy("c", 2, 1, "s")],
         ["copy_precedes_use", "source_stable source_stable"]),
    "the later access races within itself, too":
        ([*BLOCKS, {"ev": "write", "holder": "h", "block": 1, "slots": [1, 2]}, {"ev": "free", "block": 1}, BLOCKS[0],
          *by("two", {"ev": "step", "op": "c", "stream": "t", "copies": [[1, 2, 0, 1], [2, 1, 0, 2]]})],
         ["copy_precedes_use", "source_stable source_stable"]),
    "the launch that goes on is before another of its stream":
        ([*BLOCKS, write("a", 1), {**copy("b", 1, 2, "s"), "slots": [0, 1]},
          {**write("a", 3, "s", 1), "block": [2, 3]},
          {**write("c", 3, "t"), "block": [2, 3]}],
         ["copy_precedes_use", "copy_precedes_use accesses_ordered"]),
    "a thread of a freed block maps it":
        ([*BLOCKS, ADMIT, write("x", 1), {"ev": "done", "op": "x"}, *by("two", {"ev": "free", "block": 1}), BLOCKS[0],
          *by("two", own(1), read("r", "t"))], ["entry_is_held"]),
    "what it copies is not there yet":
        ([*BLOCKS[:2], {"ev": "write", "holder": "h", "block": 1, "slots": [0, 2]}, BLOCKS[2],
          *by("two", {**write("c", 3), "slots": [0, 1]}, copy("c", 3, 1, "s"))],
         ["entry_is_held copy_precedes_use"]),
    "an event of a launch comes before the entry that another reads":
        ([ADMIT, *BLOCKS, write("a", 1), write("b", 2, "t"), own(2), read("a", "s")], ["accesses_ordered"]),
}  # fmt: skip


@pytest.mark.parametrize("what", CASES)
def test_a_log(what: str) -> None:
    events, rules = CASES[what]
    assert witnessed([HEADER, *events]) == rules


def test_of_a_long_log_what_names_other_blocks_is_left_out_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvsan.checker.order.minimal.TRIALS", 1)
    others = [{"ev": "alloc", "block": 3}, write("w", 3), {"ev": "done", "op": "w"}, {"ev": "free", "block": 3}] * 100
    entries = [{**ADMIT, "tokens": 4}, *BLOCKS[:2], own(1), own(2, 1), write("v", 2), {"ev": "done", "op": "v"}]
    log = [HEADER, *entries, *others, write("x", 1, "u"), *others, read("r", "t", 4)]
    (race,) = check(log).violations
    assert len(witness(memory_log(log), race).events) <= 14


def test_what_comes_behind_the_launch_of_a_later_event_is_left_out() -> None:
    waited = by("two", {"ev": "sync", "stream": "s"}, own(2))
    log = [HEADER, ADMIT, *BLOCKS, write("a", 3), *waited, write("a", 2), *by("three", read("r", "t"))]
    (race,) = check(log).violations
    assert (race.line, race.earlier) == (10, 9)
    assert not [event for event in witness(memory_log(log), race).events if isinstance(event, ev.Sync | ev.Map)]


def searched(examples: int, events: int, same: bool) -> tuple[int, int]:
    """In random logs, or always the same ones, how many breaches have a witness, and how many have none."""
    made = none = 0

    @given(logs(events=events))
    @settings(
        max_examples=examples, deadline=None, derandomize=same, database=None, suppress_health_check=list(HealthCheck)
    )
    def search(log: list[Event]) -> None:
        nonlocal made, none
        for race in check(log).violations:
            try:
                shown(log, race)
                made += 1
            except NoWitness:
                none += 1

    search()
    return made, none


def test_a_race_of_random_logs_has_a_witness() -> None:
    made, none = searched(60, 14, same=True)
    assert made > 20
    assert none == 0


@pytest.mark.slow
def test_at_most_one_race_in_two_hundred_of_thousands_of_random_logs_has_none() -> None:
    made, none = searched(2000, 20, same=False)
    assert made > 1000
    assert none * 200 <= made
