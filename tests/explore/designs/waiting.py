"""Two branches that each take the blocks they need one by one: a pool of two lets them wait for each other."""

from __future__ import annotations

from kvsan.spec.lang import Map, Scope, Sort, State, action, initial, members, require, some, witness


class Block(Sort):
    """A block."""


class Branch(Sort):
    """A branch that needs two blocks."""


class Waiting(State):
    """Who has which block as its first."""

    first: Map[Branch, Block | None]
    taken: Map[Block, bool]
    done: Map[Branch, bool]


def scope(branches: int = 2, blocks: int = 2) -> Scope:
    """The sizes of one search."""
    return Scope({"Block": blocks, "Branch": branches}, {})


@initial
def empty(s: Waiting) -> None:
    """Nobody has anything."""


@action
def take_first(s: Waiting, r: Branch, b: Block) -> None:
    """Take one block."""
    require(not s.done[r] and s.first[r] is None)
    require(not s.taken[b])

    s.first[r] = b
    s.taken[b] = True


@action
def take_second(s: Waiting, r: Branch, b: Block) -> None:
    """Take another, and be done: both go back."""
    require(s.first[r] is not None)
    require(not s.taken[b])

    s.taken[some(s.first[r])] = False
    s.first[r] = None
    s.done[r] = True


@witness
def can_rest(s: Waiting) -> bool:
    """Every branch is done."""
    return all(s.done[r] for r in members(Branch, s))
