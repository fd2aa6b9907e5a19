"""Scenarios on a whole vLLM 0.32.0 engine: scheduler, worker, sampler and a tiny random model, on the CPU.

Everything is the engine's own, kernels included. Blocks have 32 slots, and hybrid models hit at every 32 tokens of
larger ones.
"""

from __future__ import annotations

import importlib
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any  # an engine's objects carry no types that we could import here

from kvsan.traces.engines.tiny_model import CONFIG, HYBRID, write_config

SLOTS, UNIT = 32, 32


def engine(
    blocks: int = 24, budget: int = 256, model: Mapping[str, object] = CONFIG, weights: Path | None = None,
    **settings: Any,
) -> Any:  # fmt: skip
    """An `LLM` with `blocks` blocks, that schedules at most `budget` tokens a step.

    weights: a folder with a whole model; without, the weights are the engine's own dummies.
    """
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    os.environ["VLLM_CPU_KVCACHE_SPACE"] = "1"
    settings = {"block_size": SLOTS, "async_scheduling": False} | settings
    longest = min(512, (blocks - 1) * settings["block_size"])
    with tempfile.TemporaryDirectory() as folder:
        return importlib.import_module("vllm").LLM(
            model=str(weights or write_config(Path(folder), model)), load_format="auto" if weights else "dummy",
            dtype="bfloat16", seed=7, enforce_eager=True, max_model_len=longest, max_num_seqs=8,
            max_num_batched_tokens=budget, enable_prefix_caching=True, num_gpu_blocks_override=blocks, **settings,
        )  # fmt: skip


def hybrid(blocks: int = 32, **settings: Any) -> Any:
    return engine(blocks, model=HYBRID, block_size=64, mamba_cache_mode="align", prefix_match_unit=UNIT, **settings)


def ahead() -> None:
    """The CPU platform switches asynchronous scheduling off; from here on it stays as asked."""
    platform = importlib.import_module("vllm.platforms.cpu").CpuPlatform
    check = platform.check_and_update_config.__func__
    if getattr(check, "kvsan_ahead", False):
        return

    def checked(cls: Any, config: Any) -> None:
        asked = config.scheduler_config.async_scheduling
        check(cls, config)
        config.scheduler_config.async_scheduling = asked

    checked.kvsan_ahead = True  # type: ignore[attr-defined]  # a mark on a function object
    platform.check_and_update_config = classmethod(checked)


def generate(llm: Any, *prompts: list[int], **sampling: Any) -> Any:
    params = importlib.import_module("vllm").SamplingParams(ignore_eos=True, detokenize=False, **sampling)
    return llm.generate([{"prompt_token_ids": prompt} for prompt in prompts], params, use_tqdm=False)


def tokens(count: int, start: int = 0) -> list[int]:
    return [3 + (start + n) % 120 for n in range(count)]


def full_prompt() -> None:
    """A prompt of exactly two blocks, twice: the second time only the first is hit, for the last token's sake."""
    llm = engine()
    for _ in range(2):
        generate(llm, tokens(64), max_tokens=3)


def prefix_hit() -> None:
    """A prompt of two full blocks is computed; two later requests hit both and read what they did not write."""
    llm = engine()
    generate(llm, tokens(66), max_tokens=3)
    generate(llm, [*tokens(66), 101], [*tokens(66), 102], max_tokens=3)


def prefix_hit_same_step() -> None:
    """One prompt twice in one step: the second request reads blocks that the same launch writes for the first."""
    generate(engine(), tokens(66), tokens(66), max_tokens=3)


def parallel_sampling() -> None:
    """n=4 on V1: four requests with one prompt, full blocks shared, tails their own."""
    generate(engine(), tokens(60), n=4, max_tokens=6)


def chunked_prefill() -> None:
    """A prompt of 140 tokens at 48 tokens a step: a full block is sealed in the step that schedules its last token."""
    generate(engine(budget=48), tokens(140), max_tokens=3)


def evict_and_reuse() -> None:
    """Six blocks: cached blocks of an ended request are evicted for the next, then its prompt comes again."""
    llm = engine(blocks=7)
    for start in (0, 40, 0):
        generate(llm, tokens(140, start), max_tokens=3)


def preempt_and_resume() -> None:
    """Two requests outgrow the pool: the younger is preempted while the other decodes, and starts over."""
    generate(engine(blocks=6), tokens(60), tokens(40, 60), max_tokens=40)


def _run(llm: Any, prompts: dict[str, list[int]], count: int, steps: int, abort: str) -> None:
    """Step the engine by hand and abort one request after some steps."""
    params = importlib.import_module("vllm").SamplingParams(ignore_eos=True, detokenize=False, max_tokens=count)
    for name, prompt in prompts.items():
        llm.llm_engine.add_request(name, {"prompt_token_ids": prompt}, params)
    for _ in range(steps):
        llm.llm_engine.step()
    llm.llm_engine.abort_request([abort])
    while llm.llm_engine.has_unfinished_requests():
        llm.llm_engine.step()


def abort_midway() -> None:
    """Three requests on one prefix; one is aborted between two steps."""
    _run(engine(), {name: tokens(66) for name in ("a", "b", "c")}, count=6, steps=2, abort="b")


def partial_tail() -> None:
    """Attention beside recurrent states: a hit ends inside a block of each, and both are copied before the writes."""
    llm = hybrid()
    generate(llm, tokens(105), max_tokens=4)
    generate(llm, [*tokens(98), 101, 102, 103], max_tokens=4)


def partial_tail_shared() -> None:
    """Three requests hit one partial tail in one step, and each gets a copy of its own."""
    llm = hybrid(blocks=48)
    generate(llm, tokens(105), max_tokens=4)
    generate(llm, *([*tokens(98), 101 + n] for n in range(3)), max_tokens=4)


def async_scheduling() -> None:
    """The next step is scheduled before this one's output is known; blocks are freed while a step is in flight."""
    ahead()
    llm = engine(async_scheduling=True)
    generate(llm, tokens(60), tokens(66), max_tokens=8)


def async_abort() -> None:
    """One of three requests on one prefix is aborted while a step that writes its blocks is in flight."""
    ahead()
    _run(engine(async_scheduling=True), {name: tokens(66) for name in "abc"}, count=6, steps=2, abort="b")


def async_partial_tail() -> None:
    """Partial tails are copied one step ahead: both ends are given back before the copy is known to be complete."""
    ahead()
    llm = hybrid(blocks=48, async_scheduling=True)
    generate(llm, tokens(105), max_tokens=4)
    generate(llm, *([*tokens(98), 101 + n] for n in range(2)), max_tokens=4)


def partial_tail_without_copies() -> None:
    """The worker forgets the copies that the scheduler ordered: the second request reads a tail that nobody filled."""
    worker: Any = importlib.import_module("vllm.v1.worker.gpu_model_runner")
    copies, worker.copy_kv_cache_blocks_inplace = worker.copy_kv_cache_blocks_inplace, lambda *_: None
    try:
        partial_tail()
    finally:
        worker.copy_kv_cache_blocks_inplace = copies


SCENARIOS: dict[str, Callable[[], None]] = {
    scenario.__name__: scenario
    for scenario in (
        full_prompt, prefix_hit, prefix_hit_same_step, parallel_sampling, chunked_prefill, evict_and_reuse,
        preempt_and_resume, abort_midway, partial_tail, partial_tail_shared, async_scheduling, async_abort,
        async_partial_tail, partial_tail_without_copies,
    )
}  # fmt: skip

REJECTED: dict[str, dict[str, object]] = {
    "partial_tail_without_copies": {
        "x_expect": "VIOLATED",
        "x_rule": "read_is_initialised",
        "x_provenance": "vLLM 0.32.0 itself, with a worker made to forget its copies",
    }
}
"""What is expected of scenarios that show a fault."""
