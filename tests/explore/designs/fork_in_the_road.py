"""A way forks: one side is wrong at once, on the other a step is wrong; or, with more room, it goes straight on."""

from __future__ import annotations

from typing import Annotated

from kvsan.spec.lang import Const, Scope, State, UpTo, action, event, initial, invariant, obey, require, rule, witness

Place = Annotated[int, UpTo("top")]


class Road(State):
    """at: how far it is. wrong: on the wrong side. forks: with room for two steps alone."""

    forks: Const[bool]
    at: Place
    wrong: bool


def scope(top: int = 4) -> Scope:
    """So many steps."""
    return Scope({}, {"top": top}, {"forks": top == 2})


@rule
def go_on_once() -> None:
    """Nobody goes on where the way forks.

    Source: ours.
    Catches: a second step.
    Except: nowhere.
    Deviates: nowhere.
    """


@event
def walked(s: Road) -> None:
    """One step."""
    obey(go_on_once, not s.forks, "it went on")
    s.at += 1


@initial
def begin(s: Road) -> None:
    """At home."""
    s.at = 0


@action
def turn(s: Road, wrong: bool) -> None:
    """The first step."""
    require(s.at == 0 and (s.forks or not wrong))

    s.at, s.wrong = 1, wrong


@action
def go_on(s: Road) -> None:
    """Any other."""
    require(s.at > 0 and s.at < (2 if s.forks else 4))

    walked(s)


@invariant
def never_wrong(s: Road) -> bool:
    """It is on the right side."""
    return not s.wrong


@witness
def can_turn(s: Road) -> bool:
    """It has left."""
    return s.at > 0


@witness
def can_go_on(s: Road) -> bool:
    """It has gone on."""
    return s.at > 1
