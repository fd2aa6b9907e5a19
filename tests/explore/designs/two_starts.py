"""Blocks are used, from one of two starts: only from the second is a block's second use wrong."""

from __future__ import annotations

from kvsan.spec.lang import Map, Scope, Sort, State, action, event, helper, initial, members, obey, require, rule


class Block(Sort):
    """A block."""


class TwoStarts(State):
    """Which blocks nobody has used yet, and whether that matters."""

    fresh: Map[Block, bool]
    strict: Map[bool, bool]
    ended: Map[bool, bool]


def scope(blocks: int = 3) -> Scope:
    """The size of one search."""
    return Scope({"Block": blocks}, {})


@rule
def used_once() -> None:
    """A block is used once where that is strict.

    Source: ours.
    Catches: a second use.
    Except: nowhere.
    Deviates: nowhere.
    """


@helper
def all_fresh(s: TwoStarts) -> None:
    """No block is used."""
    for b in members(Block, s):
        s.fresh[b] = True


@event
def use(s: TwoStarts, b: Block) -> None:
    """A use."""
    obey(used_once, s.fresh[b] or not s.strict[True], "{b} is used again")
    s.fresh[b] = False


@initial
def easy(s: TwoStarts) -> None:
    """A block may be used again."""
    all_fresh(s)


@initial
def hard(s: TwoStarts) -> None:
    """It may not."""
    all_fresh(s)
    s.strict[True] = True


@action
def take(s: TwoStarts, b: Block) -> None:
    """Use a block."""
    require(not s.ended[True])

    use(s, b)


@action
def stop(s: TwoStarts) -> None:
    """Use none any more."""
    require(not s.ended[True])

    s.ended[True] = True
