"""The discipline itself: events that obey the rules, in any order, keep the ledger true."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("z3")

from attempts import open_ends
from kvsan.checker.prove.prove import prove
from kvsan.checker.prove.system import System, ownership
from kvsan.spec.lang import ir


def without_store(step: ir.Step, variable: str) -> ir.Step:
    """The step without its stores to a variable."""

    def block(statements: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        kept: list[ir.Stmt] = []
        for s in statements:
            match s:
                case ir.Store(name) if name == variable:
                    continue
                case ir.If(then=then, orelse=orelse):
                    kept.append(replace(s, then=block(then), orelse=block(orelse)))
                case ir.For(body=body):
                    kept.append(replace(s, body=block(body)))
                case _:
                    kept.append(s)
        return tuple(kept)

    return replace(step, effects=block(step.effects))


def broken(made: System, event: str, variable: str) -> System:
    """The discipline with an event that forgets a variable."""
    return replace(made, actions=tuple(without_store(a, variable) if a.name == event else a for a in made.actions))


@pytest.mark.parametrize(
    ("event", "variable", "fact"),
    [
        pytest.param("free", "held", "held_is_not_queued", marks=pytest.mark.slow),
        pytest.param("unmap", "owners", "owners_counted"),
        pytest.param("unmap", "places", "places_counted", marks=pytest.mark.slow),
    ],
)
def test_an_event_that_forgets_a_variable_is_found(event: str, variable: str, fact: str) -> None:
    assert open_ends(prove(ownership(), (event,))) == set()
    assert (fact, event) in open_ends(prove(broken(ownership(), event, variable), (event,)))


@pytest.mark.slow
@pytest.mark.parametrize("discipline", ["paged_cow", "append_only", "append_only_cow", "page_tree"])
def test_events_that_obey_keep_the_ledger_true(discipline: str) -> None:
    proof = prove(ownership({"discipline": discipline}))
    assert (proof.verdict, proof.never) == ("HOLDS", [])
