"""What the hooks say of one engine call: facts, in the order in which the engine made them.

An engine moves its state in whatever order suits it: it drops a count before the table forgets the block, and takes a
block before the table shows it. The hooks only collect; `ownership_order.write` puts the facts down afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

Place = tuple[str, int]  # pool, block
Table = str  # a branch, or `branch/group` for its table in a cache group other than 0
Row = list["Place | None"]  # one branch's table; None is an entry without a block (below a sliding window)
Ending = Literal["finish", "cancel", "preempt"]
FactKind = Literal["alloc", "free", "evict", "hit"]


def table_of(branch: str, group: int) -> Table:
    return branch if group == 0 else f"{branch}/{group}"


@dataclass
class Book:
    """What the log has said so far: each branch's tables. A call is written as the difference to it."""

    rows: dict[Table, Row] = field(default_factory=dict)
    groups: int = 1

    def tables(self, branch: str) -> list[Table]:
        """The tables of a branch, one for each cache group."""
        return [table_of(branch, group) for group in range(self.groups)]


@dataclass(frozen=True)
class Fact:
    kind: FactKind
    place: Place
    hash: str | None = None
    group: int = 0  # whose identity is dropped


@dataclass(frozen=True)
class Seal:
    place: Place
    hash: str
    parent: str | None
    slots: int | None = None  # how many slots, from the first; None is the whole block
    group: int = 0  # where no table shows the block


@dataclass(frozen=True)
class Copy:
    branch: str
    source: Place
    target: Place
    slots: tuple[int, int]


def differences(old: Row, new: Row) -> Iterator[tuple[int, Place | None, Place | None]]:
    for pos in range(max(len(old), len(new))):
        before = old[pos] if pos < len(old) else None
        after = new[pos] if pos < len(new) else None
        if before != after:
            yield pos, before, after


class EngineCall:
    """Facts of one engine call, collected in the engine's order.

    `branch` is the branch on whose account the call runs, where there is one.
    """

    def __init__(self, book: Book, branch: str | None = None, null: Place | None = None) -> None:
        self.book = book
        self.branch = branch
        self.null = null
        self.before: list[tuple[str, dict[str, object]]] = []
        self.ended: list[tuple[Ending, str]] = []
        self.begun: list[tuple[str, dict[str, object]]] = []
        self.windows: list[tuple[Table, int]] = []
        self.facts: list[Fact] = []
        self.seals: list[Seal] = []
        self.copies: list[Copy] = []
        self.forks: list[tuple[str, str]] = []
        self.rows: dict[Table, Row] = {}
        self.held: list[tuple[str, dict[str, object]]] = []
        self.closing: list[tuple[str, dict[str, object]]] = []
        self.counts: dict[Place, int] = {}
        self.free_counts: dict[str, int] = {}

    def took(self, place: Place) -> None:
        self.facts.append(Fact("alloc", place))

    def gave_back(self, place: Place) -> None:
        self.facts.append(Fact("free", place))

    def dropped(self, place: Place, identity: str, group: int = 0) -> None:
        self.facts.append(Fact("evict", place, identity, group))

    def found(self, place: Place, identity: str) -> None:
        self.facts.append(Fact("hit", place, identity))

    def sealed(self, place: Place, identity: str, parent: str | None, slots: int | None = None, group: int = 0) -> None:
        self.seals.append(Seal(place, identity, parent, slots, group))

    def touched(self) -> list[Place]:
        """Every block that this call names, each once, in order of appearance."""
        places = [fact.place for fact in self.facts]
        for table, row in self.rows.items():
            changes = list(differences(self.book.rows.get(table, []), row))
            places += [after for _, _, after in changes if after is not None]
            places += [before for _, before, _ in changes if before is not None]
        for child, _ in self.forks:
            places += [place for place in self.rows.get(child, []) if place is not None]
        for table in (table for _, branch in self.ended for table in self.book.tables(branch)):
            places += [place for place in self.book.rows.get(table, []) if place is not None]
        return [place for place in dict.fromkeys(places) if place != self.null]
