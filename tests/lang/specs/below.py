"""A set cut off at a natural."""

from __future__ import annotations

from typing import Annotated

from kvsan.spec.lang import Below, Map, Set, Sort, State, event, span


class Block(Sort):
    """A block."""


Slot = Annotated[int, Below("block_size")]


class Model(State):
    """What is written."""

    written: Map[Block, Set[Slot]]


@event
def keep(s: Model, b: Block, hi: int) -> None:
    """The slots from hi on are lost."""
    s.written[b] = s.written[b] & span(0, hi)
