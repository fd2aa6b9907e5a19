"""vLLM's V1 cache manager with copy-on-write of partial tails, 0.32.0: `KVCacheManager` over `BlockPool`.

The hooks: the manager's calls (`allocate_slots`, `free`, `pop_blocks_for_free`), each one group of events; below them
the pool (`vllm_v1_cow_pool`); beside them the scheduler, which holds both ends of a queued copy and the blocks of ended
requests until a step is done. `vllm_v1_cow_recorder` turns them into events.
"""

from __future__ import annotations

import importlib
from typing import Any  # an engine's objects carry no types that we could import here

from kvsan.traces.engines.hooks import WATCH, after, wrap
from kvsan.traces.engines.vllm_v1_cow_pool import hook_pool
from kvsan.traces.engines.vllm_v1_cow_recorder import Allocation, V1CowRecorder, recorder_of
from kvsan.traces.engines.vllm_v1_recorder import MARK, RECORDERS


def install(version: str) -> None:
    """Hook every V1 cache manager that this process creates from now on."""
    manager = importlib.import_module("vllm.v1.core.kv_cache_manager").KVCacheManager
    after(manager, "__init__", lambda self, _, *a, **k: _attach(self, version))
    wrap(manager, "allocate_slots", _around_allocate)
    wrap(manager, "free", _around_free)
    wrap(manager, "pop_blocks_for_free", _around_pop)
    wrap(manager, "cache_blocks", _around_cache)
    hook_pool()
    _hook_copies()
    _hook_scheduler()


def _attach(manager: Any, version: str) -> None:
    recorder = V1CowRecorder(manager, version)
    RECORDERS.append(recorder)
    for part in (manager, manager.block_pool, manager.block_pool.free_block_queue):
        setattr(part, MARK, recorder)


# The manager's calls ---------------------------------------------------------------------------------------------


def _around_allocate(
    original: Any, self: Any, request: Any, num_new_tokens: int, num_new_computed_tokens: int = 0,
    new_computed_blocks: Any = None, *args: Any, **kwargs: Any,
) -> Any:  # fmt: skip
    recorder = recorder_of(self)
    passed = (request, num_new_tokens, num_new_computed_tokens, new_computed_blocks, *args)
    if recorder is None:
        return original(self, *passed, **kwargs)
    recorder.start(recorder.branches.of(request.request_id))
    ends = WATCH.run(_hit_ends, self, request, num_new_computed_tokens, new_computed_blocks) or {}
    recorder.allocation = Allocation(request, num_new_computed_tokens, num_new_tokens, ends)
    try:
        result = original(self, *passed, **kwargs)
        WATCH.run(recorder.denied if result is None else recorder.allocated, recorder.calls[-1], request)
    finally:
        recorder.allocation = None
        WATCH.run(recorder.finish_call, recorder.calls[-1])
    return result


def _hit_ends(manager: Any, request: Any, tokens: int, blocks: Any) -> dict[int, Any]:
    """The blocks in which the hit ends, and the identity that found each: not the block's own, where it ends inside."""
    if blocks is None or not tokens:
        return {}
    utils = importlib.import_module("vllm.v1.core.kv_cache_utils")
    unit, end = manager.block_pool.hash_block_size, request.num_computed_tokens + tokens
    found = {}
    for group, (row, single) in enumerate(zip(blocks.blocks, manager.coordinator.single_type_managers, strict=True)):
        if row and end % single.block_size:
            found[row[-1].block_id] = utils.make_block_hash_with_group_id(request.block_hashes[end // unit - 1], group)
    return found


def _around_free(original: Any, self: Any, request: Any) -> Any:
    recorder = recorder_of(self)
    if recorder is None or recorder.branches.known(request.request_id) not in recorder.lengths:
        return original(self, request)
    call = recorder.start(None)
    try:
        result = original(self, request)
        WATCH.run(recorder.freed, call, request)
    finally:
        WATCH.run(recorder.finish_call, call)
    return result


def _around_pop(original: Any, self: Any, request: Any) -> Any:
    """The table goes; its blocks wait for the step that may still write them."""
    recorder = recorder_of(self)
    name = recorder.branches.known(request.request_id) if recorder is not None else None
    if recorder is None or name not in recorder.lengths:
        return original(self, request)
    call = recorder.start(None)
    try:
        blocks = original(self, request)
        holds = [(block.block_id, f"ended:{name}") for block in blocks if not block.is_null]
        call.before += [("pin", {"block": block, "holder": holder, "kind": "step"}) for block, holder in holds]
        if holds:
            recorder.wait_for_step(blocks, holds)
        WATCH.run(recorder.freed, call, request)
    finally:
        WATCH.run(recorder.finish_call, call)
    return blocks


def _around_cache(original: Any, self: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
    """With asynchronous scheduling, identities are registered when their tokens are known."""
    recorder = recorder_of(self)
    if recorder is None:
        return original(self, request, *args, **kwargs)
    call = recorder.start(recorder.branches.known(request.request_id))
    try:
        return original(self, request, *args, **kwargs)
    finally:
        WATCH.run(recorder.finish_call, call)


# Copies on write -------------------------------------------------------------------------------------------------


def _hook_copies() -> None:
    module = importlib.import_module("vllm.v1.core.single_type_kv_cache_manager")
    pool = importlib.import_module("vllm.v1.core.block_pool").BlockPool
    wrap(module.SingleTypeKVCacheManager, "_apply_cow", _around_cow)
    wrap(pool, "move_block_hashes", _around_move)


def _around_cow(original: Any, self: Any, request_id: str, block_idx: int, source: Any, target: Any) -> Any:
    recorder = recorder_of(self.block_pool)
    if recorder is not None:
        WATCH.run(recorder.shared_tail)
    result = original(self, request_id, block_idx, source, target)
    if recorder is not None:
        WATCH.run(recorder.redirected, self.kv_cache_group_id, source.block_id, target.block_id)
    return result


def _around_move(original: Any, self: Any, src_block: Any, dst_block: Any) -> Any:
    recorder = recorder_of(self)
    if recorder is not None:
        utils = importlib.import_module("vllm.v1.core.kv_cache_utils")
        group = utils.get_group_id(src_block.block_hash)
        WATCH.run(recorder.moving, group, src_block.block_id, dst_block.block_id)
    return original(self, src_block, dst_block)


# The scheduler ---------------------------------------------------------------------------------------------------


def _hook_scheduler() -> None:
    scheduler = importlib.import_module("vllm.v1.core.sched.scheduler").Scheduler
    after(scheduler, "__init__", _check)
    wrap(scheduler, "_free_cow_retained_blocks", _around_copy_ends)
    wrap(scheduler, "_drain_deferred_frees", _around_drain)


def _check(scheduler: Any, *_: Any, **__: Any) -> None:
    """Raises: NotImplementedError, which ends the recording with a word, where half the story would be told."""
    if scheduler.num_spec_tokens or scheduler.connector is not None:
        raise NotImplementedError("speculative tokens and KV connectors of vLLM 0.32.0 are not recorded yet")


def _around_copy_ends(original: Any, self: Any, blocks: list[Any], fence_seq: int) -> Any:
    """Both ends of the queued copies are let go: at once, or when a step is done."""
    recorder = recorder_of(self.kv_cache_manager)
    if recorder is None:
        return original(self, blocks, fence_seq)
    call, waiting = recorder.start(None), len(self.deferred_frees)
    try:
        result = original(self, blocks, fence_seq)
        holds = WATCH.run(recorder.copies_let_go, blocks) or []
        if len(self.deferred_frees) > waiting:
            recorder.wait_for_step(self.deferred_frees[-1][1], holds)
        else:
            recorder.let_go(call, holds)
    finally:
        WATCH.run(recorder.finish_call, call)
    return result


def _around_drain(original: Any, self: Any) -> Any:
    recorder = recorder_of(self.kv_cache_manager)
    if recorder is None or not self.deferred_frees:
        return original(self)
    call, waiting = recorder.start(None), list(self.deferred_frees)
    try:
        result = original(self)
        for _, blocks in waiting[: len(waiting) - len(self.deferred_frees)]:
            recorder.let_go(call, recorder.waited(blocks))
    finally:
        WATCH.run(recorder.finish_call, call)
    return result
