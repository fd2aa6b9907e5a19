"""vLLM V0 `BlockSpaceManagerV2` with prefix caching (0.4.2 and 0.4.3).

An identity stands while the allocator's map from hash to block holds it: it is sealed when it enters the map and
evicted when it leaves it, and not when the evictor hands its block out. That difference is the fault of
vllm-project/vllm#4764.
"""

from __future__ import annotations

import importlib
from typing import Any

from kvsan.traces.engines.releases.hooks import WatchedDict, around
from kvsan.traces.engines.releases.ledger import Ledger, Note, Sink


def manager_class() -> Any:
    return importlib.import_module("vllm.core.block_manager_v2").BlockSpaceManagerV2


def watch(manager: Any, sink: Sink) -> Ledger:
    """Hook one manager. Blocks are those of its GPU pool; a branch is a sequence id."""
    device = importlib.import_module("vllm.utils").Device.GPU
    pool = manager.block_allocator._allocators[device]

    def tables() -> dict[str, list[int]]:
        return {str(seq): list(table.physical_block_ids) for seq, table in manager.block_tables.items()}

    ledger = Ledger(sink, tables, lambda: dict(pool._refcounter._refcounts), pool.get_num_free_blocks)
    _watch_pool(pool, ledger)
    _watch_calls(manager, ledger)
    return ledger


def _watch_pool(pool: Any, ledger: Ledger) -> None:
    taken: set[int] = set()  # given out by the free set or the evictor, not yet counted
    counter = pool._refcounter

    def evict(original: Any) -> Any:
        block, content_hash = original()
        taken.add(block)
        return block, content_hash

    def incr(original: Any, block: int) -> int:
        count: int = original(block)
        if count == 1 and (block in taken or block in pool._hashless_allocator._free_block_indices):
            taken.discard(block)
            ledger.note("alloc", block=block)
        return count

    def decr(original: Any, block: int) -> int:
        count: int = original(block)
        if count == 0:
            ledger.note("free", block=block)
        return count

    def hit(original: Any, block: Any, block_id: int) -> None:
        ledger.note("hit", block=block_id, hash=ledger.name_of(block.content_hash))
        original(block, block_id)

    def stored(content_hash: object, block: int, _: object) -> None:
        assert ledger.call is not None
        ledger.call.seals.append(
            Note("seal", {"block": block, "hash": ledger.name_of(content_hash), "branch": ledger.call.branch})
        )

    def dropped(content_hash: object, block: int) -> None:
        ledger.note("evict", block=block, hash=ledger.name_of(content_hash))

    around(pool.evictor, "evict", evict)
    around(counter, "incr", incr)
    around(counter, "decr", decr)
    around(pool, "_incr_refcount_cached_block", hit)
    pool._cached_blocks = WatchedDict(pool._cached_blocks, stored, dropped)


def _watch_calls(manager: Any, ledger: Ledger) -> None:
    lengths: dict[str, int] = {}

    def allocate(original: Any, group: Any) -> None:
        (seq,) = group.get_seqs()
        branch = str(seq.seq_id)
        with ledger.calling(branch) as call:
            call.begins.append(Note("admit", {"branch": branch, "tokens": seq.get_len()}))
            lengths[branch] = seq.get_len()
            original(group)

    def append_slots(original: Any, seq: Any, *args: Any) -> Any:
        branch = str(seq.seq_id)
        with ledger.calling(branch) as call:
            call.begins.append(Note("grow", {"branch": branch, "tokens": seq.get_len() - lengths[branch]}))
            lengths[branch] = seq.get_len()
            cows = original(seq, *args)
            pairs = [(src, dst) for src, targets in cows.items() for dst in targets] if isinstance(cows, dict) else cows
            for source, target in pairs:
                slots = [0, manager.block_size]
                call.copies.append(Note("copy", {"branch": branch, "src": source, "dst": target, "slots": slots}))
            return cows

    def free(original: Any, seq: Any) -> None:
        with ledger.calling(str(seq.seq_id)):
            original(seq)

    for wrapper in (allocate, append_slots, free):
        around(manager, wrapper.__name__, wrapper)
