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
    Choice,
    Const,
    Ghost,
    Map,
    Set,
    action,
    empty,
    excess,
    helper,
    initial,
    invariant,
    members,
    require,
    reset,
    row,
    some,
    span,
    witness,
)
from kvsan.spec.ownership.blocks import alloc_failed, free
from kvsan.spec.ownership.branches import (
    accept,
    admit,
    finish,
    fork,
    grow,
    map,
    preempt,
    propose,
    reserve,
    unmap,
    window,
)
from kvsan.spec.ownership.contents import write
from kvsan.spec.ownership.identities import hit, seal
from kvsan.spec.ownership.quiescence import quiescent
from kvsan.spec.ownership.state import Block, Branch, Count, Identity, Pool, Pos, Slot, Tokens

from .contents import Contents, has_ended, was_copied, was_forked, was_written
from .device import (
    COMPUTE,
    COPY_WORK,
    STEP_WORK,
    hand_out,
    launch_copy,
    launch_step,
    learn,
    nothing_runs,
    step_writes,
)
from .start import fill_pool


class Phase(Choice):
    """OUT: no branch. TAKING: it collects blocks for its next step. STEPPING: the step is under way. WAITING:
    preempted."""

    names = ("OUT", "TAKING", "STEPPING", "IDLE", "WAITING")


class Mutant(Choice):
    """The one decision taken wrong; NONE is the right design."""

    names = (
        "NONE",
        "ROLLBACK_KEEPS_BLOCKS",
        "ROLLBACK_DROPS_TAIL",
        "WINDOW_ON_DRAFTS",
        "LOOKAHEAD_NOT_MAPPED",
        "SEAL_PROPOSED",
        "SEAL_REJECTED",
        "READ_REJECTED",
        "ACCEPT_ONE_MORE",
        "ACCEPT_AFTER_CANCEL",
        "PROMISE_WITHOUT_COPY",
        "PROMISE_WITHOUT_LOOKAHEAD",
        "PROMISE_TWICE",
        "FORK_AS_ACCEPTED",
        "FORK_SHARES_LOOKAHEAD",
        "DRAFTS_WITHOUT_COPY",
        "FAILURE_KEEPS_BLOCKS",
        "CANCEL_KEEPS_LOOKAHEAD",
        "CANCEL_KEEPS_TAKEN",
    )


OUT, TAKING, STEPPING = Phase("OUT"), Phase("TAKING"), Phase("STEPPING")
IDLE, WAITING = Phase("IDLE"), Phase("WAITING")

ROLLBACK_KEEPS_BLOCKS = Mutant("ROLLBACK_KEEPS_BLOCKS")
ROLLBACK_DROPS_TAIL = Mutant("ROLLBACK_DROPS_TAIL")
WINDOW_ON_DRAFTS = Mutant("WINDOW_ON_DRAFTS")
LOOKAHEAD_NOT_MAPPED = Mutant("LOOKAHEAD_NOT_MAPPED")
SEAL_PROPOSED = Mutant("SEAL_PROPOSED")
SEAL_REJECTED = Mutant("SEAL_REJECTED")
READ_REJECTED = Mutant("READ_REJECTED")
ACCEPT_ONE_MORE = Mutant("ACCEPT_ONE_MORE")
ACCEPT_AFTER_CANCEL = Mutant("ACCEPT_AFTER_CANCEL")
PROMISE_WITHOUT_COPY = Mutant("PROMISE_WITHOUT_COPY")
PROMISE_WITHOUT_LOOKAHEAD = Mutant("PROMISE_WITHOUT_LOOKAHEAD")
PROMISE_TWICE = Mutant("PROMISE_TWICE")
FORK_AS_ACCEPTED = Mutant("FORK_AS_ACCEPTED")
FORK_SHARES_LOOKAHEAD = Mutant("FORK_SHARES_LOOKAHEAD")
DRAFTS_WITHOUT_COPY = Mutant("DRAFTS_WITHOUT_COPY")
FAILURE_KEEPS_BLOCKS = Mutant("FAILURE_KEEPS_BLOCKS")
CANCEL_KEEPS_LOOKAHEAD = Mutant("CANCEL_KEEPS_LOOKAHEAD")
CANCEL_KEEPS_TAKEN = Mutant("CANCEL_KEEPS_TAKEN")


class Speculative(Contents):
    """The ledger, the device, the contents, and the step that each branch prepares.

    lookahead: drafts of one step at most. window_size: tokens that attention reaches back, itself included; 0: all.
    failures: how often the pool is found empty. home: the pool. hash_of: the identity of a position's tokens.
    computed: tokens whose slots are written or about to be, drafts aside. drafts: of the step that is being prepared.
    filled: positions below have an entry, or had, or a block is taken for them. taken_for: those blocks. spoken_for:
    blocks promised and not yet taken. leaving: what a branch that ends gives back. common: the slots of a block that
    hold what every request has at a position.
    """

    prompt: Const[Tokens]
    capacity: Const[Tokens]
    lookahead: Const[Tokens]
    window_size: Const[Tokens]
    failures: Const[Count]
    home: Const[Pool]
    mutant: Const[Mutant]

    hash_of: Map[Pos, Identity | None]
    phase: Map[Branch, Phase]
    computed: Map[Branch, Tokens]
    drafts: Map[Branch, Tokens]
    filled: Map[Branch, Count]
    taken_for: Map[Branch, Pos, Block | None]
    spoken_for: Count
    leaving: Map[bool, Pos, Block | None]
    present: Count

    common: Ghost[Map[Block, Pos, Set[Slot]]]


# --- words ------------------------------------------------------------------------------------------------------------


@helper
def blocks_for(s: Speculative, r: Branch, tokens: int) -> int:
    """How many blocks hold so many tokens."""
    return (tokens + excess(s.block_size[r], 1)) // s.block_size[r]


@helper
def step_end(s: Speculative, r: Branch) -> int:
    """Where the step that is being prepared ends: all tokens of a prefill, else the sampled one and the drafts."""
    return s.length[r] if s.computed[r] < s.length[r] else s.computed[r] + 1 + s.drafts[r]


@helper
def blocks_of_step(s: Speculative, r: Branch) -> int:
    """How many positions have a block when the step is launched."""
    end = step_end(s, r)
    return blocks_for(s, r, excess(end, s.drafts[r]) if s.mutant == LOOKAHEAD_NOT_MAPPED else end)


@helper
def tail_is_shared(s: Speculative, r: Branch) -> bool:
    """The next token falls into a block that others own too."""
    tail = s.table[r, s.computed[r] // s.block_size[r]]
    return s.computed[r] % s.block_size[r] != 0 and tail is not None and s.owners[tail] > 1


@helper
def promise_for(s: Speculative, r: Branch, drafts: int) -> int:
    """The blocks that the next step of branch r takes from the pool."""
    ahead = 0 if s.mutant == PROMISE_WITHOUT_LOOKAHEAD else drafts
    copies = 1 if tail_is_shared(s, r) and s.mutant != PROMISE_WITHOUT_COPY else 0
    return excess(blocks_for(s, r, s.computed[r] + 1 + ahead), s.filled[r]) + copies


@helper
def can_promise(s: Speculative, blocks: int) -> bool:
    """So many blocks are free that nobody else was promised; who promises nothing never asks."""
    others = 0 if s.mutant == PROMISE_TWICE else s.spoken_for
    return s.append_only or blocks + others <= s.free[s.home]


@helper
def promise(s: Speculative, r: Branch, blocks: int) -> None:
    """The scheduler promises branch r so many blocks, where it makes promises."""
    if not s.append_only:
        reserve(s, r, blocks)
        s.spoken_for += blocks


@helper
def end_promise(s: Speculative, r: Branch) -> None:
    """What branch r was promised and did not take is anybody's again."""
    promised = s.promised[r]
    if promised is not None:
        s.spoken_for = excess(s.spoken_for, excess(promised, s.taken[r]))


@helper
def draw(s: Speculative, r: Branch, b: Block) -> None:
    """Branch r takes block b from the pool."""
    hand_out(s, b, r)
    s.spoken_for = excess(s.spoken_for, 1)


@helper
def release(s: Speculative, b: Block) -> None:
    """A block that nobody owns any more returns to the pool, wiped unless the cache may find it."""
    if s.owners[b] == 0:
        free(s, b)
        if s.sealed[b] == empty():
            reset(s, b)


@helper
def give_back_taken(s: Speculative, r: Branch) -> None:
    """What was taken for the step that is being prepared returns to the pool."""
    for p in row(s.taken_for, r):
        b = some(s.taken_for[r, p])
        s.taken_for[r, p] = None
        s.filled[r] = excess(s.filled[r], 1)
        release(s, b)


@helper
def leave_pool(s: Speculative, r: Branch, waits: bool) -> None:
    """Branch r ends, or waits with an empty table: what nobody else owns is free, and what the device still does with
    it is ordered before whatever comes next."""
    if s.mutant != CANCEL_KEEPS_TAKEN:
        give_back_taken(s, r)
    for p in row(s.table, r):
        b = some(s.table[r, p])
        if s.owners[b] == 1 and (s.mutant != CANCEL_KEEPS_LOOKAHEAD or p * s.block_size[r] < s.length[r]):
            s.leaving[True, p] = b
    end_promise(s, r)
    has_ended(s, r)
    if waits:
        preempt(s, r)
    else:
        finish(s, r)
    for p in row(s.leaving, True):
        b = some(s.leaving[True, p])
        s.leaving[True, p] = None
        release(s, b)


# --- a step -----------------------------------------------------------------------------------------------------------


@helper
def seal_full(s: Speculative, r: Branch, tokens: int) -> None:
    """Blocks full of the first `tokens` tokens are registered, once."""
    for p in row(s.table, r):
        b, h = some(s.table[r, p]), s.hash_of[p]
        if s.append_only and h is not None and (p + 1) * s.block_size[r] <= tokens and s.sealed[b] == empty():
            seal(s, b, h, r, 0, s.block_size[r], None, None)


@helper
def write_past_table(s: Speculative, r: Branch, end: int) -> None:
    """Under LOOKAHEAD_NOT_MAPPED: drafts whose position has no entry land in the block of the position before."""
    held, size = s.filled[r] * s.block_size[r], s.block_size[r]
    if s.mutant == LOOKAHEAD_NOT_MAPPED and held < end:
        write(s, r, some(s.table[r, excess(s.filled[r], 1)]), 0, min(size, excess(end, held)), held, end, None)


@helper
def leave_window(s: Speculative, r: Branch, tokens: int, drop: bool) -> None:
    """Positions that no token from `tokens` on attends to are out of the window. drop: their blocks are given back."""
    if s.window_size > 0:
        start = excess(tokens + 1, s.window_size) // s.block_size[r]
        window(s, r, start)
        for p in row(s.table, r):
            b = some(s.table[r, p])
            if drop and p < start:
                unmap(s, r, p, b)
                release(s, b)


@helper
def step_contents(s: Speculative, r: Branch, first: int, end: int) -> None:
    """Branch r wrote its tokens [first, end); those below its length stand."""
    for p in row(s.table, r):
        b = some(s.table[r, p])
        slots = step_writes(s, r, p, first, end)
        was_written(s, r, b, p, slots)
        for k in row(s.common, b):
            s.common[b, k] = s.common[b, k] - slots
        if s.append_only:
            s.common[b, p] = s.common[b, p] | step_writes(s, r, p, first, s.length[r])


@helper
def settled_contents(s: Speculative, r: Branch, before: int) -> None:
    """The branch had `before` tokens without its drafts, and now knows which of these stand."""
    for p in row(s.table, r):
        b, size = some(s.table[r, p]), s.block_size[r]
        s.right[b, r] = s.right[b, r] & span(0, min(size, excess(s.length[r], p * size)))
        if s.append_only:
            s.common[b, p] = s.common[b, p] | step_writes(s, r, p, before, s.length[r])


@helper
def start_step(s: Speculative, r: Branch) -> None:
    """The blocks that were taken enter the table, and one launch writes and attends."""
    for p in row(s.taken_for, r):
        b = some(s.taken_for[r, p])
        map(s, r, p, b)
        s.taken_for[r, p] = None
    first, end = s.computed[r], step_end(s, r)
    if s.computed[r] >= s.length[r]:
        grow(s, r, 1)
    if s.drafts[r] > 0:
        propose(s, r, s.drafts[r])
    seal_full(s, r, end if s.mutant == SEAL_PROPOSED else s.length[r])
    write_past_table(s, r, end)
    launch_step(s, r, first, end, end, COMPUTE)
    step_contents(s, r, first, end)
    if s.mutant == WINDOW_ON_DRAFTS:
        leave_window(s, r, end, True)
    end_promise(s, r)
    if not s.append_only:
        reserve(s, r, 0)
    s.drafts[r] = 0
    s.phase[r] = STEPPING


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
    require(not s.running[STEP_WORK, r] and not s.running[COPY_WORK, r])
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
    require(s.append_only and s.phase[r] == TAKING)
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
    was_copied(s, old_tail, b, span(0, used))
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
    require(not s.append_only)
    require(s.phase[r] == IDLE or s.phase[r] == STEPPING)
    require(s.phase[c] == OUT)
    require(not s.running[STEP_WORK, c] and not s.running[COPY_WORK, c])

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
    require(s.phase[r] == OUT and s.running[STEP_WORK, r])

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
        s.phase[r] != IDLE
        or span(0, min(s.block_size[r], excess(s.length[r], p * s.block_size[r]))) & s.written[some(s.table[r, p])]
        <= (s.right[some(s.table[r, p]), r] & s.placed[some(s.table[r, p]), p]) | s.common[some(s.table[r, p]), p]
        for r in members(Branch, s)
        for p in row(s.table, r)
    )


@witness
def can_keep_all(s: Speculative) -> bool:
    """Every draft of a step is kept, the last of them the first token of a block."""
    return any(
        s.rolled_back[r] and s.stale_to[r] == 0 and s.length[r] % s.block_size[r] == 1 for r in members(Branch, s)
    )


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
