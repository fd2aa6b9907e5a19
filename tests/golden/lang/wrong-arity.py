"""Bad on purpose: one index too few, and an argument too many."""

from __future__ import annotations

from typing import Annotated

from kvsan.spec.lang import Below, Map, Sort, State, event, obey, rule


class Block(Sort):
    """A physical block."""


class Branch(Sort):
    """A sequence."""


Pos = Annotated[int, Below("positions")]


class Pool(State):
    """What is known of blocks."""

    held: Map[Block, bool]
    table: Map[Branch, Pos, Block | None]


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


@event
def probe(s: Pool, r: Branch) -> None:
    """A step with a mistake."""
    s.table[r] = None
    alloc(s, r, r)


@event
def map_block(s: Pool, r: Branch, p: Pos, b: Block) -> None:
    """An entry is set."""
    obey(alloc_from_free, s.table[r, p] is None, "{b}")
    s.table[r, p] = b
