"""What a log shows, and what it leaves open: a side that it does not record is unknown, not absent."""

from __future__ import annotations

from typing import Any

from kvsan.checker import check

HEADER = {
    "ev": "trace", "schema": "kvsan/1", "engine": "example", "version": "1", "discipline": "paged_cow",
    "block_size": 4, "blocks": 8, "pools": {"cpu": {"blocks": 8}},
}  # fmt: skip


def test_launches_alone_say_nothing_of_pools_and_tables() -> None:
    launches: list[dict[str, Any]] = [
        {"ev": "copy", "src": 0, "dst": 1, "slots": [0, 4], "stream": "s"},
        {"ev": "write", "branch": "a", "block": 2, "slots": [0, 4], "stream": "s"},
        {"ev": "step", "op": "o", "stream": "s", "copies": [], "writes": [["a", 3, 0, 4]], "reads": ["a"]},
    ]
    outcome = check([HEADER, *launches])
    assert outcome.verdict == "HOLDS" and not outcome.violations
    assert outcome.coverage["write_within_table"].status == "not_checkable"
    assert "places is unknown: the log records no map" in outcome.assumptions


def test_published_events_alone_are_compared_with_no_cache() -> None:
    assert check([HEADER, {"ev": "kv_stored", "hash": [1, 2]}, {"ev": "quiescent"}]).verdict == "HOLDS"


def test_one_allocation_shows_the_pool() -> None:
    outcome = check([HEADER, {"ev": "alloc", "block": 1}, {"ev": "copy", "src": 0, "dst": 1, "slots": [0, 4]}])
    assert [v.rule for v in outcome.violations] == ["entry_is_held"]


def test_a_swap_is_no_needless_copy() -> None:
    """Swapping out a block that only one branch owns is what swapping is for."""
    log = [
        HEADER,
        {"ev": "admit", "branch": "a", "tokens": 4},
        {"ev": "alloc", "block": 0, "branch": "a"},
        {"ev": "map", "branch": "a", "pos": 0, "block": 0},
        {"ev": "write", "branch": "a", "block": 0, "slots": [0, 4]},
        {"ev": "alloc", "block": 0, "branch": "a", "pool": "cpu"},
        {"ev": "copy", "branch": "a", "src": 0, "dst": 0, "slots": [0, 4], "dst_pool": "cpu"},
    ]
    outcome = check(log)
    assert (outcome.verdict, outcome.lints) == ("HOLDS", ())


def test_the_first_change_of_a_block_is_told_from_what_it_was_before() -> None:
    (leak,) = check([HEADER, {"ev": "alloc", "block": 1}, {"ev": "quiescent"}]).violations
    assert [fact.text for fact in leak.because] == ["alloc block=1 (held False -> True)"]


def test_the_largest_position_is_a_position() -> None:
    log = [
        HEADER,
        {"ev": "alloc", "block": 0, "branch": "a"},
        {"ev": "map", "branch": "a", "pos": 2**63 - 1, "block": 0},
        {"ev": "write", "branch": "a", "block": 0, "slots": [0, 4]},
        {"ev": "finish", "branch": "a"},
    ]
    assert check(log).verdict == "HOLDS"


def test_a_read_far_past_the_table_costs_one_look() -> None:
    log = [
        HEADER,
        {"ev": "admit", "branch": "a", "tokens": 2**62},
        {"ev": "alloc", "block": 0, "branch": "a"},
        {"ev": "map", "branch": "a", "pos": 0, "block": 0},
        {"ev": "write", "branch": "a", "block": 0, "slots": [0, 4]},
        {"ev": "read", "branch": "a"},
        {"ev": "finish", "branch": "a"},
    ]
    assert [v.rule for v in check(log).violations] == ["read_is_initialised"]
