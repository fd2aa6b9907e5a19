"""Bad on purpose: a guard and a lasting store depend on a ghost."""

from __future__ import annotations

from typing import Annotated

from kvsan.spec.lang import Ghost, Map, Sort, State, UpTo, action, event, obey, require, rule


class Block(Sort):
    """A physical block."""


Count = Annotated[int, UpTo("count")]


class Pool(State):
    """What is known of blocks."""

    held: Map[Block, bool]
    seen: Ghost[Map[Block, Count]]


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


@action
def probe(s: Pool, b: Block) -> None:
    """A step with a mistake."""
    require(s.seen[b] > 0)
    alloc(s, b)


@event
def haunt(s: Pool, b: Block) -> None:
    """A step with a mistake."""
    s.seen[b] = s.seen[b] + 1
    often = s.seen[b] > 2
    if often:
        s.held[b] = False
