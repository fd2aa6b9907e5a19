"""PyTorch's own operators on KV tensors, recorded over the stand-in for `torch.cuda`: no GPU (`torch_programs`).

Needs an interpreter with torch: this one, or that of vLLM 0.6.2.
"""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from kvsan.checker import check
from test_recorded_vllm import needs
from test_torch_streams import lines, rules

pytestmark = pytest.mark.engine

PROGRAMS = Path(__file__).parent / "torch_programs.py"
MAIN = {"holder": "torch", "stream": "default"}

TOUCHED: dict[str, list[dict[str, Any]]] = {
    "store_by_index": [
        {"ev": "write", "op": "k1", "block": 1, "slots": [2, 4], **MAIN},
        {"ev": "write", "op": "k1", "block": 3, "slots": [0, 1], **MAIN},
    ],
    "store_by_flat_slot": [
        {"ev": "write", "op": "k1", "block": 1, "slots": [2, 4], **MAIN},
        {"ev": "write", "op": "k1", "block": 3, "slots": [0, 1], **MAIN},
    ],
    "store_through_views": [
        {"ev": "write", "op": "k1", "block": 2, "slots": [1, 3], **MAIN},
        {"ev": "write", "op": "k2", "block": 4, "slots": [0, 4], **MAIN},
        {"ev": "write", "op": "k3", "block": 5, "slots": [3, 4], **MAIN},
        {"ev": "write", "op": "k4", "block": 5, "slots": [0, 1], **MAIN},
    ],
    "read_by_index": [
        {"ev": "read", "op": "k1", "block": 0, "slots": [0, 4], **MAIN},
        {"ev": "read", "op": "k1", "block": 2, "slots": [0, 4], **MAIN},
        *({"ev": "read", "op": "k2", "block": block, "slots": [1, 2], **MAIN} for block in range(6)),
        {"ev": "read", "op": "k3", "block": 3, "slots": [0, 4], **MAIN},
    ],
    "copy_blocks": [
        {"ev": "copy", "op": "k1", "src": 1, "dst": 4, "slots": [0, 4], "stream": "default"},
        {"ev": "copy", "op": "k2", "src": 0, "dst": 5, "slots": [0, 2], "stream": "default"},
        {"ev": "write", "op": "k3", "block": 2, "slots": [0, 4], **MAIN},
        {"ev": "read", "op": "k4", "block": 0, "slots": [2, 4], **MAIN},
        {"ev": "write", "op": "k4", "block": 3, "slots": [0, 2], **MAIN},
    ],
    "swap_to_host": [
        *(
            {"ev": "copy", "op": op, "src": 1, "dst": dst, "slots": [0, 4], "stream": "default"}
            | {"src_pool": "gpu", "dst_pool": "cpu"}
            for op, dst in (("k1", 2), ("k2", 3))
        ),
        {"ev": "sync", "stream": "default"},
        {"ev": "write", "branch": "r0", "block": 0, "slots": [0, 4], "pool": "cpu"},
    ],
    "ask_for_a_number": [
        {"ev": "read", "op": "k1", "block": 1, "slots": [2, 3], **MAIN},
        {"ev": "sync", "stream": "default"},
    ],
}
"""Program -> its log: an operator's slots, a host copy's wait, and the host's own write at once."""

ORDERED = {
    "copied_without_waiting": "copy_precedes_use",
    "copied_behind_an_event": None,
    "overwritten_under_the_copy": "source_stable",
    "overwritten_after_the_host_waited": None,
    "copied_by_a_blocking_call": None,
}
"""Program -> the rule that it breaks."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every program, recorded, and `results.json`: whether what it leaves is the same however the device works."""
    interpreter = sys.executable if find_spec("torch") else str(needs("vllm-0.6.2"))
    folder = tmp_path_factory.mktemp("programs")
    done = subprocess.run([interpreter, str(PROGRAMS), str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


@pytest.mark.parametrize("name", TOUCHED)
def test_slots_that_an_operator_touches_on_the_stand_in(made: Path, name: str) -> None:
    assert lines(made / f"{name}.jsonl") == TOUCHED[name]


@pytest.mark.parametrize("name", ORDERED)
def test_verdict_and_what_the_tensors_hold_agree_on_the_stand_in(made: Path, name: str) -> None:
    """Rejected, under the expected rule, exactly when the tensors depend on when the device does its work."""
    rule = ORDERED[name]
    always_the_same = json.loads((made / "results.json").read_text())[name]
    print(f"\n{name:34} tensors {'always the same' if always_the_same else 'differ':15} {rule or 'HOLDS'}")
    assert [found for found, _ in rules(made / f"{name}.jsonl")] == ([] if rule is None else [rule])
    assert always_the_same == (check(made / f"{name}.jsonl").verdict == "HOLDS") == (rule is None)
