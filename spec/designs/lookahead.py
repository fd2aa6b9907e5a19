"""The state of `speculative`, and what its steps are made of: blocks taken, promised and given back, and a launch."""

from __future__ import annotations

from kvsan.spec.lang.surface import Choice, Const, Map, empty, excess, helper, row, some, span
from kvsan.spec.ownership.branches import finish, grow, map, preempt, propose, reserve, unmap, window
from kvsan.spec.ownership.contents import write
from kvsan.spec.ownership.identities import seal
from kvsan.spec.ownership.state import Block, Branch, Count, Identity, Pool, Pos, Tokens

from .contents import has_ended, was_written
from .device import COMPUTE, hand_out, launch_step, step_writes
from .prompt_contents import loses_prompt
from .returns import Returns, give_back_leaving, release


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


class Speculative(Returns):
    """The ledger, the device, the contents, and the step that each branch prepares.

    lookahead: drafts of one step at most. window_size: tokens that attention reaches back, itself included; 0: all.
    failures: how often the pool is found empty. home: the pool. hash_of: the identity of a position's tokens.
    computed: tokens whose slots are written or about to be, drafts aside. drafts: of the step that is being prepared.
    filled: positions below have an entry, or had, or a block is taken for them. taken_for: those blocks. spoken_for:
    blocks promised and not yet taken. Over append-only tables
    `prompted` is what every request has at a position, be it of the prompt or decoded.
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
    present: Count


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
    give_back_leaving(s)


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
        loses_prompt(s, b, slots)
        if s.append_only:
            s.prompted[b, p] = s.prompted[b, p] | step_writes(s, r, p, first, s.length[r])


@helper
def settled_contents(s: Speculative, r: Branch, before: int) -> None:
    """The branch had `before` tokens without its drafts, and now knows which of these stand."""
    for p in row(s.table, r):
        b, size = some(s.table[r, p]), s.block_size[r]
        s.right[b, r] = s.right[b, r] & span(0, min(size, excess(s.length[r], p * size)))
        if s.append_only:
            s.prompted[b, p] = s.prompted[b, p] | step_writes(s, r, p, before, s.length[r])


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
