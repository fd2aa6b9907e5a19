"""Blocks that branches take and give back, with a counter that one step forgets."""

from __future__ import annotations

from typing import Annotated

from kvsan.spec.lang import (
    Const,
    Derived,
    Map,
    Scope,
    Sort,
    State,
    UpTo,
    action,
    counted,
    initial,
    require,
)


class Block(Sort):
    """A physical block."""


class Branch(Sort):
    """A row of the block table."""


Count = Annotated[int, UpTo("blocks")]


class Miscounted(State):
    """Who has which block, and how many each branch has."""

    forgets: Const[bool]
    taken: Map[Block, Branch | None]
    has: Derived[Map[Branch, Count]]


def scope(branches: int = 2, blocks: int = 3, forgets: bool = False) -> Scope:
    """The sizes."""
    return Scope({"Branch": branches, "Block": blocks}, {"blocks": blocks}, {"forgets": forgets})


@initial
def nothing(s: Miscounted) -> None:
    """All blocks are free."""


@action
def take(s: Miscounted, r: Branch, b: Block) -> None:
    """A branch takes a block, but never all."""
    require(s.taken[b] is None and s.has[r] < 2)

    s.taken[b] = r
    s.has[r] += 1


@action
def give(s: Miscounted, r: Branch, b: Block) -> None:
    """A branch gives a block back."""
    require(s.taken[b] == r and s.has[r] > 0)

    s.taken[b] = None
    if not s.forgets:
        s.has[r] -= 1


@counted
def has_counted(s: Miscounted, r: Branch, b: Block) -> bool:
    """has[r] is the number of blocks that r has.

    Source: ours.
    Catches: a block given back uncounted.
    Except: none.
    Deviates: none.
    """
    return s.taken[b] == r
