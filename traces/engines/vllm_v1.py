"""vLLM's V1 cache manager, 0.9.1: `KVCacheManager` over `BlockPool`.

The hooks: two calls of the manager (`allocate_slots`, `free`), each one group of events, and below them the pool:
blocks taken (`get_new_blocks`) and returned (`FreeKVCacheBlockQueue.append`), identities registered
(`cache_full_blocks`), held (`touch`) and dropped (`_maybe_evict_cached_block`). `vllm_v1_recorder` turns them into
events.
"""

from __future__ import annotations

import importlib
from typing import Any  # an engine's objects carry no types that we could import here

from kvsan.traces.engines.hooks import WATCH, after, wrap
from kvsan.traces.engines.vllm_v1_recorder import MARK, RECORDERS, V1Recorder


def install(version: str) -> None:
    """Hook every V1 cache manager that this process creates from now on."""
    manager = importlib.import_module("vllm.v1.core.kv_cache_manager").KVCacheManager
    scheduler = importlib.import_module("vllm.v1.core.sched.scheduler").Scheduler
    after(manager, "__init__", lambda self, _, *a, **k: _attach(self, version))
    wrap(manager, "allocate_slots", _around_allocate)
    wrap(manager, "free", _around_free)
    after(scheduler, "update_from_output", _settle_step)
    _hook_pool()


def _attach(manager: Any, version: str) -> None:
    recorder = V1Recorder(manager, version)
    RECORDERS.append(recorder)
    for part in (manager, manager.block_pool, manager.block_pool.free_block_queue):
        setattr(part, MARK, recorder)


def _around_allocate(
    original: Any, self: Any, request: Any, num_new_tokens: int, num_new_computed_tokens: int = 0,
    new_computed_blocks: Any = None, num_draft_tokens: int = 0, *args: Any, **kwargs: Any,
) -> Any:  # fmt: skip
    recorder = getattr(self, MARK, None)
    passed = (request, num_new_tokens, num_new_computed_tokens, new_computed_blocks, num_draft_tokens, *args)
    if recorder is None or WATCH.broken:
        return original(self, *passed, **kwargs)
    call = recorder.start(recorder.branches.of(request.request_id))
    WATCH.run(recorder.settle, request, call)
    try:
        result = original(self, *passed, **kwargs)
    except Exception:
        WATCH.run(recorder.finish_call, call)
        raise
    if result is None:
        WATCH.run(recorder.refused, call, request)
    else:
        WATCH.run(recorder.scheduled, call, request, num_new_tokens, num_new_computed_tokens, num_draft_tokens)
    WATCH.run(recorder.finish_call, call)
    return result


def _around_free(original: Any, self: Any, request: Any) -> Any:
    recorder = getattr(self, MARK, None)
    if recorder is None or WATCH.broken or recorder.branches.known(request.request_id) not in recorder.lengths:
        return original(self, request)
    call = recorder.start(None)
    WATCH.run(recorder.settle, request, call)
    try:
        result = original(self, request)
        WATCH.run(recorder.freed, call, request)
    finally:
        WATCH.run(recorder.finish_call, call)
    return result


def _settle_step(scheduler: Any, _: Any, scheduler_output: Any, *args: Any, **kwargs: Any) -> None:
    """After a step's output was processed, the kept draft tokens of its requests are known."""
    recorder = getattr(scheduler.kv_cache_manager, MARK, None)
    if recorder is None:
        return
    for request_id in scheduler_output.scheduled_spec_decode_tokens:
        request = scheduler.requests.get(request_id)
        if request is not None and recorder.branches.known(request_id) in recorder.proposals:
            call = recorder.start(None)
            recorder.settle(request, call)
            recorder.finish_call(call)


def _hook_pool() -> None:
    pool = importlib.import_module("vllm.v1.core.block_pool").BlockPool
    queue = importlib.import_module("vllm.v1.core.kv_cache_utils").FreeKVCacheBlockQueue

    def took(self: Any, blocks: list[Any], *args: Any, **kwargs: Any) -> None:
        if recorder := getattr(self, MARK, None):
            for block in blocks:
                recorder.fact(lambda call, block=block: call.took(("gpu", block.block_id)))

    def returned(self: Any, _: None, block: Any) -> None:
        if recorder := getattr(self, MARK, None):
            recorder.fact(lambda call: call.gave_back(("gpu", block.block_id)))

    def touched(self: Any, _: None, blocks: Any) -> None:
        if recorder := getattr(self, MARK, None):
            for block in (block for group in blocks for block in group if not block.is_null):
                identity = recorder.hashes.of(block.block_hash)
                recorder.fact(lambda call, b=block, h=identity: call.found(("gpu", b.block_id), h))

    after(pool, "get_new_blocks", took)
    after(queue, "append", returned)
    after(pool, "touch", touched)
    after(pool, "cache_full_blocks", _sealed)
    wrap(pool, "_maybe_evict_cached_block", _around_evict)
    wrap(pool, "reset_prefix_cache", _around_reset)


def _sealed(
    self: Any, _: None, request: Any, blocks: list[Any], block_hashes: Any, num_cached_blocks: int,
    num_full_blocks: int, *args: Any, **kwargs: Any,
) -> None:  # fmt: skip
    recorder = getattr(self, MARK, None)
    if recorder is None:
        return
    for pos in range(num_cached_blocks, num_full_blocks):
        parent = recorder.hashes.known(blocks[pos - 1].block_hash) if pos else None
        identity = recorder.hashes.of(blocks[pos].block_hash)
        place = ("gpu", blocks[pos].block_id)
        recorder.fact(lambda call, p=place, i=identity, q=parent: call.sealed(p, i, q))


def _around_evict(original: Any, self: Any, block: Any) -> Any:
    """An identity is dropped. Its name is free again once no other block carries it."""
    recorder = getattr(self, MARK, None)
    identity = block.block_hash
    evicted = original(self, block)
    if recorder is not None and evicted:
        WATCH.run(_dropped, recorder, block.block_id, identity)
    return evicted


def _dropped(recorder: V1Recorder, block: int, identity: Any) -> None:
    name = recorder.hashes.of(identity)
    recorder.fact(lambda call: call.dropped(("gpu", block), name, identity.group_id))
    if identity not in recorder.pool.cached_block_hash_to_block:
        recorder.hashes.forget(identity)


def _around_reset(original: Any, self: Any) -> Any:
    """Every identity is dropped at once."""
    recorder = getattr(self, MARK, None)
    standing = [(block.block_id, block.block_hash) for block in self.blocks if block.block_hash is not None]
    done = original(self)
    if recorder is not None and done:
        for block, identity in standing:
            WATCH.run(_dropped, recorder, block, identity)
    return done
