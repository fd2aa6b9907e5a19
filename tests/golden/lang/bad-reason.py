"""Bad on purpose: two conditions in one guard, and a guard with a setting."""

from __future__ import annotations

from kvsan.spec.lang import Map, Sort, State, action, event, obey, require, rule


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


@action
def probe(s: Pool, b: Block, c: Block) -> None:
    """A step with a mistake."""
    require(s.held[b], b != c)
    require(not s.held[c], choice="it is free")

    alloc(s, b)
