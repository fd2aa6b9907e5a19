"""A specification that means nothing and uses every construct of the language."""

from __future__ import annotations

from typing import Annotated

from kvsan.spec.lang.surface import (
    Below,
    Choice,
    Const,
    Derived,
    Ghost,
    Map,
    Set,
    Sort,
    State,
    UpTo,
    action,
    advise,
    empty,
    event,
    excess,
    helper,
    initial,
    invariant,
    lint,
    members,
    obey,
    only,
    require,
    reset,
    row,
    rule,
    settling,
    some,
    span,
    witness,
)


class Cell(Sort):
    """What is counted."""


class Row(Sort):
    """What holds cells."""


class Color(Choice):
    """Three of them."""

    names = ("RED", "GREEN", "BLUE")


RED, GREEN = Color("RED"), Color("GREEN")
BLUE = Color("BLUE")
LIMIT = 2

Place = Annotated[int, Below("places")]
Count = Annotated[int, UpTo("count")]


class Toy(State):
    """One variable of every shape."""

    loud: Const[bool]
    width: Const[Count]
    weight: Const[Map[Cell, Count]]
    count: Derived[Map[Cell, Count]]
    owner: Map[Cell, Row | None]
    color: Map[Cell, Color]
    flag: Map[Row, bool]
    marks: Map[Cell, Set[Place]]
    friends: Map[Row, Set[Row]]
    table: Map[Row, Place, Cell | None]
    pairs: Map[Row, Cell, Count]
    cube: Map[Row, Place, Color, Count]
    strip: Map[Place, Count]
    hues: Map[Color, Count]
    last: Cell | None
    total: Count
    seen: Ghost[Map[Cell, Count]]


@rule
def small() -> None:
    """Counts stay small.

    Source: ours.
    Catches: nothing.
    Except: never.
    Deviates: no.
    """


@rule
def tidy() -> None:
    """Things are tidy.

    Source: ours.
    Catches: nothing.
    Except: never.
    Deviates: no.
    """


@lint
def pretty() -> None:
    """Things are pretty.

    Source: ours.
    Catches: nothing.
    Except: never.
    Deviates: no.
    """


@helper
def heavy(s: Toy, c: Cell) -> bool:
    """An expression with a local name."""
    load = s.count[c] + s.weight[c]
    return load > LIMIT or s.color[c] == BLUE


@helper
def owner_of(s: Toy, r: Row, p: Place) -> Row | None:
    """Nested options."""
    c = s.table[r, p]
    return None if c is None else s.owner[c]


@helper
def bump(s: Toy, c: Cell, by: int) -> None:
    """A block of statements that judges."""
    before = s.count[c]
    s.count[c] += by
    obey(small, s.count[c] <= before + LIMIT, "cell {c} jumped by {by} from {before}")


@event
def swap(s: Toy, r: Row, q: Row, p: Place) -> None:
    """Aliasing: r may be q. The parts of a tuple are read before any is stored."""
    old, new = s.table[r, p], s.table[q, p]
    s.table[r, p], s.table[q, p] = s.table[q, p], s.table[r, p]
    obey(tidy, s.table[r, p] == new, "row {r} did not get {new}")
    obey(tidy, s.table[q, p] == old, "row {q} did not get {old}")


@event
def move(s: Toy, c: Cell, d: Cell) -> None:
    """Aliasing in counters: c may be d."""
    if s.count[c] > 0:
        s.count[c] -= 1
        s.count[d] += 1
    obey(small, s.count[d] > 0 or s.count[c] == 0, "{c} to {d}")
    advise(pretty, not heavy(s, c), "cell {c} is heavy")


@event
def shift(s: Toy, r: Row, p: Place) -> None:
    """A loop over a row that writes the row it reads."""
    for k in row(s.table, r):
        c = s.table[r, k]
        if c is not None:
            s.table[r, p] = c
            s.table[r, k] = None
            bump(s, c, 1)
            if s.owner[c] == r:
                s.owner[c] = None
            elif s.owner[c] is None:
                s.owner[c] = r
            else:
                s.flag[r] = not s.flag[r]
        obey(tidy, s.table[r, k] is None or k == p, "row {r} at {k}")


@event
def pair_up(s: Toy, r: Row, q: Row, c: Cell | None) -> None:
    """Options, nested rows, sets over sorts."""
    for d in row(s.pairs, r):
        for e in row(s.pairs, q):
            if d != e:
                s.pairs[q, d] = s.pairs[r, e]
    s.friends[r] = s.friends[r] | only(q)
    s.friends[q] = s.friends[q] - only(r) if r != q else empty()
    if c is not None and s.owner[c] is not None:
        s.last = c
        obey(small, some(s.owner[c]) in s.friends[r], "{r} knows the owner of {c}")
    elif c is None:
        s.last = None
    obey(tidy, s.last is None or not heavy(s, some(s.last)), "the last cell is heavy")


@event
def paint(s: Toy, c: Cell, color: Color, low: Place, high: Count) -> None:
    """Sets of a range, choices, scalars, division, conditional expressions."""
    fresh = span(low, high) - s.marks[c]
    s.marks[c] = s.marks[c] | fresh
    s.color[c] = color
    s.hues[color] += 1
    s.strip[low] = min(s.strip[low] + 1, high)
    s.total = excess(s.total, 1) if color == RED else max(s.total, s.hues[color] // 2 + s.hues[color] % 2)
    obey(small, fresh <= span(0, s.width), "{c} was painted {color} beyond the width")
    obey(tidy, low in s.marks[c] or high <= low, "{c} misses {low}")
    if s.loud:
        obey(tidy, color != GREEN, "green is loud")
    if 0 < s.total <= s.width:
        s.strip[s.total % s.width] = s.total


@event
def stack(s: Toy, r: Row, p: Place, color: Color) -> None:
    """Three indexes, an index that is read from the state, a name bound in both arms."""
    c = s.table[r, p]
    if c is None:  # noqa: SIM108  # the construct under test
        n = s.cube[r, p, color]
    else:
        n = s.count[c]
    s.cube[r, p, color] = n + 1
    s.cube[r, p, s.color[c] if c is not None else BLUE] = n
    obey(tidy, owner_of(s, r, p) is None or owner_of(s, r, p) == r, "row {r} holds another's cell, count {n}")


@event
def forget(s: Toy, c: Cell, r: Row) -> None:
    """Both kinds of rows return to their defaults."""
    if s.owner[c] == r:
        reset(s, r)
    reset(s, c)
    s.count[c] += 1
    obey(small, s.pairs[r, c] == 0 or not s.flag[r], "row {r} kept {c}")


@event
def risky(s: Toy, c: Cell, r: Row) -> None:
    """Undefined in some states: an option without a guard, a place out of range, a division by zero."""
    s.owner[some(s.table[r, 0])] = r
    s.strip[s.count[c]] = s.total // s.weight[c]


@event
def haunt(s: Toy, c: Cell) -> None:
    """A ghost update."""
    s.seen[c] = s.seen[c] + 1
    for d in members(Cell, s):
        if s.seen[d] > LIMIT:
            s.seen[d] = 0
    s.count[c] = s.count[c]


@settling
def settle(s: Toy) -> None:
    """Quantifiers and loops over sorts."""
    for r in members(Row, s):
        obey(tidy, all(s.table[r, p] != s.last for p in row(s.table, r)), "row {r} has the last cell")
        if any(s.owner[c] == r and s.count[c] > 0 for c in members(Cell, s) if s.color[c] == RED):
            s.flag[r] = True
    obey(small, not any(r in s.friends[q] for r in members(Row, s) for q in members(Row, s) if q != r), "friends")


@action
def take(s: Toy, c: Cell, r: Row) -> None:
    """A guarded step that performs events."""
    require(s.owner[c] is None)
    room = s.total
    require(room > 0)
    require(s.count[c] < room)

    s.owner[c] = r
    move(s, c, c)
    pair_up(s, r, r, c)


@invariant
def owners_count(s: Toy) -> bool:
    """An owned cell is counted."""
    return all(s.count[c] > 0 for c in members(Cell, s) if s.owner[c] is not None)


@witness
def can_be_total(s: Toy) -> bool:
    """The total can be reached."""
    goal = s.width
    return s.total == goal


@initial
def start(s: Toy) -> None:
    """Cell 0 belongs to row 1."""
    s.owner[Cell(0)] = Row(1)
    bump(s, Cell(0), 2)
