"""Scenarios on a whole vLLM 0.9.1 V1 engine: scheduler, worker, sampler and a tiny random Llama, on the CPU.

Only the attention kernels are ours (see `standin_ops`); these logs show device work as well, and the worker's own
block tables beside the scheduler's. The CPU platform insists on blocks of sixteen slots.
"""

from __future__ import annotations

import importlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any  # an engine's objects carry no types that we could import here

from kvsan.traces.engines import standin_ops
from kvsan.traces.engines.tiny_model import write_config


def engine(blocks: int = 32, budget: int = 128) -> Any:
    """An `LLM` with `blocks` blocks of sixteen slots, that schedules at most `budget` tokens a step."""
    os.environ["VLLM_USE_V1"] = "1"
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    os.environ["VLLM_CPU_KVCACHE_SPACE"] = "1"
    standin_ops.install_v1()
    # 0.9.1 logs that `num_gpu_blocks_override` takes effect, and then ignores it
    sizing: Any = importlib.import_module("vllm.v1.core.kv_cache_utils")
    sizing.get_num_blocks = lambda *_: blocks
    with tempfile.TemporaryDirectory() as folder:
        return importlib.import_module("vllm").LLM(
            model=str(write_config(Path(folder))), load_format="dummy", dtype="bfloat16", seed=7, enforce_eager=True,
            max_model_len=128, max_num_seqs=8, max_num_batched_tokens=budget, enable_prefix_caching=True,
            compilation_config={"level": 0, "custom_ops": ["none"]},
        )  # fmt: skip


def generate(llm: Any, *prompts: list[int], **sampling: Any) -> Any:
    params = importlib.import_module("vllm").SamplingParams(ignore_eos=True, detokenize=False, **sampling)
    return llm.generate([{"prompt_token_ids": prompt} for prompt in prompts], params, use_tqdm=False)


def prefix_hit() -> None:
    """A prompt of two full blocks is computed; two later requests hit both and read what they did not write."""
    llm = engine()
    prompt = [n % 100 for n in range(34)]
    generate(llm, prompt, max_tokens=3)
    generate(llm, [*prompt, 101], [*prompt, 102], max_tokens=3)


def prefix_hit_same_step() -> None:
    """One prompt twice in one step: the second request reads blocks that the same launch writes for the first."""
    prompt = [n % 100 for n in range(34)]
    generate(engine(), prompt, prompt, max_tokens=3)


def parallel_sampling() -> None:
    """n=4 on V1: four requests with one prompt, full blocks shared, tails their own."""
    generate(engine(), [n % 100 for n in range(28)], n=4, max_tokens=6)


def chunked_prefill() -> None:
    """A prompt of 70 tokens at 32 tokens a step: a full block is sealed in the step that schedules its last token."""
    generate(engine(budget=32), [n % 100 for n in range(70)], max_tokens=3)


def evict_and_reuse() -> None:
    """Seven blocks: cached blocks of an ended request are evicted for the next, then its prompt comes again."""
    llm = engine(blocks=8)
    for start in (0, 20, 0):
        generate(llm, [start + n for n in range(70)], max_tokens=3)


def preempt() -> None:
    """Two requests outgrow the pool: the younger is preempted while the other decodes, and starts over."""
    generate(engine(blocks=8), list(range(44)), list(range(60, 100)), max_tokens=30)


SCENARIOS: dict[str, Callable[[], None]] = {
    scenario.__name__: scenario
    for scenario in (
        prefix_hit, prefix_hit_same_step, parallel_sampling, chunked_prefill, evict_and_reuse, preempt,
    )
}  # fmt: skip
