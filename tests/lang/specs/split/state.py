"""The state."""

from __future__ import annotations

from kvsan.spec.lang import Choice, Map, Sort, State


class Block(Sort):
    """A block."""


class Mode(Choice):
    """Two of them."""

    names = ("KEEP", "FREEZE")


KEEP, FREEZE = Mode("KEEP"), Mode("FREEZE")


class Pool(State):
    """Pinned blocks."""

    mode: Map[Block, Mode]
