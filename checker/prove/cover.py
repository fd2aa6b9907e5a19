"""Every view of the witnesses that the abstraction reaches, one by one: the answer where Spacer gives none in its time.

What is seen of a block and a branch is a row of truth values, so there are finitely many. From those of the start
states, a plain solver is asked clause by clause for a view that is not known yet, until there is none. If no clause
breaks a rule from there, what was reached is an invariant; it is told in clauses, each as short as holds of every view
that was reached, and only those that some clause needs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any  # z3 is untyped

import z3
from kvsan.checker.prove.witness import Clause

Term = Any
View = tuple[bool, ...]
Lemma = tuple[tuple[int, bool], ...]
"""One of these views has this value."""


@dataclass
class Cover:
    """What was reached. origins: of each view the clause that gave it and the views before. broken: the clauses that
    lead to a broken rule, each once. complete: nothing more is reached, and no rule is broken."""

    origins: dict[View, tuple[str, tuple[View, ...]]]
    broken: tuple[str, ...] = ()
    complete: bool = False

    def trail(self, views: Sequence[View]) -> list[str]:
        """The clauses that lead to these views, in the order in which they were found, each once."""
        needed, open_ = set[View](), list(views)
        while open_:
            view = open_.pop()
            if view not in needed:
                needed.add(view)
                open_ += self.origins[view][1]
        return list(dict.fromkeys(name for view, (name, _) in self.origins.items() if view in needed and name))


@dataclass
class Asked:
    """A clause in a solver of its own. pairs, head: its views by name. told, shut: how many of the views it knows."""

    clause: Clause
    solver: Any
    pairs: list[list[Term]]
    head: list[Term]
    told: int = 0
    shut: int = 0
    more: list[Term] = field(default_factory=list)

    def tell(self, known: Sequence[View]) -> list[Term]:
        """Each pair is one of the known views, under what is returned."""
        if self.told < len(known):
            rest = [z3.FreshConst(z3.BoolSort(), "more") for _ in self.pairs]
            for k, pair in enumerate(self.pairs):
                cubes = [_is(pair, view) for view in known[self.told :]]
                given = [z3.Not(self.more[k])] if self.more else []
                self.solver.add(z3.Or(*given, *cubes, rest[k]))
            self.more, self.told = rest, len(known)
        return [z3.Not(m) for m in self.more]

    def shut_out(self, known: Sequence[View]) -> None:
        """The head is none of the known views."""
        for view in known[self.shut :]:
            self.solver.add(z3.Not(_is(self.head, view)))
        self.shut = len(known)


def cover(starts: Sequence[Sequence[Term]], clauses: Sequence[Clause], until: float) -> Cover | None:
    """All that is reached, or the first way to break a rule. None: no time was left, or a question had no answer."""
    found = Cover({tuple(z3.is_true(t) for t in start): ("", ()) for start in starts})
    steps = [_asked(c) for c in clauses if c.head is not None]
    rules = [_asked(c) for c in clauses if c.head is None]
    size = 0
    while size < len(found.origins):
        size = len(found.origins)
        for asked in (*rules, *steps):
            for origin in _answers(asked, found, until):
                if origin is None:
                    return None
                if asked.clause.head is None:
                    found.broken = (*found.trail(origin), asked.clause.name)
                    return found
    found.complete = True
    return found


def _asked(clause: Clause) -> Asked:
    solver = z3.Solver()
    solver.add(*clause.body)
    named = []
    for views in (*clause.pairs, clause.head or ()):
        names = [z3.FreshConst(z3.BoolSort(), "v") for _ in views]
        solver.add(*(n == v for n, v in zip(names, views, strict=True)))
        named.append(names)
    return Asked(clause, solver, named[:-1], named[-1])


def _answers(asked: Asked, found: Cover, until: float) -> Iterator[tuple[View, ...] | None]:
    """The premises of each new view, which is then known; None where there is no answer."""
    premises = asked.tell(list(found.origins))
    while True:
        asked.shut_out(list(found.origins) if asked.head else [])
        left = until - time.monotonic()
        asked.solver.set("timeout", max(1, int(left * 1000)))
        answer = asked.solver.check(*premises) if left > 0 else z3.unknown
        if answer != z3.sat:
            if answer != z3.unsat:
                yield None
            return
        model = asked.solver.model()
        before = tuple(_view(model, pair) for pair in asked.pairs)
        if asked.head:
            found.origins[_view(model, asked.head)] = (asked.clause.name, before)
        yield before


def _view(model: Any, names: Sequence[Term]) -> View:
    return tuple(z3.is_true(model.eval(n, model_completion=True)) for n in names)


def _is(names: Sequence[Term], view: View) -> Term:
    return z3.And([n if value else z3.Not(n) for n, value in zip(names, view, strict=True)])


# --- in words ---------------------------------------------------------------------------------------------------------


def lemmas(found: Cover, clauses: Sequence[Clause]) -> list[Lemma]:
    """Clauses that hold of every view that was reached, and imply each other after a step, and that nothing is broken.

    From the end: what lets a rule break, or a lemma fail after a step, starts with a view that is not reached, and one
    more lemma tells it apart.
    """
    known = list(found.origins)
    steps = [_asked(c) for c in clauses if c.head is not None]
    rules = [_asked(c) for c in clauses if c.head is None]
    told = list[Lemma]()
    for asked in rules:
        _exclude(asked, None, known, told)
    done = 0
    while done < len(told):
        for asked in steps:
            _exclude(asked, told[done], known, told)
        done += 1
    return told


def _exclude(asked: Asked, goal: Lemma | None, known: Sequence[View], told: list[Lemma]) -> None:
    """Lemmas until a clause implies the goal, or breaks no rule."""
    asked.solver.push()
    if goal is not None:
        asked.solver.add(z3.Not(holds(goal, asked.head)))
    used = 0
    while True:
        for lemma in told[used:]:
            asked.solver.add(*(holds(lemma, pair) for pair in asked.pairs))
        used = len(told)
        if asked.solver.check() != z3.sat:
            break
        model = asked.solver.model()
        views = (_view(model, pair) for pair in asked.pairs)
        told.append(_shortest(next(v for v in views if v not in known), known))
    asked.solver.pop()


def _shortest(view: View, known: Sequence[View]) -> Lemma:
    """A clause that is false of the view and true of every known one, without a literal that it does not need.

    Greedy: at each turn the literal that most of the known views satisfy which no literal before does.
    """
    left, chosen = list(known), list[int]()
    while left:
        best = max(range(len(view)), key=lambda k: sum(v[k] != view[k] for v in left))
        chosen.append(best)
        left = [v for v in left if v[best] == view[best]]
    for k in tuple(chosen):
        rest = [c for c in chosen if c != k]
        if all(any(v[c] != view[c] for c in rest) for v in known):
            chosen = rest
    return tuple((k, not view[k]) for k in sorted(chosen))


def holds(lemma: Lemma, views: Sequence[Term]) -> Term:
    """The lemma of these views."""
    return z3.Or([views[k] if value else z3.Not(views[k]) for k, value in lemma])
