"""vLLM's V0 block manager: 0.6.2 (`BlockSpaceManagerV2`) and 0.9.1 (`SelfAttnBlockSpaceManager`).

The hooks: six calls of the manager (`allocate`, `append_slots`, `fork`, `free`, `swap_in`, `swap_out`), each one group
of events, and below them the allocators, for what the tables do not show: blocks taken and given back, identities
registered, found and dropped. `vllm_v0_recorder` turns them into events.
"""

from __future__ import annotations

import importlib
from typing import Any  # an engine's objects carry no types that we could import here

from kvsan.traces.engines.callgroup import EngineCall
from kvsan.traces.engines.hooks import WATCH, after, wrap
from kvsan.traces.engines.vllm_v0_recorder import MARK, RECORDERS, Pool, V0Recorder

EVICTED = "kvsan_evicted"  # attribute on evictors: the latest (block, identity)


def install(version: str) -> None:
    """Hook every V0 block manager that this process creates from now on. Raises ImportError where there is none."""
    manager = _manager_class()
    _hook_manager(manager, version)
    _hook_allocators()


def _manager_class() -> Any:
    try:
        return importlib.import_module("vllm.core.block_manager_v2").BlockSpaceManagerV2
    except ModuleNotFoundError:
        return importlib.import_module("vllm.core.block_manager").SelfAttnBlockSpaceManager


def _hook_manager(manager: Any, version: str) -> None:
    after(manager, "__init__", lambda self, _, *a, **k: _attach(self, version))

    def waiting(group: Any) -> list[Any]:
        return [seq for seq in group.get_seqs() if seq.status.name == "WAITING"]

    def running(group: Any) -> list[Any]:
        return [seq for seq in group.get_seqs() if seq.status.name == "RUNNING"]

    def swapped(group: Any) -> list[Any]:
        return [seq for seq in group.get_seqs() if seq.status.name == "SWAPPED"]

    def known(self: Any, seq: Any) -> list[Any]:
        return [seq] if seq.seq_id in self.block_tables else []

    _hook_call(manager, "allocate", lambda self, group: waiting(group), V0Recorder.allocated)
    _hook_call(manager, "append_slots", lambda self, seq, *a, **k: [seq], _first(V0Recorder.appended))
    _hook_call(manager, "free", known, _first(V0Recorder.freed))
    _hook_call(manager, "swap_out", lambda self, group: running(group), V0Recorder.swapped)
    _hook_call(manager, "swap_in", lambda self, group: swapped(group), V0Recorder.swapped)
    _hook_call(
        manager,
        "fork",
        lambda self, parent_seq, child_seq: [parent_seq, child_seq] if known(self, parent_seq) else [],
        lambda recorder, call, seqs: recorder.forked(call, *seqs),
    )


def _attach(manager: Any, version: str) -> None:
    recorder = V0Recorder(manager, version)
    setattr(manager, MARK, recorder)
    RECORDERS.append(recorder)


def _first(done: Any) -> Any:
    return lambda recorder, call, seqs: done(recorder, call, seqs[0])


def _hook_call(manager: Any, name: str, seqs_of: Any, done: Any) -> None:
    """One engine call, one group. `seqs_of` names its sequences before it runs; without any, it does nothing."""

    def around(original: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        recorder: Any = getattr(self, MARK, None)
        seqs = WATCH.run(seqs_of, self, *args, **kwargs) if recorder is not None else None
        if not seqs or WATCH.broken:
            return original(self, *args, **kwargs)
        call = recorder.start(recorder.branches.of(seqs[0].seq_id) if name != "fork" else None)
        try:
            result = original(self, *args, **kwargs)
        except Exception as error:
            WATCH.run(_failed, recorder, call, error)
            raise
        WATCH.run(done, recorder, call, seqs)
        WATCH.run(recorder.finish_call, call)
        return result

    wrap(manager, name, around)


def _failed(recorder: V0Recorder, call: EngineCall, error: Exception) -> None:
    """The engine's call broke off: say what it took so far, and why it stopped where that is known."""
    if type(error).__name__ == "NoFreeBlocksError" and call.branch is not None:
        call.closing.append(("alloc_failed", {"branch": call.branch}))
    recorder.finish_call(call)


def _hook_allocators() -> None:
    naive = importlib.import_module("vllm.core.block.naive_block").NaiveBlockAllocator
    caching = importlib.import_module("vllm.core.block.prefix_caching_block").PrefixCachingBlockAllocator

    def took(self: Any, block: int, *args: Any) -> None:
        if pool := getattr(self, MARK, None):
            _fact(pool, lambda call: call.took(pool.place(block)))

    def found(self: Any, _: None, block: Any) -> None:
        if pool := getattr(self, MARK, None):
            identity = pool.recorder.hashes.of(block.content_hash)
            _fact(pool, lambda call: call.found(pool.place(block.block_id), identity))

    both = importlib.import_module("vllm.core.block.cpu_gpu_block_allocator").CpuGpuBlockAllocator
    wrap(both, "allocate_or_get_null_block", _around_null)
    after(_evictor_class(), "evict", lambda self, evicted: setattr(self, EVICTED, evicted))
    after(naive, "_allocate_block_id", took)
    after(caching, "_incr_refcount_cached_block", found)
    wrap(naive, "_free_block_id", _around_release)
    wrap(caching, "_decr_refcount_cached_block", _around_release)
    wrap(caching, "_maybe_allocate_evicted_block_id", _around_evict)
    wrap(caching, "promote_to_immutable_block", _around_promote)


def _evictor_class() -> Any:
    try:
        return importlib.import_module("vllm.core.evictor_v2").LRUEvictor
    except ModuleNotFoundError:
        return importlib.import_module("vllm.core.evictor").LRUEvictor


def _fact(pool: Pool, say: Any) -> None:
    """Tell the running call; a fact outside of any call is a group of its own."""
    loose = not pool.recorder.calls
    say(pool.recorder.call)
    if loose:
        pool.recorder.finish_call(pool.recorder.call)


def _around_null(original: Any, self: Any) -> Any:
    first = self._null_block is None
    result = original(self)
    pool = next((pool for part in self._allocators.values() if (pool := getattr(part, MARK, None))), None)
    if pool is not None and first:
        WATCH.run(_fact, pool, lambda call: pool.recorder.took_null(result.block_id))
    return result


def _around_release(original: Any, self: Any, block: Any) -> Any:
    """A reference goes; the block is given back once the count is zero."""
    pool = getattr(self, MARK, None)
    number = block if isinstance(block, int) else block.block_id
    result = original(self, block)
    if pool is not None and self._refcounter.get(number) == 0:
        WATCH.run(_fact, pool, lambda call: call.gave_back(pool.place(number)))
    return result


def _around_evict(original: Any, self: Any) -> Any:
    """Say which identity the evicted block lost; one that the engine forgets to drop is not said to be dropped."""
    pool = getattr(self, MARK, None)
    block = original(self)
    if pool is None or block is None:
        return block

    def say(call: EngineCall) -> None:
        _, identity = getattr(self.evictor, EVICTED)
        if identity not in self._cached_blocks:
            call.dropped(pool.place(block), pool.recorder.hashes.of(identity))
            pool.recorder.hashes.forget(identity)
        call.took(pool.place(block))

    WATCH.run(_fact, pool, say)
    return block


def _around_promote(original: Any, self: Any, block: Any) -> Any:
    """A full block is registered, unless an equal one is: then the branch moves to that one, which is a hit."""
    pool = getattr(self, MARK, None)
    cached = block.content_hash in self._cached_blocks
    result = original(self, block)
    if pool is not None and not cached:
        hashes = pool.recorder.hashes
        parent = block.prev_block.content_hash if block.prev_block is not None else None
        identity = hashes.of(block.content_hash)
        WATCH.run(_fact, pool, lambda call: call.sealed(pool.place(result), identity, hashes.known(parent)))
    return result
