"""Speculative decoding: a step writes the last sampled token and some drafts, and what is rejected is rolled back.

A branch prepares a step (how many drafts, which blocks), launches it, and is told how many drafts are kept. The step
writes the drafts' slots before anybody knows whether they stand: until then they are proposed, not the branch's tokens.
Preparing takes blocks for every slot that the step writes, one at a time, and a copy of a tail that others share.

Which tables (`append_only`, a choice of the discipline):
    paged        PagedAttention and vLLM V0: branches fork at any time but share accepted tokens only; lookahead blocks
                 are given back at once; the scheduler promises each step its blocks, copies included (`reserve`)
    append-only  vLLM 0.9.1 V1: full blocks of accepted tokens are sealed, and hit by requests that begin or resume;
                 lookahead blocks stay in the table for the next step; nothing is promised, so that the pool may be
                 found empty. Every request has the same prompt and decoding is greedy: the same place, the same token

One compute stream takes every copy and step. Of a table's positions the last is never used: where a rollback is judged,
the ledger looks one block past what the step may write (`capacity`).
"""

from __future__ import annotations

from kvsan.spec.lang.surface import (
    action,
    counted,
    empty,
    excess,
    helper,
    initial,
    invariant,
    members,
    require,
    row,
    some,
    span,
    witness,
)
from kvsan.spec.ownership.blocks import alloc_failed
from kvsan.spec.ownership.branches import accept, admit, fork, map, unmap
from kvsan.spec.ownership.identities import hit
from kvsan.spec.ownership.quiescence import quiescent
from kvsan.spec.ownership.state import Block, Branch, Identity, Tokens

from .contents import was_forked
from .device import COMPUTE, COPY_WORK, STEP_WORK, launch_copy, learn, nothing_runs
from .lookahead import (
    ACCEPT_AFTER_CANCEL,
    ACCEPT_ONE_MORE,
    DRAFTS_WITHOUT_COPY,
    FAILURE_KEEPS_BLOCKS,
    FORK_AS_ACCEPTED,
    FORK_SHARES_LOOKAHEAD,
    IDLE,
    OUT,
    READ_REJECTED,
    ROLLBACK_DROPS_TAIL,
    ROLLBACK_KEEPS_BLOCKS,
    SEAL_REJECTED,
    STEPPING,
    TAKING,
    WAITING,
    WINDOW_ON_DRAFTS,
    Speculative,
    blocks_for,
    blocks_of_step,
    can_promise,
    draw,
    give_back_taken,
    leave_pool,
    leave_window,
    promise,
    promise_for,
    seal_full,
    settled_contents,
    start_step,
    tail_is_shared,
)
from .prompt_contents import prompt_was_copied, shows_right
from .returns import release
from .start import fill_pool


@helper
def step_is_pending(s: Speculative, r: Branch) -> bool:
    """A step of branch r is prepared, be it a prefill, or under way."""
    return s.phase[r] == TAKING or s.phase[r] == STEPPING


# --- the machine ------------------------------------------------------------------------------------------------------


@initial
def empty_pool(s: Speculative) -> None:
    """Nobody is there, every block is free, and nothing is cached."""
    fill_pool(s)
    s.hash_of[0], s.hash_of[1] = Identity(0), Identity(1)


@action
def admit_branch(s: Speculative, r: Branch) -> None:
    """A request arrives with its prompt."""
    require(s.phase[r] == OUT)
    require(not s.running[STEP_WORK, r] and not s.running[COPY_WORK, r], "work under way is known by its branch's name")
    require(can_promise(s, blocks_for(s, r, s.prompt)))

    admit(s, r, s.prompt)
    promise(s, r, blocks_for(s, r, s.prompt))
    s.phase[r] = TAKING
    s.present += 1


@action
def prepare_step(s: Speculative, r: Branch, drafts: Tokens) -> None:
    """The scheduler plans a step of the last sampled token and so many drafts."""
    require(s.phase[r] == IDLE)
    require(drafts <= s.lookahead and s.computed[r] + 1 + drafts <= s.capacity)
    require(can_promise(s, promise_for(s, r, drafts)))

    promise(s, r, promise_for(s, r, drafts))
    s.drafts[r], s.phase[r] = drafts, TAKING


@action
def find_block(s: Speculative, r: Branch, b: Block, h: Identity) -> None:
    """The next full block of a branch that begins or resumes is in the cache; its last token is always computed."""
    require(s.append_only)
    require(
        s.phase[r] == TAKING, "a branch that waits looks blocks up when it resumes; what it found before it would hold"
    )
    require(s.filled[r] * s.block_size[r] == s.computed[r])
    require((s.filled[r] + 1) * s.block_size[r] < s.length[r])
    require(s.hash_of[s.filled[r]] == h and s.carried[b, h] != empty())

    hit(s, b, h, r, None, None, None)
    map(s, r, s.filled[r], b)
    s.filled[r] += 1
    s.computed[r] += s.block_size[r]


@action
def take_block(s: Speculative, r: Branch, b: Block) -> None:
    """The step needs a block more than the branch has."""
    require(s.phase[r] == TAKING)
    require(s.filled[r] < blocks_of_step(s, r))
    require(not s.held[b])

    draw(s, r, b)
    s.taken_for[r, s.filled[r]] = b
    s.filled[r] += 1


@action
def find_pool_empty(s: Speculative, r: Branch) -> None:
    """The step needs a block and there is none: the step is off, and what was taken for it is given back."""
    require(s.phase[r] == TAKING)
    require(s.filled[r] < blocks_of_step(s, r))
    require(s.free[s.home] == 0 and s.shortages < s.failures)

    alloc_failed(s, r)
    if s.mutant != FAILURE_KEEPS_BLOCKS:
        give_back_taken(s, r)
    s.drafts[r] = 0
    s.phase[r] = TAKING if s.computed[r] < s.length[r] else IDLE


@action
def launch_in_place(s: Speculative, r: Branch) -> None:
    """The branch has a block for every slot of the step, and the tail to itself."""
    require(s.phase[r] == TAKING)
    require(s.filled[r] >= blocks_of_step(s, r))
    require(not tail_is_shared(s, r) or (s.mutant == DRAFTS_WITHOUT_COPY and s.drafts[r] > 0))

    start_step(s, r)


@action
def launch_in_copy(s: Speculative, r: Branch, b: Block) -> None:
    """The branch has a block for every slot of the step, and takes one more for a copy of the tail that it shares."""
    require(s.phase[r] == TAKING)
    require(s.filled[r] >= blocks_of_step(s, r))
    require(tail_is_shared(s, r))
    require(not s.held[b])

    p, used = s.computed[r] // s.block_size[r], s.computed[r] % s.block_size[r]
    old_tail = some(s.table[r, p])
    draw(s, r, b)
    launch_copy(s, r, old_tail, b, used, COMPUTE)
    prompt_was_copied(s, old_tail, b, span(0, used))
    map(s, r, p, b)
    start_step(s, r)


@action
def verify(s: Speculative, r: Branch, kept: Tokens) -> None:
    """The host has seen the step complete: so many drafts are kept, the others rolled back."""
    require(s.phase[r] == STEPPING)
    require(kept <= s.proposed[r] or (s.mutant == ACCEPT_ONE_MORE and kept == s.proposed[r] + 1 and kept > 1))

    before, end = s.length[r], s.length[r] + s.proposed[r]
    learn(s, STEP_WORK, r)
    if before < end:
        accept(s, r, kept)
    settled_contents(s, r, before)
    if s.mutant == SEAL_REJECTED:
        seal_full(s, r, end)
    if s.returns_lookahead and before < end and s.mutant != ROLLBACK_KEEPS_BLOCKS:
        for p in row(s.table, r):
            b = some(s.table[r, p])
            if (p + (1 if s.mutant == ROLLBACK_DROPS_TAIL else 0)) * s.block_size[r] >= s.length[r]:
                unmap(s, r, p, b)
                release(s, b)
        s.filled[r] = blocks_for(s, r, s.length[r])
    leave_window(s, r, s.length[r], s.mutant != WINDOW_ON_DRAFTS)
    s.computed[r] = end if s.mutant == READ_REJECTED else s.length[r]
    s.phase[r] = IDLE


@action
def fork_branch(s: Speculative, r: Branch, c: Branch) -> None:
    """A branch splits, a step of it under way or not: the child has its tokens, and none of its drafts."""
    require(not s.append_only, "vLLM 0.9.1 V1 has no forks; with them, its tables would be copied on write as V0's")
    require(s.phase[r] == IDLE or s.phase[r] == STEPPING)
    require(s.phase[c] == OUT)
    require(not s.running[STEP_WORK, c] and not s.running[COPY_WORK, c], "work under way is known by its branch's name")

    whole = s.mutant == FORK_AS_ACCEPTED or s.mutant == FORK_SHARES_LOOKAHEAD
    if whole:
        fork(s, c, r, None)
    else:
        fork(s, c, r, s.length[r])
    s.filled[c] = s.filled[r] if whole else blocks_for(s, r, s.length[r])
    s.computed[c] = s.length[r] + (s.proposed[r] if s.mutant == FORK_AS_ACCEPTED else 0)
    was_forked(s, r, c)
    settled_contents(s, c, s.length[c])
    s.phase[c] = IDLE
    s.present += 1


@action
def end_branch(s: Speculative, r: Branch) -> None:
    """A branch finishes or is cancelled, whatever of it is prepared or under way."""
    require(s.phase[r] != OUT)

    leave_pool(s, r, False)
    s.present = excess(s.present, 1)


@action
def preempt_branch(s: Speculative, r: Branch) -> None:
    """A branch gives its blocks back and waits; its tokens will be computed again."""
    require(s.phase[r] == IDLE)

    leave_pool(s, r, True)
    s.phase[r] = WAITING


@action
def resume_branch(s: Speculative, r: Branch) -> None:
    """A preempted branch comes back."""
    require(s.phase[r] == WAITING)
    require(can_promise(s, blocks_for(s, r, s.length[r])))

    promise(s, r, blocks_for(s, r, s.length[r]))
    s.phase[r] = TAKING


@action
def learn_late(s: Speculative, r: Branch) -> None:
    """The host has seen the step of a branch complete that is gone."""
    require(
        s.phase[r] == OUT, "the host looks at the step of a branch where it waits for it; on one stream it need not"
    )
    require(s.running[STEP_WORK, r])

    learn(s, STEP_WORK, r)
    if s.mutant == ACCEPT_AFTER_CANCEL:
        accept(s, r, s.lookahead)


@action
def settle(s: Speculative) -> None:
    """Every branch is gone and nothing runs: nothing may be held any more."""
    require(s.present == 0 and nothing_runs(s))

    quiescent(s)


# --- what holds -------------------------------------------------------------------------------------------------------


@invariant
def view_intact(s: Speculative) -> bool:
    """At rest, what a branch finds written below its length is its own accepted tokens, at their places."""
    return all(
        s.phase[r] != IDLE or shows_right(s, r, p, s.length[r]) for r in members(Branch, s) for p in row(s.table, r)
    )


@witness
def can_keep_all(s: Speculative) -> bool:
    """Every draft of a step is kept, the last of them the first token of a block."""
    return any(
        s.rolled_back[r] and s.stale_to[r] == 0 and s.length[r] % s.block_size[r] == 1 for r in members(Branch, s)
    )


@counted
def present_counted(s: Speculative, r: Branch) -> bool:
    """`present` is the number of branches that have come and not gone.

    Source: ours.
    Catches: a pool that settles while somebody is there.
    Except: none.
    Deviates: none.
    """
    return s.phase[r] != OUT


@witness
def can_keep_none(s: Speculative) -> bool:
    """As many drafts as a step can have are rolled back."""
    return any(
        s.rolled_back[r] and s.stale_from[r] == s.length[r] and s.stale_to[r] == s.length[r] + s.lookahead
        for r in members(Branch, s)
    )


@witness
def can_give_block_back(s: Speculative) -> bool:
    """A rolled-back draft had a block of its own, which is gone from the table."""
    return any(
        s.phase[r] == IDLE and s.stale_to[r] > 0 and s.table[r, excess(s.stale_to[r], 1) // s.block_size[r]] is None
        for r in members(Branch, s)
    )


@witness
def can_keep_block(s: Speculative) -> bool:
    """A rolled-back draft had a block of its own, which stays in the table."""
    return any(
        s.phase[r] == IDLE
        and s.stale_to[r] > s.block_size[r] * blocks_for(s, r, s.length[r])
        and s.table[r, excess(s.stale_to[r], 1) // s.block_size[r]] is not None
        for r in members(Branch, s)
    )


@witness
def can_cancel_drafts(s: Speculative) -> bool:
    """A step outlives its branch."""
    return any(s.phase[r] == OUT and s.running[STEP_WORK, r] for r in members(Branch, s))


@witness
def can_speculate_together(s: Speculative) -> bool:
    """Every branch has drafts under way."""
    return all(s.proposed[r] > 0 for r in members(Branch, s))


@witness
def can_speculate_apart(s: Speculative) -> bool:
    """Two branches that share a block both have drafts under way."""
    return any(s.owners[b] > 1 for b in members(Block, s)) and all(s.proposed[r] > 0 for r in members(Branch, s))


@witness
def can_resume_by_hit(s: Speculative) -> bool:
    """A branch that was preempted finds a block of what it had."""
    return any(
        s.phase[r] == TAKING and s.computed[r] > 0 and s.prompt < s.length[r] and s.computed[r] < s.length[r]
        for r in members(Branch, s)
    )


@witness
def can_rest(s: Speculative) -> bool:
    """Every branch is gone and nothing runs: nothing is left to do."""
    return s.present == 0 and nothing_runs(s)
