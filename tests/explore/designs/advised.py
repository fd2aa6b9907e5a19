"""A branch counts: the first step is advised against, the third breaks a rule, and there is no fourth."""

from __future__ import annotations

from typing import Annotated

from kvsan.spec.lang import (
    Map,
    Scope,
    Sort,
    State,
    UpTo,
    action,
    advise,
    event,
    initial,
    lint,
    members,
    obey,
    require,
    rule,
    witness,
)


class Branch(Sort):
    """A branch."""


Steps = Annotated[int, UpTo("most")]


class Advised(State):
    """How far each branch is."""

    taken: Map[Branch, Steps]


def scope(branches: int = 2, most: int = 3) -> Scope:
    """The sizes of one search."""
    return Scope({"Branch": branches}, {"most": most})


@rule
def two_at_most() -> None:
    """A branch takes two steps.

    Source: ours.
    Catches: a third.
    Except: nowhere.
    Deviates: nowhere.
    """


@lint
def not_the_first() -> None:
    """The first step is one too many.

    Source: ours.
    Catches: a first.
    Except: nowhere.
    Deviates: nowhere.
    """


@event
def step(s: Advised, r: Branch) -> None:
    """One step more."""
    advise(not_the_first, s.taken[r] > 0, "{r} takes its first step")
    obey(two_at_most, s.taken[r] < 2, "{r} takes a third step")
    s.taken[r] += 1


@initial
def start(s: Advised) -> None:
    """Nobody has taken one."""
    s.taken[Branch(0)] = 0


@action
def take(s: Advised, r: Branch) -> None:
    """Take one."""
    require(s.taken[r] < 3)

    step(s, r)


@witness
def can_rest(s: Advised) -> bool:
    """Nobody has moved: so nowhere else may it be without a step."""
    return all(s.taken[r] == 0 for r in members(Branch, s))
