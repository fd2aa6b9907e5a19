"""How fast a log is checked, as a ratio to decoding it alone, and how much memory that takes."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from kvsan.checker import check
from workload import write_workload

EVENTS = 2_000_000

PEAK = """
import sys
from pathlib import Path
from kvsan.checker import check

def peak():
    return next(int(l.split()[1]) for l in Path("/proc/self/status").read_text().splitlines() if l[:6] == "VmHWM:")

check(sys.argv[2])
before = peak()
check(sys.argv[1])
print((peak() - before) / 1024)
"""


@pytest.mark.bench
def test_a_long_log_is_checked_at_speed_and_in_bounded_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "workload.jsonl"
    write_workload(path, EVENTS)
    start = time.process_time()
    decoder = msgspec.json.Decoder()
    with path.open("rb") as lines:
        for line in lines:
            decoder.decode(line)
    bare = time.process_time() - start
    start = time.process_time()
    outcome = check(path, order=False)
    ours = time.process_time() - start
    start = time.process_time()
    assert check(path).verdict == "HOLDS"
    with_order = time.process_time() - start
    assert outcome.verdict == "HOLDS" and outcome.events == EVENTS
    half = tmp_path / "half.jsonl"
    write_workload(half, EVENTS // 4)
    peaks = [float(run_peak(p)) for p in (half, path)]
    with capsys.disabled():
        print(f"\n{EVENTS} events: {EVENTS / ours:,.0f} a second, {ours / bare:.1f} times bare msgspec decoding")
        print(f"with the order of device work: {with_order / ours:.1f} times that")
        print(f"peak memory beyond a log of ten events: {peaks[1]:.0f} MB; for a quarter of the log {peaks[0]:.0f} MB")


def run_peak(path: Path) -> str:
    short = path.with_name("short.jsonl")
    write_workload(short, 10)
    command = [sys.executable, "-c", PEAK, str(path), str(short)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.split()[-1]
