"""The reference machine: branches that fork, append, copy on write and cancel over one pool of blocks.

The same transition system as the TLA+ module `TailCopy`, on whose counts several model checkers agree. Simplified on
purpose: one copy in flight per branch, the host waits for it, and a freed block is wiped (so that garbage does not
multiply states). The start of a copy shows in a log only as its `alloc`, the end as one synchronous `copy`.

Ghosts: who wrote each slot, and whose token each branch must read there; a prompt token has no author.
"""

from __future__ import annotations

from typing import Annotated

from kvsan.spec.lang.surface import (
    Below,
    Choice,
    Const,
    Ghost,
    Map,
    action,
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
from kvsan.spec.ownership.blocks import alloc, free
from kvsan.spec.ownership.branches import finish, fork, map, unmap
from kvsan.spec.ownership.contents import copy, write
from kvsan.spec.ownership.ledger import forget_replaced
from kvsan.spec.ownership.state import Block, Branch, Ownership, Slot, Tokens

from .attention import attend
from .start import fill_pool, write_prompt

Token = Annotated[int, Below("tokens")]


class Phase(Choice):
    """Where a branch is in the append of its next token."""

    names = ("IDLE", "COPYING", "COPIED", "WRITING")


class Mutant(Choice):
    """The one decision taken wrong; NONE is the right design."""

    names = (
        "NONE",
        "APPEND_WITHOUT_COPY",
        "SHARE_EMPTY_TAIL",
        "PUBLISH_BEFORE_COPY",
        "COPY_TOO_FEW",
        "COPY_ALTHOUGH_SOLE_OWNER",
        "DROP_SOURCE_BEFORE_COPY",
        "CANCEL_FREES_SHARED",
        "FREE_TWICE",
        "FORK_RELEASED_BLOCK",
    )


IDLE, COPYING, COPIED, WRITING = Phase("IDLE"), Phase("COPYING"), Phase("COPIED"), Phase("WRITING")
APPEND_WITHOUT_COPY = Mutant("APPEND_WITHOUT_COPY")
SHARE_EMPTY_TAIL = Mutant("SHARE_EMPTY_TAIL")
PUBLISH_BEFORE_COPY = Mutant("PUBLISH_BEFORE_COPY")
COPY_TOO_FEW = Mutant("COPY_TOO_FEW")
COPY_ALTHOUGH_SOLE_OWNER = Mutant("COPY_ALTHOUGH_SOLE_OWNER")
DROP_SOURCE_BEFORE_COPY = Mutant("DROP_SOURCE_BEFORE_COPY")
CANCEL_FREES_SHARED = Mutant("CANCEL_FREES_SHARED")
FREE_TWICE = Mutant("FREE_TWICE")
FORK_RELEASED_BLOCK = Mutant("FORK_RELEASED_BLOCK")


class TailCopy(Ownership):
    """The ledger, and what each branch is about to do."""

    prompt: Const[Tokens]
    capacity: Const[Tokens]
    mutant: Const[Mutant]

    alive: Map[Branch, bool]
    phase: Map[Branch, Phase]
    source: Map[Branch, Block | None]
    target: Map[Branch, Block | None]
    freed_early: Map[Block, bool]  # under FREE_TWICE: a completion still thinks that this block is its own

    author: Ghost[Map[Block, Slot, Branch | None]]
    expected: Ghost[Map[Branch, Token, Branch | None]]


# --- words ------------------------------------------------------------------------------------------------------------


@helper
def tail_pos(s: TailCopy, r: Branch) -> int:
    """The position that the next token falls into."""
    return s.length[r] // s.block_size[r]


@helper
def tail_slot(s: TailCopy, r: Branch) -> int:
    """The slot that the next token falls into."""
    return s.length[r] % s.block_size[r]


@helper
def tail(s: TailCopy, r: Branch) -> Block:
    """The block that the next token falls into, where there is one already."""
    return some(s.table[r, tail_pos(s, r)])


@helper
def copy_target(s: TailCopy, r: Branch) -> Block:
    """The private block of a pending copy."""
    return tail(s, r) if s.mutant == DROP_SOURCE_BEFORE_COPY else some(s.target[r])


@helper
def can_append(s: TailCopy, r: Branch) -> bool:
    """The branch has nothing pending and room for a token."""
    return s.alive[r] and s.phase[r] == IDLE and s.length[r] < s.capacity


@helper
def append_is_pending(s: TailCopy, r: Branch) -> bool:
    """An append of branch r has begun and not ended."""
    return s.phase[r] != IDLE


@helper
def give_back(s: TailCopy, b: Block) -> None:
    """A block that nobody owns any more returns to the pool, wiped."""
    if s.owners[b] == 0 or s.mutant == CANCEL_FREES_SHARED:
        free(s, b)
        if s.mutant != DROP_SOURCE_BEFORE_COPY:  # its copy still reads what the block held
            reset(s, b)


# --- the machine ------------------------------------------------------------------------------------------------------


@initial
def hold_prompt(s: TailCopy) -> None:
    """One branch has the prompt, written, in blocks of its own."""
    fill_pool(s)
    write_prompt(s, Branch(0), s.prompt)
    s.alive[Branch(0)] = True


@action
def fork_branch(s: TailCopy, r: Branch, c: Branch) -> None:
    """Branch c starts as a copy of r and shares every block of it."""
    require(s.alive[r])
    require(s.phase[r] == IDLE or (s.mutant == SHARE_EMPTY_TAIL and s.phase[r] == WRITING))
    require(not s.alive[c])

    released = s.source[r]
    if s.mutant == FORK_RELEASED_BLOCK and released is not None:
        fork(s, c, r, excess(s.length[r], 1))
        map(s, c, excess(s.length[r], 1) // s.block_size[r], released)
    else:
        fork(s, c, r, None)
    s.alive[c] = True
    for t in row(s.expected, r):
        s.expected[c, t] = s.expected[r, t]


@action
def grow_tail(s: TailCopy, r: Branch, b: Block) -> None:
    """Crossing a block boundary takes a new private block."""
    require(can_append(s, r))
    require(tail_slot(s, r) == 0)
    require(s.table[r, tail_pos(s, r)] is None)  # always so; that nothing is replaced here saves states their memory
    require(not s.held[b])

    alloc(s, b, r)
    map(s, r, tail_pos(s, r), b)
    s.phase[r] = WRITING


@action
def append_in_place(s: TailCopy, r: Branch) -> None:
    """A sole owner appends in place."""
    require(can_append(s, r))
    require(tail_slot(s, r) != 0)
    require(s.owners[tail(s, r)] == 1 or s.mutant == APPEND_WITHOUT_COPY)

    s.phase[r] = WRITING


@action
def start_copy(s: TailCopy, r: Branch, b: Block) -> None:
    """A shared tail is copied to a private block first."""
    require(can_append(s, r))
    require(tail_slot(s, r) != 0)
    require(
        s.owners[tail(s, r)] > 1 or s.mutant == COPY_ALTHOUGH_SOLE_OWNER,
        "a sole owner's copy is needless, and no worse than one whose other owners leave meanwhile",
    )
    require(not s.held[b])

    old_tail = tail(s, r)
    alloc(s, b, r)
    if s.mutant == DROP_SOURCE_BEFORE_COPY:
        map(s, r, tail_pos(s, r), b)
        give_back(s, old_tail)
    else:
        s.target[r] = b
    s.source[r], s.phase[r] = old_tail, COPYING


@action
def finish_copy(s: TailCopy, r: Branch) -> None:
    """The copy is complete."""
    require(s.phase[r] == COPYING)

    old_tail, new_tail = some(s.source[r]), copy_target(s, r)
    used = excess(tail_slot(s, r), 1) if s.mutant == COPY_TOO_FEW else tail_slot(s, r)
    copy(s, r, old_tail, new_tail, 0, used)
    for i in row(s.author, old_tail):
        s.author[new_tail, i] = s.author[old_tail, i]
    s.phase[r] = COPIED


@action
def publish_copy(s: TailCopy, r: Branch) -> None:
    """Only a finished copy becomes visible; then the shared tail loses one owner."""
    require(s.phase[r] == COPIED or (s.mutant == PUBLISH_BEFORE_COPY and s.phase[r] == COPYING))

    old_tail, new_tail = some(s.source[r]), copy_target(s, r)
    map(s, r, tail_pos(s, r), new_tail)
    forget_replaced(s, r)
    if s.mutant != DROP_SOURCE_BEFORE_COPY:  # that one has dropped it already
        give_back(s, old_tail)
    if s.mutant != FORK_RELEASED_BLOCK:
        s.source[r] = None
    s.target[r], s.phase[r] = None, WRITING


@action
def finish_write(s: TailCopy, r: Branch) -> None:
    """The next token is in its slot, and the branch attends to all it has."""
    require(s.phase[r] == WRITING)

    b, slot, token = tail(s, r), tail_slot(s, r), s.length[r]
    write(s, r, b, slot, slot + 1, token, token + 1, None)
    attend(s, r, token + 1)
    s.author[b, slot], s.expected[r, token] = r, r
    s.phase[r] = IDLE


@action
def cancel_branch(s: TailCopy, r: Branch) -> None:
    """Every entry of the branch goes, and the target of its pending copy."""
    require(s.alive[r])

    pending = s.target[r]
    for p in row(s.table, r):
        b = some(s.table[r, p])
        unmap(s, r, p, b)
        give_back(s, b)
    finish(s, r)
    if pending is not None:
        give_back(s, pending)
        s.freed_early[pending] = s.mutant == FREE_TWICE


@action
def complete_late(s: TailCopy, b: Block) -> None:
    """Under FREE_TWICE: the completion of a cancelled copy frees its target once more."""
    require(s.freed_early[b])

    s.freed_early[b] = False
    free(s, b)


# --- what holds -------------------------------------------------------------------------------------------------------


@invariant
def view_intact(s: TailCopy) -> bool:
    """At rest, each branch reads the prompt at its place and the tokens that it and its ancestors wrote."""
    return all(
        s.phase[r] != IDLE
        or (
            all(
                span(0, min(s.block_size[r], excess(s.length[r], p * s.block_size[r])))
                <= s.written[some(s.table[r, p])]
                for p in row(s.table, r)
            )
            and all(
                s.length[r] <= p * s.block_size[r] + i
                or s.author[some(s.table[r, p]), i] == s.expected[r, p * s.block_size[r] + i]
                for p in row(s.table, r)
                for i in row(s.author, some(s.table[r, p]))
            )
            and all(
                s.author[some(s.table[r, t // s.block_size[r]]), t % s.block_size[r]] == s.expected[r, t]
                for t in row(s.expected, r)
            )
        )
        for r in members(Branch, s)
    )


@witness
def can_copy(s: TailCopy) -> bool:
    """A copy completes."""
    return any(s.phase[r] == COPIED for r in members(Branch, s))


@witness
def can_rest(s: TailCopy) -> bool:
    """Every branch is gone: nothing is left to do."""
    return all(not s.alive[r] for r in members(Branch, s))


@witness
def can_append_after_copy(s: TailCopy) -> bool:
    """Two branches that shared their tail both filled it, each in a block of its own."""
    return any(
        s.alive[c]
        and s.length[r] > s.prompt
        and s.length[c] > s.prompt
        and s.table[r, s.prompt // s.block_size[r]] != s.table[c, s.prompt // s.block_size[c]]
        for r in members(Branch, s)
        if s.alive[r]
        for c in members(Branch, s)
    )
