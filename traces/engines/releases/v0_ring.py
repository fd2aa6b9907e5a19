"""vLLM's first block manager (0.3.3 `BlockSpaceManager`, 0.4.0 `BlockSpaceManagerV1`), sliding window.

With a window of W blocks a table is a ring: row `W` is block `0` again. The engine reads the last W entries of a table
only (its model runner cuts the table there), so the entries below leave the window as soon as the table is longer.
A reference count is an attribute that the manager sets at will: counts are compared before and after each call.
"""

from __future__ import annotations

import importlib
from typing import Any

from kvsan.traces.engines.releases.hooks import around
from kvsan.traces.engines.releases.ledger import Call, Ledger, Note, Sink


def manager_class() -> Any:
    """The manager of whichever release is on the import path."""
    try:
        return importlib.import_module("vllm.core.block_manager_v1").BlockSpaceManagerV1
    except ModuleNotFoundError:
        return importlib.import_module("vllm.core.block_manager").BlockSpaceManager


def watch(manager: Any, sink: Sink) -> Ledger:
    """Hook one manager. Blocks are those of its GPU pool; a branch is a sequence id."""
    pool = manager.gpu_allocator
    blocks = list(pool.free_blocks)
    # Tables are freed in the order of a set of blocks, which is that of their addresses. Ordering by number instead
    # lets a recording be repeated.
    setattr(type(blocks[0]), "__hash__", lambda block: block.block_number)  # noqa: B010 (no type here to assign to)
    ended: set[int] = set()  # freed, even where the engine raised before it dropped the table

    def tables() -> dict[str, list[int]]:
        rows = ((seq, row) for seq, row in manager.block_tables.items() if seq not in ended)
        return {str(seq): [block.block_number for block in row] for seq, row in rows}

    ledger = Ledger(
        sink, tables, lambda: {block.block_number: block.ref_count for block in blocks}, lambda: len(pool.free_blocks)
    )

    def allocate(original: Any, *args: Any, **kwargs: Any) -> Any:
        block = original(*args, **kwargs)
        ledger.note("alloc", block=block.block_number)
        return block

    def free(original: Any, block: Any) -> None:
        original(block)
        if block.ref_count == 0:
            ledger.note("free", block=block.block_number)

    around(pool, "allocate", allocate)
    around(pool, "free", free)
    _watch_calls(manager, ledger, ended)
    return ledger


def _watch_calls(manager: Any, ledger: Ledger, ended: set[int]) -> None:
    window: int | None = manager.block_sliding_window
    lengths: dict[str, int] = {}  # tokens of each branch, as the log has them

    def leave_window(call: Call, branch: str, old_rows: int = 0) -> None:
        rows = len(manager.block_tables[int(branch)])
        if window is not None and rows > max(window, old_rows):
            call.windows[branch] = rows - window

    def allocate(original: Any, group: Any) -> None:
        (seq,) = group.get_seqs()
        branch = str(seq.seq_id)
        with ledger.calling(branch) as call:
            call.begins.append(Note("admit", {"branch": branch, "tokens": seq.get_len()}))
            lengths[branch] = seq.get_len()
            original(group)
            leave_window(call, branch)

    def append_slot(original: Any, seq: Any) -> Any:
        branch = str(seq.seq_id)
        with ledger.calling(branch) as call:
            call.begins.append(Note("grow", {"branch": branch, "tokens": seq.get_len() - lengths[branch]}))
            lengths[branch] = seq.get_len()
            old_rows = len(manager.block_tables[seq.seq_id])
            copied = original(seq)
            if copied is not None:
                source, target = copied
                slots = [0, manager.block_size]
                call.copies.append(Note("copy", {"branch": branch, "src": source, "dst": target, "slots": slots}))
            leave_window(call, branch, old_rows)
            return copied

    def fork(original: Any, parent: Any, child: Any) -> None:
        branch = str(child.seq_id)
        with ledger.calling(branch) as call:
            call.forks[branch] = str(parent.seq_id)
            lengths[branch] = lengths[str(parent.seq_id)]
            original(parent, child)
            leave_window(call, branch)

    def free(original: Any, seq: Any) -> None:
        with ledger.calling(str(seq.seq_id)):
            ended.add(seq.seq_id)
            original(seq)

    for wrapper in (allocate, append_slot, fork, free):
        around(manager, wrapper.__name__, wrapper)
