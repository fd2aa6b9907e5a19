"""Device work of vLLM 0.9.1's V1 runner, where it runs in the process of the scheduler (one worker, no pipeline).

A launch is one forward pass: it writes the slots of its slot mapping and reads each request; in every layer the writes
come first, which is why a request may hit in the same step what another is about to write. `done` is logged when the
runner returns with its sampled tokens.

The worker keeps block tables of its own, built from what the scheduler sends it. They are logged as the view `worker`
whenever they have changed; below a sliding window they keep what the scheduler has dropped, so there they are not.
"""

from __future__ import annotations

import contextlib
import importlib
from typing import Any  # an engine's objects carry no types that we could import here

from kvsan.traces.engines.hooks import WATCH, after, wrap
from kvsan.traces.engines.launches import STREAM, cut, slot_writes
from kvsan.traces.engines.vllm_v1_recorder import RECORDERS, V1Recorder

OP = "kvsan_op"  # attribute on runners: the launch that is being prepared
VIEWS = "kvsan_views"  # attribute on runners: the tables as last told


def install(version: str) -> None:
    """Hook the model runner, unless it cannot be imported here: then nothing can be launched either."""
    with contextlib.suppress(ImportError):
        runner = importlib.import_module("vllm.v1.worker.gpu_model_runner").GPUModelRunner
        after(runner, "_prepare_inputs", _prepared)
        wrap(runner, "execute_model", _around_execute)


def _around_execute(original: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    setattr(self, OP, None)
    result = original(self, *args, **kwargs)
    op = getattr(self, OP)
    if op is not None:
        WATCH.run(lambda: RECORDERS[-1].log.emit("done", op=op))
    return result


def _prepared(runner: Any, _: Any, scheduler_output: Any) -> None:
    """The batch is laid out: tell the worker's tables and the launch that follows."""
    if not RECORDERS:
        return
    recorder = RECORDERS[-1]
    if recorder.book.groups > 1:
        return  # a slot mapping for each group: not recorded yet
    batch = runner.input_batch
    names = [recorder.branches.known(request) for request in batch.req_ids]
    known = [name for name in names if name is not None]
    if len(known) != len(names):
        return  # a batch that this scheduler did not make
    counts = [scheduler_output.num_scheduled_tokens[request] for request in batch.req_ids]
    starts = [int(count) for count in batch.num_computed_tokens_cpu[: len(names)]]
    _tell_tables(runner, recorder, known)
    slots = batch.block_table[0].slot_mapping_np[: sum(counts)].tolist()
    recorder.launches += 1
    op = f"s{recorder.launches}"
    setattr(runner, OP, op)
    recorder.log.emit(
        "step", op=op, stream=STREAM, copies=[],
        writes=slot_writes(recorder.manager.block_size, cut(slots, zip(known, counts, strict=True))),
        reads=[[name, start + count] for name, start, count in zip(known, starts, counts, strict=True)],
    )  # fmt: skip


def _tell_tables(runner: Any, recorder: V1Recorder, names: list[str]) -> None:
    told: dict[str, list[int]] = getattr(runner, VIEWS, {})
    table = runner.input_batch.block_table[0]
    views = {}
    for row, name in enumerate(names):
        blocks = table.block_table_np[row, : table.num_blocks_per_row[row]].tolist()
        views[name] = blocks
        if blocks != told.get(name) and None not in recorder.book.rows.get(name, []):
            recorder.log.emit("table", branch=name, blocks=blocks, view="worker")
    setattr(runner, VIEWS, views)
