"""The question to Spacer, which looks for an invariant of the abstraction or for a way to break a rule there.

Settings that matter: global guidance, and none of the transformations of Horn clauses. With Z3's defaults a prototype
of this gave no answer at all.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any  # z3 is untyped

import z3
from kvsan.checker.prove.alike import Alike, alike, literals, nothing, once
from kvsan.checker.prove.flat import Flat, decided, without_bits
from kvsan.checker.prove.stands import Invariant
from kvsan.checker.prove.witness import Clause

Term = Any
OFF = ("slice", "inline_linear", "inline_eager", "coi", "elim_term_ite", "tail_simplifier_pve", "subsumption_checker")

SPENT = 10_000_000
"""What Spacer may spend on one question, in Z3's count of resources, alike on every machine: ten or twenty seconds
where little is seen. Of large clauses much goes uncounted: there it may be minutes, and the clock ends it."""


@dataclass(frozen=True)
class Fact:
    """What holds of a block and a branch. alike: what is seen of all of which it holds, and is not told again."""

    relation: Any
    alike: Alike

    def __call__(self, seen: Sequence[Term]) -> Term:
        return self.relation(*self.open(seen))

    def open(self, seen: Sequence[Term]) -> list[Term]:
        return [t for k, (t, (other, _)) in enumerate(zip(seen, self.alike, strict=True)) if other == k]


def spacer(
    starts: Sequence[Sequence[Term]], clauses: Sequence[Clause], until: float
) -> Invariant | tuple[str, ...] | None:
    """An invariant, or the steps with which the rule breaks, each once. None: no answer for what it may spend."""
    fixed, (fact,), broken = _begin(starts, [nothing(len(starts[0]))], until)
    for clause in clauses:
        _tell(fixed, fact, broken if clause.head is None else fact, clause, clause.name)
    answer = _ask(fixed, broken)
    if answer == z3.sat:
        return tuple(dict.fromkeys(_names(fixed)))  # a tree, told as a list, repeats itself
    return _invariant(fixed.get_answer(), fact.relation) if answer == z3.unsat else None


def along(
    starts: Sequence[Sequence[Term]], clauses: Sequence[Clause], steps: Sequence[str], until: float
) -> tuple[str, ...] | None:
    """The steps, where these, one after the other, break the rule, and () where they do not. None: as above.

    steps: names of clauses, the last of one that breaks. There is a fact for each number of steps: all premises of a
    step are facts of the same number, and what it leads to is one of the next. So nothing runs in circles, and Spacer
    is soon done. A derivation of this is one of what `spacer` asks, once the numbers are forgotten. What is seen alike
    after so many steps a plain solver finds first; that leaves Spacer a small part of what is seen.
    """
    same = alike(starts, clauses, steps[:-1])
    if len(same) < len(steps):
        return ()
    fixed, facts, broken = _begin(starts, same, until)
    for number, (step, fact) in enumerate(zip(steps, facts, strict=True)):
        for clause in clauses:
            told = once(clause, fact.alike) if clause.name == step else None
            if told is not None:
                head = broken if clause.head is None else facts[number + 1]
                _tell(fixed, fact, head, told, f"{number} {step}")
    answer = _ask(fixed, broken)
    if answer == z3.sat:
        found = dict(name.split(" ", 1) for name in _names(fixed))
        return tuple(found[number] for number in sorted(found, key=int))
    return () if answer == z3.unsat else None


def _begin(starts: Sequence[Sequence[Term]], same: Sequence[Alike], until: float) -> tuple[Any, list[Fact], Fact]:
    """An engine, a fact for each of these, the first of which holds of the start, and what must not be."""
    fixed = z3.Fixedpoint()
    fixed.set("engine", "spacer")
    fixed.set("spacer.global", True)
    fixed.set("rlimit", SPENT)
    fixed.set("timeout", max(1, int((until - time.monotonic()) * 1000)))
    for name in OFF:
        fixed.set(f"xform.{name}", False)
    facts = [_fact(f"fact{k or ''}", a) for k, a in enumerate(same)]
    broken = _fact("broken", ())
    fixed.register_relation(*(f.relation for f in facts), broken.relation)
    for start in starts:
        fixed.fact(facts[0](start))
    return fixed, facts, broken


def _fact(name: str, same: Alike) -> Fact:
    truth = z3.BoolSort()
    return Fact(z3.Function(name, *(truth for k, (other, _) in enumerate(same) if other == k), truth), same)


def _ask(fixed: Any, broken: Fact) -> Any:
    try:
        return fixed.query(broken.relation)
    except z3.Z3Exception:  # how this engine says that it may spend no more
        return z3.unknown


def _names(fixed: Any) -> list[str]:
    """The clauses of a derivation, from the start."""
    names = (str(n) for n in reversed(fixed.get_rule_names_along_trace()))
    return [n for n in names if n != "<null>"]


def _tell(fixed: Any, before: Fact, after: Fact, clause: Clause, name: str) -> None:
    """The clause as a rule from one fact to another, or to what must not be."""
    flat, equal = Flat(), list[Term]()

    def applied(fact: Fact, values: Sequence[Term]) -> Term:
        """The fact of variables that have these values."""
        names = [z3.FreshConst(t.sort(), "v") for t in fact.open(values)]
        flat.variables.extend(names)
        equal.extend(n == t for n, t in zip(names, map(flat, fact.open(values)), strict=True))
        return fact.relation(*names)

    premises = [applied(before, pair) for pair in clause.pairs]
    head = applied(after, clause.head or ())
    known = [flat(t) for pair in clause.pairs for t in literals(pair, before.alike)]
    body = [*(flat(t) for t in clause.body), *flat.equations()]
    formula = z3.And(*body, *equal, *known, *flat.congruence)
    fixed.declare_var(*flat.variables)
    fixed.rule(head, [*premises, without_bits(decided(formula) if known else formula)], name)


def _invariant(answer: Term, fact: Any) -> Invariant:
    """The fact as a formula over what is seen; where nothing can be broken at all, it says nothing."""
    for part in answer.children() if z3.is_and(answer) else [answer]:
        if z3.is_quantifier(part) and part.body().arg(0).decl().eq(fact):
            application, body = part.body().children()
            order = [z3.get_var_index(v) for v in application.children()]

            def filled(values: Sequence[Term], body: Term = body, order: Sequence[int] = tuple(order)) -> Term:
                by_number = dict(zip(order, values, strict=True))
                return z3.substitute_vars(body, *(by_number[k] for k in range(len(order))))

            return filled
    return lambda _: z3.BoolVal(True)
