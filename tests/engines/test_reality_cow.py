"""The verdict on a copied partial tail agrees with what the model computed: vLLM 0.32.0, a tiny hybrid model."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from kvsan.checker import check
from kvsan.traces.engines.record_command import logs_at
from test_recorded_vllm import needs

NOISE, HARM = 1e-3, 1e-2  # of a logprob, in nats; bfloat16 weights, the same shapes in each run


@pytest.mark.engine
def test_without_the_copy_of_its_tail_a_request_is_rejected_and_its_logprob_is_wrong(tmp_path: Path) -> None:
    log, interpreter = tmp_path / "run.jsonl", needs("vllm-0.32.0")
    done = subprocess.run(
        [str(interpreter), "-m", "kvsan.traces.engines.reality_cow"],
        capture_output=True, text=True, check=False, cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "KVSAN_RECORD": str(log), "VLLM_LOGGING_LEVEL": "ERROR", "HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    (copied,), (forgotten,), (alone,) = found["copied"], found["forgotten"], found["alone"]
    assert abs(copied - alone) < NOISE
    assert abs(forgotten - alone) > HARM
    assert [check(path).verdict for path in logs_at(log)] == ["HOLDS", "HOLDS", "VIOLATED"]
