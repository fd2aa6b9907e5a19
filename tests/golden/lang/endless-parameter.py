"""Bad on purpose: parameters of which there is no end, or which nobody gives."""

from __future__ import annotations

from kvsan.spec.lang import Map, Set, Sort, State, action, event, initial, invariant, obey, require, rule


class Block(Sort):
    """A physical block."""


class Pool(State):
    """What is known of blocks."""

    held: Map[Block, bool]


@rule
def alloc_from_free() -> None:
    """An allocated block was free.

    Source: ours.
    Catches: a block handed out twice.
    Except: nowhere.
    Deviates: nowhere.
    """


@event
def alloc(s: Pool, b: Block) -> None:
    """The pool hands out a block."""
    obey(alloc_from_free, not s.held[b], "block {b} is not free")
    s.held[b] = True


@initial
def begin(s: Pool, b: Block) -> None:
    """A start that is given something."""
    s.held[b] = True


@action
def take(s: Pool, b: Block, n: int, among: Set[Block] | None) -> None:
    """A step of which there are as many as naturals."""
    require(n > 0 and among is not None and b in among)

    alloc(s, b)


@invariant
def is_held(s: Pool, b: Block) -> bool:
    """A fact of one block."""
    return s.held[b]
