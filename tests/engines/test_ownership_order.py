"""One engine call is one group of events, in ownership order, with no fact dropped."""

from __future__ import annotations

from typing import Any

from kvsan.traces.engines import ownership_order
from kvsan.traces.engines.callgroup import Book, Copy, EngineCall, Place

A, B, C = ("gpu", 1), ("gpu", 2), ("gpu", 3)


class Written:
    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def emit(self, ev: str, /, **fields: object) -> None:
        self.events.append({"ev": ev, **fields})


def write(call: EngineCall) -> list[dict[str, Any]]:
    written = Written()
    ownership_order.write(call, written)
    return written.events


def book(**rows: list[Place | None]) -> Book:
    return Book(dict(rows))


def test_a_block_given_back_early_by_the_engine_is_freed_after_its_entry_is_replaced() -> None:
    call = EngineCall(book(r0=[A, B]), "r0")
    call.gave_back(B)  # deduplication drops the count first
    call.found(C, "h0")
    call.rows["r0"] = [A, C]
    assert write(call)[:3] == [
        {"ev": "hit", "block": 3, "hash": "h0", "branch": "r0"},
        {"ev": "map", "branch": "r0", "pos": 1, "block": 3},
        {"ev": "free", "block": 2},
    ]


def test_a_block_given_back_and_taken_again_leaves_its_entry_in_between() -> None:
    call = EngineCall(book(r0=[A, B]), "r0")
    call.gave_back(B)
    call.found(C, "h0")
    call.took(B)
    call.rows["r0"] = [A, C, B]
    assert [(e["ev"], e.get("block")) for e in write(call)] == [
        ("hit", 3), ("unmap", 2), ("free", 2), ("alloc", 2), ("map", [3, 2]), ("table", None),
    ]  # fmt: skip


def test_a_block_freed_under_a_living_entry_is_logged_just_so() -> None:
    """The engine's fault must survive the grouping."""
    call = EngineCall(book(r0=[A], r1=[A]), None)
    call.ended.append(("finish", "r1"))
    call.gave_back(A)
    assert write(call) == [{"ev": "finish", "branch": "r1"}, {"ev": "free", "block": 1}]
    assert call.book.rows == {"r0": [A]}


def test_a_block_taken_while_still_owned_is_logged_just_so() -> None:
    call = EngineCall(book(r0=[A]), "r1")
    call.begun.append(("admit", {"branch": "r1", "tokens": 2}))
    call.took(A)
    call.rows["r1"] = [A]
    assert [e["ev"] for e in write(call)] == ["admit", "alloc", "map", "table"]
    assert call.book.rows == {"r0": [A], "r1": [A]}


def test_a_block_freed_twice_is_freed_twice() -> None:
    call = EngineCall(book(r0=[A]), None)
    call.ended.append(("finish", "r0"))
    call.gave_back(A)
    call.gave_back(A)
    assert write(call)[-1] == {"ev": "free", "block": [1, 1]}


def test_tokens_come_before_the_seal_that_covers_them_and_the_entry_too() -> None:
    call = EngineCall(book(r0=[A]), "r0")
    call.begun.append(("grow", {"branch": "r0", "tokens": 4}))
    call.sealed(B, "h1", "h0")
    call.took(B)
    call.rows["r0"] = [A, B]
    assert [e["ev"] for e in write(call)] == ["grow", "alloc", "map", "seal", "table"]


def test_a_hit_on_an_identity_of_the_same_call_follows_its_seal() -> None:
    """A group that is swapped in registers a block for its first branch and hits it for the second."""
    call = EngineCall(Book(), None)
    call.took(A)
    call.sealed(A, "h0", None)
    call.found(A, "h0")
    call.rows |= {"r0": [A], "r1": [A]}
    assert [(e["ev"], e.get("branch")) for e in write(call)[:5]] == [
        ("alloc", "r0"), ("map", "r0"), ("seal", "r0"), ("hit", "r1"), ("map", "r1"),
    ]  # fmt: skip


def test_swapped_blocks_are_copied_before_they_are_freed() -> None:
    call = EngineCall(book(r0=[A]), "r0")
    call.gave_back(A)
    call.took(("cpu", 0))
    call.rows["r0"] = [("cpu", 0)]
    call.copies.append(Copy("r0", A, ("cpu", 0), (0, 4)))
    assert [(e["ev"], e.get("pool")) for e in write(call)] == [
        ("alloc", "cpu"), ("map", "cpu"), ("copy", None), ("free", None), ("table", "cpu"),
    ]  # fmt: skip


def test_a_table_that_did_not_change_is_not_told_again() -> None:
    call = EngineCall(book(r0=[A]), "r0")
    call.rows["r0"] = [A]
    assert write(call) == []


def test_each_cache_group_has_a_table_of_its_own_and_a_branch_ends_in_all_of_them() -> None:
    tables = Book({"r0": [A], "r0/1": [B]}, groups=2)
    grown = EngineCall(tables, "r0")
    grown.took(C)
    grown.sealed(C, "h0", None)
    grown.rows |= {"r0": [A], "r0/1": [B, C]}
    assert [(e["ev"], e["branch"], e["group"]) for e in write(grown)] == [
        ("alloc", "r0", "1"), ("map", "r0", "1"), ("seal", "r0", "1"), ("table", "r0", "1"),
    ]  # fmt: skip
    ended = EngineCall(tables)
    ended.ended.append(("finish", "r0"))
    assert ended.touched() == [A, B, C]
    assert write(ended) == [{"ev": "finish", "branch": "r0"}]
    assert tables.rows == {}


def test_a_window_of_a_new_branch_follows_the_branch() -> None:
    call = EngineCall(Book(), "r0")
    call.begun.append(("admit", {"branch": "r0", "tokens": 6}))
    call.windows.append(("r0", 1))
    call.found(A, "h0")
    call.rows["r0"] = [None, A]
    assert [e["ev"] for e in write(call)] == ["admit", "window", "hit", "map", "table"]


def test_holds_are_told_after_the_entries_and_before_the_counts() -> None:
    call = EngineCall(book(r0=[A]), "r0")
    call.took(B)
    call.rows["r0"] = [A, B]
    call.held.append(("pin", {"block": 2, "holder": "copy0", "kind": "copy"}))
    call.counts[B] = 2
    assert [event["ev"] for event in write(call)] == ["alloc", "map", "pin", "ref", "table"]


def test_an_identity_that_no_table_shows_names_its_cache_group() -> None:
    call = EngineCall(book(r0=[A]), "r0")
    call.dropped(A, "h0", group=1)
    call.took(B)
    call.sealed(B, "h0", None, slots=4, group=1)
    assert [event for event in write(call) if event["ev"] in ("evict", "seal")] == [
        {"ev": "evict", "block": 1, "hash": "h0", "group": "1"},
        {"ev": "seal", "block": 2, "hash": "h0", "group": "1", "slots": [0, 4]},
    ]
