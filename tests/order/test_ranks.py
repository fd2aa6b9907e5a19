"""Logs of several ranks: each rank's order is judged alone, and not where another rank may have passed something on."""

from __future__ import annotations

from typing import Any

import pytest
from kvsan.checker import check
from kvsan.checker.order.witness import witness
from kvsan.checker.replay.memory import memory_log
from programs import HEADER
from test_knowledge import ALLOCS, event

Event = dict[str, Any]


def log(program: str, **header: Any) -> list[Event]:
    return [{**HEADER, **header}, *ALLOCS, *map(event, program.split(","))]


ALONE = "1, signal c, two:await d, two:1"
REASON = "line 7 awaits channel d, which nobody signals before it in this rank's log"

PROGRAMS: dict[str, tuple[str, str, list[str]]] = {
    "another rank may pass on what is signalled": (ALONE, "UNKNOWN", []),
    "it passes on nothing else": ("1, two:await d, two:1, signal c", "VIOLATED", ["accesses_ordered"]),
    "nor what its thread does later": ("signal c, 1, two:await d, two:1", "VIOLATED", ["accesses_ordered"]),
    "nor device work that nobody knows complete": (
        "a=s1, signal c, two:await d, two:1",
        "VIOLATED",
        ["accesses_ordered"],
    ),
    "what a thread of the rank signals is not passed on": ("signal d, " + ALONE, "VIOLATED", ["accesses_ordered"]),
    "whatever others may pass on later": ("signal d, " + ALONE + ", two:await e", "VIOLATED", ["accesses_ordered"]),
    "the other races are told": (ALONE + ", b=s2, c=t2", "VIOLATED", ["accesses_ordered"]),
    "what is ordered holds": ("1, signal c, two:await c, two:await d, two:1", "HOLDS", []),
}


@pytest.mark.parametrize("what", PROGRAMS)
def test_a_rank(what: str) -> None:
    program, verdict, rules = PROGRAMS[what]
    told = check(log(program, rank=0))
    assert (told.verdict, [v.rule for v in told.violations]) == (verdict, rules)
    assert any(REASON in reason for reason in told.reasons) == (program.startswith(ALONE))
    for race in told.violations:
        assert witness(memory_log(log(program, rank=0)), race).events


def test_where_there_is_one_rank_what_nobody_signals_orders_nothing() -> None:
    assert [v.line for v in check(log(ALONE)).violations] == [8]


def test_a_gap_behind_the_await_changes_nothing() -> None:
    events = [*log(ALONE, rank=0)[1:], event("free 0")]
    numbered = [{**e, "seq": n} for n, e in enumerate(events, 1)]
    numbered[-1]["seq"] += 3
    told = check([{**HEADER, "rank": 0}, *numbered])
    assert told.verdict == "UNKNOWN"
    assert any(REASON in reason for reason in told.reasons)


def test_a_check_that_is_interrupted_before_it_knows_tells_no_race() -> None:
    def interrupt(events: int, line: int) -> None:
        calls.append(line)
        if len(calls) == 2:
            raise KeyboardInterrupt

    calls: list[int] = []
    told = check(log(ALONE, rank=0), interruptible=True, progress=interrupt)
    assert (told.verdict, told.violations, told.interrupted) == ("UNKNOWN", (), True)
