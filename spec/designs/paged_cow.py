"""PagedAttention and vLLM V0: forks share partial tails, an append into a shared tail copies the block first.

A branch is admitted (and resumed) block by block and prefilled in one step; it appends in place when it is the sole
owner of its tail, in a new block at a boundary, and else in a copy. Beams are pruned, and branches preempted and ended,
while the work of others is under way. Each append is one launch that writes the token and attends to all before it.

How a copy is ordered against the step that follows it (`schedule`):
    HOST_WAIT     copies have a stream of their own; the host waits for the copy before it publishes it
    SAME_STREAM   copy and step are queued on one stream, the host does not wait
    EVENT_WAIT    two streams, joined by events before and after the copy
    UNORDERED     two streams and nothing between them: wrong
"""

from __future__ import annotations

from kvsan.spec.lang.surface import (
    Choice,
    Const,
    Map,
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
from kvsan.spec.ownership.blocks import free
from kvsan.spec.ownership.branches import admit, finish, fork, map, preempt, unmap
from kvsan.spec.ownership.quiescence import quiescent
from kvsan.spec.ownership.state import Block, Branch, Count, Tokens

from .contents import Contents, has_ended, serves_all, was_copied, was_forked, was_written
from .device import (
    COMPUTE,
    COPIES,
    COPY_WORK,
    STEP_WORK,
    Stream,
    forget_ordered,
    hand_out,
    launch_copy,
    launch_step,
    learn,
    nothing_runs,
    order_after,
)
from .start import fill_pool


class Phase(Choice):
    """OUT: no branch. FILLING: it collects blocks for its prefill. WAITING: preempted. COPYING: its copy is under way.
    DOOMED: ended by its client under a copy. DECIDED: only where a mutant decides early."""

    names = ("OUT", "FILLING", "IDLE", "COPYING", "DOOMED", "STEPPING", "WAITING", "DECIDED")


class Schedule(Choice):
    """How a copy is ordered against the step that follows it."""

    names = ("HOST_WAIT", "SAME_STREAM", "EVENT_WAIT", "UNORDERED")


class Mutant(Choice):
    """The one decision taken wrong; NONE is the right design."""

    names = (
        "NONE",
        "APPEND_WITHOUT_COPY",
        "COPY_ALTHOUGH_SOLE_OWNER",
        "COPY_TOO_FEW",
        "STEP_BEFORE_COPY",
        "CANCEL_UNDER_COPY",
        "CANCEL_FREES_SHARED",
        "FREE_ON_COMPLETION_TOO",
        "COPY_KEEPS_SOURCE",
        "CANCEL_KEEPS_TARGET",
        "STALE_CHECK_COPIES",
        "STALE_CHECK_APPENDS",
        "PREEMPT_FREES_SHARED",
        "PREEMPT_KEEPS_BLOCKS",
        "PREFILL_LAST_TOKEN_ONLY",
        "FORK_UNDER_PREFILL",
        "DROP_SOURCE_UNDER_COPY",
        "COPY_IGNORES_STEPS",
    )


OUT, FILLING, IDLE, COPYING = Phase("OUT"), Phase("FILLING"), Phase("IDLE"), Phase("COPYING")
DOOMED, STEPPING, WAITING, DECIDED = Phase("DOOMED"), Phase("STEPPING"), Phase("WAITING"), Phase("DECIDED")

HOST_WAIT, SAME_STREAM = Schedule("HOST_WAIT"), Schedule("SAME_STREAM")
EVENT_WAIT = Schedule("EVENT_WAIT")

APPEND_WITHOUT_COPY = Mutant("APPEND_WITHOUT_COPY")
COPY_ALTHOUGH_SOLE_OWNER = Mutant("COPY_ALTHOUGH_SOLE_OWNER")
COPY_TOO_FEW = Mutant("COPY_TOO_FEW")
STEP_BEFORE_COPY = Mutant("STEP_BEFORE_COPY")
CANCEL_UNDER_COPY = Mutant("CANCEL_UNDER_COPY")
CANCEL_FREES_SHARED = Mutant("CANCEL_FREES_SHARED")
FREE_ON_COMPLETION_TOO = Mutant("FREE_ON_COMPLETION_TOO")
COPY_KEEPS_SOURCE = Mutant("COPY_KEEPS_SOURCE")
CANCEL_KEEPS_TARGET = Mutant("CANCEL_KEEPS_TARGET")
STALE_CHECK_COPIES = Mutant("STALE_CHECK_COPIES")
STALE_CHECK_APPENDS = Mutant("STALE_CHECK_APPENDS")
PREEMPT_FREES_SHARED = Mutant("PREEMPT_FREES_SHARED")
PREEMPT_KEEPS_BLOCKS = Mutant("PREEMPT_KEEPS_BLOCKS")
PREFILL_LAST_TOKEN_ONLY = Mutant("PREFILL_LAST_TOKEN_ONLY")
FORK_UNDER_PREFILL = Mutant("FORK_UNDER_PREFILL")
DROP_SOURCE_UNDER_COPY = Mutant("DROP_SOURCE_UNDER_COPY")
COPY_IGNORES_STEPS = Mutant("COPY_IGNORES_STEPS")


class PagedCow(Contents):
    """The ledger, the device, the contents, and what each branch is about to do."""

    prompt: Const[Tokens]
    capacity: Const[Tokens]
    schedule: Const[Schedule]
    mutant: Const[Mutant]

    phase: Map[Branch, Phase]
    source: Map[Branch, Block | None]
    target: Map[Branch, Block | None]
    filled: Map[Branch, Count]
    owed: Map[Block, bool]  # under FREE_ON_COMPLETION_TOO: a completion will free this block as well
    present: Count


# --- words ------------------------------------------------------------------------------------------------------------


@helper
def tail_pos(s: PagedCow, r: Branch) -> int:
    """The position that the next token falls into."""
    return s.length[r] // s.block_size[r]


@helper
def tail_slot(s: PagedCow, r: Branch) -> int:
    """The slot that the next token falls into."""
    return s.length[r] % s.block_size[r]


@helper
def tail(s: PagedCow, r: Branch) -> Block:
    """The block that the next token falls into, where there is one already."""
    return some(s.table[r, tail_pos(s, r)])


@helper
def can_append_to_tail(s: PagedCow, r: Branch) -> bool:
    """The next token falls into a block that the branch has, and nothing of the branch is under way."""
    return s.length[r] < s.capacity and tail_slot(s, r) != 0


@helper
def may_append(s: PagedCow, r: Branch) -> bool:
    """The branch is the sole owner of its tail; under STALE_CHECK_APPENDS it was, when it looked."""
    return (
        s.phase[r] == DECIDED
        if s.mutant == STALE_CHECK_APPENDS
        else s.phase[r] == IDLE and (s.owners[tail(s, r)] == 1 or s.mutant == APPEND_WITHOUT_COPY)
    )


@helper
def must_copy(s: PagedCow, r: Branch) -> bool:
    """Others own the tail of the branch too; under STALE_CHECK_COPIES they did, when it looked."""
    return (
        s.phase[r] == DECIDED
        if s.mutant == STALE_CHECK_COPIES
        else s.phase[r] == IDLE and (s.owners[tail(s, r)] > 1 or s.mutant == COPY_ALTHOUGH_SOLE_OWNER)
    )


@helper
def work_is_pending(s: PagedCow, r: Branch) -> bool:
    """A prefill or an append of branch r has begun, be it by a first block, and has not ended."""
    return s.phase[r] != OUT and s.phase[r] != IDLE and s.phase[r] != WAITING


@helper
def copy_stream(s: PagedCow) -> Stream:
    """Where copies are queued."""
    return COMPUTE if s.schedule == SAME_STREAM else COPIES


@helper
def release(s: PagedCow, b: Block) -> None:
    """A block that nobody owns any more returns to the pool. Nothing reads it any more, so it is wiped."""
    if s.owners[b] == 0:
        free(s, b)
        reset(s, b)


@helper
def drop_table(s: PagedCow, r: Branch, wrong: bool, keep: bool) -> None:
    """Every entry of branch r goes. wrong: blocks are freed that others own. keep: none is freed."""
    for p in row(s.table, r):
        b = some(s.table[r, p])
        unmap(s, r, p, b)
        if wrong:
            free(s, b)
        elif not keep:
            release(s, b)


@helper
def order_streams(s: PagedCow) -> None:
    """The stream of the copies follows each step: every copy comes after the steps launched before it."""
    if (s.schedule == HOST_WAIT or s.schedule == EVENT_WAIT) and s.mutant != COPY_IGNORES_STEPS:
        order_after(s, COPIES, COMPUTE)
    forget_ordered(s, COMPUTE, copy_stream(s))


@helper
def step(s: PagedCow, r: Branch) -> None:
    """Branch r writes its next token, in the block that its table has for it, and attends to all it has."""
    p, i, token = tail_pos(s, r), tail_slot(s, r), s.length[r]
    b = some(s.table[r, p])
    launch_step(s, r, token, token + 1, token + 1, COMPUTE)
    order_streams(s)
    was_written(s, r, b, p, span(i, i + 1))
    s.phase[r] = STEPPING


@helper
def queue_copy(s: PagedCow, r: Branch, old_tail: Block, new_tail: Block) -> None:
    """The used slots of the old tail are copied, ordered as the schedule says."""
    used = excess(tail_slot(s, r), 1) if s.mutant == COPY_TOO_FEW else tail_slot(s, r)
    launch_copy(s, r, old_tail, new_tail, used, copy_stream(s))
    was_copied(s, old_tail, new_tail, span(0, used))
    if s.schedule == EVENT_WAIT:
        order_after(s, COMPUTE, COPIES)


@helper
def publish(s: PagedCow, r: Branch, old_tail: Block, new_tail: Block) -> None:
    """The table names the copy, and the shared tail loses an owner."""
    map(s, r, tail_pos(s, r), new_tail)
    if s.mutant != COPY_KEEPS_SOURCE and s.mutant != STALE_CHECK_COPIES:
        release(s, old_tail)


@helper
def leave_for_good(s: PagedCow, r: Branch) -> None:
    """Branch r has ended."""
    has_ended(s, r)
    finish(s, r)
    s.present = excess(s.present, 1)


# --- a branch comes ---------------------------------------------------------------------------------------------------


@initial
def empty_pool(s: PagedCow) -> None:
    """Nobody is there, and every block is free."""
    fill_pool(s)


@action
def admit_branch(s: PagedCow, r: Branch) -> None:
    """A request arrives with its prompt."""
    require(s.phase[r] == OUT)
    require(not s.running[STEP_WORK, r] and not s.running[COPY_WORK, r], "work under way is known by its branch's name")

    admit(s, r, s.prompt)
    s.phase[r] = FILLING
    s.present += 1


@action
def take_block(s: PagedCow, r: Branch, b: Block) -> None:
    """A branch that is to be prefilled takes its next block."""
    require(s.phase[r] == FILLING)
    require(s.places[r, b] == 0 and not s.held[b])
    require(s.filled[r] * s.block_size[r] < s.length[r])

    hand_out(s, b, r)
    map(s, r, s.filled[r], b)
    s.filled[r] += 1


@action
def prefill(s: PagedCow, r: Branch) -> None:
    """The branch has blocks for all its tokens: one step writes them."""
    require(s.phase[r] == FILLING)
    require(s.filled[r] * s.block_size[r] >= s.length[r])

    tokens = s.length[r]
    if s.mutant == PREFILL_LAST_TOKEN_ONLY:
        launch_step(s, r, excess(tokens, 1), tokens, tokens, COMPUTE)
    else:
        launch_step(s, r, 0, tokens, tokens, COMPUTE)
    order_streams(s)
    for p in row(s.table, r):
        b, slots = some(s.table[r, p]), span(0, min(s.block_size[r], excess(tokens, p * s.block_size[r])))
        was_written(s, r, b, p, slots)
        if s.mutant == FORK_UNDER_PREFILL:
            serves_all(s, b, slots)
    s.filled[r] = 0
    s.phase[r] = STEPPING


@action
def fork_branch(s: PagedCow, r: Branch, c: Branch) -> None:
    """A beam splits: branch c shares every block of r."""
    require(
        s.phase[r] == IDLE
        or (s.mutant == FORK_UNDER_PREFILL and s.phase[r] == FILLING and s.filled[r] * s.block_size[r] >= s.length[r])
        or (s.mutant == STALE_CHECK_APPENDS and s.phase[r] == DECIDED)
    )
    require(s.phase[c] == OUT)
    require(not s.running[STEP_WORK, c] and not s.running[COPY_WORK, c], "work under way is known by its branch's name")

    fork(s, c, r, None)
    was_forked(s, r, c)
    s.phase[c] = IDLE
    s.present += 1


# --- a branch appends -------------------------------------------------------------------------------------------------


@action
def decide_early(s: PagedCow, r: Branch) -> None:
    """Under a stale check only: the branch looks at its tail now and acts on it later."""
    require(
        s.mutant == STALE_CHECK_COPIES or s.mutant == STALE_CHECK_APPENDS,
        "only two mutants decide before they act; in the design who has decided never acts",
    )
    require(s.phase[r] == IDLE and can_append_to_tail(s, r))
    require((s.owners[tail(s, r)] > 1) == (s.mutant == STALE_CHECK_COPIES))

    s.phase[r] = DECIDED


@action
def append_in_new_block(s: PagedCow, r: Branch, b: Block) -> None:
    """Crossing a block boundary takes a new private block."""
    require(s.phase[r] == IDLE)
    require(s.length[r] < s.capacity and tail_slot(s, r) == 0)
    require(not s.held[b])

    hand_out(s, b, r)
    map(s, r, tail_pos(s, r), b)
    step(s, r)


@action
def append_in_place(s: PagedCow, r: Branch) -> None:
    """A sole owner appends in place."""
    require(can_append_to_tail(s, r))
    require(may_append(s, r))

    step(s, r)


@action
def append_in_copy(s: PagedCow, r: Branch, b: Block) -> None:
    """A shared tail is copied first; the device orders the step behind the copy."""
    require(s.schedule != HOST_WAIT)
    require(can_append_to_tail(s, r))
    require(must_copy(s, r) and not s.running[COPY_WORK, r])
    require(not s.held[b])

    old_tail = tail(s, r)
    hand_out(s, b, r)
    queue_copy(s, r, old_tail, b)
    publish(s, r, old_tail, b)
    step(s, r)


@action
def start_copy(s: PagedCow, r: Branch, b: Block) -> None:
    """A shared tail is copied first; the host will wait for the copy."""
    require(s.schedule == HOST_WAIT)
    require(can_append_to_tail(s, r))
    require(must_copy(s, r) and not s.running[COPY_WORK, r])
    require(not s.held[b])

    old_tail = tail(s, r)
    hand_out(s, b, r)
    queue_copy(s, r, old_tail, b)
    s.phase[r] = COPYING
    if s.mutant == DROP_SOURCE_UNDER_COPY:
        publish(s, r, old_tail, b)
    else:
        s.source[r], s.target[r] = old_tail, b


@action
def finish_copy(s: PagedCow, r: Branch) -> None:
    """The host has seen the copy complete: it is published, and the step follows."""
    require(s.phase[r] == COPYING)

    old_tail, new_tail = s.source[r], s.target[r]
    if s.mutant != STEP_BEFORE_COPY:
        learn(s, COPY_WORK, r)
    if old_tail is not None and new_tail is not None:
        publish(s, r, old_tail, new_tail)
    s.source[r], s.target[r] = None, None
    step(s, r)


@action
def finish_step(s: PagedCow, r: Branch) -> None:
    """The host has seen the step complete and has its token."""
    require(s.phase[r] == STEPPING)

    learn(s, STEP_WORK, r)
    s.phase[r] = IDLE


# --- a branch goes ----------------------------------------------------------------------------------------------------


@action
def end_branch(s: PagedCow, r: Branch) -> None:
    """A branch finishes, is pruned or cancelled, whatever of it is under way."""
    require(s.phase[r] != OUT and s.phase[r] != DOOMED)
    require(s.phase[r] != COPYING or s.mutant == CANCEL_UNDER_COPY or s.mutant == FREE_ON_COMPLETION_TOO)

    pending = s.target[r]
    drop_table(s, r, s.mutant == CANCEL_FREES_SHARED, False)
    leave_for_good(s, r)
    if pending is not None:
        release(s, pending)
        s.owed[pending] = s.mutant == FREE_ON_COMPLETION_TOO


@action
def doom_branch(s: PagedCow, r: Branch) -> None:
    """A branch is cancelled under its copy, which touches blocks that must stay until it is complete."""
    require(s.phase[r] == COPYING)

    s.phase[r] = DOOMED


@action
def end_doomed(s: PagedCow, r: Branch) -> None:
    """The host has seen the copy of a cancelled branch complete: everything of it goes."""
    require(s.phase[r] == DOOMED)

    new_tail = s.target[r]
    learn(s, COPY_WORK, r)
    drop_table(s, r, False, False)
    leave_for_good(s, r)
    if new_tail is not None and s.mutant != CANCEL_KEEPS_TARGET:
        release(s, new_tail)


@action
def learn_late_step(s: PagedCow, r: Branch) -> None:
    """The host has seen the step of a branch complete that is gone or waits."""
    require(s.running[STEP_WORK, r])
    require(s.phase[r] == OUT or s.phase[r] == WAITING, "the host looks at a step early only where it waits for it")

    learn(s, STEP_WORK, r)


@action
def learn_late_copy(s: PagedCow, r: Branch) -> None:
    """The host has seen the copy of a branch complete that is gone or waits."""
    require(s.running[COPY_WORK, r])
    require(s.phase[r] == OUT or s.phase[r] == WAITING, "the host looks at a copy early only where it waits for it")

    learn(s, COPY_WORK, r)


@action
def complete_owed(s: PagedCow, b: Block) -> None:
    """Under FREE_ON_COMPLETION_TOO: the completion of a cancelled copy frees its target once more."""
    require(s.owed[b])

    s.owed[b] = False
    free(s, b)


@action
def preempt_branch(s: PagedCow, r: Branch) -> None:
    """A branch gives its blocks back and waits; its tokens will be computed again."""
    require(s.phase[r] == IDLE or s.phase[r] == STEPPING)

    drop_table(s, r, s.mutant == PREEMPT_FREES_SHARED, s.mutant == PREEMPT_KEEPS_BLOCKS)
    has_ended(s, r)
    preempt(s, r)
    s.phase[r] = WAITING


@action
def resume_branch(s: PagedCow, r: Branch) -> None:
    """A preempted branch comes back."""
    require(s.phase[r] == WAITING)
    require(not s.running[STEP_WORK, r] and not s.running[COPY_WORK, r], "work under way is known by its branch's name")

    s.phase[r] = FILLING


@action
def settle(s: PagedCow) -> None:
    """Every branch is gone and nothing runs: nothing may be held any more."""
    require(s.present == 0 and nothing_runs(s))

    quiescent(s)


# --- what holds -------------------------------------------------------------------------------------------------------


@invariant
def view_intact(s: PagedCow) -> bool:
    """At rest, what a branch finds written is its own tokens, at their places; that it is written, its reads judge."""
    return all(
        s.phase[r] != IDLE
        or span(0, min(s.block_size[r], excess(s.length[r], p * s.block_size[r]))) & s.written[some(s.table[r, p])]
        <= (s.right[some(s.table[r, p]), r] & s.placed[some(s.table[r, p]), p])
        for r in members(Branch, s)
        for p in row(s.table, r)
    )


@witness
def can_fill_every_table(s: PagedCow) -> bool:
    """All branches reach their capacity together."""
    return all(s.length[r] == s.capacity and s.phase[r] == IDLE for r in members(Branch, s))


@witness
def can_append_after_copy(s: PagedCow) -> bool:
    """Two branches that shared their first tokens have both appended, and each has these in a block of its own."""
    return any(
        r != q
        and s.length[r] > s.prompt
        and s.length[q] > s.prompt
        and s.table[r, 0] is not None
        and s.table[q, 0] is not None
        and s.table[r, 0] != s.table[q, 0]
        and s.right[some(s.table[r, 0]), q] & s.right[some(s.table[q, 0]), r] != empty()
        for r in members(Branch, s)
        for q in members(Branch, s)
    )


@witness
def can_cancel_under_step(s: PagedCow) -> bool:
    """A step outlives its branch."""
    return any(s.phase[r] == OUT and s.running[STEP_WORK, r] for r in members(Branch, s))


@witness
def can_resume(s: PagedCow) -> bool:
    """A preempted branch collects blocks again."""
    return any(s.phase[r] == FILLING and s.length[r] > s.prompt for r in members(Branch, s))


@witness
def can_rest(s: PagedCow) -> bool:
    """Every branch is gone and nothing runs: nothing is left to do."""
    return s.present == 0 and nothing_runs(s)
