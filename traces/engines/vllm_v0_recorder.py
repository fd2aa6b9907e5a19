"""The events of one V0 block manager. Tables are logged by difference.

What this engine does, and how it is told:
- Copy-on-write drops the source's reference when it is scheduled: the entry is replaced here, and the copy itself is
  part of the step that the worker runs later.
- A branch that fills a block equal to one in the cache leaves its own: `hit`, `map`, then `free` of its own.
- A block that comes from the evictor is evicted, then allocated.
- A branch's length is what its table holds (`num_full_slots`); a sampled token counts once it is appended.
- A swapped group moves its entries to the other pool. The engine runs these copies before anything else of the next
  step; they are logged, as done, with the call that schedules them. On one stream the difference cannot be seen.
- A preempted sequence keeps its name: `preempt`, then `admit` with the tokens that it has by then.
- What falls out of a sliding window is `window` and `unmap`: the engine puts its null block there. It takes that from
  the pool when it first needs one, and keeps it for ever: an `alloc`, and a pin of kind `cache`.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any  # an engine's objects carry no types that we could import here

from kvsan.traces.engines.callgroup import Book, Copy, Ending, EngineCall, Place, Row
from kvsan.traces.engines.hooks import Names
from kvsan.traces.engines.output import open_recorder
from kvsan.traces.engines.ownership_order import write

MARK = "kvsan_recorder"  # attribute on managers and allocators


@dataclass
class Pool:
    """One allocator's place: its recorder, the pool's name, and the id of its first block."""

    recorder: V0Recorder
    name: str
    first: int

    def place(self, block: int) -> Place:
        return self.name, block - self.first


class V0Recorder:
    """Turns the calls of one block manager into events. One log for each manager."""

    def __init__(self, manager: Any, version: str) -> None:
        self.manager = manager
        self.block_size: int = manager.block_size
        self.book = Book()
        self.branches = Names("r")
        self.hashes = Names("h")
        self.lengths: dict[str, int] = {}
        self.calls: list[EngineCall] = []
        self.launches = 0
        self.null: Place | None = None
        pools = {}
        if manager.num_total_cpu_blocks:
            pools = {"pools": {"cpu": {"blocks": manager.num_total_cpu_blocks, "block_size": self.block_size}}}
        self.log = open_recorder(
            engine="vllm", version=version, discipline="paged_cow", block_size=self.block_size,
            blocks=manager.num_total_gpu_blocks, ref_counts="owners", started="empty", **pools,
        )  # fmt: skip
        self.pools = [self._pool(manager, name) for name in ("GPU", "CPU")]

    def _pool(self, manager: Any, device: str) -> Pool:
        devices = importlib.import_module("vllm.utils").Device
        allocator = manager.block_allocator._allocators[devices[device]]
        pool = Pool(self, device.lower(), 0 if device == "GPU" else manager.num_total_gpu_blocks)
        for part in (allocator, getattr(allocator, "_hashless_allocator", None)):
            if part is not None:
                setattr(part, MARK, pool)
        return pool

    # One call ---------------------------------------------------------------------------------------------------

    def start(self, branch: str | None) -> EngineCall:
        call = EngineCall(self.book, branch, self.null)
        self.calls.append(call)
        return call

    @property
    def call(self) -> EngineCall:
        """The call that runs; a fact outside of any call opens one of its own (see `end_loose`)."""
        return self.calls[-1] if self.calls else self.start(None)

    def finish_call(self, call: EngineCall) -> None:
        self.calls.remove(call)
        for place in call.touched():
            call.counts[place] = self._count(place)
        for pool in self.pools:
            if any(place[0] == pool.name for place in call.counts):
                call.free_counts[pool.name] = self._free_count(pool)
        if call.ended and not self.manager.block_tables:
            call.closing.append(("quiescent", {}))
        with self.log.group():
            write(call, self.log)

    def _count(self, place: Place) -> int:
        pool = next(pool for pool in self.pools if pool.name == place[0])
        return int(self._allocator(pool)._refcounter.get(place[1] + pool.first))

    def _free_count(self, pool: Pool) -> int:
        return int(self._allocator(pool).get_num_free_blocks())

    def _allocator(self, pool: Pool) -> Any:
        devices = importlib.import_module("vllm.utils").Device
        return self.manager.block_allocator._allocators[devices[pool.name.upper()]]

    def row(self, seq_id: int) -> Row:
        table = self.manager.block_tables[seq_id]
        return [None if _is_null(block) else self.place(block.block_id) for block in table.blocks]

    def place(self, block: int) -> Place:
        first_cpu = self.pools[1].first
        return self.pools[block >= first_cpu].place(block)

    def took_null(self, block: int) -> None:
        """The null block has just been taken."""
        place = self.place(block)
        self.null = self.call.null = place
        self.call.closing.append(("pin", {"block": place[1], "holder": "null_block", "kind": "cache"}))

    # The manager's calls ----------------------------------------------------------------------------------------

    def allocated(self, call: EngineCall, seqs: list[Any]) -> None:
        if self.manager.cross_block_tables:
            raise NotImplementedError("an encoder-decoder model keeps a second table for each request")
        first = self.branches.of(seqs[0].seq_id)
        length = self.manager.block_tables[seqs[0].seq_id].num_full_slots
        call.begun.append(("admit", {"branch": first, "tokens": length}))
        for seq in seqs:
            name = self.branches.of(seq.seq_id)
            self.lengths[name] = length
            call.rows[name] = self.row(seq.seq_id)
            if name != first:
                call.forks.append((name, first))

    def appended(self, call: EngineCall, seq: Any) -> None:
        name = self.branches.of(seq.seq_id)
        length = self.manager.block_tables[seq.seq_id].num_full_slots
        if length > self.lengths[name]:
            call.begun.append(("grow", {"branch": name, "tokens": length - self.lengths[name]}))
        self.lengths[name] = length
        call.rows[name] = self.row(seq.seq_id)
        nulls = sum(1 for place in call.rows[name] if place is None)
        if nulls > sum(1 for place in self.book.rows.get(name, []) if place is None):
            call.windows.append((name, nulls))

    def forked(self, call: EngineCall, parent: Any, child: Any) -> None:
        child_name, parent_name = self.branches.of(child.seq_id), self.branches.of(parent.seq_id)
        self.lengths[child_name] = self.lengths[parent_name]
        call.rows[child_name] = self.row(child.seq_id)
        call.forks.append((child_name, parent_name))

    def freed(self, call: EngineCall, seq: Any) -> None:
        name, ending = self.branches.of(seq.seq_id), _ending(seq)
        call.ended.append((ending, name))
        if ending != "preempt":
            self.branches.forget(seq.seq_id)
        self.lengths.pop(name, None)

    def swapped(self, call: EngineCall, seqs: list[Any]) -> None:
        for seq in seqs:
            name = self.branches.of(seq.seq_id)
            old, new = self.book.rows.get(name, []), self.row(seq.seq_id)
            call.rows[name] = new
            for pos, (source, target) in enumerate(zip(old, new, strict=True)):
                if source is not None and target is not None:
                    held = min(self.block_size, self.lengths[name] - pos * self.block_size)
                    if held > 0:
                        call.copies.append(Copy(name, source, target, (0, held)))


RECORDERS: list[V0Recorder] = []
"""The recorders of this process, by virtual engine: the workers of the same process log their launches there."""


def _is_null(block: Any) -> bool:
    return type(block).__name__ == "NullBlock"


def _ending(seq: Any) -> Ending:
    status = seq.status.name
    if status == "FINISHED_ABORTED":
        return "cancel"
    return "preempt" if status == "WAITING" else "finish"
