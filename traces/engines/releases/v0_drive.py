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
        offered = {"request_id": str(seq_id), "seqs": [seq], "sampling_params": None, "arrival_time": 0.0}
        group = self.sequence.SequenceGroup(**offered)
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
        self.sample(seq, token)
        if hasattr(self.manager, "append_slots"):
            self.manager.append_slots(seq, 0)
        else:
            self.manager.append_slot(seq)

    def sample(self, seq: Any, token: int) -> None:
        """The model's token, before it has a slot."""
        logprob = getattr(self.sequence, "Logprob", float)(0.0)
        seq.append_token_id(token, {token: logprob})

    def decode(self, *seqs: Any) -> None:
        """One step: every sequence samples; then each gets its slot, and the last is swapped out if that needs it."""
        running = list(seqs)
        for seq in seqs:
            self.sample(seq, 100 + seq.get_len())
        for seq in seqs:
            while seq in running and not self.manager.can_append_slots(self.groups[seq.seq_id], 0):
                self.swap_out(running.pop())
            if seq in running:
                self.manager.append_slots(seq, 0)

    def swap_out(self, seq: Any) -> None:
        group = self.groups[seq.seq_id]
        assert self.manager.can_swap_out(group)
        self.manager.swap_out(group)
        seq.status = self.sequence.SequenceStatus.SWAPPED

    def swap_in(self, seq: Any) -> bool:
        """What the scheduler does when its turn comes: asks, and on a yes swaps in and appends what was sampled."""
        group = self.groups[seq.seq_id]
        if self.manager.can_swap_in(group, 0).name != "OK":
            return False
        self.manager.swap_in(group)
        seq.status = self.sequence.SequenceStatus.RUNNING
        self.manager.append_slots(seq, 0)
        return True

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


def swap_in_of_cached_blocks(sink: Sink) -> None:
    """A sequence is swapped in while its GPU blocks are cached still: free, and what it will take."""
    manager = v0_prefix.manager_class()(BLOCK_SIZE, 5, 5, watermark=0.0, enable_caching=True)
    ledger, driver = v0_prefix.watch(manager, sink), Driver(manager)
    first, swapped = driver.admit(0, list(range(4))), driver.admit(1, list(range(10, 25)))
    driver.decode(first, swapped)
    if _resume(driver, sink, swapped, [first]):
        ledger.quiescent()


def swap_in_with_a_sampled_token(sink: Sink) -> None:
    """A sequence is swapped out with a token that has no slot yet; its blocks are full."""
    manager = v0_prefix.manager_class()(BLOCK_SIZE, 5, 5, watermark=0.0, enable_caching=True)
    ledger, driver = v0_prefix.watch(manager, sink), Driver(manager)
    first, second = driver.admit(0, list(range(8))), driver.admit(1, list(range(10, 14)))
    swapped = driver.admit(2, list(range(20, 28)))
    driver.decode(first, second, swapped)
    driver.finish(second)
    if _resume(driver, sink, swapped, [first]):
        ledger.quiescent()


def fork_behind_a_window(sink: Sink, mended: bool) -> None:
    """A sequence whose first block left the window is forked once that block is another's."""
    manager = v0_prefix.manager_class()(BLOCK_SIZE, 8, 0, watermark=0.0, sliding_window=BLOCK_SIZE)
    null = manager.block_allocator.allocate_or_get_null_block()  # taken at first use; now, so that it is block 0
    ledger, driver = v0_prefix.watch(manager, sink), Driver(manager)
    parent = driver.admit(0, list(range(17)))
    parent.data.update_num_computed_tokens(17)
    driver.append(parent, 100)
    other = driver.admit(1, [200, 201, 202])
    if mended:  # the link of the first block inside the window leads to the null block, as the table has it
        manager.block_tables[0].blocks[1]._prev_block = null
    child = driver.fork(parent, 2)
    for seq in (other, child, parent):
        driver.finish(seq)
    ledger.quiescent()


def _resume(driver: Driver, sink: Sink, swapped: Any, others: list[Any]) -> bool:
    """Swap in as soon as the manager says yes; each no lets another sequence finish first. False: the engine died."""
    try:
        while not driver.swap_in(swapped):
            driver.finish(others.pop())
    except Exception as problem:
        if type(problem).__name__ != "NoFreeBlocksError":
            raise
        sink.emit("x_engine_error", x_text="NoFreeBlocksError")
        return False
    for seq in [*others, swapped]:
        driver.finish(seq)
    return True
