"""An engine that takes the first free block of its list: which one that is depends on how blocks are numbered."""

from __future__ import annotations

from kvsan.spec.lang import Map, Scope, Sort, State, action, initial, members, require, row, witness


class Block(Sort):
    """A physical block."""


class Branch(Sort):
    """A row of the block table."""


class Pool(Sort):
    """A list of free blocks."""


class LowestFree(State):
    """Which blocks are free, who has the others, and which the first was that each branch used."""

    free: Map[Pool, Block, bool]
    taken: Map[Block, Branch | None]
    waiting: Map[Branch, bool]
    used: Map[Block, bool]
    first: Map[Branch, Block | None]


def scope(branches: int = 2, blocks: int = 3) -> Scope:
    """The sizes."""
    return Scope({"Branch": branches, "Block": blocks, "Pool": 1}, {})


@initial
def nobody(s: LowestFree) -> None:
    """All blocks are free, all branches wait."""
    for q in members(Pool, s):
        for b in members(Block, s):
            s.free[q, b] = True
    for r in members(Branch, s):
        s.waiting[r] = True


@action
def take(s: LowestFree, r: Branch, q: Pool) -> None:
    """The first free block goes to the branch."""
    require(s.waiting[r])

    for b in row(s.free, q):
        if s.waiting[r]:
            s.taken[b], s.free[q, b], s.waiting[r] = r, False, False


@action
def use(s: LowestFree, r: Branch, q: Pool) -> None:
    """A branch uses all its blocks, and notes the first."""
    require(not s.waiting[r])

    for b in row(s.free, q):
        if s.first[r] is None:
            s.first[r] = b
        s.used[b] = True


@witness
def can_use(s: LowestFree) -> bool:
    """A free block is used by someone."""
    return any(s.used[b] and s.taken[b] is None for b in members(Block, s))
