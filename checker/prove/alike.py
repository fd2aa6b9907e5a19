"""What is seen alike, whatever block and branch are looked at, after so many steps from the start.

Where few members do anything, most of what is seen of a block and a branch is settled by how far the steps have come,
or by something else that is seen of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any  # z3 is untyped

import z3
from kvsan.checker.prove.terms import is_true_in
from kvsan.checker.prove.witness import Clause

Term = Any
Alike = tuple[tuple[int, bool], ...]
"""Of each thing that is seen another one, and whether it has the same value or the other: itself, where nothing is
known, and `TRUE` for what is settled."""

TRUE = -1
SPENT = 10_000_000
"""What a plain solver may spend on one clause, in Z3's count of resources; then anything may be seen."""


def alike(starts: Sequence[Sequence[Term]], clauses: Sequence[Clause], steps: Sequence[str]) -> list[Alike]:
    """Of the start, and after each of these steps; it ends before a step that is not possible there.

    steps: names of clauses. What may differ before a step may be anything there.
    """
    begun: Alike | None = None
    for start in starts:
        begun = _refined(begun, [z3.is_true(t) for t in start])
    assert begun is not None
    found = [begun]
    for step in steps:
        after = _after([c for c in clauses if c.name == step and c.head is not None], found[-1])
        if after is None:
            break
        found.append(after)
    return found


def nothing(number: int) -> Alike:
    """That nothing is known of so many."""
    return tuple((k, True) for k in range(number))


def literals(seen: Sequence[Term], same: Alike) -> Iterator[Term]:
    """That what is alike is so."""
    for k, (term, (other, equal)) in enumerate(zip(seen, same, strict=True)):
        if other == TRUE:
            yield term if equal else z3.Not(term)
        elif other != k:
            yield term == seen[other] if equal else term != seen[other]


def _refined(same: Alike | None, view: Sequence[bool]) -> Alike:
    """What stays alike where this is seen too. Those that part from another and agree are alike still."""
    if same is None:
        return tuple((TRUE, value) for value in view)
    found, first = list[tuple[int, bool]](), dict[int, tuple[int, bool]]()
    for k, (value, (other, equal)) in enumerate(zip(view, same, strict=True)):
        if (value == equal) == (other == TRUE or view[other]):
            found.append((other, equal))
        else:
            one, sign = first.setdefault(other, (k, equal))
            found.append((one, equal == sign))
    return tuple(found)


def _after(clauses: Sequence[Clause], before: Alike) -> Alike | None:
    """What is alike of all that these lead to; None where they lead to nothing."""
    found: Alike | None = None
    for clause in clauses:
        assert clause.head is not None
        solver = z3.Solver()
        solver.set("rlimit", SPENT)
        solver.add(*clause.body, *(t for pair in clause.pairs for t in literals(pair, before)))
        named = [z3.FreshConst(z3.BoolSort(), "v") for _ in clause.head]  # it may leave equations of sets
        solver.add(*(n == t for n, t in zip(named, clause.head, strict=True)))
        while found is None or found != nothing(len(found)):
            known = [] if found is None else list(literals(named, found))
            answer = solver.check(*([] if found is None else [z3.Not(z3.And(known))]))
            if answer == z3.unsat:
                break
            if answer == z3.unknown:
                return nothing(len(before))
            model = solver.model()
            found = _refined(found, [is_true_in(model, n) for n in named])
    return found


def once(clause: Clause, before: Alike) -> Clause | None:
    """The clause without premises that must be of what another one is of; None where it is not possible at all.

    before: what is alike before the step.
    """
    solver = z3.Solver()
    solver.set("rlimit", SPENT)
    solver.add(*clause.body, *(t for pair in clause.pairs for t in literals(pair, before)))
    if (answer := solver.check()) != z3.sat:
        return None if answer == z3.unsat else clause
    model, kept = solver.model(), dict[tuple[bool, ...], list[tuple[Term, ...]]]()
    for pair in clause.pairs:  # two that must be one are seen alike in any model
        same = kept.setdefault(tuple(is_true_in(model, t) for t in pair), [])
        if not any(_must_be(solver, pair, other) for other in same):
            same.append(pair)
    return replace(clause, pairs=tuple(chain(*kept.values())))


def _must_be(solver: Any, pair: Sequence[Term], other: Sequence[Term]) -> bool:
    """Whether all that is seen of the one is seen of the other."""
    differ = [a != b for a, b in zip(pair, other, strict=True) if not a.eq(b)]
    return bool(solver.check(z3.Or(differ)) == z3.unsat)
