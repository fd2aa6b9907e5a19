"""What the tests of proofs share: one attempt, and what it left open."""

from __future__ import annotations

from functools import cache

from kvsan.checker.explore.design import Design
from kvsan.checker.prove.prove import Proof, prove
from kvsan.checker.prove.system import system, with_facts


@cache
def design(name: str) -> Design:
    return with_facts(name)


def attempt(
    name: str,
    *actions: str,
    scope: str = "",
    mutant: str = "",
    without: tuple[str, ...] = (),
    explore: bool = False,
    first: bool = False,
) -> Proof:
    return prove(system(design(name), {}, scope, mutant, without), actions, explore=explore, first=first)


def open_ends(proof: Proof) -> set[tuple[str, str]]:
    """The rules and steps that were tried and not proved."""
    return {(r.rule, r.action) for r in proof.failed}


def breaks(name: str, scope: str, action: str, mutant: str = "", without: tuple[str, ...] = ()) -> bool:
    """Whether some step is not inductive; action: the one to try first."""
    made = system(design(name), {}, scope, mutant, without)
    others = [a.name for a in made.actions if a.name != action]
    return any(open_ends(prove(made, (a,), explore=False, first=True)) for a in (action, *others))
