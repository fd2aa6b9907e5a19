"""Scenarios on a whole vLLM 0.6.2 engine: scheduler, worker, sampler and a tiny random Llama, on the CPU.

Only the compiled kernels are ours (see `standin_ops`); these logs show device work as well: copies, writes, reads.
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

BLOCK_SIZE = 4


def engine(blocks: int = 32, caching: bool = False) -> Any:
    """An `LLM` with `blocks` blocks of four slots."""
    if caching:  # 0.6.2 switches prefix caching off on a CPU, because its own kernels cannot continue a prefix there
        executor: Any = importlib.import_module("vllm.executor.cpu_executor")
        executor._verify_and_get_cache_config = _sized
    os.environ[standin_ops.NATIVE] = "1"
    os.environ["VLLM_ALLOW_DEPRECATED_BEAM_SEARCH"] = "1"
    os.environ["VLLM_CPU_KVCACHE_SPACE"] = "1"
    standin_ops.install()
    with tempfile.TemporaryDirectory() as folder:
        llm = importlib.import_module("vllm").LLM(
            model=str(write_config(Path(folder))), skip_tokenizer_init=True, load_format="dummy", dtype="float32",
            device="cpu", block_size=BLOCK_SIZE, num_gpu_blocks_override=blocks, max_model_len=4 * blocks, seed=7,
            use_v2_block_manager=True, enable_prefix_caching=caching, enforce_eager=True, max_num_seqs=8,
        )  # fmt: skip
    _spread_weights(llm)
    return llm


def _sized(config: Any) -> Any:
    """What the CPU executor does to the cache's configuration, prefix caching left alone."""
    config.cpu_kvcache_space_bytes = 2**30
    return config


def _spread_weights(llm: Any) -> None:
    """vLLM's dummy weights are so small that every token is as likely as any other; these have opinions."""
    torch = importlib.import_module("torch")
    generator = torch.Generator().manual_seed(7)
    model = llm.llm_engine.model_executor.driver_worker.model_runner.model
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 0.2, generator=generator)


def generate(llm: Any, *prompts: list[int], **sampling: Any) -> Any:
    params = importlib.import_module("vllm").SamplingParams(ignore_eos=True, detokenize=False, seed=7, **sampling)
    return llm.generate([{"prompt_token_ids": prompt} for prompt in prompts], params, use_tqdm=False)


def fork_three() -> None:
    """n=3 from a prompt with a partial tail (6 tokens in blocks of 4): two copies in the first decode step."""
    generate(engine(), list(range(10, 16)), n=3, max_tokens=6)


def fork_five() -> None:
    """n=5 from a prompt with a partial tail: four copies in one launch."""
    generate(engine(), list(range(10, 16)), n=5, max_tokens=6)


def full_prompt() -> None:
    """n=3 from an exactly full prompt (8 tokens): no copy, each branch writes into a block of its own."""
    generate(engine(), list(range(10, 18)), n=3, max_tokens=4)


def one_slot_tail() -> None:
    """n=3 from a prompt whose tail has one free slot (7 tokens)."""
    generate(engine(), list(range(10, 17)), n=3, max_tokens=4)


def beam_search() -> None:
    """Beam search of width three: beams are dropped and forked between steps."""
    generate(engine(), list(range(10, 16)), n=3, best_of=3, use_beam_search=True, temperature=0.0, max_tokens=8)


def stop_midway() -> None:
    """Two prompts, n=3 each; the branches that draw a stop token end early, the others go on."""
    generate(
        engine(), [5, 6, 7, 8, 9, 10], [11, 12, 13, 14, 15], n=3, max_tokens=8, stop_token_ids=list(range(0, 128, 5))
    )


def preempt() -> None:
    """Two requests outgrow the pool: one is preempted, and computed again from its first token later."""
    generate(engine(blocks=9), list(range(10, 22)), list(range(30, 42)), max_tokens=12)


def abort() -> None:
    """A request with three branches on a shared prompt is aborted between two steps; another goes on."""
    llm = engine()
    params = importlib.import_module("vllm").SamplingParams
    for name, prompt, n in (("a", list(range(10, 16)), 3), ("b", list(range(30, 35)), 2)):
        sampling = params(ignore_eos=True, detokenize=False, seed=7, n=n, max_tokens=6)
        llm.llm_engine.add_request(name, {"prompt_token_ids": prompt}, sampling)
    for _ in range(3):
        llm.llm_engine.step()
    llm.llm_engine.abort_request("a")
    while llm.llm_engine.has_unfinished_requests():
        llm.llm_engine.step()


def chained_copies() -> None:
    """Two branches fill a one-slot tail with the same token: one copies it, the other gives it up for the equal block.

    In the same round a second pair takes the block that was given up as the target of its own copy. One launch then
    holds two copies of which the first reads what the second writes, and copies of one launch run side by side.
    """
    generate(engine(caching=True), list(range(10, 17)), list(range(30, 36)), n=2, top_k=1, max_tokens=3)


REJECTED: dict[str, dict[str, object]] = {
    "chained_copies": {
        "x_expect": "VIOLATED",
        "x_rule": "source_stable",
        "x_provenance": "vLLM 0.6.2 itself; no public report known",
    }
}
"""What is expected of scenarios that show a fault of the engine."""

SCENARIOS: dict[str, Callable[[], None]] = {
    scenario.__name__: scenario
    for scenario in (
        fork_three, fork_five, full_prompt, one_slot_tail, beam_search, stop_midway, preempt, abort,
        chained_copies,
    )
}  # fmt: skip
