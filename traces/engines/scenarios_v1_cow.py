"""Scenarios for vLLM 0.32.0's V1 scheduler and cache manager, without a model.

Scheduler, cache manager and block pool are the engine's own, and take every decision. We stand in for the worker: each
step's output gives every scheduled request the next token of its script, and of the launches we tell the copies alone,
as the scheduler orders them.
"""

from __future__ import annotations

import importlib
import tempfile
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any  # an engine's objects carry no types that we could import here

from kvsan.traces.engines.tiny_model import write_config
from kvsan.traces.engines.vllm_v1_cow_steps import launch_copies
from kvsan.traces.engines.vllm_v1_recorder import MARK

BLOCK_SIZE, UNIT = 8, 4


class Engine:
    """A V1 scheduler, fed by hand.

    states: a second cache group of recurrent states beside the attention, with hits at every `UNIT` tokens.
    ahead: how many steps are scheduled before the output of the first is processed (asynchronous scheduling).
    fenced: blocks wait for the steps in flight, as behind a connector that loads them outside of the stream.
    """

    def __init__(
        self, blocks: int, budget: int = 64, states: bool = False, ahead: int = 0, fenced: bool = False
    ) -> None:
        config, whole = importlib.import_module("vllm.config"), self._config(budget, states, ahead)
        unit = UNIT if states else BLOCK_SIZE
        whole.cache_config.block_size, whole.cache_config.num_gpu_blocks = BLOCK_SIZE, blocks
        name = "async_scheduler.AsyncScheduler" if ahead else "scheduler.Scheduler"
        module, _, attribute = f"vllm.v1.core.sched.{name}".rpartition(".")
        made = getattr(importlib.import_module(module), attribute)
        with config.set_current_vllm_config(whole):
            grammar = importlib.import_module("vllm.v1.structured_output").StructuredOutputManager(whole)
            self.scheduler = made(whole, self._layout(blocks, states), grammar, BLOCK_SIZE, unit)
        self.scheduler.defer_block_free = fenced
        utils = importlib.import_module("vllm.v1.core.kv_cache_utils")
        hashing = importlib.import_module("vllm.utils.hashing").sha256
        utils.init_none_hash(hashing)
        self.hasher = utils.get_request_block_hasher(unit, hashing)
        self.ahead, self.step_count = ahead, 0
        self.in_flight: deque[tuple[Any, Any]] = deque()

    def _config(self, budget: int, states: bool, ahead: int) -> Any:
        config = importlib.import_module("vllm.config")
        with tempfile.TemporaryDirectory() as folder:
            model = config.ModelConfig(
                model=str(write_config(Path(folder))), tokenizer=folder, dtype="float32", seed=0,
                skip_tokenizer_init=True, max_model_len=256,
            )  # fmt: skip
        scheduling = config.SchedulerConfig(
            max_num_seqs=8, max_num_batched_tokens=budget, max_model_len=256, enable_chunked_prefill=True,
            is_encoder_decoder=False, async_scheduling=bool(ahead),
        )  # fmt: skip
        cache = config.CacheConfig(block_size=32, enable_prefix_caching=True)
        whole = config.VllmConfig(scheduler_config=scheduling, model_config=model, cache_config=cache)
        whole.scheduler_config.async_scheduling = bool(ahead)  # the CPU platform switches it off
        if states:
            whole.cache_config.mamba_cache_mode = "align"
        return whole

    def _layout(self, blocks: int, states: bool) -> Any:
        interface = importlib.import_module("vllm.v1.kv_cache_interface")
        dtype = importlib.import_module("torch").float32
        specs = [interface.FullAttentionSpec(block_size=BLOCK_SIZE, num_kv_heads=1, head_size=1, dtype=dtype)]
        if states:
            shape = (BLOCK_SIZE, 2)
            specs.append(
                interface.MambaSpec(block_size=BLOCK_SIZE, shapes=(shape,), dtypes=(dtype,), mamba_cache_mode="align")
            )
        groups = [interface.KVCacheGroupSpec([f"layer{number}"], spec) for number, spec in enumerate(specs)]
        return interface.KVCacheConfig(num_blocks=blocks, kv_cache_tensors=[], kv_cache_groups=groups)

    def add(self, name: str, prompt: list[int], tokens: int) -> None:
        """A request that ends after `tokens` tokens."""
        params = importlib.import_module("vllm").SamplingParams(max_tokens=tokens, ignore_eos=True)
        request = importlib.import_module("vllm.v1.request").Request(
            request_id=name, prompt_token_ids=prompt, sampling_params=params, pooling_params=None, arrival_time=0.0,
            block_hasher=self.hasher,
        )  # fmt: skip
        self.scheduler.add_request(request)

    def abort(self, name: str) -> None:
        status = importlib.import_module("vllm.v1.request").RequestStatus
        self.scheduler.finish_requests(name, status.FINISHED_ABORTED)

    def step(self) -> None:
        """Schedule one step and launch it; process the output of the oldest beyond `ahead` steps."""
        scheduled = self.scheduler.schedule()
        self.step_count += 1
        recorder = getattr(self.scheduler.kv_cache_manager, MARK, None)
        launch_copies(recorder, scheduled, scheduled.kv_cache_block_copies)
        names = list(scheduled.num_scheduled_tokens)
        output = importlib.import_module("vllm.v1.outputs").ModelRunnerOutput(
            req_ids=names,
            req_id_to_index={name: index for index, name in enumerate(names)},
            sampled_token_ids=[self._sampled(name) for name in names],
        )
        self.in_flight.append((scheduled, output))
        while len(self.in_flight) > (self.ahead if names else 0):
            self.scheduler.update_from_output(*self.in_flight.popleft())

    def _sampled(self, name: str) -> list[int]:
        """Nothing while the prompt is still being computed; else the next token of the script."""
        request = self.scheduler.requests[name]
        if request.is_prefill_chunk:
            return []
        return [(sum(name.encode()) + self.step_count) % 100]

    def run(self, limit: int = 200) -> None:
        """Step until nothing is left."""
        while self.scheduler.get_num_unfinished_requests() or self.in_flight:
            self.step()
            limit -= 1
            if limit == 0:
                raise RuntimeError("the scenario does not end")


def full_prompt() -> None:
    """A prompt of exactly two blocks; an equal one later hits only the first, and computes the last token again."""
    e = Engine(blocks=16)
    for name in ("a", "b"):
        e.add(name, list(range(16)), tokens=3)
        e.run()


def prefix_hit() -> None:
    """A prompt of two full blocks is cached; two later requests hit both blocks in one step."""
    e = Engine(blocks=16)
    prompt = list(range(17))
    e.add("a", prompt, tokens=3)
    e.step()
    e.add("b", [*prompt, 51], tokens=3)
    e.add("c", [*prompt, 52], tokens=3)
    e.run()


def prefix_hit_same_step() -> None:
    """Two requests with one prompt in one step: the second hits what the first has only been scheduled to write."""
    e = Engine(blocks=16)
    for name in ("a", "b"):
        e.add(name, list(range(17)), tokens=3)
    e.run()


def parallel_sampling() -> None:
    """n=4 on V1: four requests with one prompt, full blocks shared, tails their own."""
    e = Engine(blocks=24)
    for number in range(4):
        e.add(f"{number}_p", list(range(18)), tokens=9)
    e.run()


def evict_and_reuse() -> None:
    """Cached blocks of ended requests are evicted for new ones; a later equal prompt misses what was dropped."""
    e = Engine(blocks=6)
    for name, start in (("a", 0), ("b", 50), ("a2", 0)):
        e.add(name, list(range(start, start + 28)), tokens=3)
        e.run()


def preempt_and_resume() -> None:
    """The pool runs dry while two requests decode: the younger is preempted, waits, and starts over."""
    e = Engine(blocks=7)
    e.add("a", list(range(16)), tokens=22)
    e.add("b", list(range(50, 66)), tokens=18)
    e.run()


def chunked_prefill() -> None:
    """A long prompt is scheduled in chunks of twelve tokens; each full block is sealed in its step."""
    e = Engine(blocks=16, budget=12)
    e.add("a", list(range(42)), tokens=3)
    e.run()


def abort_midway() -> None:
    """Three requests on one cached prefix; one is aborted between two steps."""
    e = Engine(blocks=24)
    for name in ("a", "b", "c"):
        e.add(name, list(range(17)), tokens=9)
    e.step()
    e.step()
    e.abort("b")
    e.run()


def partial_tail() -> None:
    """Attention beside recurrent states: a hit ends inside a block of each, and both are copied before the writes."""
    e = Engine(blocks=32, states=True)
    prompt = list(range(21))
    e.add("a", prompt, tokens=6)
    e.run()
    e.add("b", [*prompt[:20], 90, 91, 92], tokens=6)
    e.run()


def partial_tail_shared() -> None:
    """Two requests hit the same partial tail in one step while its first owner still writes behind it."""
    e = Engine(blocks=40, states=True)
    prompt = list(range(21))
    e.add("a", prompt, tokens=12)
    e.step()
    e.step()
    e.step()
    e.add("b", [*prompt[:20], 90, 91, 92], tokens=6)
    e.add("c", [*prompt[:20], 80], tokens=6)
    e.run()


def partial_tail_cancelled() -> None:
    """A request is aborted while the copy of its partial tail is in flight; both ends stay held until the fence."""
    e = Engine(blocks=32, states=True, ahead=1, fenced=True)
    prompt = list(range(21))
    e.add("a", prompt, tokens=6)
    e.run()
    e.add("b", [*prompt[:20], 90, 91, 92], tokens=6)
    e.step()
    e.abort("b")
    e.add("c", list(range(40, 60)), tokens=3)
    e.run()


def async_scheduling() -> None:
    """One step ahead: a block is sealed once its tokens are known, and freed while the next step is in flight."""
    e = Engine(blocks=24, ahead=1)
    for name in ("a", "b"):
        e.add(name, list(range(17)), tokens=9)
    e.run()


def async_abort_fenced() -> None:
    """One step ahead of a connector's transfers: what an aborted request held waits for the steps in flight."""
    e = Engine(blocks=24, ahead=1, fenced=True)
    for name in ("a", "b"):
        e.add(name, list(range(17)), tokens=9)
    e.step()
    e.step()
    e.abort("b")
    e.run()


SCENARIOS: dict[str, Callable[[], None]] = {
    scenario.__name__: scenario
    for scenario in (
        full_prompt, prefix_hit, prefix_hit_same_step, parallel_sampling, evict_and_reuse, preempt_and_resume,
        chunked_prefill, abort_midway, partial_tail, partial_tail_shared, partial_tail_cancelled, async_scheduling,
        async_abort_fenced,
    )
}  # fmt: skip
