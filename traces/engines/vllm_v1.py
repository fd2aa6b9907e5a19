"""vLLM's V1 cache manager, 0.9.1: `KVCacheManager` over `BlockPool`.

Listens to two calls of the manager (`allocate_slots`, `free`), each one group of events, and below them to the pool:
blocks taken (`get_new_blocks`) and returned (`FreeKVCacheBlockQueue.append`), identities registered
(`cache_full_blocks`), held (`touch`) and dropped (`_maybe_evict_cached_block`). Tables are logged by difference.

What this engine does, and how it is told:
- A hash is published when its tokens are scheduled, before they are written: `map`, then `seal`; the writes follow.
- A hit is logged where the engine holds it (`touch`), together with the entries that it becomes.
- The null block stands for an entry without a block: never mapped, never counted. What falls out of a sliding window
  is `window` and `unmap`.
- A branch's length is what has been scheduled. Draft tokens are proposed; what the engine keeps of them is known when
  `num_computed_tokens` has been corrected, at the latest by the branch's next call.
- Lookahead blocks stay in the table after a rejected proposal.

Not yet: models with several cache groups (one table for each branch and group). They are refused with a warning.
"""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from typing import Any  # an engine's objects carry no types that we could import here

from kvsan.traces.engines.callgroup import Book, EngineCall, Place, Row
from kvsan.traces.engines.hooks import WATCH, Names, after, wrap
from kvsan.traces.engines.output import open_recorder

MARK = "kvsan_recorder"  # attribute on managers, pools and free queues


@dataclass
class Proposal:
    """Draft tokens of a branch that the engine has not judged yet."""

    base: int
    tokens: int


class V1Recorder:
    """Turns the calls of one cache manager into events. One log for each manager."""

    def __init__(self, manager: Any, version: str) -> None:
        self.manager = manager
        self.pool = manager.block_pool
        self.null: Place = ("gpu", self.pool.null_block.block_id)
        self.book = Book()
        self.branches = Names("r")
        self.hashes = Names("h")
        self.lengths: dict[str, int] = {}
        self.proposals: dict[str, Proposal] = {}
        self.calls: list[EngineCall] = []
        self.launches = 0
        self.log = open_recorder(
            engine="vllm", version=version, discipline="append_only", block_size=manager.block_size,
            blocks=self.pool.num_gpu_blocks, null_block=self.null[1], ref_counts="owners", started="empty",
        )  # fmt: skip

    def start(self, branch: str | None) -> EngineCall:
        call = EngineCall(self.book, branch, self.null)
        self.calls.append(call)
        return call

    def finish_call(self, call: EngineCall) -> None:
        self.calls.remove(call)
        for place in call.touched():
            call.counts[place] = self.pool.blocks[place[1]].ref_cnt
        if call.counts:
            call.free_counts["gpu"] = self.pool.get_num_free_blocks()
        if any(kind != "preempt" for kind, _ in call.ended) and not self._busy(call):
            call.closing.append(("quiescent", {}))
        with self.log.group():
            call.write(self.log)

    def _busy(self, call: EngineCall) -> bool:
        ended = {branch for _, branch in call.ended}
        return any(branch not in ended for branch in self.lengths)

    def fact(self, say: Any) -> None:
        """Tell the running call; a fact outside of any call is a group of its own."""
        if self.calls:
            say(self.calls[-1])
            return
        call = self.start(None)
        say(call)
        self.finish_call(call)

    def row(self, request: Any) -> Row:
        (blocks,) = self.manager.coordinator.get_blocks(request.request_id)
        return [None if block.is_null else ("gpu", block.block_id) for block in blocks]

    # The manager's calls ----------------------------------------------------------------------------------------

    def settle(self, request: Any, call: EngineCall) -> None:
        """Say how much of an outstanding proposal the engine has kept."""
        name = self.branches.known(request.request_id)
        proposal = self.proposals.pop(name, None) if name is not None else None
        if proposal is None or name is None:
            return
        kept = max(0, min(proposal.tokens, request.num_computed_tokens - proposal.base))
        call.before.append(("accept", {"branch": name, "tokens": kept}))
        self.lengths[name] = proposal.base + kept

    def scheduled(self, call: EngineCall, request: Any, scheduled: int, hit: int, drafts: int) -> None:
        name = self.branches.of(request.request_id)
        length = request.num_computed_tokens + hit + scheduled - drafts
        if name not in self.lengths:
            call.begun.append(("admit", {"branch": name, "tokens": length}))
        elif length > self.lengths[name]:
            call.begun.append(("grow", {"branch": name, "tokens": length - self.lengths[name]}))
        if drafts:
            call.begun.append(("propose", {"branch": name, "tokens": drafts}))
            self.proposals[name] = Proposal(length, drafts)
        self.lengths[name] = length + drafts
        row = self.row(request)
        self._window(call, name, row)
        call.rows[name] = row

    def _window(self, call: EngineCall, name: str, row: Row) -> None:
        start = next((pos for pos, place in enumerate(row) if place is not None), 0)
        before = self.book.rows.get(name, [])
        if start > next((pos for pos, place in enumerate(before) if place is not None), 0):
            call.windows.append((name, start))

    def refused(self, call: EngineCall, request: Any) -> None:
        call.closing.append(("alloc_failed", {"branch": self.branches.of(request.request_id)}))

    def freed(self, call: EngineCall, request: Any) -> None:
        name = self.branches.of(request.request_id)
        status = request.status.name
        if not status.startswith("FINISHED"):
            call.ended.append(("preempt", name))
            self.lengths.pop(name, None)
            return
        call.ended.append(("cancel" if status == "FINISHED_ABORTED" else "finish", name))
        self.lengths.pop(name, None)
        self.branches.forget(request.request_id)


RECORDERS: list[V1Recorder] = []
"""The recorders of this process; a worker of the same process logs its launches to the latest."""


# Hooks on the classes -------------------------------------------------------------------------------------------


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
    if len(manager.kv_cache_config.kv_cache_groups) != 1:
        print("kvsan: warning: several cache groups are not recorded yet; nothing is recorded", file=sys.stderr)
        return
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
    recorder.fact(lambda call: call.dropped(("gpu", block), name))
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
