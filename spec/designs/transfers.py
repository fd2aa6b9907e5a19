"""Transfers of KV blocks, as a connector of vLLM V1 makes them: a prompt is loaded from elsewhere, sent elsewhere,
stored to a second tier and fetched from it, each under pins that outlive their request.

The discipline is `append_only`: connectors came with vLLM V1, whose tables only grow and whose full blocks are shared
by hits. Every request has the same prompt. Its first block is registered where it is full; longer chains of hashes are
`prefix_append_only`'s. A transfer pins its blocks at once, and what it pins stays when its request ends, until every
handle is complete or known to move nothing any more; a failed handle loses its block, and the request computes it.

A transfer between the tiers has two steps, for the scheduler decides and the worker launches: its source is pinned at
the first. Completions may be lost: then the connection is torn down after a while, and what was under way has failed.

Sources: vLLM `KVConnectorBase_V1`, `NixlConnector`, `OffloadingConnector`; LMCache's `lookup_pin`. A mutant names the
public bug that it stands for, where there is one.
"""

from __future__ import annotations

from kvsan.spec.lang.surface import (
    action,
    auxiliary,
    counted,
    empty,
    excess,
    initial,
    invariant,
    members,
    only,
    require,
    row,
    some,
    span,
    witness,
)
from kvsan.spec.ownership.branches import admit, map
from kvsan.spec.ownership.identities import hit
from kvsan.spec.ownership.quiescence import quiescent
from kvsan.spec.ownership.state import (
    FREEZE,
    KEEP,
    Block,
    Branch,
    Holder,
    Identity,
    Pos,
)

from .contents import was_written
from .device import STEP_WORK, learn, nothing_runs, step_writes
from .handles import (
    compute,
    is_moving,
    learn_handle,
    load_block,
    move_block,
    moves_nothing,
    send_block,
    take_out,
)
from .pinning import (
    APPEND_UNDER_SEND,
    END_UNDER_STEP,
    FETCH,
    FETCH_DUE,
    FILLING,
    IDLE,
    LEAVING,
    LOAD,
    LOAD_OVER_HITS,
    LOADING,
    LOOKUP_NOT_PINNED,
    NEVER_TIMES_OUT,
    NOTHING,
    OUT,
    RELEASE_AT_FIRST_HANDLE,
    RELEASE_UNHELD,
    SEAL_BEFORE_LOAD,
    SEAL_FAILED_STORE,
    SEAL_STORE_AT_LAUNCH,
    SEND,
    SEND_UNDER_STEP,
    SOURCE_FREED_AT_LAUNCH,
    STEP_UNDER_LOAD,
    STEPPING,
    STORE,
    STORE_DUE,
    STORE_NOT_PINNED,
    Transfers,
    begin,
    close,
    covers_prompt,
    fail,
    go_away,
    hold,
    let_go,
    looks_up,
    may_start,
    of_prompt,
    register,
    still_moves,
)
from .prompt_contents import holds_prompt, loses_prompt, prompt_was_copied, shows_right

# --- a request comes, computes and goes -------------------------------------------------------------------------------


@initial
def empty_pools(s: Transfers) -> None:
    """Nobody is there, every block is free, and the first ones are those of the second tier."""
    for b in members(Block, s):
        if s.free[s.pool_of[b]] < s.tier_blocks:
            s.second_tier = s.second_tier | only(b)
        s.free[s.pool_of[b]] += 1
    s.prompt_hash = Identity(0)


@action
def admit_request(s: Transfers, r: Branch) -> None:
    """A request arrives with the prompt."""
    require(s.phase[r] == OUT)
    require(not s.running[STEP_WORK, r])

    admit(s, r, s.prompt)
    s.phase[r] = FILLING
    s.present += 1


@action
def find_block(s: Transfers, r: Branch, b: Block) -> None:
    """The first block of the prompt is in the cache."""
    require(looks_up(s, r))
    require(s.carried[b, s.prompt_hash] != empty() and b not in s.second_tier)

    hit(s, b, s.prompt_hash, r, None, None, None)
    map(s, r, 0, b)
    s.filled[r], s.computed[r] = 1, 1


@action
def take_block(s: Transfers, r: Branch, b: Block) -> None:
    """The next block of the prompt is a fresh one."""
    require(s.phase[r] == FILLING and not covers_prompt(s, r))
    require(not s.held[b] and b not in s.second_tier)

    take_out(s, b, r)
    map(s, r, s.filled[r], b)
    s.filled[r] += 1


@action
def prefill(s: Transfers, r: Branch) -> None:
    """One step computes what was neither found nor loaded, the last token at least; a full first block is sealed."""
    require(s.phase[r] == FILLING and covers_prompt(s, r))

    first = min(s.computed[r] * s.block_size[r], excess(s.prompt, 1))
    if s.block_size[r] <= s.prompt:
        register(s, some(s.table[r, 0]), r)
    compute(s, r, first, s.prompt)
    for p in row(s.table, r):
        holds_prompt(s, some(s.table[r, p]), p, step_writes(s, r, p, first, s.prompt))
    s.phase[r] = STEPPING


@action
def append_in_place(s: Transfers, r: Branch) -> None:
    """The next token goes into the tail, unless a transfer reads it."""
    require(s.phase[r] == IDLE)
    require(s.length[r] < s.capacity and s.length[r] % s.block_size[r] != 0)
    p, i = s.length[r] // s.block_size[r], s.length[r] % s.block_size[r]
    b = some(s.table[r, p])
    require(s.freezes[b] == 0 or s.mutant == APPEND_UNDER_SEND)

    compute(s, r, s.length[r], s.length[r] + 1)
    was_written(s, r, b, p, span(i, i + 1))
    loses_prompt(s, b, span(i, i + 1))
    s.phase[r] = STEPPING


@action
def finish_step(s: Transfers, r: Branch) -> None:
    """The host has seen the step complete and has its token."""
    require(s.phase[r] == STEPPING)

    learn(s, STEP_WORK, r)
    s.filled[r], s.computed[r] = 0, 0
    s.phase[r] = IDLE


@action
def end_request(s: Transfers, r: Branch) -> None:
    """A request finishes or is aborted: what nothing else holds is free. Transfers go on, but for one that is only
    due."""
    require(s.phase[r] != OUT and s.phase[r] != LEAVING)
    require(s.phase[r] != STEPPING or s.mutant == END_UNDER_STEP)

    go_away(s, r)


@action
def abort_under_step(s: Transfers, r: Branch) -> None:
    """A request is aborted while its step runs: its blocks stay, for transfers are not ordered after the step."""
    require(s.phase[r] == STEPPING)

    s.phase[r] = LEAVING


@action
def end_after_step(s: Transfers, r: Branch) -> None:
    """The host has seen the step of an aborted request complete."""
    require(s.phase[r] == LEAVING)

    learn(s, STEP_WORK, r)
    go_away(s, r)


@action
def settle(s: Transfers) -> None:
    """Every request and every transfer is gone, and nothing runs."""
    require(s.present == 0 and s.active == 0 and nothing_runs(s))

    quiescent(s)


# --- from elsewhere, and to elsewhere ---------------------------------------------------------------------------------


@action
def start_load(s: Transfers, r: Branch, h: Holder) -> None:
    """The prompt comes from elsewhere into the blocks that were not found, a handle each."""
    require(s.phase[r] == FILLING and covers_prompt(s, r))
    require(s.computed[r] < s.filled[r])
    require(may_start(s, h))

    begin(s, h, LOAD, r)
    for p in row(s.table, r):
        b = some(s.table[r, p])
        if p >= s.computed[r] or s.mutant == LOAD_OVER_HITS:
            hold(s, h, b, KEEP)
            s.kept[h, p] = b
            load_block(s, h, b)
            holds_prompt(s, b, p, of_prompt(s, r, p))
            if p == 0 and s.block_size[r] <= s.prompt and s.mutant == SEAL_BEFORE_LOAD:
                register(s, b, r)
        elif s.mutant == RELEASE_UNHELD:
            s.kept[h, p] = b
    s.computed[r] = s.filled[r]
    s.waits[r] = h
    if s.mutant != STEP_UNDER_LOAD:
        s.phase[r] = LOADING


@action
def start_send(s: Transfers, r: Branch, h: Holder) -> None:
    """What the request has goes elsewhere, a handle for each block; the request may go on or end."""
    require(s.phase[r] == IDLE or (s.mutant == SEND_UNDER_STEP and s.phase[r] == STEPPING))
    require(may_start(s, h))

    begin(s, h, SEND, None)
    for p in row(s.table, r):
        b = some(s.table[r, p])
        used = span(0, min(s.block_size[r], excess(s.length[r], p * s.block_size[r])))
        hold(s, h, b, FREEZE)
        s.kept[h, p] = b
        send_block(s, h, b)
        s.spoiled[h] = s.spoiled[h] or not used <= s.prompted[b, p] | (s.right[b, r] & s.placed[b, p])


# --- to the second tier, and back from it -----------------------------------------------------------------------------


@action
def claim_store(s: Transfers, r: Branch, h: Holder) -> None:
    """The scheduler decides that the first block of the prompt is stored in the second tier, and pins it."""
    require(s.phase[r] == IDLE and s.tier_blocks > 0)
    b = some(s.table[r, 0])
    require(s.carried[b, s.prompt_hash] != empty())
    require(may_start(s, h))

    begin(s, h, STORE_DUE, None)
    s.source[h] = b
    if s.mutant != STORE_NOT_PINNED:
        hold(s, h, b, FREEZE)


@action
def launch_store(s: Transfers, h: Holder, c: Block) -> None:
    """The worker copies the block to the second tier."""
    require(s.purpose[h] == STORE_DUE)
    require(c in s.second_tier, "it makes the second tier the second: a copy within the first is as good a copy")
    require(not s.held[c] or (s.mutant == LOOKUP_NOT_PINNED and s.keeps[c] == 0))

    b = some(s.source[h])
    if s.mutant == STORE_NOT_PINNED:
        hold(s, h, b, FREEZE)
    take_out(s, c, None)
    hold(s, h, c, KEEP)
    s.kept[h, 0] = c
    move_block(s, h, b, c)
    prompt_was_copied(s, b, c, span(0, s.slots_of[c]))
    s.purpose[h] = STORE
    if s.mutant == SEAL_STORE_AT_LAUNCH:
        register(s, c, None)


@action
def look_up(s: Transfers, r: Branch, c: Block, h: Holder) -> None:
    """The scheduler finds the first block of the prompt in the second tier, and pins it."""
    require(looks_up(s, r))
    require(s.carried[c, s.prompt_hash] != empty() and c in s.second_tier)
    require(may_start(s, h))

    hit(s, c, s.prompt_hash, r, None, None, None)
    begin(s, h, FETCH_DUE, r)
    s.source[h] = c
    if s.mutant != LOOKUP_NOT_PINNED:
        hold(s, h, c, FREEZE)
    s.waits[r] = h
    s.phase[r] = LOADING


@action
def launch_fetch(s: Transfers, h: Holder, b: Block) -> None:
    """The worker copies the block back, into a fresh one of the request."""
    require(s.purpose[h] == FETCH_DUE)
    require(not s.held[b] and b not in s.second_tier)

    c, r = some(s.source[h]), some(s.client[h])
    if s.mutant == LOOKUP_NOT_PINNED:
        hold(s, h, c, FREEZE)
    take_out(s, b, r)
    map(s, r, 0, b)
    hold(s, h, b, KEEP)
    s.kept[h, 0] = b
    move_block(s, h, c, b)
    prompt_was_copied(s, c, b, span(0, s.slots_of[b]))
    s.filled[r], s.computed[r] = 1, 1
    s.purpose[h] = FETCH
    if s.mutant == SOURCE_FREED_AT_LAUNCH:
        let_go(s, h, c)


# --- a transfer ends --------------------------------------------------------------------------------------------------


@action
def finish_handle(s: Transfers, h: Holder, p: Pos) -> None:
    """The host hears that a handle is complete; the last one ends the transfer."""
    require(s.kept[h, p] is not None and not s.lost[h])
    b = some(s.kept[h, p])
    require(is_moving(s, h, b))

    learn_handle(s, h, b, True)
    if s.purpose[h] == STORE:
        register(s, b, None)
    if moves_nothing(s, h) or s.mutant == RELEASE_AT_FIRST_HANDLE:
        close(s, h)


@action
def fail_handle(s: Transfers, h: Holder, p: Pos) -> None:
    """The host hears that a handle has failed, or that its abort is complete."""
    require(s.kept[h, p] is not None and not s.lost[h])
    b = some(s.kept[h, p])
    require(is_moving(s, h, b), "a handle ends once; what has come and is then taken for lost is computed again")

    fail(s, h, p, b)
    learn_handle(s, h, b, False)
    if s.purpose[h] == STORE and s.mutant == SEAL_FAILED_STORE:
        register(s, b, None)
    if moves_nothing(s, h):
        close(s, h)


@action
def lose_completion(s: Transfers, h: Holder) -> None:
    """The host will hear no more of a transfer."""
    require(s.purpose[h] != NOTHING and not moves_nothing(s, h) and not s.lost[h])

    s.lost[h] = True
    if s.mutant == NEVER_TIMES_OUT:
        s.active = excess(s.active, 1)


@action
def time_out(s: Transfers, h: Holder) -> None:
    """After a while the connection is torn down: what was under way moves no more, and has failed."""
    require(s.lost[h] and s.mutant != NEVER_TIMES_OUT)

    for p in row(s.kept, h):
        b = some(s.kept[h, p])
        if is_moving(s, h, b):
            fail(s, h, p, b)
            if not still_moves(s, h):
                learn_handle(s, h, b, False)
    close(s, h)


# --- what holds -------------------------------------------------------------------------------------------------------


@invariant
def view_intact(s: Transfers) -> bool:
    """At rest, what a request finds written is the prompt at its place, and its own tokens at theirs."""
    return all(
        s.phase[r] != IDLE or shows_right(s, r, p, s.length[r]) for r in members(Branch, s) for p in row(s.table, r)
    )


@invariant
def sent_what_it_has(s: Transfers) -> bool:
    """A transfer to elsewhere has read what its request has. No rule says so: as a copy, it passes on what is there."""
    return not any(s.spoiled[h] for h in members(Holder, s))


@counted
def present_counted(s: Transfers, r: Branch) -> bool:
    """`present` is the number of requests that have come and not gone.

    Source: ours.
    Catches: a pool that settles while somebody is there.
    Except: none.
    Deviates: none.
    """
    return s.phase[r] != OUT


@counted
def active_counted(s: Transfers, h: Holder) -> bool:
    """`active` is the number of transfers that have begun and not ended.

    Source: ours.
    Catches: a pool that settles while something moves.
    Except: none.
    Deviates: none.
    """
    return s.purpose[h] != NOTHING


@auxiliary
def moves_while_it_lasts(s: Transfers, h: Holder) -> bool:
    """A transfer has a handle under way from its launch to its end, and only such a one can lose its completion.

    Source: vLLM `OffloadingConnector`: a job is finished when its last transfer is.
    Catches: a transfer of nothing, for whose end a request would wait for ever.
    Except: none.
    Deviates: none.
    """
    due = s.purpose[h] == STORE_DUE or s.purpose[h] == FETCH_DUE
    launched = s.purpose[h] != NOTHING and not due
    return launched != moves_nothing(s, h) and (launched or not s.lost[h])


@witness
def can_read_what_was_loaded(s: Transfers) -> bool:
    """A step of a request runs that had only its last token to compute, over blocks that nobody shares."""
    return any(
        s.phase[r] == STEPPING
        and s.filled[r] > 0
        and s.computed[r] == s.filled[r]
        and s.owners[some(s.table[r, 0])] == 1
        for r in members(Branch, s)
    )


@witness
def can_outlive_its_request(s: Transfers) -> bool:
    """A transfer to elsewhere goes on when nobody owns its blocks any more."""
    return any(
        s.purpose[h] == SEND and s.owners[some(s.kept[h, p])] == 0 for h in members(Holder, s) for p in row(s.kept, h)
    )


@witness
def can_abort(s: Transfers) -> bool:
    """A load goes on whose request is gone."""
    return any(
        s.purpose[h] == LOAD and s.owners[some(s.kept[h, p])] == 0 for h in members(Holder, s) for p in row(s.kept, h)
    )


@witness
def can_move_a_shared_block(s: Transfers) -> bool:
    """A transfer reads a block that two requests own."""
    return any(s.owners[b] > 1 and s.freezes[b] > 0 for b in members(Block, s))


@witness
def can_fail_in_part(s: Transfers) -> bool:
    """Of the blocks of a load the first has come and a later one not: it is computed."""
    return any(
        s.phase[r] == STEPPING and s.filled[r] > 1 and s.computed[r] == 1 and s.owners[some(s.table[r, 0])] == 1
        for r in members(Branch, s)
    )


@witness
def can_lose_a_completion(s: Transfers) -> bool:
    """A request waits for a transfer of which the host will hear no more."""
    return any(s.phase[r] == LOADING and s.lost[some(s.waits[r])] for r in members(Branch, s))


@witness
def can_come_back(s: Transfers) -> bool:
    """A request has one block, which nobody has registered here and which need not be computed."""
    return any(
        s.phase[r] == FILLING
        and s.computed[r] == 1
        and not covers_prompt(s, r)
        and s.sealed[some(s.table[r, 0])] == empty()
        for r in members(Branch, s)
    )


@witness
def can_rest(s: Transfers) -> bool:
    """Every request and every transfer is gone and nothing runs: nothing is left to do."""
    return s.present == 0 and s.active == 0 and nothing_runs(s)
