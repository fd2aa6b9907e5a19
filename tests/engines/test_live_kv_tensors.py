"""Two recorders, one run: what vLLM's plugin says of a launch is what the tensors of the KV cache see."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from test_recorded_vllm import needs

SCRIPT = Path(__file__).parent / "live_kv_tensors.py"

Slot = tuple[int, int]


def slots(block: int, lo: int, hi: int) -> set[Slot]:
    return {(block, slot) for slot in range(lo, hi)}


def told_by_the_engine(log: Path) -> list[tuple[set[Slot], set[Slot]]]:
    """For each launch: the slots written, copied ones too, and those that its copies read."""
    steps = [event for event in map(json.loads, log.read_text().splitlines()) if event["ev"] == "step"]
    found = []
    for step in steps:
        copies: list[Any] = step.get("copies", [])
        written = [slots(block, lo, hi) for _, block, lo, hi in step["writes"]]
        written += [slots(dst, lo, hi) for _, dst, lo, hi in copies]
        found.append((set().union(*written), set().union(*(slots(src, lo, hi) for src, _, lo, hi in copies))))
    return found


def seen_by_the_tensors(log: Path) -> list[tuple[set[Slot], set[Slot]]]:
    """For each launch: the slots written, and those read, by copies or attention."""
    found: list[tuple[set[Slot], set[Slot]]] = []
    for event in map(json.loads, log.read_text().splitlines()):
        if event["ev"] == "x_launch":
            found.append((set(), set()))
        elif event["ev"] in {"write", "read"}:
            found[-1][event["ev"] == "read"].update(slots(event["block"], *event["slots"]))
    return found


@pytest.mark.engine
@pytest.mark.parametrize("name", ["fork_three", "beam_search"])
def test_slots_of_each_launch_are_those_that_the_tensors_see(tmp_path: Path, name: str) -> None:
    command = [str(needs("vllm-0.6.2")), str(SCRIPT), name, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    told, seen = told_by_the_engine(tmp_path / "engine.jsonl"), seen_by_the_tensors(tmp_path / "tensors.jsonl")
    assert len(told) == len(seen) > 5
    assert [written for written, _ in seen] == [written for written, _ in told]
    assert all(copied <= read for (_, copied), (_, read) in zip(told, seen, strict=True))
    assert any(copied for _, copied in told)
