"""Witnesses that ask whether some entry has a value, in all the ways that are asked of whole words, and in some that
are not."""

from __future__ import annotations

from typing import Annotated

from kvsan.spec.lang import Below, Map, Scope, Sort, State, UpTo, action, helper, initial, members, row, witness


class Block(Sort):
    """A block."""


class Branch(Sort):
    """A branch."""


Pos = Annotated[int, Below("positions")]
Cell = Annotated[int, Below("cells")]
Level = Annotated[int, UpTo("levels")]


class Anywhere(State):
    """wide: more entries than a word has room for. who, whom, what: whose answer a witness gives."""

    target: Map[Branch, Block | None]
    table: Map[Branch, Pos, Block | None]
    wide: Map[Branch, Cell, Block | None]
    level: Map[Branch, Level]
    heap: Map[Branch, Pos, Level]
    spare: Map[Branch, Pos, Block | None]
    peer: Map[Branch, Branch]
    who: Branch
    whom: Branch
    what: Block


def scope(branches: int = 3, blocks: int = 4, positions: int = 3, cells: int = 12, levels: int = 2) -> Scope:
    """The scope of these sizes."""
    return Scope(
        {"Branch": branches, "Block": blocks},
        {"positions": positions, "cells": cells, "levels": levels},
        {},
    )


@initial
def start(s: Anywhere) -> None:
    """Nothing anywhere."""


@action
def write(s: Anywhere, r: Branch, q: Branch, p: Pos, c: Cell, b: Block, n: Level) -> None:
    """Something may change; the test makes its states itself."""
    s.target[r] = b
    s.table[r, p] = b
    s.spare[r, p] = b
    s.wide[r, c] = b
    s.level[r] = n
    s.heap[r, p] = n
    s.peer[r] = q
    s.who = r
    s.whom = q
    s.what = b


# --- whole words ------------------------------------------------------------------------------------------------------


@witness
def can_aimed_at(s: Anywhere) -> bool:
    """A whole sort."""
    return all(any(s.target[r] == b for r in members(Branch, s)) or b != s.what for b in members(Block, s))


@witness
def can_nobody_aims_at(s: Anywhere) -> bool:
    """All of them are different."""
    return all(all(s.target[r] != b for r in members(Branch, s)) or b != s.what for b in members(Block, s))


@witness
def can_held(s: Anywhere) -> bool:
    """Every row."""
    return all(
        any(any(s.table[r, p] == b for p in row(s.table, r)) for r in members(Branch, s)) or b != s.what
        for b in members(Block, s)
    )


@witness
def can_held_or_aimed_at(s: Anywhere) -> bool:
    """Entries of two variables."""
    return all(
        any(s.target[r] == b or any(s.table[r, p] == b for p in row(s.table, r)) for r in members(Branch, s))
        or b != s.what
        for b in members(Block, s)
    )


@witness
def can_neither_held_nor_aimed_at(s: Anywhere) -> bool:
    """The same, turned round."""
    return all(
        all(s.target[r] != b and all(s.table[r, p] != b for p in row(s.table, r)) for r in members(Branch, s))
        or b != s.what
        for b in members(Block, s)
    )


@witness
def can_holds(s: Anywhere) -> bool:
    """One row."""
    return all(
        any(s.table[r, p] == b for p in row(s.table, r)) or r != s.who or b != s.what
        for r in members(Branch, s)
        for b in members(Block, s)
    )


@witness
def can_held_far(s: Anywhere) -> bool:
    """All words of a variable."""
    return all(
        any(any(s.wide[r, c] == b for c in row(s.wide, r)) for r in members(Branch, s)) or b != s.what
        for b in members(Block, s)
    )


@witness
def can_be_peer(s: Anywhere) -> bool:
    """Of one branch alone there is nothing to store."""
    return all(any(s.peer[r] == q for r in members(Branch, s)) or q != s.whom for q in members(Branch, s))


@witness
def can_at_two(s: Anywhere) -> bool:
    """A literal."""
    return any(s.level[r] == 2 for r in members(Branch, s))


@witness
def can_at_none(s: Anywhere) -> bool:
    """A literal that is 0."""
    return any(s.level[r] == 0 for r in members(Branch, s))


# --- other questions --------------------------------------------------------------------------------------------------


@witness
def can_all_aim_at(s: Anywhere) -> bool:
    """All are equal."""
    return all(all(s.target[r] == b for r in members(Branch, s)) or b != s.what for b in members(Block, s))


@witness
def can_holds_far(s: Anywhere) -> bool:
    """One row of a variable that lies in several words."""
    return all(
        any(s.wide[r, c] == b for c in row(s.wide, r)) or r != s.who or b != s.what
        for r in members(Branch, s)
        for b in members(Block, s)
    )


@witness
def can_heaped(s: Anywhere) -> bool:
    """A row of numbers has no entry that is 0."""
    return all(any(s.heap[r, p] == 0 for p in row(s.heap, r)) for r in members(Branch, s))


@witness
def can_some_hold_none(s: Anywhere) -> bool:
    """One branch without."""
    return all(
        any(all(s.table[r, p] != b for p in row(s.table, r)) for r in members(Branch, s)) or b != s.what
        for b in members(Block, s)
    )


@witness
def can_aimed_or_not_held(s: Anywhere) -> bool:
    """Equal here, different there."""
    return all(
        any(s.target[r] == b or s.spare[r, 0] != b for r in members(Branch, s)) or b != s.what
        for b in members(Block, s)
    )


@witness
def can_aim_and_hold(s: Anywhere) -> bool:
    """Both at once."""
    return all(
        any(s.target[r] == b and any(s.table[r, p] == b for p in row(s.table, r)) for r in members(Branch, s))
        or b != s.what
        for b in members(Block, s)
    )


@witness
def can_some_hold_only(s: Anywhere) -> bool:
    """One branch with nothing else."""
    return all(
        any(all(s.table[r, p] == b for p in row(s.table, r)) for r in members(Branch, s)) or b != s.what
        for b in members(Block, s)
    )


@witness
def can_miss_one(s: Anywhere) -> bool:
    """Different here or different there."""
    return all(
        all(s.target[r] != b or all(s.table[r, p] != b for p in row(s.table, r)) for r in members(Branch, s))
        or b != s.what
        for b in members(Block, s)
    )


@witness
def can_repeat(s: Anywhere) -> bool:
    """The name is not that of the entry."""
    return all(
        any(s.spare[r, 0] == b for _ in members(Branch, s)) or r != s.who or b != s.what
        for r in members(Branch, s)
        for b in members(Block, s)
    )


@witness
def can_peer_holds(s: Anywhere) -> bool:
    """The row of somebody who is read first."""
    return all(
        any(s.table[s.peer[r], p] == b for p in row(s.table, s.peer[r])) or r != s.who or b != s.what
        for r in members(Branch, s)
        for b in members(Block, s)
    )


@witness
def can_level_of_a_cell(s: Anywhere) -> bool:
    """A number that may be larger than any entry."""
    return any(any(s.level[q] == c for q in members(Branch, s)) for r in members(Branch, s) for c in row(s.wide, r))


@witness
def can_hold_what_another_has(s: Anywhere) -> bool:
    """The names go over the row of one branch, the entries are of another."""
    return all(
        any(s.spare[r, p] == b for p in row(s.spare, q)) or q != s.whom or r != s.who or b != s.what
        for r in members(Branch, s)
        for q in members(Branch, s)
        for b in members(Block, s)
    )


@witness
def can_be_alone(s: Anywhere) -> bool:
    """The value is a name that goes over the entries."""
    return all(s.level[r] < 3 for r in members(Branch, s)) and any(s.peer[r] == r for r in members(Branch, s))


@helper
def has_like(s: Anywhere, r: Branch, q: Branch) -> bool:
    """Branch r holds what branch q aims at."""
    other = s.target[q]
    return any(s.table[r, p] == other for p in row(s.table, r))


@helper
def aims_like(s: Anywhere, q: Branch) -> bool:
    """Somebody aims at what branch q holds in its first place, or at nothing as it does."""
    other = s.spare[q, 0]
    return any(s.target[r] == other for r in members(Branch, s))


@witness
def can_hold_like(s: Anywhere) -> bool:
    """A row has no entry that is None."""
    return all(has_like(s, r, q) or r != s.who or q != s.whom for r in members(Branch, s) for q in members(Branch, s))


@witness
def can_aim_like(s: Anywhere) -> bool:
    """None is equal to None."""
    return all(aims_like(s, q) or q != s.whom for q in members(Branch, s))


@witness
def can_turned(s: Anywhere) -> bool:
    """The value has the first name, the entry the last ones."""
    return any(any(s.target[r] == b for r in members(Branch, s)) for b in members(Block, s))


@witness
def can_beyond(s: Anywhere) -> bool:
    """No entry can have such a value."""
    return any(s.level[r] == 5 for r in members(Branch, s))


@witness
def can_other_row(s: Anywhere) -> bool:
    """The names go over one row, the entries are of another."""
    return any(any(s.spare[r, p] == s.target[r] for p in row(s.table, r)) for r in members(Branch, s))


@witness
def can_own_row(s: Anywhere) -> bool:
    """The row of one branch, the entries of all."""
    return all(
        any(s.spare[r, p] == b for p in row(s.table, r)) or r != s.who or b != s.what
        for r in members(Branch, s)
        for b in members(Block, s)
    )
