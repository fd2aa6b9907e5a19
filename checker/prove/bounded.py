"""Bounded model checking: whether a design in a small scope breaks a rule within so many steps, asked of Z3.

One more oracle for the explorer, from the same sliced steps: a state for each depth, and between two of them one action
with free parameters. A step that breaks a rule or leaves its domain is a violation and leads no further.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any  # z3 is untyped

import z3
from kvsan.checker.explore.design import Design, Scoped
from kvsan.checker.explore.model import model, starts
from kvsan.checker.prove.terms import Terms, Translator
from kvsan.spec.lang import ir
from kvsan.spec.lang.interpret import Plain, default
from kvsan.spec.lang.symbolic import Functional, Sizes, functional, predicate, size_of

Term = Any

SPEND = 200_000_000
"""What one query may take, in Z3's count of resources: some twenty times what the hardest of the tests takes."""


@dataclass(frozen=True)
class Bounded:
    """depth: steps of a shortest violation, None where there is none up to `limit`. broken: each rule that so many
    steps can break; one that took more than it may spend is left out where another was found."""

    limit: int
    depth: int | None
    broken: tuple[str, ...]
    unknown: bool = False


@dataclass
class _Unrolled:
    variables: Mapping[str, ir.Variable]
    kept: tuple[str, ...]
    sizes: Sizes
    actions: tuple[ir.Step, ...]
    invariants: tuple[ir.Step, ...]
    forms: dict[str, Functional] = field(default_factory=dict)
    after: dict[tuple[str, str, tuple[int, ...]], ir.Expr] = field(default_factory=dict)

    def entries(self, name: str) -> list[tuple[int, ...]]:
        return list(product(*(range(size_of(k, self.sizes)) for k in self.variables[name].keys)))

    def value_after(self, action: ir.Step, name: str, index: tuple[int, ...]) -> ir.Expr:
        """One entry after an action, as an expression over the state before."""
        key = (action.name, name, index)
        if key not in self.after:
            v = self.variables[name]
            at = tuple(ir.Const(i, k) for i, k in zip(index, v.keys, strict=True))
            read = ir.Step("", "helper", "", (), (), None, "", value=ir.Read(name, at, v.value))
            self.after[key] = predicate(read, self.variables, self.sizes, self.forms[action.name]).condition
        return self.after[key]


def bounded(design: Design, scoped: Scoped, limit: int, spend: int = SPEND) -> Bounded:
    """The shortest violation of up to `limit` steps. Raises BadDesign.

    spend: on one query, alike on every machine; where it does not do, the answer is unknown.
    """
    begun = starts(design.spec, scoped)
    sliced = model(design.spec, scoped, begun)
    kept = tuple(sliced.working.fields)
    run = _Unrolled(sliced.variables, kept, sliced.sizes, sliced.actions, sliced.invariants)
    run.forms = {a.name: functional(a, run.variables, run.sizes) for a in run.actions}
    solver = z3.Solver()
    solver.set("rlimit", spend)
    here = Terms(run.variables, run.sizes, "0:")
    solver.add(z3.Or([_is(run, here, s.state) for s in begun]))
    for depth in range(limit + 1):
        broken = _broken_here(run, here)
        answer, names = _ask(solver, broken)
        if answer != z3.unsat:
            return Bounded(limit, depth if answer == z3.sat else None, names, answer == z3.unknown)
        solver.add([z3.Not(b) for b in broken.values()])
        if depth == limit:
            break
        there = Terms(run.variables, run.sizes, f"{depth + 1}:")
        wrong = _step(run, solver, here, there, depth)
        answer, names = _ask(solver, wrong)
        if answer != z3.unsat:
            return Bounded(limit, depth + 1 if answer == z3.sat else None, names, answer == z3.unknown)
        solver.add([z3.Not(w) for w in wrong.values()])
        here = there
    return Bounded(limit, None, ())


def _ask(solver: Any, wrong: Mapping[str, Term]) -> tuple[Any, tuple[str, ...]]:
    """Whether any of these can be true, and each that can."""
    answer = _check(solver, z3.Or(list(wrong.values())))
    if answer != z3.sat:
        return answer, ()
    return answer, tuple(n for n, w in wrong.items() if _check(solver, w) == z3.sat)


def _check(solver: Any, term: Term) -> Any:
    solver.push()
    solver.add(term)
    answer = solver.check()
    solver.pop()
    return answer


def _broken_here(run: _Unrolled, here: Terms) -> dict[str, Term]:
    """The invariants that a state breaks."""
    out = {}
    for fact in run.invariants:
        condition = predicate(fact, run.variables, run.sizes)
        translate = Translator(here, {})
        out[fact.name] = z3.Not(z3.And(translate(condition.defined), translate(condition.condition)))
    return out


def _step(run: _Unrolled, solver: Any, here: Terms, there: Terms, depth: int) -> dict[str, Term]:
    """One action between two states. Returns, by rule, where it is broken."""
    chosen = z3.Int(f"{depth}:action")
    solver.add(chosen >= 0, chosen < len(run.actions))
    wrong: dict[str, list[Term]] = {}
    translators = []
    for n, action in enumerate(run.actions):
        form = run.forms[action.name]
        names = {p.name: here.constant(f"{action.name}.{p.name}", p.type) for p in action.params}
        translate = Translator(here, names)
        translators.append(translate)
        mine = chosen == n
        solver.add(*(z3.Implies(mine, here.within(names[p.name], p.type)) for p in action.params))
        for g in form.guard:
            solver.add(z3.Implies(mine, translate(g.condition)))
        for o in form.obligations:
            wrong.setdefault(o.rule, []).append(z3.And(mine, translate(o.path), z3.Not(translate(o.holds))))
        for path, condition in form.defined:
            wrong.setdefault("defined", []).append(z3.And(mine, translate(path), z3.Not(translate(condition))))
    for name in run.kept:
        for index in run.entries(name):
            now = there.read(name, index)
            for n, action in enumerate(run.actions):
                if name in run.forms[action.name].updates:
                    value = translators[n](run.value_after(action, name, index), run.variables[name].value)
                else:
                    value = here.read(name, index)
                solver.add(z3.Implies(chosen == n, now == value))
    return {rule: z3.Or(where) for rule, where in wrong.items()}


def _is(run: _Unrolled, here: Terms, state: Plain) -> Term:
    """The state is this one."""
    parts = []
    for name in run.kept:
        v = run.variables[name]
        for index in run.entries(name):
            value = state.get(name, {}).get(index, default(v.value))
            parts.append(here.read(name, index) == _literal(here, value, v.value))
    return z3.And(parts)


def _literal(terms: Terms, value: Any, type_: ir.Type) -> Term:
    if isinstance(type_, ir.SetType):
        return z3.BitVecVal(sum(1 << k for k in value), terms.width(type_.element) + 1)
    if value is None:
        return terms.none(type_)
    return z3.BoolVal(bool(value)) if type_ == ir.BOOL else z3.IntVal(value)
