"""Bad on purpose: calls that no step can make."""

from __future__ import annotations

from kvsan.spec.lang import Map, Sort, State, event, obey, rule


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


def plain(b: Block) -> bool:
    return True


@event
def probe(s: Pool, b: Block) -> None:
    """A step with a mistake."""
    s.held[b] = plain(b)
    s.held[b] = len(b) > 0
    aloc(s, b)
