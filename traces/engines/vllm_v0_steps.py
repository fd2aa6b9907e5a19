"""Device work of vLLM 0.6.2 (V0): one `step` for each launch of the model, and what the host learns of it.

A launch is what the worker runs for one scheduling round: the copies of copy-on-write, then the forward pass, which
writes the slots of its slot mapping and reads each sequence. All of it is queued on one stream. Copies are those that
the worker hands to its cache engine, not those that the scheduler asked for: a worker that forgets them is told as it
is. The slots written come from the mapping that the kernel gets, the branches from the scheduler's request.

`done` is logged when the model runner returns with its sampled tokens: that is when the host has learned it.
Not recorded: multi-step scheduling, which launches more than it returns for. There the recording ends with a word.
"""

from __future__ import annotations

import contextlib
import importlib
from dataclasses import dataclass, field
from typing import Any  # an engine's objects carry no types that we could import here

from kvsan.traces.engines.hooks import WATCH, after, wrap
from kvsan.traces.engines.launches import STREAM, cut, slot_writes
from kvsan.traces.engines.vllm_v0_recorder import RECORDERS, V0Recorder

RUNNERS = (("vllm.worker.cpu_model_runner", "CPUModelRunner"), ("vllm.worker.model_runner", "ModelRunner"))
CACHES = (("vllm.worker.cpu_worker", "CPUCacheEngine"), ("vllm.worker.cache_engine", "CacheEngine"))


@dataclass
class Round:
    """The request that a worker executes, how many stages there are, and the copies [source, target] run for it."""

    request: Any = None
    stages: int = 1
    copies: list[list[int]] = field(default_factory=list)


_current: list[Round] = []  # of the workers of this process that are executing


def install(version: str) -> None:
    """Hook the worker and whichever model runners and cache engines can be imported here."""
    base = importlib.import_module("vllm.worker.worker_base").LocalOrDistributedWorkerBase
    wrap(base, "execute_model", _around_worker)
    for module, name in RUNNERS:
        with contextlib.suppress(ImportError):
            wrap(getattr(importlib.import_module(module), name), "execute_model", _around_runner)
    for module, name in CACHES:
        with contextlib.suppress(ImportError):
            after(getattr(importlib.import_module(module), name), "copy", _copied)


def _around_worker(original: Any, self: Any, execute_model_req: Any = None) -> Any:
    _current.append(Round(execute_model_req, self.parallel_config.pipeline_parallel_size))
    try:
        return original(self, execute_model_req)
    finally:
        _current.pop()


def _copied(_self: Any, _result: None, pairs: Any) -> None:
    """pairs: [copies, 2], source and target."""
    if _current:
        _current[-1].copies += pairs.tolist()


def _around_runner(original: Any, self: Any, model_input: Any, *args: Any, **kwargs: Any) -> Any:
    current = _current[-1] if _current else Round()
    recorder = _recorder(current.request, current.stages)
    op = None
    if recorder is not None:
        op = WATCH.run(_launch, recorder, current, model_input, kwargs.get("num_steps", 1))
    result = original(self, model_input, *args, **kwargs)
    if recorder is not None and op is not None:
        WATCH.run(lambda: recorder.log.emit("done", op=op))
    return result


def _recorder(request: Any, stages: int) -> V0Recorder | None:
    """The recorder of the block manager that scheduled this request; none while the engine measures its memory.

    An engine has one manager for each pipeline stage. Of several engines in one process the latest is meant.
    """
    latest = RECORDERS[-stages:]
    if request is None or WATCH.broken or request.virtual_engine >= len(latest):
        return None
    recorder: V0Recorder = latest[request.virtual_engine]
    return recorder


def _launch(recorder: V0Recorder, current: Round, model_input: Any, steps: int) -> str | None:
    """Write the step. Returns its op, or None where the batch is not the manager's (a warm-up)."""
    if steps != 1:
        raise NotImplementedError("multi-step scheduling launches more than it returns for")
    lengths = []
    for group in current.request.seq_group_metadata_list:
        for number, data in group.seq_data.items():
            branch = recorder.branches.known(number)
            if branch is None:
                return None
            lengths.append((branch, min(data.get_len(), data.get_num_computed_tokens() + group.token_chunk_size)))
    slots: list[int] = model_input.attn_metadata.slot_mapping.flatten().tolist()
    counts = model_input.query_lens or [1] * len(lengths)
    written = cut(slots, zip([branch for branch, _ in lengths], counts, strict=True))
    recorder.launches += 1
    op = f"s{recorder.launches}"
    recorder.log.emit(
        "step", op=op, stream=STREAM,
        copies=[[source, target, 0, recorder.block_size] for source, target in current.copies],
        writes=slot_writes(recorder.block_size, written),
        reads=[[branch, length] for branch, length in lengths],
    )  # fmt: skip
    return op
