"""vLLM's V0 block manager: 0.6.2 (`BlockSpaceManagerV2`) and 0.9.1 (`SelfAttnBlockSpaceManager`).

Listens to six calls of the manager (`allocate`, `append_slots`, `fork`, `free`, `swap_in`, `swap_out`), each one
group of events, and below them to the allocators for what the tables do not show: blocks taken and given back,
identities registered, found and dropped. Tables are logged by difference.

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
from kvsan.traces.engines.hooks import WATCH, Names, after, wrap
from kvsan.traces.engines.output import open_recorder

MARK = "kvsan_recorder"  # attribute on managers and allocators
EVICTED = "kvsan_evicted"  # attribute on evictors: the latest (block, identity)


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
            call.write(self.log)

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


# Hooks on the classes -------------------------------------------------------------------------------------------


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
