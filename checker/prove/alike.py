"""What is seen alike, whatever block and branch are looked at, after so many steps from the start.

Where few members do anything, most of what is seen of a block and a branch is settled by how far the steps have come.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any  # z3 is untyped

import z3
from kvsan.checker.prove.terms import is_true_in
from kvsan.checker.prove.witness import Clause

Term = Any
Alike = tuple[bool | None, ...]
"""The value of each thing that is seen; None where both may be."""

SPENT = 10_000_000
"""What a plain solver may spend on one clause, in Z3's count of resources; then anything may be seen."""


def alike(starts: Sequence[Sequence[Term]], clauses: Sequence[Clause], steps: Sequence[str]) -> list[Alike]:
    """Of the start, and after each of these steps; it ends before a step that is not possible there.

    steps: names of clauses. What may differ before a step may be anything there.
    """
    begun = [tuple(z3.is_true(t) for t in start) for start in starts]
    found = [_common(begun)]
    for step in steps:
        made = (_after(c, found[-1]) for c in clauses if c.name == step and c.head is not None)
        possible = [a for a in made if a is not None]
        if not possible:
            break
        found.append(_common(possible))
    return found


def _common(found: Sequence[Alike]) -> Alike:
    return tuple(values[0] if len({*values}) == 1 else None for values in zip(*found, strict=True))


def _after(clause: Clause, before: Alike) -> Alike | None:
    """What is alike of all that a clause leads to; None where it leads to nothing."""
    assert clause.head is not None
    solver, found = z3.Solver(), None
    solver.set("rlimit", SPENT)
    solver.add(*clause.body, *(t for pair in clause.pairs for t in _is(pair, before)))
    for view in _views(solver, clause.head):
        found = view if found is None else _common([found, view])
        solver.add(z3.Not(z3.And(list(_is(clause.head, found)))))
    return found


def _views(solver: Any, seen: Sequence[Term]) -> Iterator[Alike]:
    """One that is possible, as often as it is asked for, to the last."""
    while (answer := solver.check()) == z3.sat:
        model = solver.model()
        yield tuple(is_true_in(model, t) for t in seen)
    if answer == z3.unknown:
        yield (None,) * len(seen)


def _is(seen: Sequence[Term], view: Alike) -> Iterator[Term]:
    return (t if value else z3.Not(t) for t, value in zip(seen, view, strict=True) if value is not None)
