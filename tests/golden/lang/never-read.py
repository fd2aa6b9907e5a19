"""Bad on purpose: a variable that no step reads."""

from __future__ import annotations

from typing import Annotated

from kvsan.spec.lang import Map, Sort, State, UpTo, event, obey, rule


class Block(Sort):
    """A physical block."""


Count = Annotated[int, UpTo("count")]


class Pool(State):
    """What is known of blocks."""

    held: Map[Block, bool]
    owners: Map[Block, Count]


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
def probe(s: Pool, b: Block) -> None:
    """A step with a mistake."""
    s.owners[b] = 1
