"""Drives of the V0 block managers: what the scheduler would call, in its order."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from kvsan.traces.engines.releases import v0_prefix, v0_ring
from kvsan.traces.engines.releases.ledger import Sink

BLOCK_SIZE = 4


def new_sequence(sequence: Any, seq_id: int, prompt: list[int]) -> Any:
    if "inputs" in inspect.signature(sequence).parameters:  # from 0.4.3
        return sequence(seq_id, {"prompt": "", "prompt_token_ids": prompt}, BLOCK_SIZE)
    return sequence(seq_id, "", prompt, BLOCK_SIZE)


class Driver:
    """A scheduler in miniature over one manager: the admission test first, then the call."""

    def __init__(self, manager: Any) -> None:
        self.manager = manager
        self.sequence = importlib.import_module("vllm.sequence")
        self.groups: dict[int, Any] = {}

    def admit(self, seq_id: int, prompt: list[int]) -> Any:
        seq = new_sequence(self.sequence.Sequence, seq_id, prompt)
        group = self.sequence.SequenceGroup(str(seq_id), [seq], None, 0.0)
        status = self.manager.can_allocate(group)
        assert status.name == "OK", f"the scheduler would not admit {seq_id}: {status}"
        self.manager.allocate(group)
        seq.status = self.sequence.SequenceStatus.RUNNING
        self.groups[seq_id] = group
        return seq

    def fork(self, parent: Any, seq_id: int) -> Any:
        child = parent.fork(seq_id)
        self.groups[parent.seq_id].add(child)
        self.manager.fork(parent, child)
        return child

    def append(self, seq: Any, token: int) -> None:
        logprob = getattr(self.sequence, "Logprob", float)(0.0)
        seq.append_token_id(token, {token: logprob})
        if hasattr(self.manager, "append_slots"):
            self.manager.append_slots(seq, 0)
        else:
            self.manager.append_slot(seq)

    def finish(self, seq: Any) -> None:
        self.manager.free(seq)


def ring_fork_then_free(sink: Sink) -> None:
    """A prompt that fills the window, forked; the child wraps around, and ends first."""
    manager = v0_ring.manager_class()(BLOCK_SIZE, 8, 0, watermark=0.0, sliding_window=2 * BLOCK_SIZE)
    ledger, driver = v0_ring.watch(manager, sink), Driver(manager)
    parent = driver.admit(0, list(range(2 * BLOCK_SIZE)))
    child = driver.fork(parent, 1)
    driver.append(child, 100)
    driver.finish(child)
    other = driver.admit(2, list(range(200, 205)))
    driver.finish(parent)
    try:
        driver.finish(other)
    except ValueError as problem:  # the engine notices here, three calls after the fault
        sink.emit("x_engine_error", x_text=type(problem).__name__)
        return
    ledger.quiescent()


def ring_fork_of_a_wrapped_table(sink: Sink) -> None:
    """A prompt longer than the window: every block sits at two positions when the table is forked."""
    manager = v0_ring.manager_class()(BLOCK_SIZE, 8, 0, watermark=0.0, sliding_window=2 * BLOCK_SIZE)
    ledger, driver = v0_ring.watch(manager, sink), Driver(manager)
    parent = driver.admit(0, list(range(4 * BLOCK_SIZE - 1)))
    child = driver.fork(parent, 1)
    driver.finish(child)
    driver.finish(parent)
    ledger.quiescent()


def evicted_block_keeps_its_hash(sink: Sink) -> None:
    """A cached block goes to another sequence as its writable tail; the cached prompt then comes again."""
    manager = v0_prefix.manager_class()(BLOCK_SIZE, 4, 0, watermark=0.0, enable_caching=True)
    ledger, driver = v0_prefix.watch(manager, sink), Driver(manager)
    cached = list(range(BLOCK_SIZE))
    driver.finish(driver.admit(0, cached))
    short = driver.admit(1, list(range(100, 105)))
    writer = driver.admit(2, list(range(200, 205)))
    driver.finish(short)
    again = driver.admit(3, cached)
    driver.append(writer, 205)
    driver.finish(writer)
    driver.finish(again)
    ledger.quiescent()
