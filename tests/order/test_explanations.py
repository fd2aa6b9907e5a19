"""What the report says of each order rule: the smallest log that breaks it, beside the exact text."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from kvsan.checker import check
from kvsan.checker.report.text import block
from kvsan.spec.ownership.accesses import ORDER_RULES

ROOT = Path(__file__).parents[2]
MINIMAL, GOLDEN = ROOT / "tests" / "replay" / "minimal", ROOT / "tests" / "golden" / "order"
CHAIN = ROOT / "traces" / "corpus" / "reject" / "vllm-ascend-16013-chain.jsonl"
NO_ENTRY = ROOT / "traces" / "corpus" / "reject" / "vllm-47728-rollback.jsonl"
LOGS = [*(MINIMAL / f"{rule.name}-breaks.jsonl" for rule in ORDER_RULES), CHAIN, NO_ENTRY]


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_a_breach_of_order_is_explained_by_both_accesses_and_the_missing_call(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(log.parent)
    outcome = check(log.name)
    made = "\n".join(block("violated", outcome, outcome.violations[0])) + "\n"
    kept = GOLDEN / f"{log.stem}.txt"
    if os.environ.get("KVSAN_GOLDEN") == "write":
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(made)
    assert kept.read_text() == made


def log_of(tmp_path: Path, *events: dict[str, object], **header: object) -> Path:
    head = {"ev": "trace", "schema": "kvsan/1", "engine": "toy", "version": "1", "discipline": "paged_cow"}
    lines = [{**head, "block_size": 4, "blocks": 8, **header}, *events]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def broken(path: Path) -> list[tuple[str, int]]:
    return [(v.rule, v.line) for v in check(path).violations]


MAPPED: list[dict[str, object]] = [
    {"ev": "admit", "branch": "a", "tokens": 8},
    {"ev": "alloc", "block": [1, 2], "branch": "a"},
    {"ev": "map", "branch": "a", "pos": 0, "block": [1, 2]},
    {
        "ev": "step",
        "op": "s1",
        "stream": "one",
        "writes": [["a", 1, 0, 4], ["a", 2, 0, 4]],
        "reads": ["a"],
    },
]


def test_blocks_that_race_for_want_of_one_edge_are_one_report(tmp_path: Path) -> None:
    log = log_of(tmp_path, *MAPPED, {"ev": "read", "op": "s2", "branch": "a", "stream": "two"})
    assert broken(log) == [("read_is_initialised", 6)]
    assert "and 1 more" in check(log).violations[0].message


def test_a_read_below_the_window_is_no_access(tmp_path: Path) -> None:
    """The step in flight never read block 1: it was out of the window."""
    log = log_of(
        tmp_path,
        *MAPPED[:3],
        {"ev": "step", "op": "s1", "stream": "one", "writes": [["a", 2, 0, 4]]},
        {"ev": "window", "branch": "a", "from": 1},
        {"ev": "read", "op": "s2", "branch": "a", "stream": "one"},
        {"ev": "unmap", "branch": "a", "pos": 0, "block": 1},
        {"ev": "free", "block": 1},
        {"ev": "alloc", "block": 1},
        {"ev": "write", "op": "x", "holder": "h", "block": 1, "slots": [0, 4], "stream": "two"},
    )
    assert broken(log) == []


def test_a_read_of_an_entry_that_is_gone_still_races(tmp_path: Path) -> None:
    log = log_of(
        tmp_path,
        *MAPPED,
        {"ev": "window", "branch": "a", "from": 1},
        {"ev": "unmap", "branch": "a", "pos": 0, "block": 1},
        {"ev": "free", "block": 1},
        {"ev": "alloc", "block": 1},
        {"ev": "write", "op": "x", "holder": "h", "block": 1, "slots": [0, 4], "stream": "two"},
    )
    assert broken(log) == [("no_reuse_in_flight", 10)]


def test_a_read_before_an_entry_was_made_is_no_read_of_it(tmp_path: Path) -> None:
    log = log_of(
        tmp_path,
        *MAPPED,
        {"ev": "alloc", "block": 3, "branch": "a"},
        {"ev": "map", "branch": "a", "pos": 2, "block": 3},
        {"ev": "write", "op": "x", "holder": "h", "block": 3, "slots": [0, 4], "stream": "two"},
    )
    assert broken(log) == []


def test_the_same_block_number_in_two_pools_is_two_blocks(tmp_path: Path) -> None:
    log = log_of(
        tmp_path,
        {"ev": "alloc", "block": 1},
        {"ev": "alloc", "block": 1, "pool": "cpu"},
        {"ev": "write", "op": "x", "holder": "h", "block": 1, "slots": [0, 4], "stream": "one"},
        {"ev": "write", "op": "y", "holder": "h", "block": 1, "pool": "cpu", "slots": [0, 4], "stream": "two"},
        pools={"cpu": {"blocks": 2, "block_size": 4}},
    )
    assert broken(log) == []


def test_a_log_that_starts_mid_run_is_not_told_to_read_unwritten_slots(tmp_path: Path) -> None:
    log = log_of(
        tmp_path,
        {"ev": "map", "branch": "a", "pos": 0, "block": 1},
        {"ev": "alloc", "block": 2, "branch": "a"},
        {"ev": "copy", "op": "c", "branch": "a", "src": 1, "dst": 2, "slots": [0, 4], "stream": "one"},
        {"ev": "map", "branch": "a", "pos": 0, "block": 2},
        {"ev": "read", "op": "r", "branch": "a", "upto": 4, "stream": "one"},
        started="mid_run",
    )
    assert broken(log) == []


def test_a_threads_own_access_between_two_waited_launches_is_ordered(tmp_path: Path) -> None:
    def access(ev: str, **more: object) -> dict[str, object]:
        return {"ev": ev, "holder": "h", "block": 1, "slots": [0, 4], **more}

    log = log_of(
        tmp_path,
        {"ev": "alloc", "block": 1},
        access("write", stream="one"),
        access("write", stream="one"),
        access("write"),
        access("read", stream="one"),
        access("write", stream="one"),
    )
    assert broken(log) == []


def test_accesses_of_two_streams_to_different_slots_do_not_hide_each_other(tmp_path: Path) -> None:
    log = log_of(
        tmp_path,
        *MAPPED[:3],
        {"ev": "write", "branch": "a", "block": 1, "slots": [0, 4]},
        {"ev": "step", "op": "s1", "stream": "one", "writes": [["a", 2, 0, 2]]},
        {"ev": "step", "op": "s2", "stream": "two", "writes": [["a", 2, 2, 4]]},
        {"ev": "read", "op": "s3", "branch": "a", "stream": "two"},
    )
    assert broken(log) == [("read_is_initialised", 8)]


def test_a_write_below_what_a_branch_has_read_is_looked_at_by_its_next_read(tmp_path: Path) -> None:
    log = log_of(
        tmp_path,
        *MAPPED,
        {"ev": "done", "op": "s1"},
        {"ev": "write", "op": "x", "branch": "a", "block": 1, "slots": [0, 4], "stream": "two"},
        {"ev": "read", "op": "s2", "branch": "a", "stream": "one"},
    )
    assert broken(log) == [("read_is_initialised", 8)]


def test_an_op_on_no_stream_is_told_by_its_name_and_asked_for_no_wait(tmp_path: Path) -> None:
    alloc: dict[str, object] = {"ev": "alloc", "block": 1}
    write: dict[str, object] = {"ev": "write", "holder": "h", "block": 1, "slots": [0, 4]}
    apart, queued = {**write, "op": "w"}, {**write, "op": "x", "stream": "s"}
    (late,) = check(log_of(tmp_path, alloc, queued, apart)).violations
    assert late.message == "op w writes slots [0,4) of block 1, not ordered after the write on stream s"
    assert late.missing == "`done` of op x (or a sync of stream s) before this line"
    (early,) = check(log_of(tmp_path, alloc, apart, queued)).violations
    assert early.message == "stream s writes slots [0,4) of block 1, not ordered after the write of op w"
    assert early.missing == "`done` of op w before this line"
    assert early.because[0].text.endswith("(nothing of op w comes before stream s)")
