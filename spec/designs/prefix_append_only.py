"""vLLM 0.9.1 V1: full blocks are shared through a prefix cache, and tables only ever grow at their end.

Every request has the same prompt. A request looks its full blocks up one after the other (the last token is always
computed), takes fresh blocks for the rest, and in one engine step seals the blocks that its step will fill and launches
that step. Two requests that were admitted together compute the same block twice, which is legal. A freed block keeps
its identity until the pool hands it out again, and a hit revives it.
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
    row,
    some,
    span,
    witness,
)
from kvsan.spec.ownership.branches import admit, finish, map
from kvsan.spec.ownership.identities import hit, seal
from kvsan.spec.ownership.quiescence import quiescent
from kvsan.spec.ownership.state import Block, Branch, Count, Identity, Pos, Tokens

from .contents import has_ended, was_written
from .device import COMPUTE, STEP_WORK, hand_out, launch_step, learn, nothing_runs
from .prompt_contents import holds_prompt, loses_prompt, shows_right
from .returns import Returns, give_back_leaving
from .start import fill_pool


class Phase(Choice):
    """OUT: no request. FILLING: it looks blocks up and takes others. SEALED: only where a mutant launches late."""

    names = ("OUT", "FILLING", "SEALED", "IDLE", "STEPPING")


class Mutant(Choice):
    """The one decision taken wrong; NONE is the right design."""

    names = (
        "NONE",
        "HIT_NOT_HELD",
        "ALLOC_KEEPS_IDENTITY",
        "SEAL_PARTIAL",
        "SEAL_BEYOND_TOKENS",
        "SEAL_HITS_AGAIN",
        "LAUNCH_LATE",
        "DEDUPLICATE",
        "RECOMPUTE_HITS",
        "END_FREES_SHARED",
        "END_KEEPS_BLOCKS",
    )


OUT, FILLING, SEALED, IDLE = Phase("OUT"), Phase("FILLING"), Phase("SEALED"), Phase("IDLE")
STEPPING = Phase("STEPPING")

HIT_NOT_HELD = Mutant("HIT_NOT_HELD")
ALLOC_KEEPS_IDENTITY = Mutant("ALLOC_KEEPS_IDENTITY")
SEAL_PARTIAL = Mutant("SEAL_PARTIAL")
SEAL_BEYOND_TOKENS = Mutant("SEAL_BEYOND_TOKENS")
SEAL_HITS_AGAIN = Mutant("SEAL_HITS_AGAIN")
LAUNCH_LATE = Mutant("LAUNCH_LATE")
DEDUPLICATE = Mutant("DEDUPLICATE")
RECOMPUTE_HITS = Mutant("RECOMPUTE_HITS")
END_FREES_SHARED = Mutant("END_FREES_SHARED")
END_KEEPS_BLOCKS = Mutant("END_KEEPS_BLOCKS")


class PrefixAppendOnly(Returns):
    """The ledger, the device, the contents, and what each request is about to do.

    hash_of: the identity of the prompt's block at a position. looked_up: under HIT_NOT_HELD, a hit that is not mapped
    yet. stale: under ALLOC_KEEPS_IDENTITY, what the cache still thinks.
    """

    prompt: Const[Tokens]
    capacity: Const[Tokens]
    mutant: Const[Mutant]

    hash_of: Map[Pos, Identity | None]
    phase: Map[Branch, Phase]
    filled: Map[Branch, Count]
    found: Map[Branch, Count]
    looked_up: Map[Branch, Block | None]
    stale: Map[Identity, Block | None]
    present: Count


# --- words ------------------------------------------------------------------------------------------------------------


@helper
def begins_at(s: PrefixAppendOnly, r: Branch) -> int:
    """The first token that the prefill of branch r computes."""
    return 0 if s.mutant == RECOMPUTE_HITS else s.found[r] * s.block_size[r]


@helper
def covers_prompt(s: PrefixAppendOnly, r: Branch) -> bool:
    """The branch has blocks for its whole prompt."""
    return s.filled[r] * s.block_size[r] >= s.prompt


@helper
def work_is_pending(s: PrefixAppendOnly, r: Branch) -> bool:
    """A prefill or an append of branch r has begun, be it by a first block, and has not ended."""
    return s.phase[r] != OUT and s.phase[r] != IDLE


@helper
def carries(s: PrefixAppendOnly, b: Block, h: Identity) -> bool:
    """The cache finds identity h on block b."""
    return s.carried[b, h] != empty() or s.stale[h] == b


@helper
def enter_hit(s: PrefixAppendOnly, r: Branch, b: Block) -> None:
    """A block that was hit enters the table."""
    map(s, r, s.filled[r], b)
    s.filled[r] += 1
    s.found[r] += 1


@helper
def seal_prompt(s: PrefixAppendOnly, r: Branch) -> None:
    """The full blocks that the next step fills are registered."""
    size, tokens = s.block_size[r], s.prompt
    for p in row(s.table, r):
        b, h = some(s.table[r, p]), s.hash_of[p]
        fresh = p >= s.found[r] or s.mutant == SEAL_HITS_AGAIN
        if h is not None and fresh and (p + 1) * size <= tokens:
            seal(s, b, h, r, 0, size, None, None)
        elif h is not None and p * size < tokens and s.mutant == SEAL_PARTIAL:
            seal(s, b, h, r, 0, tokens % size, None, None)
        elif h is not None and p * size < tokens and fresh and s.mutant == SEAL_BEYOND_TOKENS:
            seal(s, b, h, r, 0, size, None, None)


@helper
def launch_prefill(s: PrefixAppendOnly, r: Branch) -> None:
    """One step computes what was not found."""
    first, tokens = begins_at(s, r), s.prompt
    launch_step(s, r, first, tokens, tokens, COMPUTE)
    for p in row(s.table, r):
        b, size = some(s.table[r, p]), s.block_size[r]
        slots = span(min(size, excess(first, p * size)), min(size, excess(tokens, p * size)))
        was_written(s, r, b, p, slots)
        holds_prompt(s, b, p, slots)
    s.phase[r] = STEPPING


@helper
def launch_token(s: PrefixAppendOnly, r: Branch, p: Pos, b: Block) -> None:
    """One step computes the next token, into block b at position p."""
    token, i = s.length[r], s.length[r] % s.block_size[r]
    launch_step(s, r, token, token + 1, token + 1, COMPUTE)
    was_written(s, r, b, p, span(i, i + 1))
    loses_prompt(s, b, span(i, i + 1))
    s.phase[r] = STEPPING


# --- the machine ------------------------------------------------------------------------------------------------------


@initial
def empty_cache(s: PrefixAppendOnly) -> None:
    """Nobody is there, every block is free, and nothing is cached."""
    fill_pool(s)
    s.hash_of[0], s.hash_of[1] = Identity(0), Identity(1)


@action
def admit_request(s: PrefixAppendOnly, r: Branch) -> None:
    """A request arrives with the prompt."""
    require(s.phase[r] == OUT)
    require(not s.running[STEP_WORK, r])

    admit(s, r, s.prompt)
    s.phase[r] = FILLING
    s.present += 1


@action
def find_block(s: PrefixAppendOnly, r: Branch, b: Block, h: Identity) -> None:
    """The next full block of the prompt is in the cache: it is held from here on."""
    require(s.phase[r] == FILLING and s.looked_up[r] is None)
    require(s.found[r] == s.filled[r])
    require((s.filled[r] + 1) * s.block_size[r] < s.prompt)
    require(s.hash_of[s.filled[r]] == h and carries(s, b, h))

    hit(s, b, h, r, None, None, None)
    if s.mutant == HIT_NOT_HELD:
        s.looked_up[r] = b
    else:
        enter_hit(s, r, b)


@action
def use_found_block(s: PrefixAppendOnly, r: Branch) -> None:
    """Under HIT_NOT_HELD: what was looked up enters the table only now."""
    require(s.looked_up[r] is not None)

    enter_hit(s, r, some(s.looked_up[r]))
    s.looked_up[r] = None


@action
def take_block(s: PrefixAppendOnly, r: Branch, b: Block) -> None:
    """The next block of the prompt is not in the cache, or not looked for: a fresh one."""
    require(s.phase[r] == FILLING and s.looked_up[r] is None)
    require(s.filled[r] * s.block_size[r] < s.prompt)
    require(not s.held[b] or (s.mutant == HIT_NOT_HELD and s.owners[b] == 0))

    for h in row(s.carried, b):
        if s.mutant == ALLOC_KEEPS_IDENTITY:
            s.stale[h] = b
    hand_out(s, b, r)
    map(s, r, s.filled[r], b)
    s.filled[r] += 1


@action
def schedule_prefill(s: PrefixAppendOnly, r: Branch) -> None:
    """The request has its blocks: full ones are sealed, and the step that fills them is launched."""
    require(s.phase[r] == FILLING and covers_prompt(s, r))

    seal_prompt(s, r)
    if s.mutant == LAUNCH_LATE:
        s.phase[r] = SEALED
    else:
        launch_prefill(s, r)


@action
def launch_sealed(s: PrefixAppendOnly, r: Branch) -> None:
    """Under LAUNCH_LATE: the step comes some time after its blocks can be found."""
    require(s.phase[r] == SEALED)

    launch_prefill(s, r)


@action
def deduplicate(s: PrefixAppendOnly, r: Branch, p: Pos, b: Block, h: Identity) -> None:
    """Under DEDUPLICATE: a block that the cache has twice is replaced in the table by the other copy."""
    require(s.mutant == DEDUPLICATE and s.phase[r] == IDLE)
    require(s.hash_of[p] == h and s.carried[b, h] != empty())
    old = s.table[r, p]
    require(old is not None and old != b and s.carried[old, h] != empty())

    hit(s, b, h, r, None, None, None)
    map(s, r, p, b)


@action
def append_in_place(s: PrefixAppendOnly, r: Branch) -> None:
    """The next token goes into the tail, which nobody else can have."""
    require(s.phase[r] == IDLE)
    require(s.length[r] < s.capacity and s.length[r] % s.block_size[r] != 0)

    p = s.length[r] // s.block_size[r]
    launch_token(s, r, p, some(s.table[r, p]))


@action
def append_in_new_block(s: PrefixAppendOnly, r: Branch, b: Block) -> None:
    """The next token opens a block."""
    require(s.phase[r] == IDLE)
    require(s.length[r] < s.capacity and s.length[r] % s.block_size[r] == 0)
    require(not s.held[b])

    p = s.length[r] // s.block_size[r]
    for h in row(s.carried, b):
        if s.mutant == ALLOC_KEEPS_IDENTITY:
            s.stale[h] = b
    hand_out(s, b, r)
    map(s, r, p, b)
    launch_token(s, r, p, b)


@action
def finish_step(s: PrefixAppendOnly, r: Branch) -> None:
    """The host has seen the step complete and has its token."""
    require(s.phase[r] == STEPPING)

    learn(s, STEP_WORK, r)
    s.phase[r] = IDLE


@action
def end_request(s: PrefixAppendOnly, r: Branch) -> None:
    """A request finishes or is aborted: what nobody else owns is free, and stays in the cache if it is sealed."""
    require(s.phase[r] == IDLE or s.phase[r] == STEPPING)

    for p in row(s.table, r):
        b = some(s.table[r, p])
        if (s.owners[b] == 1 and s.mutant != END_KEEPS_BLOCKS) or s.mutant == END_FREES_SHARED:
            s.leaving[True, p] = b
    has_ended(s, r)
    finish(s, r)
    s.present = excess(s.present, 1)
    give_back_leaving(s)


@action
def learn_late(s: PrefixAppendOnly, r: Branch) -> None:
    """The host has seen the step of a request complete that is gone."""
    require(
        s.phase[r] == OUT, "the host looks at the step of a request where it waits for it; on one stream it need not"
    )
    require(s.running[STEP_WORK, r])

    learn(s, STEP_WORK, r)


@action
def settle(s: PrefixAppendOnly) -> None:
    """Every request is gone and nothing runs."""
    require(s.present == 0 and nothing_runs(s))

    quiescent(s)


# --- what holds -------------------------------------------------------------------------------------------------------


@invariant
def view_intact(s: PrefixAppendOnly) -> bool:
    """At rest, what a request finds written is the prompt at its place, and its own tokens at theirs."""
    return all(
        s.phase[r] != IDLE or shows_right(s, r, p, s.length[r]) for r in members(Branch, s) for p in row(s.table, r)
    )


@witness
def can_share(s: PrefixAppendOnly) -> bool:
    """Two requests own one block."""
    return any(s.owners[b] == 2 for b in members(Block, s))


@witness
def can_cache_twice(s: PrefixAppendOnly) -> bool:
    """Two blocks carry one identity."""
    return any(s.standing[h] == 2 for h in members(Identity, s))


@witness
def can_revive(s: PrefixAppendOnly) -> bool:
    """A request that is about to start has found what an ended one left behind."""
    return any(s.found[r] > 0 for r in members(Branch, s)) and s.present == 1


@witness
def can_rest(s: PrefixAppendOnly) -> bool:
    """Every request is gone and nothing runs: nothing is left to do."""
    return s.present == 0 and nothing_runs(s)
