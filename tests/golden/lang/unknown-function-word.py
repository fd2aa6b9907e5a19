"""Bad on purpose: a word of the language is used, and not imported."""

from __future__ import annotations

from kvsan.spec.lang import Map, Sort, State, event


class Block(Sort):
    """A physical block."""


class Pool(State):
    """What is known of blocks."""

    last: Block | None
    held: Map[Block, bool]


@event
def hold(s: Pool, b: Block) -> None:
    """A block is held, if the last one is not."""
    s.held[b] = not s.held[some(s.last)]
    s.last = b
