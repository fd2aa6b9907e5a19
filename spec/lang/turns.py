"""A step whose loops have few turns: a rewriting of steps that have no functional form over open sorts.

A loop over an open sort whose turns depend on each other is written out for a few members, which become parameters of
the step: any different ones, each with a turn where it is in the domain. That the loop has no other turns is an
obligation of the reserved rule `FEW`: who breaks it, leaves out turns. So whatever the rewritten step does while it
obeys `FEW` the step itself does, in an order that need not be that of its members, and of what it may do besides
nothing is said. That shows ways to break a rule, and proves none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations

from kvsan.spec.lang import ir
from kvsan.spec.lang.symbolic import Entangled, Sizes, default_value, disentangled, is_open
from kvsan.spec.lang.walk import inner

FEW = "few turns"
"""No rule has such a name."""


@dataclass
class _Writing:
    variables: Mapping[str, ir.Variable]
    sizes: Sizes
    turns: Mapping[str, int]
    members: dict[ir.Type, tuple[ir.Name, ...]] = field(default_factory=dict)
    locals: int = 0

    def local(self, value: ir.Expr) -> tuple[ir.Let, ir.Name]:
        """A value by a name of its own."""
        self.locals += 1
        name = f"local#{self.locals}"
        return ir.Let(name, value), ir.Name(name, value.type)

    def of(self, sort: ir.Type) -> tuple[ir.Name, ...]:
        """The members that have turns, the same in all loops of the step."""
        assert isinstance(sort, ir.SortType)
        if sort not in self.members:
            numbers = range(self.turns[sort.name])
            self.members[sort] = tuple(ir.Name(f"{sort.name}#{k}", sort) for k in numbers)
        return self.members[sort]


def few_turns(step: ir.Step, variables: Mapping[str, ir.Variable], sizes: Sizes, turns: Mapping[str, int]) -> ir.Step:
    """The step, itself where it has a functional form. turns: for each open sort, at most how many a loop has."""
    run = _Writing(variables, sizes, turns)
    effects = _block(step.effects, run)
    if not run.members:
        return step
    apart = (_few(ir.Compare("!=", a, b)) for members in run.members.values() for a, b in combinations(members, 2))
    params = (ir.Param(m.name, m.type, False) for members in run.members.values() for m in members)
    return replace(step, params=(*step.params, *params), effects=(*apart, *effects))


def _few(condition: ir.Expr) -> ir.Obey:
    return ir.Obey(FEW, condition, "", ())


def _block(block: tuple[ir.Stmt, ...], run: _Writing) -> tuple[ir.Stmt, ...]:
    return tuple(s for statement in block for s in _statement(statement, run))


def _statement(statement: ir.Stmt, run: _Writing) -> Iterator[ir.Stmt]:
    match statement:
        case ir.If(then=then, orelse=orelse):
            yield replace(statement, then=_block(then, run), orelse=_block(orelse, run))
        case ir.For() if _is_entangled(statement, run.sizes):
            yield from _written_out(statement, run)
        case ir.For(body=body):
            yield replace(statement, body=_block(body, run))
        case _:
            yield statement


def _is_entangled(loop: ir.For, sizes: Sizes) -> bool:
    """Whether there is no one store for all turns of the loop, or of one inside it."""
    if not is_open(loop.name_type, sizes):
        return False
    try:
        disentangled(loop)
    except Entangled:
        return True
    return any(_is_entangled(s, sizes) for s in _loops(loop.body))


def _loops(block: tuple[ir.Stmt, ...]) -> Iterator[ir.For]:
    for statement in block:
        if isinstance(statement, ir.For):
            yield statement
        for part in inner(statement):
            yield from _loops(part)


def _written_out(loop: ir.For, run: _Writing) -> Iterator[ir.Stmt]:
    """Which members are in the domain is decided before the first turn."""
    members, domain = run.of(loop.name_type), loop.domain
    if isinstance(domain, ir.Row):
        first, domain = _first(domain, run)
        yield first
    other = ir.Name(f"{loop.name}#", loop.name_type)
    named = ir.Or(tuple(ir.Compare("==", other, m) for m in members))
    yield _few(ir.Quantifier("all", other.name, loop.name_type, domain, named))
    there = [run.local(_is_in(domain, m, run)) for m in members]
    yield from (decided for decided, _ in there)
    body = _block(loop.body, run)
    for member, (_, present) in zip(members, there, strict=True):
        yield ir.If(present, (ir.Let(loop.name, member), *body), ())


def _first(domain: ir.Row, run: _Writing) -> tuple[ir.Let, ir.Row]:
    decided, name = run.local(domain.first)
    return decided, replace(domain, first=name)


def _is_in(domain: ir.Domain, member: ir.Expr, run: _Writing) -> ir.Expr:
    """Whether the domain has a member."""
    if isinstance(domain, ir.Members):
        return ir.TRUE
    variable = run.variables[domain.variable]
    value, absent = ir.Read(domain.variable, (domain.first, member), variable.value), default_value(variable.value)
    if isinstance(absent, ir.Const) and absent.value is None:
        return ir.Not(ir.IsNone(value))
    return value if variable.value == ir.BOOL else ir.Compare("!=", value, absent)
