"""What the order analysis costs beside the state rules, on a log of ten million events on sixteen streams.

KVSAN_BENCH_EVENTS makes the log shorter. The checks run side by side, so that what else the machine does slows both
down, each in a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from kvsan.checker import check
from streams import STREAMS, write_streams

EVENTS = int(os.environ.get("KVSAN_BENCH_EVENTS", 10_000_000))


def cost(path: Path, order: bool) -> tuple[float, float]:
    """Seconds and peak megabytes of one check; asserts that the log is legal and its order judged."""
    start = time.process_time()
    outcome = check(path, order=order)
    took = time.process_time() - start
    assert outcome.verdict == "HOLDS"
    assert bool(outcome.coverage["read_is_initialised"].checked) == order
    status = Path("/proc/self/status").read_text().splitlines()
    return took, next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) / 1024


@pytest.mark.bench
def test_order_costs_at_most_as_much_again_as_the_state_rules_in_bounded_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, tenth = tmp_path / "streams.jsonl", tmp_path / "tenth.jsonl"
    write_streams(path, EVENTS)
    write_streams(tenth, EVENTS // 10)
    with ProcessPoolExecutor(3, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        alone, both, short = pool.map(cost, [path, path, tenth], [False, True, True])
    path.unlink()
    (seconds, _), (with_order, peak), (_, peak_of_tenth) = alone, both, short
    ratio = with_order / seconds
    with capsys.disabled():
        print(f"\n{EVENTS} events on {STREAMS} streams: {seconds:.1f} s for the state rules, {ratio:.2f} times that")
        print(f"with order; peak memory {peak:.0f} MB, for a tenth of the log {peak_of_tenth:.0f} MB")
    assert ratio <= 2
    assert peak <= 1.5 * peak_of_tenth
