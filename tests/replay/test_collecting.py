"""The cycle collector rests during a replay, and only then."""

from __future__ import annotations

import gc
from pathlib import Path

from kvsan.checker import check
from kvsan.checker.replay.collecting import without_collections

LOG = Path(__file__).parents[2] / "traces" / "corpus" / "reject" / "vllm-32255.jsonl"


def test_a_check_collects_nothing_while_it_replays_and_leaves_the_collector_on() -> None:
    seen: list[bool] = []
    check(LOG, progress=lambda *_: seen.append(gc.isenabled()))
    assert seen and not any(seen)
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with without_collections():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
