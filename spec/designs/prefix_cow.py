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
them; and the cache may find any block of an identity that the next step does not fill, not only the oldest. Requests
come and go while the scheduler builds a step. That whatever has begun ends rests on three things, which keep those who
come from holding up for ever those who are there: a refusal ends the scheduler's pass, so does the end of a request
that never ran, and who waited for a load is scheduled before anybody is taken up.
"""

from __future__ import annotations

from kvsan.spec.lang.surface import (
    action,
    auxiliary,
    counted,
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
from kvsan.spec.ownership.branches import admit, grow, map
from kvsan.spec.ownership.identities import evict, hit, seal
from kvsan.spec.ownership.quiescence import quiescent
from kvsan.spec.ownership.state import Block, Branch, Identity

from .batches import (
    BUILT,
    NEWER,
    OLDER,
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
    under_way,
)
from .device import (
    COMPUTE,
    COPIES,
    COPY_WORK,
    STEP_WORK,
    forget_ordered,
    launch_step,
    learn,
)
from .prompt_contents import shows_right
from .returns import release
from .start import fill_pool
from .tails import (
    APPEND_WITHOUT_COPY,
    CANCEL_UNDER_LOAD,
    COPY_AFTER_STEP,
    COPY_TOO_FEW,
    DOOMED,
    EVICT_KEEPS_IDENTITY,
    FENCE_NEVER_DONE,
    FILLING,
    HIT_NOT_HELD,
    LOADED,
    LOADING,
    OUT,
    PREEMPT_SCHEDULED,
    RUNNING,
    SOURCE_NOT_RETAINED,
    TARGET_NOT_RETAINED,
    PrefixCow,
    carries,
    copies_were_made,
    covers_prompt,
    fence,
    forward_was_made,
    found_tail,
    join_step,
    leave_for_good,
    may_append,
    may_be_copied,
    may_take,
    must_move,
    pass_holds_on,
    retain_ends,
    seal_shared,
    tail_pos,
    tail_slots,
    take_fresh,
    tokens_were_written,
)

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
    require(not s.refused, "a refusal ends the scheduler's pass, which else might refuse for ever and launch nothing")
    require(s.loaded == 0, "who waited for a load goes first, and might wait for ever behind those who come")
    require(
        not s.running[STEP_WORK, r] and not s.running[COPY_WORK, r] and not s.scheduled[COPY_WORK, r],
        "work under way is known by its request's name",
    )

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
    else:
        s.loaded = excess(s.loaded, 1)
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
    s.loaded += 1


# --- a request appends ------------------------------------------------------------------------------------------------


@action
def append_in_place(s: PrefixCow, r: Branch) -> None:
    """The next token goes into the tail."""
    require(may_append(s, r) and s.length[r] % s.block_size[r] != 0)
    require(
        not must_move(s, some(s.table[r, s.length[r] // s.block_size[r]])),
        "a state is overwritten as a whole, which slots do not show: its identity moves first",
    )

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
    require(
        must_move(s, some(s.table[r, s.length[r] // s.block_size[r]])),
        "where no state is overwritten a move costs a copy, and no more",
    )
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
    s.planned, s.refused = 0, False
    if not s.connector:
        forget_ordered(s, COMPUTE, COMPUTE)


@action
def process_step(s: PrefixCow) -> None:
    """The output of the oldest step is here: what waited for that step returns to the pool."""
    require(under_way(s, NEWER), "where there is no output nothing changes but that the scheduler may begin anew")
    require(not s.busy)

    done = oldest(s)
    s.refused = False
    learn_step(s, done)
    if s.mutant != FENCE_NEVER_DONE:
        for b in row(s.retained, done):
            let_go(s, done, b)
            release(s, b)


# --- a request goes ---------------------------------------------------------------------------------------------------


@action
def give_up(s: PrefixCow, r: Branch) -> None:
    """The pool cannot serve the request that the scheduler has in hand: what it got goes back, and nobody else is taken
    up before the step that is built is launched, one is seen complete, or a request goes."""
    require(s.phase[r] == FILLING)

    s.busy = False
    leave_for_good(s, r, BUILT)
    s.refused = s.present > 0


@action
def end_request(s: PrefixCow, r: Branch) -> None:
    """A request finishes or is aborted, whatever steps of it are under way."""
    require(s.phase[r] == RUNNING or s.phase[r] == LOADED)
    require(not s.busy)
    require(not s.scheduled[STEP_WORK, r] or (s.mutant == PREEMPT_SCHEDULED and under_way(s, NEWER)))

    if s.scheduled[STEP_WORK, r]:
        s.scheduled[STEP_WORK, r] = False
        s.planned = excess(s.planned, 1)
    never_ran = s.phase[r] == LOADED
    if never_ran:
        s.loaded = excess(s.loaded, 1)
    leave_for_good(s, r, fence(s, r))
    s.refused = never_ran and s.present > 0  # else who comes for a load and goes might hold up the others for ever


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
    """The load of an aborted request is complete: its blocks go, whatever the scheduler is about."""
    require(s.phase[r] == DOOMED)

    learn(s, STEP_WORK, r)
    leave_for_good(s, r, BUILT)
    s.refused = s.present > 0


@action
def learn_late(s: PrefixCow, r: Branch) -> None:
    """Under CANCEL_UNDER_LOAD: the load of a request complete that is gone."""
    require(s.mutant == CANCEL_UNDER_LOAD)
    require(s.phase[r] == OUT)
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


@counted
def present_counted(s: PrefixCow, r: Branch) -> bool:
    """`present` is the number of requests that have come and not gone.

    Source: ours.
    Catches: a pool that settles while somebody is there.
    Except: none.
    Deviates: none.
    """
    return s.phase[r] != OUT


@counted
def loaded_counted(s: PrefixCow, r: Branch) -> bool:
    """`loaded` is the number of requests whose load is complete and that no step has taken up.

    Source: ours.
    Catches: a scheduler that takes up nobody any more.
    Except: none.
    Deviates: none.
    """
    return s.phase[r] == LOADED


@auxiliary
def nothing_before_admission(s: PrefixCow, r: Branch) -> bool:
    """Who is not there has neither tokens nor blocks.

    Source: ours.
    Catches: a block for a request that the scheduler does not have.
    Except: none.
    Deviates: none.
    """
    return s.phase[r] != OUT or (s.length[r] == 0 and s.filled[r] == 0)


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
