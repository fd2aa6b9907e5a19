"""What is known at one place of a step: the form in which `rest` carries it along every way through the step.

Two local names may be one member, so a store to one entry may change any other; a name never changes its meaning, but
in the next turn of a loop, and an entry that such a name marks is any entry from then on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from kvsan.checker.explore.facts import Facts
from kvsan.spec.lang import ir

Index: TypeAlias = tuple[str | int, ...]
"""Local names and literals."""


@dataclass(frozen=True)
class Entry:
    """value: what an entry is, None where that is not known. arm: it is so if this arm of an `if` was taken, and the
    default if not; 0: it is so."""

    value: ir.Expr | None = None
    arm: int = 0

    def on_one_way(self, arm: int) -> Entry:
        """Where that way meets another, on which the entry has its default."""
        if not arm or 0 < self.arm < arm:
            return Entry()
        return self if self.arm else Entry(self.value, arm)


Entries: TypeAlias = dict[Index, Entry]
"""The entries that may differ from the default."""


@dataclass
class Known:
    """What is known at one place of a step.

    entries: per variable at rest, None where any entry may differ from the default. names: the literal or the other
    name that a local name stands for. facts: what tests have shown.
    """

    entries: dict[str, Entries | None]
    names: dict[str, ir.Expr] = field(default_factory=dict)
    facts: Facts = field(default_factory=Facts)

    def copy(self) -> Known:
        entries = {v: None if e is None else dict(e) for v, e in self.entries.items()}
        return Known(entries, dict(self.names), self.facts.copy())

    def untested(self) -> Known:
        """The same without what tests have shown: a rule is judged, and counted, after a test of the same thing too."""
        return Known(self.entries, self.names)

    def join(self, other: Known, arms: tuple[int, int] = (0, 0)) -> Known:
        """What is known where two ways meet, which begin with these arms of an `if`."""
        return Known(
            {v: _joined(e, other.entries[v], arms) for v, e in self.entries.items()},
            {n: e for n, e in self.names.items() if other.names.get(n) == e},
            self.facts.join(other.facts),
        )

    def leave(self, bound: set[str]) -> None:
        """These names are bound no more, or to something else: an entry that one of them marks is any entry."""
        for v, entries in self.entries.items():
            if entries is not None and any(part in bound for index in entries for part in index):
                self.entries[v] = None

    def assume(self, arm: int, taken: bool) -> None:
        """It shows whether an arm was taken."""
        for v, entries in self.entries.items():
            if arm and entries is not None:
                kept = {i: e for i, e in entries.items() if taken or e.arm != arm}
                self.entries[v] = {i: Entry(e.value) if e.arm == arm else e for i, e in kept.items()}


def _joined(one: Entries | None, other: Entries | None, arms: tuple[int, int]) -> Entries | None:
    if one is None or other is None:
        return None
    both = {i: e if e == other[i] else Entry() for i, e in one.items() if i in other}
    mine = {i: e.on_one_way(arms[0]) for i, e in one.items() if i not in other}
    return {**both, **mine, **{i: e.on_one_way(arms[1]) for i, e in other.items() if i not in one}}
