"""The state of `prefix_cow`, and what its steps are made of: blocks taken, retained and given back, a step joined."""

from __future__ import annotations

from kvsan.spec.lang.surface import (
    Choice,
    Const,
    Map,
    empty,
    excess,
    helper,
    row,
    some,
    span,
)
from kvsan.spec.ownership.blocks import pin, unpin
from kvsan.spec.ownership.branches import finish
from kvsan.spec.ownership.identities import seal
from kvsan.spec.ownership.state import COPY, KEEP, STEP, Block, Branch, Count, Identity, Pos, Tokens

from .batches import (
    BUILT,
    NEWER,
    OLDER,
    Batches,
    Step,
    last_step,
    let_go,
    may_build,
    retain,
    under_way,
)
from .contents import has_ended, was_written
from .device import (
    COPY_WORK,
    STEP_WORK,
    Work,
    hand_out,
    step_writes,
)
from .prompt_contents import holds_prompt, loses_prompt, prompt_was_copied
from .returns import give_back_leaving, release


class Phase(Choice):
    """OUT: no request. FILLING: the scheduler has it and collects its blocks. LOADING, LOADED: by the connector.
    DOOMED: aborted under its load. RUNNING: scheduled at least once."""

    names = ("OUT", "FILLING", "LOADING", "LOADED", "DOOMED", "RUNNING")


class Mutant(Choice):
    """The one decision taken wrong; NONE is the right design."""

    names = (
        "NONE",
        "APPEND_WITHOUT_COPY",
        "SOURCE_NOT_RETAINED",
        "TARGET_NOT_RETAINED",
        "COPY_ENDS_NOT_FENCED",
        "PIN_TWICE",
        "UNPIN_TWICE",
        "FENCE_NEVER_DONE",
        "FENCE_TOO_EARLY",
        "END_FREES_AT_ONCE",
        "CANCEL_UNDER_LOAD",
        "CHAIN_COPIES",
        "COPY_BEFORE_WRITE",
        "COPY_AFTER_STEP",
        "COPY_TOO_FEW",
        "SEAL_BEYOND_TOKENS",
        "EVICT_KEEPS_IDENTITY",
        "HIT_NOT_HELD",
        "PREEMPT_SCHEDULED",
        "END_FREES_SHARED",
        "END_KEEPS_BLOCKS",
    )


OUT, FILLING, LOADING, LOADED = Phase("OUT"), Phase("FILLING"), Phase("LOADING"), Phase("LOADED")
DOOMED, RUNNING = Phase("DOOMED"), Phase("RUNNING")

APPEND_WITHOUT_COPY = Mutant("APPEND_WITHOUT_COPY")
SOURCE_NOT_RETAINED = Mutant("SOURCE_NOT_RETAINED")
TARGET_NOT_RETAINED = Mutant("TARGET_NOT_RETAINED")
COPY_ENDS_NOT_FENCED = Mutant("COPY_ENDS_NOT_FENCED")
PIN_TWICE = Mutant("PIN_TWICE")  # LMCache#3884, sglang#20049: a hold that nobody releases
UNPIN_TWICE = Mutant("UNPIN_TWICE")  # LMCache#2954: two paths release one hold
FENCE_NEVER_DONE = Mutant("FENCE_NEVER_DONE")  # vllm-ascend#16662, dynamo#3730: a completion is lost
FENCE_TOO_EARLY = Mutant("FENCE_TOO_EARLY")
END_FREES_AT_ONCE = Mutant("END_FREES_AT_ONCE")
CANCEL_UNDER_LOAD = Mutant("CANCEL_UNDER_LOAD")  # vllm#32255, sglang#35049
CHAIN_COPIES = Mutant("CHAIN_COPIES")
COPY_BEFORE_WRITE = Mutant("COPY_BEFORE_WRITE")
COPY_AFTER_STEP = Mutant("COPY_AFTER_STEP")
COPY_TOO_FEW = Mutant("COPY_TOO_FEW")  # vllm-ascend#16013: a copy of the wrong bytes
SEAL_BEYOND_TOKENS = Mutant("SEAL_BEYOND_TOKENS")
EVICT_KEEPS_IDENTITY = Mutant("EVICT_KEEPS_IDENTITY")  # vllm#4764, nano-vllm#163, kvcached#362
HIT_NOT_HELD = Mutant("HIT_NOT_HELD")  # vllm#37076
PREEMPT_SCHEDULED = Mutant("PREEMPT_SCHEDULED")
END_FREES_SHARED = Mutant("END_FREES_SHARED")
END_KEEPS_BLOCKS = Mutant("END_KEEPS_BLOCKS")


class PrefixCow(Batches):
    """The ledger, the device, the contents, the steps, and what each request is about to do.

    hash_of: the identity of the shared tokens of a position. busy: the scheduler has a request in hand. refused: it had
    one that the pool could not serve, or that went before it ran, and is done until something has happened. cached: the
    tokens of a request that it need not compute. coming: how the step that is built fills the sealed slots of a block.
    planned: the requests in that step. loaded: those whose load is complete and that wait for one. looked_up: under
    HIT_NOT_HELD, a tail that is not mapped yet. stale: under EVICT_KEEPS_IDENTITY, what the cache still thinks.
    """

    prompt: Const[Tokens]
    shared: Const[Tokens]
    capacity: Const[Tokens]
    connector: Const[bool]
    states: Const[bool]
    mutant: Const[Mutant]

    hash_of: Map[Pos, Identity | None]
    phase: Map[Branch, Phase]
    busy: bool
    refused: bool
    filled: Map[Branch, Count]
    cached: Map[Branch, Tokens]
    coming: Map[Block, Work | None]
    planned: Count
    looked_up: Map[Branch, Block | None]
    stale: Map[Identity, Block | None]
    present: Count
    loaded: Count


# --- words ------------------------------------------------------------------------------------------------------------


@helper
def tail_pos(s: PrefixCow, r: Branch) -> int:
    """The position in which the shared tokens end."""
    return s.shared // s.block_size[r]


@helper
def tail_slots(s: PrefixCow, r: Branch) -> int:
    """How many slots of that position they take."""
    return s.shared % s.block_size[r]


@helper
def covers_prompt(s: PrefixCow, r: Branch) -> bool:
    """The branch has blocks for its whole prompt."""
    return s.filled[r] * s.block_size[r] >= s.prompt


@helper
def work_is_pending(s: PrefixCow, r: Branch) -> bool:
    """The scheduler or the connector has the request, or a step of it is built or under way."""
    return s.phase[r] != OUT and (
        s.phase[r] != RUNNING
        or s.scheduled[STEP_WORK, r]
        or r in s.flying[OLDER, STEP_WORK] | s.flying[NEWER, STEP_WORK]
    )


@helper
def found_tail(s: PrefixCow, r: Branch) -> bool:
    """The branch's hits end inside a block."""
    return s.phase[r] == FILLING and s.cached[r] % s.block_size[r] != 0


@helper
def carries(s: PrefixCow, b: Block, h: Identity) -> bool:
    """The cache finds identity h on block b."""
    return s.carried[b, h] != empty() or s.stale[h] == b


@helper
def may_be_copied(s: PrefixCow, b: Block) -> bool:
    """The tail is there when the copies of the step run: neither a copy nor the forward pass of that step fills it."""
    return (s.coming[b] != COPY_WORK or s.mutant == CHAIN_COPIES) and (
        s.coming[b] != STEP_WORK or s.mutant == COPY_BEFORE_WRITE
    )


@helper
def may_take(s: PrefixCow, b: Block) -> bool:
    """The free queue holds block b, and no identity is left on it."""
    return not s.held[b] and (s.sealed[b] == empty() or s.mutant == EVICT_KEEPS_IDENTITY)


@helper
def take_fresh(s: PrefixCow, r: Branch, b: Block) -> None:
    """Branch r takes a block from the free queue."""
    for h in row(s.carried, b):
        s.stale[h] = b  # under EVICT_KEEPS_IDENTITY alone: elsewhere no identity is left
    hand_out(s, b, r)


@helper
def retain_ends(s: PrefixCow, old_tail: Block, new_tail: Block) -> None:
    """Both ends of a queued copy stay until the step is built, or done."""
    if s.mutant != SOURCE_NOT_RETAINED:
        retain(s, BUILT, old_tail, COPY)
    retain(s, BUILT, new_tail, COPY)
    if s.mutant == PIN_TWICE and s.keeps[old_tail] == 1:
        pin(s, old_tail, s.keeper, KEEP, COPY)


@helper
def join_step(s: PrefixCow, r: Branch, first: int) -> None:
    """The step that is built computes the tokens of branch r from `first` on."""
    s.scheduled[STEP_WORK, r] = True
    s.first[r] = first
    s.planned += 1
    s.phase[r] = RUNNING


@helper
def seal_shared(s: PrefixCow, r: Branch) -> None:
    """The blocks whose shared tokens the next step brings are registered, the last one for these tokens alone."""
    for p in row(s.table, r):
        b, h, size = some(s.table[r, p]), s.hash_of[p], s.block_size[r]
        if h is not None and (p + 1) * size <= s.shared and p * size >= s.cached[r]:
            seal(s, b, h, r, 0, size, None, None)
        elif h is not None and p == tail_pos(s, r) and tail_slots(s, r) > 0:
            slots = size if s.mutant == SEAL_BEYOND_TOKENS else tail_slots(s, r)
            seal(s, b, h, r, 0, slots, None, None)
            s.coming[b] = COPY_WORK if s.scheduled[COPY_WORK, r] else STEP_WORK


@helper
def tokens_were_written(s: PrefixCow, r: Branch, first: int, end: int) -> None:
    """Branch r has written its tokens [first, end)."""
    for p in row(s.table, r):
        b, slots = some(s.table[r, p]), step_writes(s, r, p, first, end)
        was_written(s, r, b, p, slots)
        loses_prompt(s, b, slots)
        holds_prompt(s, b, p, slots & step_writes(s, r, p, first, s.shared))


@helper
def may_append(s: PrefixCow, r: Branch) -> bool:
    """The request can be in the next step too."""
    return (
        s.phase[r] == RUNNING
        and s.length[r] < s.capacity
        and not s.scheduled[STEP_WORK, r]
        and not s.busy
        and may_build(s)
    )


@helper
def must_move(s: PrefixCow, b: Block) -> bool:
    """The block carries an identity that a write would make a lie of."""
    return s.states and s.sealed[b] != empty()


@helper
def pass_holds_on(s: PrefixCow) -> None:
    """What was retained until the step was built goes, or waits until the step is done."""
    for b in row(s.retained, BUILT):
        if s.connector and s.mutant != COPY_ENDS_NOT_FENCED:
            s.retained[BUILT, b], s.retained[NEWER, b] = False, True
        else:
            let_go(s, BUILT, b)
            release(s, b)
        if s.mutant == UNPIN_TWICE:
            unpin(s, b, s.keeper, None, None)


@helper
def copies_were_made(s: PrefixCow) -> None:
    """The queued copies have run, and fill what they promised."""
    for r in row(s.scheduled, COPY_WORK):
        dst = some(s.target[r])
        prompt_was_copied(s, some(s.source[r]), dst, span(0, s.copied[r]))
        s.coming[dst] = None


@helper
def forward_was_made(s: PrefixCow) -> None:
    """The forward pass has written the tokens of its branches."""
    for r in row(s.scheduled, STEP_WORK):
        tokens_were_written(s, r, s.first[r], s.length[r])
        for p in row(s.table, r):
            s.coming[some(s.table[r, p])] = None


@helper
def fence(s: PrefixCow, r: Branch) -> Step:
    """The step for which the blocks of branch r wait; BUILT: none."""
    last = last_step(s, r)
    early = OLDER if last == NEWER and under_way(s, OLDER) and s.mutant == FENCE_TOO_EARLY else last
    return early if s.connector and s.mutant != END_FREES_AT_ONCE else BUILT


@helper
def leave_for_good(s: PrefixCow, r: Branch, until: Step) -> None:
    """Branch r has ended: its blocks wait for a step, or those that nobody else owns are free."""
    for p in row(s.table, r):
        b = some(s.table[r, p])
        if until != BUILT:
            retain(s, until, b, STEP)
        elif s.mutant == END_FREES_SHARED or (s.owners[b] == 1 and s.keeps[b] == 0 and s.mutant != END_KEEPS_BLOCKS):
            s.leaving[True, p] = b
    has_ended(s, r)
    finish(s, r)
    s.present, s.refused = excess(s.present, 1), False
    give_back_leaving(s)
