"""Fields of many words, changed and asked about in every way that finds an entry, a row or all of them."""

from __future__ import annotations

from typing import Annotated

from kvsan.spec.lang import (
    Below,
    Derived,
    Map,
    Scope,
    Set,
    Sort,
    State,
    UpTo,
    action,
    counted,
    empty,
    initial,
    invariant,
    members,
    only,
    require,
    reset,
    row,
    some,
    witness,
)


class Block(Sort):
    """A block."""


class Branch(Sort):
    """A branch."""


Pos = Annotated[int, Below("positions")]
Cell = Annotated[int, Below("cells")]
Level = Annotated[int, UpTo("levels")]
Count = Annotated[int, UpTo("blocks")]
Few = Annotated[int, UpTo("branches")]


class Spread(State):
    """table: rows that share a word. wide: rows that none can hold. who, whom, what, where: what a step is about."""

    table: Map[Branch, Pos, Block | None]
    wide: Map[Branch, Cell, Block | None]
    holds: Map[Branch, Block, bool]
    level: Map[Block, Level]
    group: Map[Block, Set[Branch]]
    owner: Map[Block, Branch | None]
    last: Block | None
    who: Branch
    whom: Branch
    what: Block
    where: Pos
    cell: Cell
    goal: Map[Branch, Block | None]
    line: Map[Cell, Block | None]
    has: Derived[Map[Branch, Count]]
    aims: Derived[Map[Block, Few]]


def scope(branches: int = 5, blocks: int = 65, positions: int = 3, cells: int = 12, levels: int = 5) -> Scope:
    """The scope of these sizes."""
    return Scope(
        {"Branch": branches, "Block": blocks},
        {"positions": positions, "cells": cells, "levels": levels, "blocks": blocks, "branches": branches},
        {},
    )


@initial
def start(s: Spread) -> None:
    """Nothing anywhere."""


# --- entries ----------------------------------------------------------------------------------------------------------


@action
def look(s: Spread, p: Pos) -> None:
    """The next steps are about other members and places."""
    s.who, s.whom = s.whom, s.who
    s.where = p
    s.cell = p * 3 + 2
    s.what = some(s.goal[s.who])


@action
def turn_to(s: Spread, r: Branch) -> None:
    """The next steps are about another branch."""
    s.whom = r


@action
def place(s: Spread) -> None:
    """An entry of each field, and one that depends on it."""
    s.table[s.who, s.where] = s.what
    s.wide[s.whom, s.cell] = s.table[s.who, s.where]
    s.group[s.what] |= only(s.who)


@action
def queue(s: Spread) -> None:
    """An entry whose place is written down, read before and after it may be replaced."""
    s.line[s.where + 1] = None
    s.line[0] = s.line[11]
    s.line[s.where + 9] = s.what
    s.last = s.line[11]


@action
def raise_level(s: Spread) -> None:
    """A number that grows, by what another entry says."""
    require(s.level[s.what] < 4)

    if s.who in s.group[s.what] and not s.holds[s.who, s.what]:
        s.level[s.what] += 2
    else:
        s.level[s.what] += 1
    s.group[s.what] = empty()
    s.holds[s.who, s.what] = True


@action
def take(s: Spread) -> None:
    """A block of nobody's, counted."""
    require(s.owner[s.what] is None)

    s.owner[s.what] = s.who
    s.has[s.who] += 1


@action
def aim(s: Spread) -> None:
    """A block that others may aim at too, counted."""
    require(s.goal[s.who] is None)

    s.goal[s.who] = s.what
    s.aims[s.what] += 1


@action
def aim_uncounted(s: Spread) -> None:
    """The same, but the fact is broken."""
    require(s.goal[s.who] is None)

    s.goal[s.who] = s.what


@action
def follow(s: Spread) -> None:
    """A block that an entry names."""
    found = s.wide[s.who, s.cell]
    require(found is not None)

    s.level[found] = 1
    s.wide[s.whom, s.cell] = None


# --- rows -------------------------------------------------------------------------------------------------------------


@action
def clear_row(s: Spread) -> None:
    """All of a row in one word, and of one in several."""
    for p in row(s.table, s.who):
        s.table[s.who, p] = None
    for c in row(s.wide, s.who):
        s.wide[s.who, c] = None


@action
def copy_row(s: Spread) -> None:
    """A row over another."""
    for p in row(s.table, s.who):
        s.table[s.whom, p] = s.table[s.who, p]
    for c in row(s.wide, s.who):
        s.wide[s.whom, c] = s.wide[s.who, c]
    s.last = s.table[s.whom, s.where]


@action
def hand_over(s: Spread) -> None:
    """A row of more keys than a mask has bits, which the turns change."""
    for b in row(s.holds, s.who):
        s.holds[s.whom, b] = True
        s.holds[s.who, b] = False
        s.level[b] = 3


@action
def forget_block(s: Spread) -> None:
    """What a block alone indexes."""
    require(s.owner[s.what] is None and s.aims[s.what] == 0)

    reset(s, s.what)


@action
def forget_branch(s: Spread) -> None:
    """What a branch alone indexes."""
    require(s.has[s.who] == 0 and s.goal[s.who] is None)

    reset(s, s.who)


# --- questions --------------------------------------------------------------------------------------------------------


@counted
def has_counted(s: Spread, r: Branch, b: Block) -> bool:
    """has[r] is the number of blocks that r owns.

    Source: ours.
    Catches: nothing; it is counted in words that are not stored.
    Except: none.
    Deviates: none.
    """
    return s.owner[b] == r


@counted
def aims_counted(s: Spread, b: Block, r: Branch) -> bool:
    """aims[b] is the number of branches that aim at b.

    Source: ours.
    Catches: nothing; it is counted in many words that are not stored.
    Except: none.
    Deviates: none.
    """
    return s.goal[r] == b


@invariant
def nobody_has_many(s: Spread) -> bool:
    """Blocks are spread."""
    return all(s.has[r] < 17 for r in members(Branch, s))


@witness
def can_name_it(s: Spread) -> bool:
    """A whole field of many words."""
    return any(
        b == s.what and any(s.wide[r, c] == b for r in members(Branch, s) for c in row(s.wide, r))
        for b in members(Block, s)
    )


@witness
def can_have_it_in_a_row(s: Spread) -> bool:
    """A row of one word."""
    return any(
        any(s.table[r, p] == b for p in row(s.table, r)) and s.level[b] == 3
        for r in members(Branch, s)
        for b in members(Block, s)
    )


@witness
def can_own_nothing(s: Spread) -> bool:
    """A whole field, every entry."""
    return all(all(s.owner[b] != r for b in members(Block, s)) or r != s.who for r in members(Branch, s))


@witness
def can_end_with_it(s: Spread) -> bool:
    """What is said once."""
    return s.last is None or s.last == s.what
