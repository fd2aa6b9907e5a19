"""A ledger that designs derive from."""

from __future__ import annotations

from kvsan.spec.lang.surface import Map, Sort, State, event, ghost_rule, lint, obey, rule


class Block(Sort):
    """A block."""


class Ledger(State):
    """The base state. `spare` serves other designs."""

    held: Map[Block, bool]
    spare: Map[Block, bool]


@rule
def free_before_take() -> None:
    """A taken block was free.

    Source: ours.
    Catches: a block taken twice.
    Except: none.
    Deviates: none.
    """


@lint
def never_advised() -> None:
    """No event of this module judges it.

    Source: ours.
    Catches: nothing.
    Except: none.
    Deviates: none.
    """


@ghost_rule
def mark_is_true() -> None:
    """The mark of a design says what it should.

    Source: ours.
    Catches: a wrong mark.
    Except: none.
    Deviates: none.
    """


@event
def take(s: Ledger, b: Block) -> None:
    """Block b is taken."""
    obey(free_before_take, not s.held[b], "block {b} is taken")
    s.held[b] = True
