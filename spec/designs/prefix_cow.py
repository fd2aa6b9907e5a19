"""vLLM V1 from 0.26: a hit may end inside a block, whose copy the request gets before it appends.

Requests have their first `shared` tokens in common, and the rest of `prompt` to themselves. The scheduler takes one
request at a time: it looks its full blocks up, then the tail that holds the last shared tokens, takes fresh blocks for
the rest, and puts the request into the step that it builds. A request that hit a tail gets a private block in its
place, and the step begins with the copy. Both ends of the copy are retained: until the step is built where everything
runs on one stream, and until its output is processed where a connector loads blocks on a stream of its own. There, too,
the blocks of a request that ends wait for the last step that touches them. The host is one step ahead.

With `states`, a request that appends to a tail which carries an identity moves the identity to a copy first, as vLLM
does for the blocks of recurrent states.

Simpler than the engine: a copy takes the slots of the identity, not the whole block; a block is retained once a step,
however many copies of that step touch it; blocks full of a request's own tokens are not cached, as nobody could hit
them; and the cache may find any block of an identity that the next step does not fill, not only the oldest.
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
from kvsan.spec.ownership.blocks import pin, unpin
from kvsan.spec.ownership.branches import admit, finish, grow, map
from kvsan.spec.ownership.identities import evict, hit, seal
from kvsan.spec.ownership.quiescence import quiescent
from kvsan.spec.ownership.state import COPY, KEEP, STEP, Block, Branch, Count, Identity, Pos, Tokens

from .batches import (
    BUILT,
    NEWER,
    OLDER,
    Batches,
    Step,
    advance,
    clear_plan,
    last_step,
    launch_copies,
    launch_forward,
    learn_step,
    let_go,
    may_build,
    oldest,
    queue_copy,
    retain,
    under_way,
)
from .contents import has_ended, was_written
from .device import (
    COMPUTE,
    COPIES,
    COPY_WORK,
    STEP_WORK,
    Work,
    forget_ordered,
    hand_out,
    launch_step,
    learn,
    step_writes,
)
from .prompt_contents import holds_prompt, loses_prompt, prompt_was_copied, shows_right
from .returns import give_back_leaving, release
from .start import fill_pool


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

    hash_of: the identity of the shared tokens of a position. busy: the scheduler has a request in hand. cached: the
    tokens of a request that it need not compute. coming: how the step that is built fills the sealed slots of a block.
    planned: the requests in that step. looked_up: under HIT_NOT_HELD, a tail that is not mapped yet. stale: under
    EVICT_KEEPS_IDENTITY, what the cache still thinks.
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
    filled: Map[Branch, Count]
    cached: Map[Branch, Tokens]
    coming: Map[Block, Work | None]
    planned: Count
    looked_up: Map[Branch, Block | None]
    stale: Map[Identity, Block | None]
    present: Count


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


# --- a request comes --------------------------------------------------------------------------------------------------


@initial
def empty_cache(s: PrefixCow) -> None:
    """Nobody is there, every block is free, and nothing is cached."""
    fill_pool(s)
    s.hash_of[0], s.hash_of[1] = Identity(0), Identity(1)


@action
def admit_request(s: PrefixCow, r: Branch) -> None:
    """The scheduler takes up a request."""
    require(s.phase[r] == OUT and not s.busy and may_build(s))
    require(not s.running[STEP_WORK, r] and not s.running[COPY_WORK, r] and not s.scheduled[COPY_WORK, r])

    admit(s, r, s.prompt)
    s.phase[r], s.busy = FILLING, True
    s.present += 1


@action
def find_block(s: PrefixCow, r: Branch, b: Block, h: Identity) -> None:
    """The next full block of shared tokens is in the cache: it is held from here on."""
    require(s.phase[r] == FILLING and s.cached[r] == s.filled[r] * s.block_size[r])
    require((s.filled[r] + 1) * s.block_size[r] <= s.shared)
    require(s.hash_of[s.filled[r]] == h and carries(s, b, h))

    hit(s, b, h, r, None, None, None)
    map(s, r, s.filled[r], b)
    s.filled[r] += 1
    s.cached[r] += s.block_size[r]


@action
def find_tail(s: PrefixCow, r: Branch, b: Block, h: Identity) -> None:
    """The last shared tokens are in the cache, at the start of a block: the hit ends inside it."""
    require(s.phase[r] == FILLING and s.cached[r] == s.filled[r] * s.block_size[r])
    require(s.filled[r] == tail_pos(s, r) and tail_slots(s, r) > 0)
    require(s.hash_of[s.filled[r]] == h and carries(s, b, h))
    require(may_be_copied(s, b))

    hit(s, b, h, r, None, None, None)
    if s.mutant == HIT_NOT_HELD:
        s.looked_up[r] = b
    else:
        map(s, r, s.filled[r], b)
    s.filled[r] += 1
    s.cached[r] = s.shared


@action
def take_block(s: PrefixCow, r: Branch, b: Block) -> None:
    """The next block of the prompt is not in the cache, or not looked for: a fresh one."""
    require(s.phase[r] == FILLING and not covers_prompt(s, r))
    require(may_take(s, b))

    take_fresh(s, r, b)
    map(s, r, s.filled[r], b)
    s.filled[r] += 1


@action
def evict_block(s: PrefixCow, b: Block, h: Identity) -> None:
    """A free block loses its identity, before the pool hands it out."""
    require(s.mutant != EVICT_KEEPS_IDENTITY)
    require(not s.held[b] and s.carried[b, h] != empty())

    evict(s, b, h)
    if s.mutant != SOURCE_NOT_RETAINED:
        reset(s, b)


@action
def schedule_prefill(s: PrefixCow, r: Branch) -> None:
    """The request has its blocks and joins the step: what that step fills is registered."""
    require((s.phase[r] == FILLING and covers_prompt(s, r)) or (s.phase[r] == LOADED and not s.busy and may_build(s)))
    require(not found_tail(s, r) or s.mutant == APPEND_WITHOUT_COPY)

    if s.phase[r] == FILLING:
        s.busy = False
    seal_shared(s, r)
    join_step(s, r, s.cached[r])


@action
def schedule_behind_copy(s: PrefixCow, r: Branch, b: Block) -> None:
    """The tail that was hit gives way to a private block, and the step begins with the copy."""
    require(covers_prompt(s, r) and found_tail(s, r) and s.mutant != APPEND_WITHOUT_COPY)
    require(may_take(s, b) or (s.looked_up[r] == b and s.owners[b] == 0))

    p = tail_pos(s, r)
    old_tail = some(s.looked_up[r] if s.mutant == HIT_NOT_HELD else s.table[r, p])
    take_fresh(s, r, b)
    if s.mutant == HIT_NOT_HELD:
        map(s, r, p, old_tail)
        s.looked_up[r] = None
    retain_ends(s, old_tail, b)
    map(s, r, p, b)
    if s.mutant == SOURCE_NOT_RETAINED:
        release(s, old_tail)
    copied = excess(tail_slots(s, r), 1) if s.mutant == COPY_TOO_FEW else tail_slots(s, r)
    queue_copy(s, r, old_tail, b, copied)
    seal_shared(s, r)
    s.busy = False
    join_step(s, r, s.cached[r])


# --- the connector ----------------------------------------------------------------------------------------------------


@action
def start_load(s: PrefixCow, r: Branch) -> None:
    """The shared tokens are not in the cache: the connector loads them, on a stream of its own."""
    require(s.connector and s.phase[r] == FILLING)
    require(covers_prompt(s, r) and s.cached[r] == 0)

    launch_step(s, r, 0, s.shared, 0, COPIES)
    tokens_were_written(s, r, 0, s.shared)
    s.phase[r], s.busy = LOADING, False


@action
def finish_load(s: PrefixCow, r: Branch) -> None:
    """The host has seen the load complete."""
    require(s.phase[r] == LOADING)

    learn(s, STEP_WORK, r)
    s.phase[r], s.cached[r] = LOADED, s.shared


# --- a request appends ------------------------------------------------------------------------------------------------


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


@action
def append_in_place(s: PrefixCow, r: Branch) -> None:
    """The next token goes into the tail."""
    require(may_append(s, r) and s.length[r] % s.block_size[r] != 0)
    require(not must_move(s, some(s.table[r, s.length[r] // s.block_size[r]])))

    first = s.length[r]
    grow(s, r, 1)
    join_step(s, r, first)


@action
def append_in_new_block(s: PrefixCow, r: Branch, b: Block) -> None:
    """The next token opens a block."""
    require(may_append(s, r) and s.length[r] % s.block_size[r] == 0)
    require(may_take(s, b))

    first = s.length[r]
    take_fresh(s, r, b)
    map(s, r, first // s.block_size[r], b)
    grow(s, r, 1)
    join_step(s, r, first)


@action
def append_after_move(s: PrefixCow, r: Branch, b: Block, h: Identity) -> None:
    """The next token goes into a tail that carries an identity: that moves to a copy, which no table shows."""
    require(may_append(s, r) and s.length[r] % s.block_size[r] != 0)
    require(must_move(s, some(s.table[r, s.length[r] // s.block_size[r]])))
    require(s.hash_of[s.length[r] // s.block_size[r]] == h)
    require(may_take(s, b) and not s.running[COPY_WORK, r])

    first = s.length[r]
    tail = some(s.table[r, first // s.block_size[r]])
    take_fresh(s, r, b)
    retain_ends(s, tail, b)
    evict(s, tail, h)
    seal(s, b, h, None, 0, tail_slots(s, r), None, None)
    s.coming[tail], s.coming[b] = None, COPY_WORK
    queue_copy(s, r, tail, b, tail_slots(s, r))
    if s.mutant == TARGET_NOT_RETAINED:
        let_go(s, BUILT, b)
        release(s, b)
    grow(s, r, 1)
    join_step(s, r, first)


# --- a step -----------------------------------------------------------------------------------------------------------


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


@action
def launch_built(s: PrefixCow) -> None:
    """The step is built: its copies and its forward pass are launched."""
    require(s.planned > 0 and not s.busy)

    advance(s)
    pass_holds_on(s)
    if s.mutant == COPY_AFTER_STEP:
        launch_forward(s, COMPUTE)
        launch_copies(s, COMPUTE)
    else:
        launch_copies(s, COMPUTE)
        launch_forward(s, COMPUTE)
    copies_were_made(s)
    forward_was_made(s)
    clear_plan(s)
    s.planned = 0
    if not s.connector:
        forget_ordered(s, COMPUTE, COMPUTE)


@action
def process_step(s: PrefixCow) -> None:
    """The output of the oldest step is here: what waited for that step returns to the pool."""
    require(under_way(s, NEWER) and not s.busy)

    done = oldest(s)
    learn_step(s, done)
    if s.mutant != FENCE_NEVER_DONE:
        for b in row(s.retained, done):
            let_go(s, done, b)
            release(s, b)


# --- a request goes ---------------------------------------------------------------------------------------------------


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
    s.present = excess(s.present, 1)
    give_back_leaving(s)


@action
def give_up(s: PrefixCow, r: Branch) -> None:
    """The pool cannot serve the request that the scheduler has in hand: what it got goes back."""
    require(s.phase[r] == FILLING)

    s.busy = False
    leave_for_good(s, r, BUILT)


@action
def end_request(s: PrefixCow, r: Branch) -> None:
    """A request finishes or is aborted, whatever steps of it are under way."""
    require(s.phase[r] == RUNNING or s.phase[r] == LOADED)
    require(not s.busy)
    require(not s.scheduled[STEP_WORK, r] or (s.mutant == PREEMPT_SCHEDULED and under_way(s, NEWER)))

    if s.scheduled[STEP_WORK, r]:
        s.scheduled[STEP_WORK, r] = False
        s.planned = excess(s.planned, 1)
    leave_for_good(s, r, fence(s, r))


@action
def doom_request(s: PrefixCow, r: Branch) -> None:
    """A request is aborted under its load, which writes to blocks that must stay until it is complete."""
    require(s.phase[r] == LOADING and not s.busy)

    if s.mutant == CANCEL_UNDER_LOAD:
        leave_for_good(s, r, BUILT)
    else:
        s.phase[r] = DOOMED


@action
def end_doomed(s: PrefixCow, r: Branch) -> None:
    """The load of an aborted request is complete: its blocks go."""
    require(s.phase[r] == DOOMED and not s.busy)

    learn(s, STEP_WORK, r)
    leave_for_good(s, r, BUILT)


@action
def learn_late(s: PrefixCow, r: Branch) -> None:
    """Under CANCEL_UNDER_LOAD: the load of a request complete that is gone."""
    require(s.mutant == CANCEL_UNDER_LOAD and s.phase[r] == OUT)
    require(s.running[STEP_WORK, r])
    require(last_step(s, r) == BUILT)

    learn(s, STEP_WORK, r)


@action
def settle(s: PrefixCow) -> None:
    """Every request is gone and nothing runs: nothing may be held any more."""
    require(s.present == 0 and not under_way(s, NEWER))

    quiescent(s)


# --- what holds -------------------------------------------------------------------------------------------------------


@helper
def computed(s: PrefixCow, r: Branch) -> int:
    """How many tokens of branch r are computed, those of launched steps included."""
    return s.first[r] if s.scheduled[STEP_WORK, r] else s.length[r]


@invariant
def view_intact(s: PrefixCow) -> bool:
    """What a request finds written is the shared tokens at their places, and its own tokens at theirs."""
    return all(
        s.phase[r] != RUNNING or s.scheduled[COPY_WORK, r] or shows_right(s, r, p, computed(s, r))
        for r in members(Branch, s)
        for p in row(s.table, r)
    )


@witness
def can_hit_a_running_tail(s: PrefixCow) -> bool:
    """A request has hit the tail of another that still appends to it."""
    return any(
        found_tail(s, r) and s.table[r, tail_pos(s, r)] is not None and s.owners[some(s.table[r, tail_pos(s, r)])] == 2
        for r in members(Branch, s)
    )


@witness
def can_append_after_copy(s: PrefixCow) -> bool:
    """A request has appended to a tail of its own whose first tokens it did not compute, and nothing of it runs."""
    return any(
        s.phase[r] == RUNNING
        and s.cached[r] == s.shared
        and s.length[r] > s.prompt
        and not s.running[STEP_WORK, r]
        and s.table[r, tail_pos(s, r)] is not None
        and s.owners[some(s.table[r, tail_pos(s, r)])] == 1
        and span(0, tail_slots(s, r)) & s.right[some(s.table[r, tail_pos(s, r)]), r] == empty()
        for r in members(Branch, s)
    )


@witness
def can_run_ahead(s: PrefixCow) -> bool:
    """Two steps of one request are under way."""
    return any(r in s.flying[OLDER, STEP_WORK] and r in s.flying[NEWER, STEP_WORK] for r in members(Branch, s))


@witness
def can_outlive_its_request(s: PrefixCow) -> bool:
    """A block waits for a step, though nobody owns it any more."""
    return any(s.retained[NEWER, b] and s.owners[b] == 0 for b in members(Block, s))


@witness
def can_copy_for_two(s: PrefixCow) -> bool:
    """One step makes two copies."""
    return any(
        s.scheduled[COPY_WORK, r] and s.scheduled[COPY_WORK, q] and r != q
        for r in members(Branch, s)
        for q in members(Branch, s)
    )


@witness
def can_rest(s: PrefixCow) -> bool:
    """Every request is gone and nothing runs: nothing is left to do."""
    return s.present == 0 and not under_way(s, NEWER)
