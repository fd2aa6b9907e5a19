"""Scenarios for vLLM 0.9.1's V1 scheduler and cache manager, without a model.

Scheduler, cache manager and block pool are the engine's own, and take every decision. We stand in for the worker:
each step's output gives every scheduled request the next token of its script. Nothing is launched, so these logs show
no writes and no reads.
"""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any  # an engine's objects carry no types that we could import here

from kvsan.traces.engines.tiny_model import write_config

BLOCK_SIZE = 4


class _NoGrammar:
    """Structured output is no part of these scenarios, and the engine's own manager wants a tokenizer."""

    def should_advance(self, request: Any) -> bool:
        return False

    def grammar_bitmask(self, *args: Any) -> None:
        return None


class Engine:
    """A V1 scheduler, fed by hand. `drafts` is the number of draft tokens a step proposes for each request."""

    def __init__(
        self, blocks: int, budget: int = 64, drafts: int = 0, window: int | None = None, hybrid: bool = False
    ) -> None:
        self.window, self.hybrid = window, hybrid
        config = importlib.import_module("vllm.config")
        with tempfile.TemporaryDirectory() as folder:
            model = config.ModelConfig(
                model=str(write_config(Path(folder))), task="auto", tokenizer=folder, tokenizer_mode="auto",
                trust_remote_code=False, dtype="float32", seed=0, skip_tokenizer_init=True, max_model_len=256,
            )  # fmt: skip
        scheduling = config.SchedulerConfig(
            max_num_seqs=8, max_num_batched_tokens=budget, max_model_len=256, enable_chunked_prefill=True
        )
        cache = config.CacheConfig(block_size=16, swap_space=0, enable_prefix_caching=True)
        speculative = config.SpeculativeConfig(model="ngram", num_speculative_tokens=drafts) if drafts else None
        whole = config.VllmConfig(
            scheduler_config=scheduling, model_config=model, cache_config=cache, speculative_config=speculative
        )
        cache.block_size, cache.num_gpu_blocks = BLOCK_SIZE, blocks  # the CPU platform would refuse so small a block
        self.scheduler = self._scheduler(whole, blocks)
        self.drafts = drafts
        self.script: Callable[[str, int], list[int]] = lambda request, step: [hash((request, step)) % 100]
        self.step_count = 0

    def _scheduler(self, config: Any, blocks: int) -> Any:
        interface = importlib.import_module("vllm.v1.kv_cache_interface")
        torch = importlib.import_module("torch")
        sizes = (BLOCK_SIZE, 1, 1, torch.float32, False)
        specs = [interface.FullAttentionSpec(*sizes)] if self.window is None or self.hybrid else []
        if self.window is not None:
            specs.append(interface.SlidingWindowSpec(*sizes, sliding_window=self.window))
        groups = [interface.KVCacheGroupSpec([f"layer{number}"], spec) for number, spec in enumerate(specs)]
        layout = interface.KVCacheConfig(num_blocks=blocks, kv_cache_tensors=[], kv_cache_groups=groups)
        scheduler = importlib.import_module("vllm.v1.core.sched.scheduler").Scheduler
        return scheduler(config, layout, _NoGrammar(), log_stats=False)

    def add(self, name: str, prompt: list[int], tokens: int) -> None:
        """A request that ends after `tokens` tokens."""
        params = importlib.import_module("vllm").SamplingParams(max_tokens=tokens, ignore_eos=True)
        request = importlib.import_module("vllm.v1.request").Request(
            request_id=name, prompt_token_ids=prompt, multi_modal_inputs=None, multi_modal_hashes=None,
            multi_modal_placeholders=None, sampling_params=params, eos_token_id=2,
        )  # fmt: skip
        self.scheduler.add_request(request)

    def abort(self, name: str) -> None:
        status = importlib.import_module("vllm.v1.request").RequestStatus
        self.scheduler.finish_requests(name, status.FINISHED_ABORTED)

    def step(self) -> None:
        """One engine step: schedule, pretend to run, process the output."""
        scheduled = self.scheduler.schedule()
        self.step_count += 1
        names = list(scheduled.num_scheduled_tokens)
        tokens = [self._sampled(name, scheduled) for name in names]
        output = importlib.import_module("vllm.v1.outputs").ModelRunnerOutput(
            req_ids=names,
            req_id_to_index={name: index for index, name in enumerate(names)},
            sampled_token_ids=tokens,
            spec_token_ids=[[7] * self.drafts if sampled else [] for sampled in tokens] if self.drafts else None,
            logprobs=None,
            prompt_logprobs_dict={},
        )
        self.scheduler.update_from_output(scheduled, output)

    def _sampled(self, name: str, scheduled: Any) -> list[int]:
        """Nothing while the prompt is still being computed; else a token, and as many drafts as the script keeps."""
        request = self.scheduler.requests[name]
        if request.num_computed_tokens < request.num_tokens:
            return []
        proposed = len(scheduled.scheduled_spec_decode_tokens.get(name, []))
        return self.script(name, self.step_count)[: proposed + 1]

    def run(self, limit: int = 200) -> None:
        """Step until nothing is left."""
        while self.scheduler.get_num_unfinished_requests():
            self.step()
            limit -= 1
            if limit == 0:
                raise RuntimeError("the scenario does not end")


def _words(name: str, step: int) -> list[int]:
    return [sum(name.encode()) + step]


def prefix_hit() -> None:
    """A prompt of two full blocks is cached; two later requests hit both blocks in one step."""
    e = Engine(blocks=16)
    e.script = _words
    prompt = list(range(9))
    e.add("a", prompt, tokens=3)
    e.step()
    e.add("b", [*prompt, 51], tokens=3)
    e.add("c", [*prompt, 52], tokens=3)
    e.run()


def prefix_hit_same_step() -> None:
    """Two requests with one prompt in one step: the second hits what the first has only been scheduled to write."""
    e = Engine(blocks=16)
    e.script = _words
    prompt = list(range(9))
    e.add("a", prompt, tokens=3)
    e.add("b", prompt, tokens=3)
    e.run()


def parallel_sampling() -> None:
    """n=4 on V1: four requests with one prompt, full blocks shared, tails their own."""
    e = Engine(blocks=24)
    e.script = _words
    for number in range(4):
        e.add(f"{number}_p", list(range(10)), tokens=6)
    e.run()


def evict_and_reuse() -> None:
    """Cached blocks of ended requests are evicted for new ones; a later equal prompt misses what was dropped."""
    e = Engine(blocks=7)
    e.script = _words
    for name, start in (("a", 0), ("b", 50), ("a2", 0)):
        e.add(name, list(range(start, start + 14)), tokens=3)
        e.run()


def preempt_and_resume() -> None:
    """The pool runs dry while two requests decode: the younger is preempted, waits, and starts over."""
    e = Engine(blocks=8)
    e.script = _words
    e.add("a", list(range(8)), tokens=14)
    e.add("b", list(range(50, 58)), tokens=10)
    e.run()


def chunked_prefill() -> None:
    """A long prompt is scheduled in chunks of eight tokens; each full block is sealed in its step."""
    e = Engine(blocks=16, budget=8)
    e.script = _words
    e.add("a", list(range(22)), tokens=3)
    e.run()


def duplicate_full_block() -> None:
    """Two requests decode the same tokens: V1 keeps two full blocks under one identity."""
    e = Engine(blocks=16)
    e.script = lambda name, step: [60 + step]
    e.add("a", list(range(6)), tokens=7)
    e.add("b", list(range(6)), tokens=7)
    e.run()


def abort_midway() -> None:
    """Three requests on one cached prefix; one is aborted between two steps."""
    e = Engine(blocks=24)
    e.script = _words
    for name in ("a", "b", "c"):
        e.add(name, list(range(9)), tokens=6)
    e.step()
    e.step()
    e.abort("b")
    e.run()


def speculative() -> None:
    """Three draft tokens a step, of which none, two, three and one are kept in turn; blocks beyond stay mapped."""
    e = Engine(blocks=24, drafts=3)
    e.script = lambda name, step: [60 + step + i for i in range(1 + (0, 2, 3, 1)[step % 4])]
    e.add("a", list(range(6)), tokens=18)
    e.add("b", list(range(50, 59)), tokens=12)
    e.run()


def sliding_window() -> None:
    """A window of eight tokens: blocks below it are given back, and a later hit starts inside the window."""
    e = Engine(blocks=24, window=8)
    e.script = _words
    prompt = list(range(22))
    e.add("a", prompt, tokens=10)
    e.run()
    e.add("b", [*prompt, 51], tokens=6)
    e.run()


def hybrid() -> None:
    """Full attention and a window of eight tokens side by side: two tables a request, over one pool of blocks."""
    e = Engine(blocks=40, window=8, hybrid=True)
    e.script = _words
    prompt = list(range(22))
    e.add("a", prompt, tokens=8)
    e.run()
    e.add("b", [*prompt, 51], tokens=6)
    e.add("c", [*prompt, 52], tokens=4)
    e.run()


SCENARIOS: dict[str, Callable[[], None]] = {
    scenario.__name__: scenario
    for scenario in (
        prefix_hit, prefix_hit_same_step, parallel_sampling, evict_and_reuse, preempt_and_resume, chunked_prefill,
        duplicate_full_block, abort_midway, speculative, sliding_window, hybrid,
    )
}  # fmt: skip
