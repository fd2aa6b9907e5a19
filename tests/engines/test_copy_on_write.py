"""What the recorder of vLLM 0.32.0 makes of the engine's calls, on a pool of stand-ins: no engine is needed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kvsan.checker import check
from kvsan.traces.engines.output import PATH, close_all
from kvsan.traces.engines.vllm_v1_cow_recorder import Allocation, V1CowRecorder

SOURCE, TARGET, FRESH = 1, 2, 3


def block(number: int) -> Any:
    return SimpleNamespace(block_id=number, is_null=number == 0, ref_cnt=0, block_hash=None)


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A manager with one group of eight-slot blocks, and one table that the tests fill by hand."""
    monkeypatch.setenv(PATH, str(tmp_path / "run.jsonl"))
    blocks = [block(number) for number in range(4)]
    standing = SimpleNamespace(get_one_block=lambda key: None)
    pool = SimpleNamespace(
        blocks=blocks, null_block=blocks[0], num_gpu_blocks=4, get_num_free_blocks=lambda: 3,
        cached_block_hash_to_block=standing,
    )  # fmt: skip
    table: list[Any] = []
    coordinator = SimpleNamespace(single_type_managers=[SimpleNamespace(block_size=8)], get_blocks=lambda _: [table])
    layout = SimpleNamespace(kv_cache_groups=["attention"])
    yield SimpleNamespace(
        block_pool=pool, coordinator=coordinator, kv_cache_config=layout, table=table, log=tmp_path / "run.jsonl"
    )
    close_all()


def told(engine: Any) -> list[tuple[Any, ...]]:
    """The events as (kind, block or branch or op, rest)."""
    close_all()
    lines = [json.loads(line) for line in engine.log.read_text().splitlines()[1:]]
    return [(e["ev"], e.get("block", e.get("tokens"))) for e in lines if not e["ev"].startswith("x_")]


def hit_inside_a_block(engine: Any) -> V1CowRecorder:
    """A new request hits four tokens of a block and schedules three; the tail is replaced before they are written."""
    recorder = V1CowRecorder(engine, "0.32.0")
    request = SimpleNamespace(request_id="a", num_computed_tokens=0)
    source, target = engine.block_pool.blocks[SOURCE], engine.block_pool.blocks[TARGET]
    source.block_hash = "whole"
    recorder.start(recorder.branches.of("a"))
    recorder.allocation = Allocation(request, hit=4, scheduled=3, hit_ends={SOURCE: "first half"})
    recorder.hit(source)
    engine.table.append(source)
    recorder.fact(lambda call: call.took(("gpu", TARGET)))
    recorder.shared_tail()
    engine.table[0] = target
    source.ref_cnt, target.ref_cnt = 1, 2
    recorder.redirected(0, SOURCE, TARGET)
    recorder.allocated(recorder.calls[-1], request)
    recorder.allocation = None
    recorder.finish_call(recorder.calls[-1])
    return recorder


def test_a_shared_tail_is_mapped_and_then_replaced_while_both_ends_of_the_copy_are_pinned(engine: Any) -> None:
    hit_inside_a_block(engine)
    assert told(engine) == [
        ("admit", 4), ("hit", SOURCE), ("alloc", TARGET), ("map", SOURCE), ("table", None),
        ("pin", SOURCE), ("map", TARGET), ("pin", TARGET), ("table", None),
        ("grow", 3),
    ]  # fmt: skip


def test_a_hit_names_the_identity_that_was_looked_up_and_not_the_first_one_of_its_block(engine: Any) -> None:
    recorder = hit_inside_a_block(engine)
    assert recorder.hashes.known("first half") is not None
    assert recorder.hashes.known("whole") is None


def test_quiet_is_told_only_when_the_pins_of_copies_and_the_launches_are_gone(engine: Any) -> None:
    recorder = hit_inside_a_block(engine)
    recorder.lengths.clear()
    recorder.in_flight.add("s1")
    recorder.rest()
    call = recorder.start(None)
    recorder.let_go(call, recorder.copies_let_go([engine.block_pool.blocks[n] for n in (SOURCE, TARGET)]))
    recorder.finish_call(call)
    assert not recorder.idle
    recorder.in_flight.clear()
    recorder.rest()
    recorder.rest()
    kinds = [kind for kind, _ in told(engine)]
    assert kinds.count("unpin") == 2
    assert kinds.count("quiescent") == 1
    assert kinds[-1] == "quiescent"


def test_an_identity_registered_and_dropped_in_one_call_is_never_told(engine: Any) -> None:
    recorder = V1CowRecorder(engine, "0.32.0")
    call = recorder.start(None)
    recorder.sealed(engine.block_pool.blocks[FRESH], "key", 8, 0, None)
    recorder.dropped(FRESH, [("key", 0)])
    recorder.finish_call(call)
    assert [kind for kind, _ in told(engine) if kind in ("seal", "evict")] == []


def test_a_partial_identity_tells_its_slots_and_a_moved_one_keeps_its_name(engine: Any) -> None:
    recorder = V1CowRecorder(engine, "0.32.0")
    call = recorder.start(None)
    call.took(("gpu", FRESH))
    recorder.sealed(engine.block_pool.blocks[FRESH], "key", 12, 0, None)
    recorder.finish_call(call)
    call = recorder.start(None)
    recorder.dropped(FRESH, [("key", 0)])
    call.took(("gpu", TARGET))
    recorder.sealed(engine.block_pool.blocks[TARGET], "key", None, 0, None)
    recorder.finish_call(call)
    close_all()
    lines = [json.loads(line) for line in engine.log.read_text().splitlines()]
    seals = [(e["block"], e["hash"], e["slots"]) for e in lines if e["ev"] == "seal"]
    assert seals == [(FRESH, "h0", [0, 4]), (TARGET, "h0", [0, 4])]


def test_a_copy_into_an_evictable_block_is_not_dead_for_a_later_hit_reads_it() -> None:
    log = Path(__file__).parents[2] / "traces" / "corpus" / "accept" / "trap-copy-fills-an-evictable-block.jsonl"
    report = check(log)
    assert report.verdict == "HOLDS"
    assert "dead_copy" not in {lint.rule for lint in report.lints}
