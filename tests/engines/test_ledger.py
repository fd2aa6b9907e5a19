"""The order in which one engine call is written, on an engine of three lines: the fault must survive it."""

from __future__ import annotations

from typing import Any

import pytest
from kvsan.traces.engines.releases.hooks import WatchedDict, around
from kvsan.traces.engines.releases.ledger import Ledger, Note, runs


class Lines:
    """A sink that keeps what is written as short text."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def emit(self, ev: str, /, **fields: Any) -> None:
        self.lines.append(" ".join([ev, *(f"{key}={value}" for key, value in fields.items())]))


class Engine:
    """Tables, counts and a free count to be set by hand, under one ledger."""

    def __init__(self, null: int | None = None) -> None:
        self.tables: dict[str, list[int]] = {}
        self.counts: dict[int, int] = {}
        self.log = Lines()
        self.ledger = Ledger(self.log, lambda: self.tables, lambda: self.counts, lambda: 0, null)

    def take_lines(self) -> list[str]:
        lines, self.log.lines = self.log.lines, []
        return [line for line in lines if not line.startswith("pool")]


def holding(**tables: list[int]) -> Engine:
    engine = Engine()
    engine.tables = tables
    return engine


def test_an_entry_goes_before_the_free_of_its_block_and_a_new_one_comes_after_its_alloc() -> None:
    engine = holding(a=[1])
    with engine.ledger.calling("a"):
        engine.ledger.note("alloc", block=2)  # the engine takes first,
        engine.ledger.note("free", block=1)  # gives back,
        engine.tables["a"] = [2]  # and maps last
    assert engine.take_lines() == [
        "unmap branch=a pos=0 block=1",
        "alloc block=2 branch=a",
        "free block=1 branch=a",
        "map branch=a pos=0 block=2",
    ]


def test_a_block_freed_under_a_standing_entry_shows_as_freed_while_the_entry_stands() -> None:
    engine = holding(a=[1], b=[1])
    with engine.ledger.calling("a"):
        engine.ledger.note("free", block=1)
        del engine.tables["a"]
    assert engine.take_lines() == ["finish branch=a", "free block=1 branch=a"]
    with engine.ledger.calling("b"):
        pass
    assert engine.take_lines() == []  # b holds block 1 still: nothing took its entry away


def test_a_block_handed_out_with_its_identity_shows_alloc_without_evict() -> None:
    engine = holding()
    with engine.ledger.calling("a"):
        engine.ledger.note("alloc", block=1)
        engine.ledger.note("hit", block=1, hash="h")
    assert engine.take_lines() == ["alloc block=1 branch=a", "hit block=1 hash=h branch=a"]


def test_an_entry_replaced_by_a_copy_stays_until_the_new_one_is_mapped() -> None:
    engine = holding(a=[1], b=[1])
    engine.counts = {1: 2}
    with engine.ledger.calling("b") as call:
        engine.ledger.note("alloc", block=2)
        engine.tables["b"], engine.counts = [2], {1: 1, 2: 1}
        call.copies.append(Note("copy", {"src": 1, "dst": 2}))
    assert engine.take_lines() == [
        "alloc block=2 branch=b",
        "map branch=b pos=0 block=2",
        "copy src=1 dst=2",
        "ref block=1 count=1",
        "ref block=2 count=1",
    ]


def test_a_fork_shows_what_differs_from_its_parent() -> None:
    engine = holding(a=[1, 2], other=[3])
    with engine.ledger.calling("b") as call:
        call.forks["b"] = "a"
        engine.tables["b"] = [3, 2]
    assert engine.take_lines() == ["fork branch=b parent=a", "map branch=b pos=0 block=3"]


def test_what_leaves_a_window_leaves_the_table_once_after_the_copy() -> None:
    engine = holding(a=[1, 2])
    for first in (1, 1):
        with engine.ledger.calling("a") as call:
            call.windows["a"] = first
            call.copies.append(Note("copy", {"src": 1, "dst": 3}))
    assert engine.take_lines() == [
        "copy src=1 dst=3", "window branch=a from=1", "unmap branch=a pos=0 block=1",
        "copy src=1 dst=3", "window branch=a from=1",
    ]  # fmt: skip


def test_a_preempted_branch_stays_and_loses_its_table() -> None:
    engine = holding(a=[1])
    with engine.ledger.calling("a") as call:
        call.ending = "preempt"
        engine.tables["a"] = []
        engine.ledger.note("free", block=1)
    assert engine.take_lines() == ["preempt branch=a", "free block=1 branch=a"]


def test_a_call_that_raises_still_shows_what_it_did() -> None:
    engine = holding()
    with pytest.raises(ValueError), engine.ledger.calling("a"):
        engine.ledger.note("alloc", block=1)
        engine.counts = {1: 1}
        raise ValueError
    assert engine.take_lines() == ["alloc block=1 branch=a", "ref block=1 count=1"]


def test_an_engine_call_inside_another_belongs_to_its_group() -> None:
    engine = holding()
    with engine.ledger.calling("a"):
        with engine.ledger.calling("b"):
            engine.ledger.note("alloc", block=1)
        assert engine.take_lines() == []
    assert engine.take_lines() == ["alloc block=1 branch=a"]


def test_a_hook_outside_an_engine_call_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="a hook is missing"):
        Engine().ledger.note("free", block=1)


def test_names_are_given_in_order_of_first_sight_and_by_kind() -> None:
    ledger = Engine().ledger
    assert [ledger.name_of(key) for key in ("x", "y", "x")] == ["h0", "h1", "h0"]
    assert ledger.name_of("x", "d") == "d0"


def test_runs_are_the_consecutive_positions() -> None:
    assert list(runs([0, 1, 2, 5, 7, 8])) == [(0, 2), (5, 5), (7, 8)]
    assert list(runs([])) == []


def test_a_watched_dict_tells_what_enters_and_what_leaves() -> None:
    seen: list[tuple[Any, ...]] = []
    watched = WatchedDict({"a": 1}, lambda *stored: seen.append(stored), lambda *dropped: seen.append(dropped))
    watched["b"] = 2
    watched["b"] = 3
    assert watched.pop("missing", None) is None
    assert watched.pop("a") == 1
    del watched["b"]
    assert seen == [("b", 2, None), ("b", 3, 2), ("a", 1), ("b", 3)]


def test_a_wrapped_method_is_called_through_its_wrapper() -> None:
    class Pool:
        def free(self, block: int) -> int:
            return block

    pool = Pool()
    around(pool, "free", lambda original, block: original(block) + 1)
    assert pool.free(1) == 2
    assert Pool().free(1) == 1
