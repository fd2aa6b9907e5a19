"""A counterexample to induction, told with what matters: before, the step, after."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any  # z3 is untyped

import z3
from kvsan.checker.explore.replay import LETTERS, show
from kvsan.checker.prove.premise import Seen, premise
from kvsan.checker.prove.step import StepTerms
from kvsan.checker.prove.terms import Cell, Instances, Terms, Translator, by_sort
from kvsan.spec.lang import ir
from kvsan.spec.lang.symbolic import is_open, predicate

Term = Any


@dataclass(frozen=True)
class Example:
    """before: entries and their values, those without which the step would not fail. after: what the step makes of
    them, and of what else it changes there. start: what is printed of the state before, as a condition."""

    before: tuple[tuple[str, str], ...]
    action: str
    after: tuple[tuple[str, str], ...]
    start: ir.Expr


@dataclass
class Naming:
    """Names for the members of a model: parameters first. stands: a term for each. fixed: a constant for each, where
    the term is an entry, which is to be told like any other."""

    terms: Terms
    model: Any
    names: dict[int, str]
    stands: dict[int, Term]
    members: list[Term]
    fixed: dict[int, Term] = field(default_factory=dict)

    def constant(self, key: int) -> Term:
        stand = self.stands[key]
        fixed = stand if z3.is_const(stand) and not self.is_entry(stand) else z3.FreshConst(stand.sort(), "stand")
        return self.fixed.setdefault(key, fixed)

    def is_entry(self, term: Term) -> bool:
        return term.decl().name() in self.terms.types

    def value(self, term: Term) -> Term:
        return self.model.eval(term, model_completion=True)

    def name(self, term: Term, sort: str) -> str:
        key = self.value(term).get_id()
        if key not in self.names:
            letter = LETTERS.get(sort, sort.lower())
            taken = sum(1 for n in self.names.values() if n.startswith(letter))
            self.names[key] = f"{letter}{taken}"
        return self.names[key]

    def text(self, term: Term, type_: ir.Type) -> str:
        """A value as it is shown."""
        inner = ir.bare(type_)
        if is_open(inner, self.terms.sizes):
            assert isinstance(inner, ir.SortType)
            return "None" if self.same(term, self.terms.none(type_)) else self.name(term, inner.name)
        value = self.value(term)
        match inner:
            case ir.BoolType():
                return "true" if z3.is_true(value) else "false"
            case ir.SetType(element) if element is not None and is_open(element, self.terms.sizes):
                assert isinstance(element, ir.SortType)
                inside = [n for k, n in self.names.items() if self._in(k, element.name, value)]
                return "{" + ", ".join(inside) + ("" if inside else "...") + "}"
            case ir.SetType():
                bits = value.as_long()
                return "{" + ", ".join(str(k) for k in range(value.size() - 1) if bits >> k & 1) + "}"
            case _:
                number = value.as_long()
                return "None" if isinstance(type_, ir.OptionType) and number < 0 else show(inner, number)

    def _in(self, key: int, sort: str, value: Term) -> bool:
        member = self.stands.get(key)
        return member is not None and member.sort().name() == sort and z3.is_true(self.value(z3.Select(value, member)))

    def same(self, one: Term, other: Term) -> bool:
        return bool(self.value(one).get_id() == self.value(other).get_id())


def example(made: StepTerms, members: Iterable[Term], given: Sequence[Term], goal: Term, model: Any) -> Example:
    """What a model that makes the given terms true says against a goal, in the words of the specification."""
    terms = made.terms
    stands: dict[int, Term] = {}
    ordered = sorted(members, key=lambda t: (t.num_args(), t.decl().name() in terms.types, str(t)))
    naming = Naming(terms, model, {}, stands, ordered)
    for member in ordered:
        if not naming.same(member, z3.Const(f"none.{member.sort()}", member.sort())):
            stands.setdefault(naming.value(member).get_id(), member)
    for cell in _closed(terms, naming):  # members that are only values
        inner = ir.bare(terms.variables[cell.variable].value)
        if is_open(inner, terms.sizes) and not naming.same(cell.term, terms.none(inner)):
            stands.setdefault(naming.value(cell.term).get_id(), cell.term)
    for p in made.step.params:
        if is_open(p.type, terms.sizes):
            naming.text(made.params[p.name], p.type)
    cells = _matter(made, naming, given, goal)
    before = [(_entry(terms, c, naming), naming.text(c.term, terms.variables[c.variable].value)) for c in cells]
    arguments = ", ".join(naming.text(made.params[p.name], p.type) for p in made.step.params)
    after = []
    for cell, (entry, was) in zip(cells, before, strict=True):
        if cell.variable in made.form.updates:
            now = naming.text(_after(made, cell), terms.variables[cell.variable].value)
            if now != was:
                after.append((entry, now))
    start = premise(Seen(terms, stands, naming.value), cells)
    return Example(tuple(before), f"{made.step.name}({arguments})", tuple(after), start)


def _matter(made: StepTerms, naming: Naming, given: Sequence[Term], goal: Term) -> list[Cell]:
    """The entries whose values make the step possible and the goal fail."""
    solver = z3.SolverFor("ALL")
    solver.set("rlimit", 5_000_000)
    solver.set("core.minimize", True)
    plain = made.terms.plain
    solver.add(z3.Or([z3.Not(plain(g)) for g in given] + [plain(goal)]))
    stands = list(map(naming.constant, naming.stands))
    kinds = by_sort(stands)
    instances = Instances(made.terms)
    for number, one in enumerate(t for t in made.terms.templates if not t.naming):
        for _, term in instances.of(number, one, kinds):
            solver.add(plain(term))
    for a, b in combinations(stands, 2):
        if a.sort() == b.sort():
            solver.add(a != b)
    for a in stands:
        solver.add(a != z3.Const(f"none.{a.sort()}", a.sort()))
    for p in made.step.params:
        if not is_open(p.type, made.terms.sizes) and not isinstance(p.type, ir.OptionType):
            solver.add(made.params[p.name] == naming.value(made.params[p.name]))
    for member in naming.members:
        stand = stands_for(naming, member)
        if z3.is_const(member) and not naming.is_entry(member) and stand is not None:
            solver.add(member == stand)
    asked: dict[str, Cell] = {}
    for cell in _closed(made.terms, naming):
        literal = z3.Bool(f"cell#{len(asked)}")
        asked[str(literal)] = cell
        solver.add(z3.Implies(literal, _equals(made.terms, cell, naming)))
    wanted = [z3.Bool(name) for name in asked]
    if solver.check(wanted) != z3.unsat:
        return list(asked.values())
    core = {str(c) for c in solver.unsat_core()}
    return [cell for name, cell in asked.items() if name in core]


def stands_for(naming: Naming, member: Term) -> Term | None:
    """The constant that stands for the same member of the model."""
    key = naming.value(member).get_id()
    return naming.constant(key) if key in naming.stands else None


def _closed(terms: Terms, naming: Naming) -> list[Cell]:
    """Every entry of the state at members that have a name; each once."""
    found: dict[tuple[str, tuple[int | None, ...], tuple[int, ...]], Cell] = {}
    for cell in list(terms.cells.values()):
        options: list[list[Term]] = [[]]
        for member in cell.members:
            same = [s for s in naming.stands.values() if s.sort() == member.sort()]
            options = [[*o, s] for o in options for s in same]
        for chosen in options:
            key = (cell.variable, cell.sized, tuple(c.get_id() for c in chosen))
            if key not in found:
                term = cell.term.decl()(*chosen) if chosen else cell.term
                found[key] = Cell(cell.variable, cell.sized, tuple(chosen), term)
    return list(found.values())


def _equals(terms: Terms, cell: Cell, naming: Naming) -> Term:
    """The entry has the value of the model."""
    type_ = terms.variables[cell.variable].value
    inner = ir.bare(type_)
    members = [naming.constant(naming.value(m).get_id()) for m in cell.members]
    term = cell.term.decl()(*members) if members else cell.term
    if is_open(inner, terms.sizes):
        if naming.same(cell.term, terms.none(type_)):
            return term == terms.none(type_)
        stand = stands_for(naming, cell.term)
        if stand is None:
            alike = [naming.constant(k) for k, s in naming.stands.items() if s.sort() == cell.term.sort()]
            return z3.And([term != c for c in alike])
        return term == stand
    if isinstance(inner, ir.SetType) and inner.element is not None and is_open(inner.element, terms.sizes):
        inside = [(naming.constant(k), s) for k, s in naming.stands.items() if s.sort() == terms.sort(inner.element)]
        return z3.And([z3.Select(term, c) == naming.value(z3.Select(cell.term, s)) for c, s in inside])
    return term == naming.value(cell.term)


def _entry(terms: Terms, cell: Cell, naming: Naming) -> str:
    v, members = terms.variables[cell.variable], list(cell.members)
    parts = []
    for key, sized in zip(v.keys, cell.sized, strict=True):
        parts.append(show(key, sized) if sized is not None else naming.text(members.pop(0), key))
    return f"{v.name}[{', '.join(parts)}]" if parts else v.name


def _after(made: StepTerms, cell: Cell) -> Term:
    """The entry in the state after."""
    terms, members = made.terms, list(cell.members)
    v = terms.variables[cell.variable]
    index: list[ir.Expr] = []
    names, params = dict(made.params), []
    for k, (key, sized) in enumerate(zip(v.keys, cell.sized, strict=True)):
        if sized is not None:
            index.append(ir.Const(sized, key))
            continue
        params.append(ir.Param(f"i{k}", key, False))
        index.append(ir.Name(f"i{k}", key))
        names[f"i{k}'"] = members.pop(0)
    read = ir.Step("", "helper", "", tuple(params), (), None, "", value=ir.Read(v.name, tuple(index), v.value))
    value = predicate(read, terms.variables, terms.sizes, made.form).condition
    return terms.plain(Translator(terms, names)(value, v.value))
