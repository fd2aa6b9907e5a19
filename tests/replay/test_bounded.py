"""What a replay holds is bounded by what lives in the log, not by its length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kvsan.checker import check
from kvsan.checker.replay.memory import memory_log
from kvsan.checker.replay.names import NOBODY
from kvsan.checker.replay.replay import Replay
from kvsan.traces import events as ev
from kvsan.traces.read import Log

HEADER = {
    "ev": "trace", "schema": "kvsan/1", "engine": "example", "version": "1", "discipline": "append_only",
    "block_size": 4, "blocks": 4,
}  # fmt: skip


def short_lives(count: int) -> Iterator[dict[str, Any]]:
    """Branches that come, are cached under a hash of their own, transferred, published, and go."""
    yield HEADER
    for i in range(count):
        yield {"ev": "admit", "branch": f"r{i}", "tokens": 4}
        yield {"ev": "alloc", "block": i % 4, "branch": f"r{i}"}
        yield {"ev": "map", "branch": f"r{i}", "pos": 0, "block": i % 4}
        yield {"ev": "write", "branch": f"r{i}", "block": i % 4, "slots": [0, 4]}
        yield {"ev": "seal", "branch": f"r{i}", "block": i % 4, "hash": f"h{i}", "digest": f"d{i}"}
        yield {"ev": "kv_stored", "hash": f"h{i}"}
        yield {"ev": "pin", "block": i % 4, "holder": f"t{i}", "kind": "transfer"}
        yield {"ev": "unpin", "block": i % 4, "holder": f"t{i}"}
        yield {"ev": "finish", "branch": f"r{i}"}
        yield {"ev": "evict", "block": i % 4, "hash": f"h{i}"}
        yield {"ev": "kv_removed", "hash": f"h{i}"}
        yield {"ev": "free", "block": i % 4}


def replayed(events: Iterable[dict[str, Any]]) -> Replay:
    log: Log = memory_log(events)
    assert log.header is not None
    replay = Replay(log.header, frozenset(ev.EVENT_TYPES), frozenset(ev.EVENT_TYPES))
    for batch in log.batches():
        replay.perform(batch)
    return replay


def test_ids_of_what_is_gone_are_used_again() -> None:
    replay = replayed(short_lives(12_000))
    assert not replay.findings
    for sort, ids in replay.feed.ids.items():
        assert len(ids.names) < 9_000, sort


def test_a_breach_by_a_branch_is_not_taken_for_an_earlier_one_with_its_id() -> None:
    breaches = [HEADER]
    for name in ("a", "b"):
        breaches += [
            {"ev": "admit", "branch": name, "tokens": 4},
            {"ev": "accept", "branch": name, "tokens": 1},
            {"ev": "finish", "branch": name},
        ]
    assert [(f.violation.rule, f.violation.branch) for f in replayed(breaches).findings] == [
        ("rollback_exact", "a"),
        ("rollback_exact", "b"),
    ]


def test_a_breach_at_the_end_of_a_branch_names_it() -> None:
    due = [
        HEADER,
        {"ev": "admit", "branch": "a", "tokens": 4},
        {"ev": "alloc", "block": 0, "branch": "a"},
        {"ev": "map", "branch": "a", "pos": 0, "block": 0},
        {"ev": "seal", "branch": "a", "block": 0, "hash": "h"},
        {"ev": "write", "branch": "a", "block": 0, "slots": [0, 2]},
        {"ev": "finish", "branch": "a"},
    ]
    (first,) = check(due).violations
    assert (first.rule, first.branch) == ("seal_is_earned", "a")
    assert first.message.startswith("branch a ended")


def test_what_a_block_says_of_an_ended_branch_is_not_said_of_the_next_with_its_id() -> None:
    """Branch x ends with block 3 taken and never mapped: it is on nobody's account, not on a later branch's."""
    taken = [
        {"ev": "admit", "branch": "x"},
        {"ev": "alloc", "block": 3, "branch": "x"},
        {"ev": "finish", "branch": "x"},
    ]
    later = [{"ev": kind, "branch": i} for i in range(3000) for kind in ("admit", "finish")]
    feed = replayed([HEADER, *taken, *later]).feed
    assert feed.branches.names[feed.state["account"][feed.block(3)]] == NOBODY
