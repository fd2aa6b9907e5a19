"""One run of vLLM 0.6.2 recorded twice: by its plugin, from the engine's calls, and by the tensors of its KV cache.

    python live_kv_tensors.py NAME FOLDER

NAME is a run of `reality`. Writes FOLDER/engine.jsonl and FOLDER/tensors.jsonl, in which an `x_launch` stands before
each round of the worker. The CPU tensors play device memory on the one stream of the stand-in for `torch.cuda`.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any  # the engine's objects

from fake_cuda import FakeCuda
from kvsan.traces.engines import scenarios_live
from kvsan.traces.engines.output import PATH, recording
from kvsan.traces.engines.reality import RUNS
from kvsan.traces.engines.torch_footprint import Layout
from kvsan.traces.engines.torch_streams import Streams, record_streams


def caches(worker: Any) -> list[tuple[Any, Layout]]:
    """Keys [blocks, heads, size / x, slots, x] and values [blocks, heads, size, slots] of each layer."""
    engine = worker.cache_engine[0]
    split = importlib.import_module("vllm.attention.ops.paged_attn").PagedAttention.split_kv_cache
    parts = [part for layer in engine.cpu_cache for part in split(layer, engine.num_heads, engine.head_size)]
    return [(part, Layout(block_dim=0, slot_dim=3)) for part in parts]


def mark_launches(worker: Any, kv: Streams) -> None:
    execute = worker.execute_model

    def marked(*args: Any, **kwargs: Any) -> Any:
        kv.log.emit("x_launch")
        return execute(*args, **kwargs)

    worker.execute_model = marked


def main(name: str, folder: Path) -> None:
    os.environ[PATH] = str(folder / "engine.jsonl")
    importlib.import_module("vllm.plugins").load_general_plugins()
    with recording():
        llm = scenarios_live.engine()
        worker = llm.llm_engine.model_executor.driver_worker
        listened = record_streams(
            folder / "tensors.jsonl", caches(worker), cuda=FakeCuda(), on_device=lambda tensor: True
        )
        with listened as kv:
            mark_launches(worker, kv)
            scenarios_live.generate(llm, *RUNS[name].prompts, **RUNS[name].sampling)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
