"""Scenarios for vLLM's V0 block manager (0.6.2 and 0.9.1), driven as its scheduler drives it, without a model.

The manager, its allocators and its evictor are the engine's own. We stand in for the scheduler's loop and for the
sampler: which branch runs, and which token it gets. Nothing is launched, so these logs show no writes and no reads.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any  # an engine's objects carry no types that we could import here

BLOCK_SIZE = 4


class Manager:
    """One V0 block manager and the sequences that run on it."""

    def __init__(self, blocks: int, cpu_blocks: int = 0, caching: bool = False, window: int | None = None) -> None:
        try:
            kind = importlib.import_module("vllm.core.block_manager_v2").BlockSpaceManagerV2
        except ModuleNotFoundError:
            kind = importlib.import_module("vllm.core.block_manager").SelfAttnBlockSpaceManager
        self.caching = caching
        self.manager = kind(
            BLOCK_SIZE, blocks, cpu_blocks, watermark=0.0, enable_caching=caching, sliding_window=window
        )
        self.sequences = importlib.import_module("vllm.sequence")
        self.params = importlib.import_module("vllm").SamplingParams()
        self.ids = 0

    def _id(self) -> int:
        self.ids += 1
        return self.ids

    def request(self, prompt: list[int]) -> Any:
        """A group of one waiting sequence."""
        inputs: dict[str, object] = {
            "type": "token",
            "prompt_token_ids": prompt,
            "prompt": None,
            "multi_modal_data": {},
        }
        number = self._id()
        seq = self.sequences.Sequence(number, inputs, BLOCK_SIZE)
        return self.sequences.SequenceGroup(str(number), [seq], arrival_time=0.0, sampling_params=self.params)

    def admit(self, group: Any) -> Any:
        """Allocate a waiting group and set it running; its one sequence."""
        self._look_up(*group.get_seqs())
        self.manager.allocate(group)
        for seq in group.get_seqs():
            self._status(seq, "RUNNING")
            seq.data.update_num_computed_tokens(seq.get_len())
        return group.get_seqs()[0]

    def _look_up(self, *seqs: Any) -> None:
        """0.9.1 counts cached tokens in every round of its scheduler, and its manager insists on having done so."""
        for seq in seqs:
            if self.caching and hasattr(self.manager, "get_num_cached_tokens"):
                self.manager.get_num_cached_tokens(seq)

    def start(self, prompt: list[int]) -> Any:
        return self.admit(self.request(prompt))

    def _status(self, seq: Any, name: str) -> None:
        seq.status = getattr(self.sequences.SequenceStatus, name)

    def computed(self, *groups: Any) -> None:
        """The step that prefilled these groups has been scheduled: its full blocks count as computed."""
        for group in groups:
            self.manager.mark_blocks_as_computed(group, 0)

    def fork(self, seq: Any) -> Any:
        child = seq.fork(self._id())
        self.manager.fork(seq, child)
        self._look_up(child)
        return child

    def join(self, group: Any, child: Any) -> None:
        """Make a forked branch part of its group."""
        if hasattr(group, "add"):
            group.add(child)
        else:  # 0.9.1 has lost the call together with its engine's use of forks
            group.seqs.append(child)
            group.seqs_dict[child.seq_id] = child
            group.is_single_seq = False

    def decode(self, seq: Any, token: int, lookahead: int = 0) -> list[tuple[int, int]]:
        """The sampler gave `token`; the scheduler appends it. Returns the copies to run, as (source, target)."""
        logprob = importlib.import_module("vllm.sequence").Logprob(0.0)
        seq.append_token_id(token, {token: logprob})
        copies = list(self.manager.append_slots(seq, lookahead))
        seq.data.update_num_computed_tokens(1)
        return copies

    def finish(self, seq: Any, status: str = "FINISHED_STOPPED") -> None:
        self._status(seq, status)
        self.manager.free(seq)

    def preempt(self, seq: Any) -> None:
        """Preemption by recomputation, as `Scheduler._preempt_by_recompute` does it."""
        self._status(seq, "WAITING")
        self.manager.free(seq)
        seq.reset_state_for_recompute()

    def swap_out(self, group: Any) -> None:
        self.manager.swap_out(group)
        for seq in group.get_seqs():
            self._status(seq, "SWAPPED")

    def swap_in(self, group: Any) -> None:
        self.manager.swap_in(group)
        for seq in group.get_seqs():
            self._status(seq, "RUNNING")


def _writers(prompt: list[int], count: int, tokens: int) -> None:
    """One prompt, forked to `count` branches that each append `tokens` of their own, then end one by one."""
    m = Manager(blocks=24)
    first = m.start(prompt)
    branches = [first, *(m.fork(first) for _ in range(count - 1))]
    for step in range(tokens):
        for number, seq in enumerate(branches):
            m.decode(seq, 100 * (number + 1) + step)
    for seq in branches:
        m.finish(seq)


def fork_three() -> None:
    """A partial tail (6 tokens in blocks of 4) shared by three writers: two copy, the last one owns it alone."""
    _writers(list(range(6)), count=3, tokens=4)


def fork_five() -> None:
    """A partial tail shared by five writers: four copies."""
    _writers(list(range(6)), count=5, tokens=4)


def full_prompt() -> None:
    """An exactly full prompt (8 tokens): nothing to copy, each branch takes a block of its own."""
    _writers(list(range(8)), count=3, tokens=3)


def one_slot_tail() -> None:
    """A tail with one free slot (7 tokens): each writer fills its copy at once and goes on in a new block."""
    _writers(list(range(7)), count=3, tokens=3)


def cancel_midway() -> None:
    """Three branches on a shared tail; the second is cancelled while the others go on."""
    m = Manager(blocks=24)
    first = m.start(list(range(6)))
    second, third = m.fork(first), m.fork(first)
    for number, seq in enumerate((first, second, third)):
        m.decode(seq, 100 + number)
    m.finish(second, "FINISHED_ABORTED")
    for step in range(4):
        m.decode(first, 200 + step)
        m.decode(third, 300 + step)
    m.finish(first)
    m.finish(third)


def cancel_before_copy() -> None:
    """A branch is cancelled while its tail is still shared: nobody needs to copy any more."""
    m = Manager(blocks=24)
    first = m.start(list(range(6)))
    second = m.fork(first)
    m.finish(first, "FINISHED_ABORTED")
    for step in range(4):
        m.decode(second, 200 + step)
    m.finish(second)


def prune_beams() -> None:
    """Beam search by hand: in every round the worse beam ends and the better one forks in its place."""
    m = Manager(blocks=24)
    beams = [m.start(list(range(6)))]
    beams.append(m.fork(beams[0]))
    for step in range(5):
        for number, seq in enumerate(beams):
            m.decode(seq, 100 * (number + 1) + step)
        keep, drop = beams if step % 2 else reversed(beams)
        child = m.fork(keep)
        m.finish(drop)
        beams = [keep, child]
    for seq in beams:
        m.finish(seq)


def prefix_hit() -> None:
    """A prompt of two full blocks is cached; two later requests hit both blocks."""
    m = Manager(blocks=16, caching=True)
    prompt = list(range(9))
    group = m.request(prompt)
    first = m.admit(group)
    m.computed(group)
    m.decode(first, 50)
    others = [m.start([*prompt, 60 + number]) for number in (1, 2)]
    for number, seq in enumerate(others):
        m.decode(seq, 70 + number)
    for seq in (first, *others):
        m.finish(seq)


def prefix_hit_same_step() -> None:
    """Two requests with one prompt in one step: the second hits what the first has only been scheduled to write."""
    m = Manager(blocks=16, caching=True)
    groups = [m.request(list(range(9))) for _ in range(2)]
    seqs = [m.admit(group) for group in groups]
    m.computed(*groups)
    for number, seq in enumerate(seqs):
        m.decode(seq, 70 + number)
    for seq in seqs:
        m.finish(seq)


def evict_and_reuse() -> None:
    """Cached blocks of an ended request are evicted for others; its prompt then hits only what was kept."""
    m = Manager(blocks=6, caching=True)
    for start, length in ((0, 14), (50, 14), (0, 14)):
        group = m.request(list(range(start, start + length)))
        seq = m.admit(group)
        m.computed(group)
        for step in range(3):
            m.decode(seq, 90 + step)
        m.finish(seq)


def preempt_and_resume() -> None:
    """A request is preempted by recomputation, and later allocated anew with the tokens that it had by then."""
    m = Manager(blocks=16)
    group = m.request(list(range(6)))
    seq, other = m.admit(group), m.start(list(range(50, 58)))
    for step in range(3):
        m.decode(seq, 90 + step)
        m.decode(other, 95 + step)
    m.preempt(seq)
    for step in range(3):
        m.decode(other, 98 + step)
    m.admit(group)
    m.decode(seq, 93)
    m.finish(other)
    m.finish(seq)


def swap_forked_group() -> None:
    """Two branches that share a tail are swapped out and in: each shared block is copied twice, sharing is lost."""
    m = Manager(blocks=16, cpu_blocks=16)
    group = m.request(list(range(10)))
    first = m.admit(group)
    second = m.fork(first)
    m.join(group, second)
    m.decode(first, 90)
    m.decode(second, 91)
    m.swap_out(group)
    m.swap_in(group)
    m.decode(first, 92)
    m.decode(second, 93)
    m.finish(first)
    m.finish(second)


def lookahead() -> None:
    """Speculative lookahead: four slots beyond the known tokens are held, on a shared tail and after it."""
    m = Manager(blocks=24)
    first = m.start(list(range(6)))
    second = m.fork(first)
    for step in range(4):
        m.decode(first, 80 + step, lookahead=4)
        m.decode(second, 90 + step, lookahead=4)
    m.finish(first)
    m.finish(second)


def equal_full_block() -> None:
    """Two requests decode the same tokens: the second leaves its full block for the equal one in the cache."""
    m = Manager(blocks=16, caching=True)
    seqs = [m.start(list(range(6))) for _ in range(2)]
    for step in range(3):
        for seq in seqs:
            m.decode(seq, 90 + step)
    for seq in seqs:
        m.finish(seq)


def equal_full_block_after_fork() -> None:
    """Two branches fork, copy the tail and fill it with the same tokens: the sole owner of the source deduplicates."""
    m = Manager(blocks=16, caching=True)
    first = m.start(list(range(6)))
    second = m.fork(first)
    for step in range(3):
        for seq in (first, second):
            m.decode(seq, 90 + step)
    for seq in (first, second):
        m.finish(seq)


def sliding_window() -> None:
    """A window of eight tokens: what falls out of it is replaced by the null block and given back."""
    m = Manager(blocks=16, window=8)
    seqs = [m.start(list(range(14))), m.start(list(range(50, 56)))]
    for step in range(14):
        for seq in seqs:
            m.decode(seq, 90 + step)
    for seq in seqs:
        m.finish(seq)


SCENARIOS: dict[str, Callable[[], None]] = {
    scenario.__name__: scenario
    for scenario in (
        fork_three, fork_five, full_prompt, one_slot_tail, cancel_midway, cancel_before_copy, prune_beams, prefix_hit,
        prefix_hit_same_step, evict_and_reuse, preempt_and_resume, swap_forked_group, lookahead, equal_full_block,
        equal_full_block_after_fork, sliding_window,
    )
}  # fmt: skip
