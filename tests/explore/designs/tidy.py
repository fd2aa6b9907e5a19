"""A branch looks at every block of its row: an obligation in a loop, which the second of two blocks breaks."""

from __future__ import annotations

from typing import Annotated

from kvsan.spec.lang import (
    Below,
    Map,
    Scope,
    Sort,
    State,
    action,
    event,
    initial,
    members,
    obey,
    require,
    row,
    rule,
    some,
    witness,
)


class Block(Sort):
    """A block."""


class Branch(Sort):
    """A branch."""


Pos = Annotated[int, Below("positions")]


class Tidy(State):
    """What a branch holds, and what is clean."""

    table: Map[Branch, Pos, Block | None]
    dirty: Map[Block, bool]
    looked: Map[Branch, bool]


def scope(branches: int = 1, blocks: int = 2, positions: int = 3) -> Scope:
    """The sizes of one search."""
    return Scope({"Block": blocks, "Branch": branches}, {"positions": positions})


@rule
def clean() -> None:
    """A block that is looked at is clean.

    Source: ours.
    Catches: dirt.
    Except: nowhere.
    Deviates: nowhere.
    """


@event
def look(s: Tidy, r: Branch) -> None:
    """Look at every block of the row."""
    for p in row(s.table, r):
        b = some(s.table[r, p])
        obey(clean, not s.dirty[b], "block {b} at {p} is dirty")
    s.looked[r] = True


@initial
def start(s: Tidy) -> None:
    """A clean block, a dirty one, and no third."""
    s.table[Branch(0), 0] = Block(0)
    s.table[Branch(0), 1] = Block(1)
    s.dirty[Block(1)] = True


@action
def look_around(s: Tidy, r: Branch) -> None:
    """Look once."""
    require(not s.looked[r])

    look(s, r)


@witness
def can_rest(s: Tidy) -> bool:
    """Everybody has looked."""
    return all(s.looked[r] for r in members(Branch, s))
