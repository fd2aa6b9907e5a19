"""The pool of vLLM 0.32.0: where blocks are taken, found and given back, and where their identities come and go.

Every identity, of a whole block or of part of one, passes `_insert_block_hash` and `_remove_cached_block_hashes`; every
block passes `get_new_blocks`, `touch` and the free queue.
"""

from __future__ import annotations

import importlib
from typing import Any  # an engine's objects carry no types that we could import here

from kvsan.traces.engines.hooks import WATCH, after, wrap
from kvsan.traces.engines.vllm_v1_cow_recorder import V1CowRecorder, recorder_of

CACHING = "kvsan_caching"  # attribute on pools: the request whose full blocks are being registered


def hook_pool() -> None:
    pool = importlib.import_module("vllm.v1.core.block_pool").BlockPool
    queue = importlib.import_module("vllm.v1.core.kv_cache_utils").FreeKVCacheBlockQueue
    after(pool, "get_new_blocks", _took)
    after(queue, "append_n", _returned)
    after(queue, "prepend_n", _returned)
    after(pool, "touch", _touched)
    wrap(pool, "_insert_block_hash", _around_insert)
    after(pool, "_remove_cached_block_hashes", _removed)
    wrap(pool, "cache_full_blocks", _around_full)
    wrap(pool, "reset_prefix_cache", _around_reset)


def _took(self: Any, blocks: list[Any], *args: Any, **kwargs: Any) -> None:
    if recorder := recorder_of(self):
        for block in blocks:
            recorder.fact(lambda call, block=block: call.took(("gpu", block.block_id)))


def _returned(self: Any, _: None, blocks: list[Any]) -> None:
    if recorder := recorder_of(self):
        for block in blocks:
            recorder.fact(lambda call, block=block: call.gave_back(("gpu", block.block_id)))


def _touched(self: Any, _: None, blocks: Any) -> None:
    if recorder := recorder_of(self):
        for block in blocks:
            if not block.is_null:
                recorder.hit(block)


def _around_insert(original: Any, self: Any, key: Any, block: Any, num_tokens: int | None) -> Any:
    recorder = recorder_of(self)
    stood = self.cached_block_hash_to_block.contain(key, block.block_id)
    result = original(self, key, block, num_tokens=num_tokens)
    if recorder is not None and not stood:
        WATCH.run(_inserted, self, recorder, key, block, num_tokens)
    return result


def _inserted(pool: Any, recorder: V1CowRecorder, key: Any, block: Any, tokens: int | None) -> None:
    utils = importlib.import_module("vllm.v1.core.kv_cache_utils")
    group, parent = utils.get_group_id(key), None
    caching = getattr(pool, CACHING, None)
    if caching is not None and tokens is not None:
        size = recorder.managers[group].block_size
        hashes = utils.resolve_block_hashes(caching.block_hashes, pool.hash_block_size, size)
        if tokens > size:
            parent = utils.make_block_hash_with_group_id(hashes[tokens // size - 2], group)
    recorder.sealed(block, key, tokens, group, parent)


def _removed(self: Any, identities: list[Any], block: Any) -> None:
    if recorder := recorder_of(self):
        recorder.dropped(block.block_id, _grouped(identities))


def _grouped(identities: list[Any]) -> list[tuple[Any, int]]:
    group = importlib.import_module("vllm.v1.core.kv_cache_utils").get_group_id
    return [(identity, group(identity)) for identity in identities]


def _around_full(original: Any, self: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
    setattr(self, CACHING, request)
    try:
        return original(self, request, *args, **kwargs)
    finally:
        setattr(self, CACHING, None)


def _around_reset(original: Any, self: Any) -> Any:
    """Every identity is dropped at once."""
    recorder = recorder_of(self)
    more = {number: list(keys) for number, keys in self.cached_block_hashes_by_block.items()}
    standing = {b.block_id: [b.block_hash, *more.get(b.block_id, [])] for b in self.blocks if b.block_hash is not None}
    done = original(self)
    if recorder is not None and done:
        for number, identities in standing.items():
            WATCH.run(recorder.dropped, number, _grouped(identities))
    return done
