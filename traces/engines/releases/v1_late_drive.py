"""Drives of later vLLM V1 releases (0.15 to 0.33): their KV cache manager and pool, as their scheduler calls them."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from kvsan.traces.engines.releases.ledger import Note, Sink
from kvsan.traces.engines.releases.v1 import Watch

BLOCK_SIZE = 4
PACKAGES = ("vllm", "vllm.distributed", "vllm.lora", "vllm.v1.structured_output")
# Modules of the releases that the scheduler imports and that nothing here calls.
# fmt: off
UNUSED = tuple(f"vllm.{name}" for name in (
    "compilation", "config", "connections", "distributed.device_communicators", "distributed.ec_transfer",
    "distributed.kv_transfer", "distributed.parallel_state", "model_executor", "multimodal", "platforms", "reasoning",
    "renderers", "tokenizers", "transformers_utils", "utils.torch_utils", "v1.attention",
    "v1.structured_output.backend_types",
))
# fmt: on


def wanted(function: Callable[..., Any], offered: dict[str, Any]) -> dict[str, Any]:
    """Of the arguments offered, those this release's `function` takes."""
    names = inspect.signature(function).parameters
    return {name: value for name, value in offered.items() if name in names}


def cache_config(blocks: int) -> Any:
    """One group of full attention layers."""
    interface = importlib.import_module("vllm.v1.kv_cache_interface")
    spec = interface.FullAttentionSpec(block_size=BLOCK_SIZE, num_kv_heads=1, head_size=64, dtype=None)
    group = interface.KVCacheGroupSpec(["layer"], spec)
    return interface.KVCacheConfig(num_blocks=blocks, kv_cache_tensors=[], kv_cache_groups=[group])


def manager(blocks: int, publish: bool = False) -> Any:
    made = importlib.import_module("vllm.v1.core.kv_cache_manager").KVCacheManager
    offered = {
        "kv_cache_config": cache_config(blocks),
        "max_model_len": 64,
        "scheduler_block_size": BLOCK_SIZE,
        "hash_block_size": BLOCK_SIZE,
        "enable_caching": True,
        "enable_kv_cache_events": publish,
    }
    return made(**wanted(made, offered))


class Driver:
    """A scheduler in miniature: looks a prompt up, allocates, and frees."""

    def __init__(self, manager: Any, sink: Sink) -> None:
        self.manager = manager
        self.watch = Watch(manager, sink, BLOCK_SIZE)
        utils = importlib.import_module("vllm.v1.core.kv_cache_utils")
        hashing = importlib.import_module("vllm.utils.hashing").sha256
        utils.init_none_hash(hashing)
        self.hasher = utils.get_request_block_hasher(BLOCK_SIZE, hashing)

    def request(self, name: str, prompt: list[int], lora: str | None = None, salt: str | None = None) -> Any:
        made = importlib.import_module("vllm.v1.request").Request
        adapter = importlib.import_module("vllm.lora.request").LoRARequest
        sampling = SimpleNamespace(
            max_tokens=8,
            extra_args=None,
            structured_outputs=None,
            prompt_logprobs=None,
            skip_reading_prefix_cache=False,
        )
        offered = {
            "request_id": name,
            "prompt_token_ids": prompt,
            "sampling_params": sampling,
            "pooling_params": None,
            "eos_token_id": None,
            "arrival_time": 0.0,
            "lora_request": adapter(lora, 1, "adapter") if lora else None,
            "cache_salt": salt,
            "block_hasher": self.hasher,
        }
        return made(**wanted(made, offered))

    def schedule(self, request: Any) -> None:
        """Look up and allocate, as the scheduler does for a waiting request."""
        blocks, tokens = self.manager.get_computed_blocks(request)[:2]
        new = request.num_tokens - tokens
        assert self.manager.allocate_slots(request, new, tokens, blocks) is not None
        request.num_computed_tokens = request.num_tokens

    def finish(self, request: Any) -> None:
        request.status = importlib.import_module("vllm.v1.request").RequestStatus.FINISHED_STOPPED
        self.manager.free(request)


def store_names_a_block_twice(sink: Sink) -> None:
    """A connector's store holds one block twice, outlives the request, and gives both holds back in one call."""
    driver = Driver(manager(6), sink)
    pool, ledger = driver.manager.block_pool, driver.watch.ledger
    request = driver.request("r0", list(range(2 * BLOCK_SIZE)))
    driver.schedule(request)
    block = pool.blocks[driver.manager.get_block_ids("r0")[0][0]]
    holders = ["store/0", "store/1"]
    names = iter(holders)
    driver.watch.holders = lambda _: next(names)
    with ledger.calling(None):
        pool.touch([block, block])
    driver.watch.holders = None
    driver.finish(request)
    with ledger.calling(None) as call:  # the store is done: its holds end, and the pool is told in one call
        call.begins += [Note("unpin", {"block": block.block_id, "holder": holder}) for holder in holders]
        pool.free_blocks([block, block])
    ledger.quiescent()


def evicting_one_of_two_copies(sink: Sink) -> None:
    """A prompt of whole blocks comes twice, so that its last block is cached twice; then one of the two is evicted."""
    driver = Driver(manager(6, publish=True), sink)
    prompt = list(range(2 * BLOCK_SIZE))
    for name in ("r0", "r1"):
        request = driver.request(name, prompt)
        driver.schedule(request)
        driver.finish(request)
    other = driver.request("r2", list(range(100, 100 + 3 * BLOCK_SIZE)))
    driver.schedule(other)
    driver.finish(other)
    driver.watch.ledger.quiescent()


def salt_that_names_an_adapter(sink: Sink) -> None:
    """A prompt cached under an adapter is asked for without it, under a cache salt of the adapter's name."""
    driver = Driver(manager(8), sink)
    prompt = list(range(2 * BLOCK_SIZE + 1))
    with_adapter = driver.request("r0", prompt, lora="tenant")
    driver.schedule(with_adapter)
    driver.finish(with_adapter)
    with_salt = driver.request("r1", prompt, salt="tenant")
    driver.schedule(with_salt)
    driver.finish(with_salt)
    driver.watch.ledger.quiescent()


class Corrected:
    """Passes a log on without the `kv_removed` of hashes that a block still carries: what #55092 asks for."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._carried: dict[int, str] = {}  # block: its published hash

    def emit(self, ev: str, /, **fields: Any) -> None:
        if ev == "seal":
            self._carried[fields["block"]] = fields["published"]
        elif ev == "evict":
            del self._carried[fields["block"]]
        elif ev == "kv_removed":
            fields["hash"] = [one for one in fields["hash"] if one not in self._carried.values()]
            if not fields["hash"]:
                return
        self._sink.emit(ev, **fields)
