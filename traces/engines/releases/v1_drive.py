"""Drives of vLLM V1: the release's own scheduler where it can be built, its block pool where that is at fault."""

from __future__ import annotations

import importlib
import inspect
from types import SimpleNamespace
from typing import Any

from kvsan.traces.engines.releases.ledger import Sink
from kvsan.traces.engines.releases.v1 import Watch

# Modules of the releases that the scheduler imports and that nothing here calls.
# fmt: off
UNUSED = tuple(f"vllm.{name}" for name in (
    "compilation", "config", "connections", "distributed", "lora", "model_executor", "multimodal", "platforms",
    "prompt_adapter", "reasoning", "renderers", "tokenizers", "transformers_utils", "utils.torch_utils",
    "v1.attention", "v1.structured_output", "worker",
))
# fmt: on

BLOCK_SIZE = 16  # what the early releases preallocate is four blocks of this size


def early_scheduler(blocks: int) -> Any:
    """The scheduler of 0.6.4 to 0.7, with prefix caching."""
    module = importlib.import_module("vllm.v1.core.scheduler")
    scheduler = SimpleNamespace(
        max_num_seqs=8,
        max_num_batched_tokens=4096,
        max_model_len=2048,
        max_num_encoder_input_tokens=0,
        encoder_cache_size=0,
    )
    cache = SimpleNamespace(
        num_gpu_blocks=blocks, block_size=BLOCK_SIZE, sliding_window=None, enable_prefix_caching=True
    )
    configs = {
        "scheduler_config": scheduler,
        "model_config": SimpleNamespace(is_multimodal_model=False),
        "cache_config": cache,
        "lora_config": None,
    }
    wanted = inspect.signature(module.Scheduler).parameters
    return module.Scheduler(**{name: config for name, config in configs.items() if name in wanted})


def early_request(name: str, prompt: list[int], max_tokens: int) -> Any:
    module = importlib.import_module("vllm.v1.request")
    sampling = SimpleNamespace(max_tokens=max_tokens, ignore_eos=True, stop_token_ids=())
    fields: dict[str, Any] = {
        "request_id": name,
        "prompt": "",
        "prompt_token_ids": prompt,
        "sampling_params": sampling,
        "eos_token_id": None,
        "arrival_time": 0.0,
        "multi_modal_inputs": None,
        "multi_modal_hashes": None,
        "multi_modal_placeholders": None,
    }
    wanted = inspect.signature(module.Request).parameters
    if "inputs" in wanted:
        fields["inputs"] = importlib.import_module("vllm.inputs").token_inputs(prompt, "")
    return module.Request(**{key: value for key, value in fields.items() if key in wanted})


class Tokens(list[int]):
    """Sampled tokens: a list, and what 0.6.4 expects of a tensor."""

    def tolist(self) -> list[int]:
        return self


def step(scheduler: Any, token: int) -> None:
    """One scheduler step; every running request samples `token`."""
    output = scheduler.schedule()
    names = list(output.num_scheduled_tokens)
    sampled = Tokens(token for _ in names)
    scheduler.update_from_output(
        output,
        SimpleNamespace(
            req_id_to_index={name: index for index, name in enumerate(names)},
            sampled_token_ids=sampled,
            sampled_token_ids_cpu=sampled,
            prompt_logprobs_dict={},
        ),
    )


def abort(scheduler: Any, name: str) -> None:
    status = importlib.import_module("vllm.v1.request").RequestStatus
    scheduler.finish_requests(name, status.FINISHED_ABORTED)


def full_hit_recomputes_one_token(sink: Sink) -> None:
    """A prompt of whole blocks comes again, is decoded past the next boundary, and what it left is hit."""
    scheduler = early_scheduler(32)
    watch = Watch(scheduler.kv_cache_manager, sink, BLOCK_SIZE)
    prompt = list(range(2 * BLOCK_SIZE))
    scheduler.add_request(early_request("first", prompt, 1))
    step(scheduler, 500)
    scheduler.add_request(early_request("again", prompt, BLOCK_SIZE))
    for token in range(600, 600 + BLOCK_SIZE):
        step(scheduler, token)
    other = prompt[: BLOCK_SIZE + 1] + list(range(600, 600 + BLOCK_SIZE - 1)) + [700]
    scheduler.add_request(early_request("other", other, 1))
    step(scheduler, 501)
    watch.ledger.quiescent()


def failed_admission_keeps_references(sink: Sink) -> None:
    """A cached prefix is asked for while the pool is too full, step after step, until the client gives up."""
    scheduler = early_scheduler(12)
    watch = Watch(scheduler.kv_cache_manager, sink, BLOCK_SIZE)
    prefix = list(range(2 * BLOCK_SIZE))
    scheduler.add_request(early_request("first", [*prefix, 100], 1))
    step(scheduler, 500)
    scheduler.add_request(early_request("large", list(range(1000, 1000 + 4 * BLOCK_SIZE)), 4))
    step(scheduler, 501)
    scheduler.add_request(early_request("waiting", prefix + list(range(2000, 2000 + 4 * BLOCK_SIZE)), 4))
    for token in (502, 503):
        step(scheduler, token)
    abort(scheduler, "waiting")
    step(scheduler, 504)
    watch.ledger.quiescent()
