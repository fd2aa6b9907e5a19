"""The smallest machine with a shared writable tail, with a ledger of its own: the yardstick of the explorer.

Branches fork, append, copy on write and cancel over one pool of blocks. One copy a branch is in flight; a new block is
any free one; what a freed block held is wiped. Contents are ghosts: who wrote a slot, and what a branch must read.
"""

from __future__ import annotations

from typing import Annotated

from kvsan.spec.lang import (
    Below,
    Choice,
    Const,
    Map,
    Scope,
    Sort,
    State,
    UpTo,
    action,
    helper,
    initial,
    invariant,
    members,
    require,
    row,
    some,
    witness,
)


class Block(Sort):
    """A physical block."""


class Branch(Sort):
    """A row of the block table."""


class Phase(Choice):
    """What a branch is doing."""

    names = ("IDLE", "COPYING", "COPIED", "WRITING")


IDLE, COPYING, COPIED, WRITING = Phase("IDLE"), Phase("COPYING"), Phase("COPIED"), Phase("WRITING")

Pos = Annotated[int, Below("positions")]
Slot = Annotated[int, Below("block_size")]
Size = Annotated[int, UpTo("block_size")]
Token = Annotated[int, Below("capacity")]
Tokens = Annotated[int, UpTo("capacity")]
Refs = Annotated[int, UpTo("branches")]


class TailMachine(State):
    """The state, and the sizes of the scope."""

    size: Const[Size]
    capacity: Const[Tokens]
    prompt: Const[Tokens]
    shared_append: Const[bool]
    early_publish: Const[bool]

    alive: Map[Branch, bool]
    length: Map[Branch, Tokens]
    phase: Map[Branch, Phase]
    source: Map[Branch, Block | None]
    target: Map[Branch, Block | None]
    table: Map[Branch, Pos, Block | None]
    refs: Map[Block, Refs]
    wrote: Map[Block, Slot, Branch | None]
    prompted: Map[Block, Slot, bool]
    expected: Map[Branch, Token, Branch | None]
    given: Map[Branch, Token, bool]


def scope(
    branches: int = 3,
    blocks: int = 5,
    block_size: int = 2,
    positions: int = 2,
    prompt: int = 3,
    shared_append: bool = False,
    early_publish: bool = False,
) -> Scope:
    """The scope of these sizes; prompt: tokens that branch 0 starts with. The last two are mistakes to make."""
    capacity = block_size * positions
    return Scope(
        {"Branch": branches, "Block": blocks},
        {"block_size": block_size, "positions": positions, "capacity": capacity, "branches": branches},
        {
            "size": block_size,
            "capacity": capacity,
            "prompt": prompt,
            "shared_append": shared_append,
            "early_publish": early_publish,
        },
    )


# --- parts ------------------------------------------------------------------------------------------------------------


@helper
def drop(s: TailMachine, b: Block) -> None:
    """One reference fewer; the last one wipes the block."""
    if s.refs[b] > 0:
        s.refs[b] -= 1
    if s.refs[b] == 0:
        for k in row(s.wrote, b):
            s.wrote[b, k] = None
        for k in row(s.prompted, b):
            s.prompted[b, k] = False


@helper
def tail(s: TailMachine, r: Branch) -> Block:
    """The block that the next token goes to."""
    return some(s.table[r, s.length[r] // s.size])


@helper
def tail_slot(s: TailMachine, r: Branch) -> int:
    """The slot that the next token goes to."""
    return s.length[r] % s.size


@helper
def can_append(s: TailMachine, r: Branch) -> bool:
    """There is room for one token more."""
    return s.alive[r] and s.phase[r] == IDLE and s.length[r] < s.capacity


# --- steps ------------------------------------------------------------------------------------------------------------


@initial
def start(s: TailMachine) -> None:
    """Branch 0 holds the prompt in the first blocks."""
    root = Branch(0)
    s.alive[root] = True
    s.length[root] = s.prompt
    load(s, root, Block(0), 0)
    load(s, root, Block(1), 1)


@helper
def load(s: TailMachine, r: Branch, b: Block, p: Pos) -> None:
    """Position p holds its part of the prompt; blocks of at most two slots."""
    if s.prompt > p * s.size:
        s.table[r, p] = b
        s.refs[b] = 1
        load_slot(s, r, b, p, 0)
    if s.prompt > p * s.size + 1 and s.size > 1:
        load_slot(s, r, b, p, 1)


@helper
def load_slot(s: TailMachine, r: Branch, b: Block, p: Pos, k: Slot) -> None:
    """One token of the prompt."""
    s.prompted[b, k] = True
    s.given[r, p * s.size + k] = True


@action
def cancel(s: TailMachine, r: Branch) -> None:
    """Every reference of branch r goes, that of its pending copy too."""
    require(s.alive[r])

    for p in row(s.table, r):
        drop(s, some(s.table[r, p]))
        s.table[r, p] = None
    pending = s.target[r]
    if pending is not None:
        drop(s, pending)
    s.alive[r] = False
    s.length[r] = 0
    s.phase[r] = IDLE
    s.source[r] = None
    s.target[r] = None
    for i in row(s.expected, r):
        s.expected[r, i] = None
    for i in row(s.given, r):
        s.given[r, i] = False


@action
def fork(s: TailMachine, r: Branch, c: Branch) -> None:
    """Branch c starts with everything that branch r has."""
    require(s.alive[r])
    require(s.phase[r] == IDLE)
    require(not s.alive[c])

    s.alive[c] = True
    s.length[c] = s.length[r]
    for p in row(s.table, r):
        b = some(s.table[r, p])
        s.table[c, p] = b
        s.refs[b] += 1
    for i in row(s.expected, r):
        s.expected[c, i] = s.expected[r, i]
    for i in row(s.given, r):
        s.given[c, i] = True


@action
def grow(s: TailMachine, r: Branch, b: Block) -> None:
    """Crossing a block boundary takes a new block."""
    require(can_append(s, r))
    require(tail_slot(s, r) == 0)
    require(s.refs[b] == 0)

    s.table[r, s.length[r] // s.size] = b
    s.refs[b] = 1
    s.phase[r] = WRITING


@action
def append_in_place(s: TailMachine, r: Branch) -> None:
    """A sole owner appends in place."""
    require(can_append(s, r))
    require(tail_slot(s, r) != 0)
    require(s.refs[tail(s, r)] == 1 or s.shared_append)

    s.phase[r] = WRITING


@action
def start_copy(s: TailMachine, r: Branch, b: Block) -> None:
    """A shared tail is copied to a private block first."""
    require(can_append(s, r))
    require(tail_slot(s, r) != 0)
    require(s.refs[tail(s, r)] > 1)
    require(s.refs[b] == 0)

    s.source[r] = tail(s, r)
    s.target[r] = b
    s.refs[b] = 1
    s.phase[r] = COPYING


@action
def finish_copy(s: TailMachine, r: Branch) -> None:
    """The slots of the source are in the target."""
    require(s.phase[r] == COPYING)

    old_tail, new_tail = some(s.source[r]), some(s.target[r])
    for k in row(s.wrote, old_tail):
        s.wrote[new_tail, k] = s.wrote[old_tail, k]
    for k in row(s.prompted, old_tail):
        s.prompted[new_tail, k] = True
    s.phase[r] = COPIED


@action
def publish(s: TailMachine, r: Branch) -> None:
    """Only a finished copy becomes visible; then the shared tail loses one reference."""
    require(s.phase[r] == COPIED or (s.early_publish and s.phase[r] == COPYING))

    s.table[r, s.length[r] // s.size] = some(s.target[r])
    drop(s, some(s.source[r]))
    s.source[r] = None
    s.target[r] = None
    s.phase[r] = WRITING


@action
def finish_write(s: TailMachine, r: Branch) -> None:
    """The token is in its slot."""
    require(s.phase[r] == WRITING)

    b, k, i = tail(s, r), tail_slot(s, r), s.length[r]
    s.wrote[b, k] = r
    s.prompted[b, k] = False
    s.expected[r, i] = r
    s.length[r] = i + 1
    s.phase[r] = IDLE


# --- facts ------------------------------------------------------------------------------------------------------------


@invariant
def refs_cover_holds(s: TailMachine) -> bool:
    """A block has references exactly while a table or a pending copy holds it."""
    return all(
        (s.refs[b] > 0)
        == any(s.target[r] == b or any(s.table[r, p] == b for p in row(s.table, r)) for r in members(Branch, s))
        for b in members(Block, s)
    )


@invariant
def exclusive_write(s: TailMachine) -> bool:
    """Only a sole owner writes."""
    return all(s.refs[tail(s, r)] == 1 for r in members(Branch, s) if s.phase[r] == WRITING)


@invariant
def view_intact(s: TailMachine) -> bool:
    """Every branch reads what it must."""
    return all(
        all(s.wrote[some(s.table[r, i // s.size]), i % s.size] == s.expected[r, i] for i in row(s.expected, r))
        and all(s.prompted[some(s.table[r, i // s.size]), i % s.size] for i in row(s.given, r))
        for r in members(Branch, s)
    )


@witness
def can_write_private_copy(s: TailMachine) -> bool:
    """A copy completes, and its branch writes."""
    return any(s.phase[r] == WRITING and s.length[r] == s.prompt for r in members(Branch, s))
