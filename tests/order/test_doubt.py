"""What order is judged by where a log cannot show all, and entries that are not there: each log with its breaches."""

from __future__ import annotations

from typing import Any

import pytest
from kvsan.checker import check

Event = dict[str, Any]
HEADER: Event = {
    "ev": "trace", "schema": "kvsan/1", "engine": "toy", "version": "1", "discipline": "paged_cow", "block_size": 2,
    "blocks": 8, "null_block": 0,
}  # fmt: skip
MID_RUN = {**HEADER, "started": "mid_run"}
ADMIT = {"ev": "admit", "branch": "a", "tokens": 2}
UNWRITTEN, REUSED, RACE = "read_is_initialised", "no_reuse_in_flight", "accesses_ordered"


def own(block: int, pos: int = 0) -> list[Event]:
    return [{"ev": "alloc", "block": block, "branch": "a"}, {"ev": "map", "branch": "a", "pos": pos, "block": block}]


def copy(src: int, dst: int) -> Event:
    return {"ev": "copy", "src": src, "dst": dst, "slots": [0, 2], "stream": "s"}


def write(block: int, stream: str = "s") -> Event:
    return {"ev": "write", "op": f"w{stream}", "branch": "a", "block": block, "slots": [0, 2], "stream": stream}


RECORD = {"ev": "record", "event": "e", "stream": "s"}
TRANSFER = {"ev": "read", "holder": "h", "block": 1, "stream": "s"}


def part(op: str, block: int, slot: int, stream: str) -> Event:
    return {"ev": "write", "op": op, "holder": "h", "block": block, "slots": [slot, slot + 1], "stream": stream}


def after(earlier: str, later: str) -> list[Event]:
    return [{"ev": "record", "event": "f", "stream": earlier}, {"ev": "wait", "event": "f", "stream": later}]


def read(upto: int | None = 2, branch: str = "a") -> Event:
    return {"ev": "read", "op": "r", "branch": branch, "stream": "s", **({} if upto is None else {"upto": upto})}


FORK, FINISH = {"ev": "fork", "branch": "b", "parent": "a"}, {"ev": "finish", "branch": "a"}


def window(start: int) -> Event:
    return {"ev": "window", "branch": "a", "from": start}


CASES: dict[str, tuple[list[Event], list[tuple[str, int]]]] = {
    "a copy of unknown contents may have been written": ([MID_RUN, ADMIT, *own(1), copy(5, 1), read()], []),
    "a copy of such a copy may, too":
        ([MID_RUN, ADMIT, *own(1), {"ev": "alloc", "block": 2}, copy(5, 2), copy(2, 1), read()], []),
    "in its next life the block is not written any more":
        ([MID_RUN, {"ev": "alloc", "block": 1}, copy(5, 1), {"ev": "free", "block": 1}, ADMIT, *own(1), read()],
         [(UNWRITTEN, 8)]),
    "a branch that reads again looks at what was lost meanwhile":
        ([HEADER, ADMIT, *own(1), write(1), read(), {"ev": "invalidate", "block": 1}, {**read(), "op": "q"}],
         [(UNWRITTEN, 8)]),
    "a branch from before the log may have entries": ([MID_RUN, *own(1)[:1], read(4, "z")], []),
    "where a length is wrong already, how far a read goes is not known":
        ([HEADER, ADMIT, *own(1), write(1), {"ev": "propose", "branch": "a", "tokens": 1},
          {"ev": "accept", "branch": "a", "tokens": 3}, read(None)], [("rollback_exact", 7)]),
    "where lengths are not recorded it is not, either":
        ([{**HEADER, "complete": ["alloc", "map", "write", "read"]}, *own(1), write(1),
          {"ev": "admit", "branch": "a", "tokens": 9}, read(None)], []),
    "a null entry is read by nobody":
        ([HEADER, {**ADMIT, "tokens": 4}, {"ev": "map", "branch": "a", "pos": 0, "block": None}, *own(1, 1), write(1),
          read(4)], []),
    "beyond a hole the other entries are judged":
        ([HEADER, {**ADMIT, "tokens": 4}, *own(1, 1), read(4)], [(UNWRITTEN, 5), (UNWRITTEN, 5)]),
    "writes of the null block are no race":
        ([HEADER, ADMIT, {"ev": "step", "op": "x", "stream": "s", "writes": [["a", 0, 0, 2]]},
          {"ev": "step", "op": "y", "stream": "t", "writes": [["a", 0, 0, 2]]}], []),
    "copies of the null block are none, either":
        ([HEADER, {"ev": "alloc", "block": 1}, {"ev": "alloc", "block": 2}, copy(0, 1), {**copy(1, 0), "stream": "t"},
          {**copy(0, 2), "stream": "t"}], []),
    "a preempted branch's reads are remembered":
        ([HEADER, ADMIT, *own(1), write(1), read(), {"ev": "preempt", "branch": "a"}, {"ev": "free", "block": 1},
          *own(1), write(1, "t")], [(REUSED, 11)]),
    "one write that comes after the first of two comes not after the second":
        ([{**HEADER, "block_size": 4}, {**ADMIT, "tokens": 3}, *own(1), part("a", 1, 0, "s"), RECORD,
          part("d", 1, 1, "s"), part("b", 1, 2, "t"), {"ev": "record", "event": "f", "stream": "t"},
          *({"ev": "wait", "event": event, "stream": "u"} for event in "ef"), part("n", 1, 2, "u"),
          {**read(3), "stream": "u"}], [(UNWRITTEN, 13)]),
    "a read of fewer slots does not stand for one of more":
        ([HEADER, {"ev": "alloc", "block": 1}, {**TRANSFER, "op": "x", "slots": [0, 2]},
          {**TRANSFER, "op": "y", "slots": [0, 1]}, part("w", 1, 1, "t")], [(RACE, 5)]),
    "nor does a write of fewer slots":
        ([HEADER, {"ev": "alloc", "block": 1}, {**part("x", 1, 0, "s"), "slots": [0, 2]}, part("y", 1, 0, "s"),
          part("w", 1, 1, "t")], [(RACE, 5)]),
    "a read that stays with its block comes not after a write that it was not ordered with":
        ([HEADER, ADMIT, *own(1), {"ev": "alloc", "block": 2}, part("w", 1, 0, "t"), *after("t", "s"), read(1), RECORD,
          part("x", 1, 1, "t"), *after("t", "u"), part("y", 2, 0, "u"),
          {"ev": "unmap", "branch": "a", "pos": 0, "block": 1}, own(1)[1], {"ev": "wait", "event": "e", "stream": "v"},
          {**read(2), "op": "z", "stream": "v"}], [(UNWRITTEN, 18)]),
    "a short read looks at the slots that it reads alone":
        ([HEADER, {**ADMIT, "tokens": 4}, *own(1), *own(2, 1), write(1), {**write(2), "op": "v"}, read(4),
          *after("s", "t"), part("x", 1, 1, "t"), {**read(1), "op": "q"}, {**read(4), "op": "z"}], [(UNWRITTEN, 14)]),
    "nor does a short read stand for a long one":
        ([HEADER, {**ADMIT, "tokens": 4}, *own(1), *own(2, 1), write(1), {**write(2), "op": "v"}, *after("s", "t"),
          read(4), {**read(1), "op": "q"}, part("x", 2, 0, "t")], [(RACE, 13)]),
    "reads that are not ordered are kept side by side":
        ([HEADER, {**ADMIT, "tokens": 4}, *own(1), *own(2, 1), write(1), {**write(2), "op": "v"}, *after("s", "t"),
          {**read(4), "stream": "t"}, {**read(2), "op": "p"}, {**read(3), "op": "q"}, part("x", 2, 1, "s")],
         [(RACE, 14)]),
    "a fork's reads race, too":
        ([HEADER, ADMIT, *own(1), write(1), *after("s", "t"), FORK, FINISH, read(2, "b"), part("x", 1, 0, "t")],
         [(RACE, 11)]),
    "what a fork takes the place of is not read any more":
        ([HEADER, ADMIT, *own(1), write(1), {**ADMIT, "branch": "b"}, {"ev": "alloc", "block": 2},
          {**own(2)[1], "branch": "b"}, {**write(2), "op": "v", "branch": "b"}, *after("s", "t"), FORK, read(2, "b"),
          part("x", 2, 0, "t")], []),
    "but not below the window that it has from its parent":
        ([HEADER, {**ADMIT, "tokens": 4}, *own(1), *own(2, 1), write(1), {**write(2), "op": "v"}, *after("s", "t"),
          window(1), FORK, FINISH, read(4, "b"), part("x", 1, 0, "t")], []),
    "what comes back into the window is read again":
        ([HEADER, {**ADMIT, "tokens": 4}, *own(1), *own(2, 1), write(1), {**write(2), "op": "v"}, *after("s", "t"),
          window(1), window(0), read(4), part("x", 1, 0, "t")], [(RACE, 14)]),
    "what stayed in it was read before, too":
        ([HEADER, {**ADMIT, "tokens": 4}, *own(1), *own(2, 1), write(1), {**write(2), "op": "v"}, *after("s", "t"),
          window(1), read(4), window(0), part("x", 2, 0, "t")], [(RACE, 14)]),
    "what took a place below it was not read before it came back":
        ([HEADER, ADMIT, *own(1), write(1), read(2), window(1), {"ev": "alloc", "block": 2}, own(2)[1], window(0),
          part("x", 2, 0, "t")], []),
    "nor is it while it stays there":
        ([HEADER, {**ADMIT, "tokens": 4}, *own(2, 1), write(2), window(1), *own(1), read(4), part("x", 1, 0, "t")], []),
    "a short read looks at nothing that has gone below it":
        ([HEADER, {**ADMIT, "tokens": 4}, *own(1), *own(2, 1), write(1), {**write(2), "op": "v"}, read(4), window(1),
          *after("s", "t"), part("x", 1, 0, "t"), {**read(3), "op": "q"}], []),
    "a token that comes back without an entry was not written":
        ([HEADER, {**ADMIT, "tokens": 4}, *own(2, 1), write(2), window(1), read(4), window(0), {**read(4), "op": "q"}],
         [(UNWRITTEN, 9)]),
    "an entry that took the place of another is read in its place":
        ([HEADER, ADMIT, *own(1), write(1), *own(2), {**write(2), "op": "v"}, *after("s", "t"), read(2),
          part("x", 1, 0, "t")], []),
    "an entry that an unmap of another block leaves is read":
        ([HEADER, ADMIT, *own(1), {"ev": "alloc", "block": 2}, write(1), *after("s", "t"),
          {"ev": "unmap", "branch": "a", "pos": 0, "block": 2}, read(2), part("x", 1, 0, "t")],
         [("tables_agree", 9), (RACE, 11)]),
    "a branch that decodes looks at what was lost further up":
        ([HEADER, {**ADMIT, "tokens": 4}, *own(1), *own(2, 1), write(1), {**write(2), "op": "v"}, read(3),
          {"ev": "invalidate", "block": 1}, {**read(4), "op": "q"}], [(UNWRITTEN, 11)]),
    "a branch that grows by more than a block looks at all of them":
        ([{**HEADER, "complete": ["alloc", "admit", "map", "read", "copy"]}, {**ADMIT, "tokens": 5},
          *own(1), *own(2, 1), *own(3, 2), {"ev": "alloc", "block": 4}, {**copy(4, 3), "op": "c", "stream": "t"},
          read(1), {**read(5), "op": "q"}], [("copy_precedes_use", 12)]),
    "a write of more slots than were read":
        ([HEADER, ADMIT, *own(1), write(1), *after("s", "t"), read(1), {**part("x", 1, 0, "t"), "slots": [0, 2]}],
         [(RACE, 9)]),
    "what any copy of a launch passes on is not trusted":
        ([HEADER, *({"ev": "alloc", "block": b} for b in (1, 2, 3, 4)), part("x", 1, 0, "t"),
          {"ev": "step", "op": "c", "stream": "s", "copies": [[1, 2, 0, 2], [3, 4, 0, 2]]}, part("y", 2, 0, "t")],
         [(RACE, 7)]),
    "a block is copied onto itself without a race": ([HEADER, {"ev": "alloc", "block": 1}, copy(1, 1)], []),
    "where tables are not recorded, entries are not missed":
        ([{**HEADER, "complete": ["alloc", "admit", "write", "read"]}, ADMIT, *own(1)[:1], write(1), read()], []),
    "a copy of unknown contents races as any other":
        ([MID_RUN, part("w", 1, 0, "s"), {**copy(1, 2), "op": "c"}, part("x", 2, 1, "t")], [("copy_precedes_use", 4)]),
}  # fmt: skip


@pytest.mark.parametrize("what", CASES)
def test_breaches(what: str) -> None:
    log, told = CASES[what]
    assert [(v.rule, v.line) for v in check(log).violations] == told


def test_each_look_at_a_position_counts_as_a_check() -> None:
    coverage = check([HEADER, ADMIT, *own(1), *own(2, 1), read(3)]).coverage
    assert coverage["read_is_initialised"].checked == 2
