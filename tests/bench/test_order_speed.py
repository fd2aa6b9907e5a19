"""What the order analysis costs beside the state rules, on a log with sixteen streams."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from kvsan.checker.replay.collecting import without_collections
from kvsan.checker.replay.kinds import names_threads
from kvsan.checker.replay.replay import Replay
from kvsan.traces.read import open_log
from streams import STREAMS, write_streams

EVENTS = 2_000_000
KINDS = frozenset({"admit", "grow", "alloc", "free", "map", "fork", "finish", "copy", "write", "read", "done"})


def seconds(path: Path, with_order: bool) -> float:
    """The time of one replay, reading included; asserts that the log is legal and its order judged."""
    start = time.process_time()
    log = open_log(path)
    assert log.header is not None
    replay = Replay(log.header, KINDS, KINDS, one_thread=not names_threads(log))
    if not with_order:
        replay.handlers.update(replay.order.plain)
    with without_collections():
        for batch in log.batches():
            replay.perform(batch)
    took = time.process_time() - start
    replay.finish()
    assert log.problem is None and not replay.findings
    assert bool(replay.checked["read_is_initialised"]) == with_order
    return took


@pytest.mark.bench
def test_order_costs_at_most_as_much_again_as_the_state_rules(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "streams.jsonl"
    write_streams(path, EVENTS)
    alone, both = seconds(path, with_order=False), seconds(path, with_order=True)
    with capsys.disabled():
        print(
            f"\n{EVENTS} events on {STREAMS} streams: {alone:.1f} s for the state rules, {both / alone:.2f} times that"
        )
    assert both <= 2 * alone
