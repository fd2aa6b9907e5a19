"""Device work of vLLM 0.32.0's V1 runner, where it runs in the process of the scheduler (one worker, no pipeline).

A step is up to two launches of one stream: first the copies that the scheduler ordered, then the forward pass. The
forward pass of an attention group writes the slots of its slot mapping and reads each request. A group of recurrent
states has no slot mapping: where a request enters a new block, the worker first copies its last state there, and the
pass leaves the new state in the block of its last token. That is told as writes of the slots of the tokens it took in;
what it reads is what it overwrites.

`done` is logged where the scheduler takes the output: by then every write of that step and of those before is complete,
which is what the scheduler itself relies on.

Not told: the zeroes that the worker writes to fresh blocks before the copies, on the same stream.
"""

from __future__ import annotations

import contextlib
import importlib
from dataclasses import dataclass
from typing import Any  # an engine's objects carry no types that we could import here

from kvsan.traces.engines.hooks import WATCH, after, wrap
from kvsan.traces.engines.launches import STREAM, Write, cut, slot_writes
from kvsan.traces.engines.vllm_v1_cow_recorder import V1CowRecorder
from kvsan.traces.engines.vllm_v1_recorder import MARK, RECORDERS

OPS = "kvsan_ops"  # attribute on a scheduler's output: the launches that it became
BATCH = "kvsan_batch"  # attribute on runners: the batch that is about to be launched
VIEWS = "kvsan_views"  # attribute on runners: the tables as last told


@dataclass
class Batch:
    """One forward pass: each request with its tokens before the pass and the tokens that it takes in."""

    output: Any
    names: list[str]
    starts: list[int]
    counts: list[int]
    states: dict[int, int]  # row -> the position that held the request's state before the pass


def install(version: str) -> None:
    scheduler = importlib.import_module("vllm.v1.core.sched.scheduler").Scheduler
    wrap(scheduler, "update_from_output", _around_update)
    with contextlib.suppress(ImportError):  # then nothing can be launched here
        runner = importlib.import_module("vllm.v1.worker.gpu_model_runner").GPUModelRunner
        worker: Any = importlib.import_module("vllm.v1.worker.gpu_model_runner")
        worker.copy_kv_cache_blocks_inplace = _told_copies(worker.copy_kv_cache_blocks_inplace)
        wrap(runner, "_update_states", _around_states)
        after(runner, "_prepare_inputs", _prepared)
        wrap(runner, "_model_forward", _around_forward)


def _around_update(original: Any, self: Any, scheduler_output: Any, *args: Any, **kwargs: Any) -> Any:
    """The step's output is here: by now the host knows that its launches are complete."""
    recorder = getattr(self.kv_cache_manager, MARK, None)
    if recorder is not None:
        WATCH.run(_learned, recorder, scheduler_output)
    return original(self, scheduler_output, *args, **kwargs)


def _learned(recorder: V1CowRecorder, scheduler_output: Any) -> None:
    for op in getattr(scheduler_output, OPS, []):
        recorder.log.emit("done", op=op)
        recorder.in_flight.discard(op)
    recorder.rest()


def new_op(recorder: V1CowRecorder, scheduler_output: Any) -> str:
    recorder.launches += 1
    op = f"s{recorder.launches}"
    setattr(scheduler_output, OPS, [*getattr(scheduler_output, OPS, []), op])
    recorder.in_flight.add(op)
    return op


# Copies that the scheduler ordered -------------------------------------------------------------------------------


def launch_copies(recorder: V1CowRecorder | None, scheduler_output: Any, copies: Any) -> None:
    """One launch of the copies, unordered with each other."""
    if recorder is None or not copies:
        return
    op = new_op(recorder, scheduler_output)
    for copy in copies:
        source, target = copy.src_block_id, copy.dst_block_id
        group = recorder.group_of_copy.pop((source, target), 0)
        slots = [0, recorder.managers[group].block_size]
        recorder.log.emit("copy", op=op, stream=STREAM, src=source, dst=target, slots=slots, **_in(group))


_stepping: list[Any] = []  # the scheduler's output that a worker is taking in


def _around_states(original: Any, self: Any, scheduler_output: Any) -> Any:
    _stepping.append(scheduler_output)
    try:
        return original(self, scheduler_output)
    finally:
        _stepping.pop()


def _told_copies(original: Any) -> Any:
    """The worker's own copying, told where it is launched. Hooked once."""
    if getattr(original, "kvsan_hook", False):
        return original

    def copy(caches: Any, blocks: int, copies: Any) -> None:
        if RECORDERS and _stepping:
            WATCH.run(launch_copies, RECORDERS[-1], _stepping[-1], copies)
        original(caches, blocks, copies)

    copy.kvsan_hook = True  # type: ignore[attr-defined]  # a mark on a function object
    return copy


def _in(group: int) -> dict[str, object]:
    return {"group": str(group)} if group else {}


# The forward pass ------------------------------------------------------------------------------------------------


def _prepared(runner: Any, _: Any, scheduler_output: Any, *args: Any, **kwargs: Any) -> None:
    """The batch is laid out: tell the worker's tables, and keep what the launch needs."""
    if not RECORDERS:
        return
    recorder: Any = RECORDERS[-1]
    batch = runner.input_batch
    names = [recorder.branches.known(request) for request in batch.req_ids]
    if None in names:
        return  # a batch that this scheduler did not make, as in a warm-up
    counts = [int(scheduler_output.num_scheduled_tokens[request]) for request in batch.req_ids]
    starts = [int(count) for count in batch.num_computed_tokens_cpu[: len(names)]]
    known = getattr(runner, "mamba_state_idx", {})
    fresh = {request.req_id for request in scheduler_output.scheduled_new_reqs}
    fresh |= set(scheduler_output.scheduled_cached_reqs.resumed_req_ids)
    states = {row: known[r] for row, r in enumerate(batch.req_ids) if r in known and r not in fresh}
    setattr(runner, BATCH, Batch(scheduler_output, names, starts, counts, states))
    for group in range(recorder.book.groups):
        if not _of_states(recorder, group):
            _tell_tables(runner, recorder, names, group)


def _around_forward(original: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    batch = getattr(self, BATCH, None)
    if batch is not None and RECORDERS:
        setattr(self, BATCH, None)
        WATCH.run(_launched, self, RECORDERS[-1], batch)
    return original(self, *args, **kwargs)


def _launched(runner: Any, recorder: V1CowRecorder, batch: Batch) -> None:
    op = new_op(recorder, batch.output)
    for group in range(recorder.book.groups):
        told = _states if _of_states(recorder, group) else _attention
        recorder.log.emit("step", op=op, stream=STREAM, **told(runner, recorder, batch, group), **_in(group))


def _attention(runner: Any, recorder: V1CowRecorder, batch: Batch, group: int) -> dict[str, object]:
    slots = runner.input_batch.block_table[group].slot_mapping.gpu[: sum(batch.counts)].tolist()
    size = recorder.managers[group].block_size
    reads = [[name, start + count] for name, start, count in zip(batch.names, batch.starts, batch.counts, strict=True)]
    writes = slot_writes(size, cut(slots, zip(batch.names, batch.counts, strict=True)))
    return {"copies": [], "writes": writes, "reads": reads}


def _states(runner: Any, recorder: V1CowRecorder, batch: Batch, group: int) -> dict[str, object]:
    size, table = recorder.managers[group].block_size, runner.input_batch.block_table[group].block_table.np
    copies: list[list[int]] = []
    writes: list[Write] = []
    for row, (name, start, count) in enumerate(zip(batch.names, batch.starts, batch.counts, strict=True)):
        old, new = batch.states.get(row, (start - 1) // size), -(-(start + count) // size) - 1
        if old not in (-1, new):
            copies.append([int(table[row, old]), int(table[row, new]), 0, size])
        first = max(start, new * size)
        writes.append([name, int(table[row, new]), first - new * size, start + count - new * size])
    return {"copies": copies, "writes": writes, "reads": []}


def _of_states(recorder: V1CowRecorder, group: int) -> bool:
    return type(recorder.managers[group]).__name__ == "MambaManager"


def _tell_tables(runner: Any, recorder: V1CowRecorder, names: list[str], group: int) -> None:
    """The worker's own table, where it has changed. It keeps what fell below a window; there it is not told."""
    views: dict[tuple[str, int], list[int]] = runner.__dict__.setdefault(VIEWS, {})
    table = runner.input_batch.block_table[group]
    for row, name in enumerate(names):
        blocks = table.block_table.np[row, : table.num_blocks_per_row[row]].tolist()
        key = name if group == 0 else f"{name}/{group}"
        if blocks != views.get((name, group)) and None not in recorder.book.rows.get(key, []):
            recorder.log.emit("table", branch=name, blocks=blocks, view="worker", **_in(group))
        views[name, group] = blocks
