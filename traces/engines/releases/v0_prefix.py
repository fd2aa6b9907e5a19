"""vLLM V0 `BlockSpaceManagerV2` (0.4.2 to 0.6.3), with prefix caching or without.

An identity stands while the allocator's map from hash to block holds it: it is sealed when it enters the map and
evicted when it leaves it, and not when the evictor hands its block out. That difference is the fault of
vllm-project/vllm#4764.

A sequence that is swapped out is preempted here: its CPU blocks are in another pool and not watched. What `can_swap_in`
counted as needed, when it said yes, is what it promised.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from kvsan.traces.engines.releases.hooks import WatchedDict, around
from kvsan.traces.engines.releases.ledger import Call, Ledger, Note, Sink


def manager_class() -> Any:
    return importlib.import_module("vllm.core.block_manager_v2").BlockSpaceManagerV2


def watch(manager: Any, sink: Sink) -> Ledger:
    """Hook one manager. Blocks are those of its GPU pool; a branch is a sequence id."""
    device = importlib.import_module("vllm.utils").Device.GPU
    pool = manager.block_allocator._allocators[device]

    def tables() -> dict[str, list[int]]:
        rows = {str(seq): list(table.physical_block_ids) for seq, table in manager.block_tables.items()}
        return {seq: row if pool.all_block_ids.issuperset(row) else [] for seq, row in rows.items()}

    null = getattr(manager.block_allocator, "_null_block", None)
    null_id = None if null is None else null.block_id
    counts = pool._refcounter._refcounts
    ledger = Ledger(
        sink, tables, lambda: {b: n for b, n in counts.items() if b != null_id}, pool.get_num_free_blocks, null_id
    )
    _watch_pool(pool, ledger)
    _watch_calls(manager, ledger)
    return ledger


def _watch_pool(pool: Any, ledger: Ledger) -> None:
    taken: set[int] = set()  # given out by the evictor, not yet counted
    counter, free_set = pool._refcounter, getattr(pool, "_hashless_allocator", pool)

    def take(original: Any) -> int:
        block: int = original()
        ledger.note("alloc", block=block)
        return block

    def evict(original: Any) -> Any:
        block, content_hash = original()
        taken.add(block)
        return block, content_hash

    def incr(original: Any, block: int) -> int:
        count: int = original(block)
        if block in taken:
            taken.discard(block)
            ledger.note("alloc", block=block)
        return count

    def decr(original: Any, block: int) -> int:
        count: int = original(block)
        if count == 0:
            ledger.note("free", block=block)
        return count

    def hit(original: Any, block: Any, *block_id: int) -> None:  # from 0.5 the block knows its id
        found = block_id[0] if block_id else block.block_id
        ledger.note("hit", block=found, hash=ledger.name_of(block.content_hash))
        original(block, *block_id)

    def stored(content_hash: object, block: int, _: object) -> None:
        assert ledger.call is not None
        ledger.call.seals.append(
            Note("seal", {"block": block, "hash": ledger.name_of(content_hash), "branch": ledger.call.branch})
        )

    def dropped(content_hash: object, block: int) -> None:
        ledger.note("evict", block=block, hash=ledger.name_of(content_hash))

    for name in ("_allocate_new_block_id", "_allocate_block_id"):  # the second from 0.5
        if hasattr(free_set, name):
            around(free_set, name, take)
    around(counter, "incr", incr)
    around(counter, "decr", decr)
    if free_set is pool:
        return
    around(pool.evictor, "evict", evict)
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
            leave_window(call, branch, manager.block_tables[seq.seq_id])
            pairs = [(src, dst) for src, targets in cows.items() for dst in targets] if isinstance(cows, dict) else cows
            for source, target in pairs:
                slots = [0, manager.block_size]
                call.copies.append(Note("copy", {"branch": branch, "src": source, "dst": target, "slots": slots}))
            return cows

    def fork(original: Any, parent: Any, child: Any) -> None:
        branch = str(child.seq_id)
        with ledger.calling(branch) as call:
            call.forks[branch] = str(parent.seq_id)
            lengths[branch] = lengths[str(parent.seq_id)]
            original(parent, child)

    def leave_window(call: Call, branch: str, table: Any) -> None:
        """Entries that the manager has replaced by the null block."""
        below = sum(1 for block in table.physical_block_ids if block == ledger.null)
        if below > ledger.below(branch):
            call.windows[branch] = below

    def free(original: Any, seq: Any) -> None:
        with ledger.calling(str(seq.seq_id)):
            original(seq)

    def swap_out(original: Any, group: Any) -> Any:
        (seq,) = group.get_seqs()
        with ledger.calling(str(seq.seq_id)) as call:
            call.ending = "preempt"
            return original(group)

    def swap_in(original: Any, group: Any) -> Any:
        (seq,) = group.get_seqs()
        with ledger.calling(str(seq.seq_id)):
            return original(group)

    for wrapper in (allocate, append_slots, fork, free, swap_out, swap_in):
        around(manager, wrapper.__name__, failing(wrapper, ledger))
    _watch_promises(manager, ledger)


def failing(wrapper: Callable[..., Any], ledger: Ledger) -> Callable[..., Any]:
    """A call that finds the pool empty says so in its group."""

    def noted(original: Any, *args: Any) -> Any:
        def inner(*inner_args: Any) -> Any:
            try:
                return original(*inner_args)
            except Exception as problem:
                if type(problem).__name__ == "NoFreeBlocksError":
                    ledger.note("alloc_failed")
                raise

        return wrapper(inner, *args)

    return noted


def _watch_promises(manager: Any, ledger: Ledger) -> None:
    """`reserve`: the blocks counted while `can_swap_in` was asked, once it said yes."""
    counted: list[int] = []

    def count(original: Any, *args: Any, **kwargs: Any) -> int:
        blocks: int = original(*args, **kwargs)
        counted.append(blocks)
        return blocks

    def can_swap_in(original: Any, group: Any, *args: Any) -> Any:
        counted.clear()
        status = original(group, *args)
        if status.name == "OK":
            (seq,) = group.get_seqs()
            with ledger.calling(str(seq.seq_id)):
                ledger.note("reserve", blocks=sum(counted))
        return status

    for name in ("get_num_blocks_touched", "get_num_full_blocks_touched"):
        if hasattr(manager.block_allocator, name):
            around(manager.block_allocator, name, count)
    table = importlib.import_module("vllm.core.block.block_table").BlockTable
    around(table, "get_num_blocks_touched_by_append_slots", count)
    around(manager, "can_swap_in", can_swap_in)
