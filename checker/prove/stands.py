"""The check of an invariant of the abstraction by a plain solver, and the invariant in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any  # z3 is untyped

import z3
from kvsan.checker.prove.witness import Clause

Term = Any
Invariant = Callable[[Sequence[Term]], Term]
"""What holds of a block and a branch, over what is seen of them."""


def stands(invariant: Invariant, starts: Sequence[Sequence[Term]], clauses: Sequence[Clause]) -> bool:
    """Whether a plain solver finds every clause true: of the start, of each step, and that nothing is broken.

    Where a step is told of few turns alone, nothing stands.
    """
    if any(clause.few for clause in clauses):
        return False
    for start in starts:
        if not z3.is_true(z3.simplify(invariant(start))):
            return False
    for clause in clauses:
        solver = z3.Solver()
        solver.add(*clause.body, *(invariant(pair) for pair in clause.pairs))
        if clause.head is not None:
            solver.add(z3.Not(invariant(clause.head)))
        if solver.check() != z3.unsat:
            return False
    return True


def conjuncts(invariant: Invariant, labels: Sequence[str], like: Sequence[Term]) -> Iterator[str]:
    """The invariant in words."""
    names = [z3.Const(label, t.sort()) for label, t in zip(labels, like, strict=True)]
    whole = z3.simplify(invariant(names))
    for part in whole.children() if z3.is_and(whole) else [whole]:
        yield _text(part)


def _text(part: Term) -> str:
    """A clause as an implication."""
    literals = part.children() if z3.is_or(part) else [part]
    given = [_plain(t.arg(0)) for t in literals if z3.is_not(t)]
    then = [_plain(t) for t in literals if not z3.is_not(t)]
    if not given:
        return " or ".join(then)
    if not then:
        return f"not ({' and '.join(given)})"
    return f"{' and '.join(given)}: {' or '.join(then)}"


def _plain(term: Term) -> str:
    return " ".join(str(term).split())
