"""One step as Z3 terms: its guard, what it must obey, and the state after it by substitution."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any  # z3 is untyped

import z3
from kvsan.checker.prove.terms import Template, Terms, Translator
from kvsan.spec.lang import ir
from kvsan.spec.lang.simplify import conj
from kvsan.spec.lang.symbolic import Functional, Sizes, Swap, functional, is_open, predicate, size_of

Term = Any


class Names(dict[str, Term]):
    """Parameters by name; a name that is none of them is an open member, bound where its term is closed."""

    def __init__(self, terms: Terms, given: Mapping[str, Term], types: Mapping[str, ir.Type]) -> None:
        super().__init__(given)
        self.terms, self.types = terms, types

    def __missing__(self, name: str) -> Term:
        self[name] = z3.Const(f"?{name}", self.terms.sort(self.types[name]))
        return self[name]


@dataclass(frozen=True)
class Matrix:
    """A fact for all members that it binds: by name and type."""

    bound: tuple[tuple[str, ir.Type], ...]
    body: ir.Expr


def matrices(expr: ir.Expr, bound: tuple[tuple[str, ir.Type], ...] = ()) -> Iterator[Matrix]:
    """A condition as facts for all members: conjunctions apart, universal quantifiers in front.

    Out of a disjunction each comes with a name of its own: turns of one loop have the same.
    """
    match expr:
        case ir.And(items):
            for item in items:
                yield from matrices(item, bound)
        case ir.Quantifier("all", name, type_, _, body):
            yield from matrices(body, (*bound, (name, type_)))
        case ir.Or(items):
            at = next((k for k, i in enumerate(items) if _is_general(i)), None)
            if at is None:
                yield Matrix(bound, expr)
            else:
                rest = (*items[:at], *items[at + 1 :])
                for inner in matrices(items[at]):
                    apart = {name: f"{name}.{len(bound) + k}" for k, (name, _) in enumerate(inner.bound)}
                    body = Swap({name: ir.Name(apart[name], type_) for name, type_ in inner.bound})(inner.body)
                    more = tuple((apart[name], type_) for name, type_ in inner.bound)
                    yield from matrices(ir.Or((*rest, body)), (*bound, *more))
        case _:
            yield Matrix(bound, expr)


def _is_general(expr: ir.Expr) -> bool:
    """Whether a quantifier stands in front of all or part of it."""
    match expr:
        case ir.Quantifier(kind):
            return kind == "all"
        case ir.And(items):
            return any(map(_is_general, items))
        case _:
            return False


@dataclass
class StepTerms:
    """One action or event over one state.

    ranges: parameters within their types; guard: these and the guard, guard_defined: each where those before it hold.
    obligations, defined: closed over open members by `?` constants.
    """

    step: ir.Step
    form: Functional
    terms: Terms
    params: dict[str, Term]
    names: Names
    translate: Translator
    ranges: list[Term] = field(default_factory=list)
    guard: list[Term] = field(default_factory=list)
    guard_defined: list[Term] = field(default_factory=list)
    obligations: list[tuple[str, int, Term]] = field(default_factory=list)
    defined: list[Term] = field(default_factory=list)


def step_terms(step: ir.Step, variables: Mapping[str, ir.Variable], sizes: Sizes) -> StepTerms:
    """A lowered step as terms."""
    form = functional(step, variables, sizes)
    terms = Terms(variables, sizes)
    params = {p.name: terms.constant(p.name, p.type) for p in step.params}
    names = Names(terms, params, open_names(step, sizes))
    translate = Translator(terms, names)
    made = StepTerms(step, form, terms, params, names, translate)
    made.ranges = [terms.within(params[p.name], p.type) for p in step.params]
    made.guard = [*made.ranges]
    for g in form.guard:
        if g.defined != ir.TRUE:
            made.guard_defined.append(z3.Implies(z3.And(made.guard), translate(g.defined)))
        made.guard.append(translate(g.condition))
    for o in form.obligations:
        made.obligations.append((o.rule, o.number, z3.Implies(translate(o.path), translate(o.holds))))
    made.defined = [z3.Implies(translate(path), translate(condition)) for path, condition in form.defined]
    return made


def open_names(step: ir.Step, sizes: Sizes) -> dict[str, ir.Type]:
    """The names that loops of a step over open sorts leave in its functional form."""
    from kvsan.spec.lang.walk import all_statements

    return {
        f"{s.name}*": s.name_type
        for s in all_statements(step.effects)
        if isinstance(s, ir.For) and is_open(s.name_type, sizes)
    }


def ranged(terms: Terms, body: Term) -> Term:
    """The body, and that the entries which it reads are within their types."""
    kept = [r for r in map(terms.range_of, terms.scanner.within(body)) if r is not None]
    return z3.And(body, *kept) if kept else body


def facts(fact: ir.Step, made: StepTerms, after: bool) -> list[tuple[tuple[Term, ...], Term]]:
    """A fact of the state before or after as terms, each with the `?` constants that it binds.

    Parameters of a fact stand for every value: sized ones are written out. An invariant is judged in every state, so
    it says that it is defined there, too.
    """
    terms, out = made.terms, []
    found = predicate(fact, terms.variables, terms.sizes, made.form if after else None)
    parts = list(matrices(conj(found.defined, found.condition) if fact.kind == "invariant" else found.condition))
    for sized in _choices(fact, terms):
        for matrix in parts:
            opened = [(f"{p.name}'", p.type) for p in fact.params if f"{p.name}'" not in sized]
            pairs = [(name, z3.Const(f"?{name}", terms.sort(type_))) for name, type_ in (*opened, *matrix.bound)]
            names = {**(made.params if after else {}), **sized, **dict(pairs)}
            out.append((tuple(b for _, b in pairs), Translator(terms, names)(matrix.body)))
    return out


def _choices(fact: ir.Step, terms: Terms) -> Iterator[dict[str, Term]]:
    """Every choice of values for the sized parameters."""
    sized = [p for p in fact.params if not is_open(p.type, terms.sizes)]
    for values in product(*(range(size_of(p.type, terms.sizes)) for p in sized)):
        yield {
            f"{p.name}'": z3.BoolVal(bool(v)) if p.type == ir.BOOL else z3.IntVal(v)
            for p, v in zip(sized, values, strict=True)
        }


def template(terms: Terms, bound: tuple[Term, ...], body: Term) -> Template:
    """What holds for all members, as a hypothesis."""
    members = [b != z3.Const(f"none.{b.sort()}", b.sort()) for b in bound]
    return Template(bound, ranged(terms, z3.Implies(z3.And(members), body) if members else body))
