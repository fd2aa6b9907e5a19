"""Exact read and write sets: which variables at which indexes, per step and per obligation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kvsan.spec.lang import ir
from kvsan.spec.lang.walk import all_statements, every, expressions


@dataclass(frozen=True)
class Access:
    """One variable at one index term; index None: every entry (a row, or all of a reset member's)."""

    variable: str
    index: tuple[ir.Expr, ...] | None


@dataclass(frozen=True)
class Judged:
    """An obligation of a lowered step, and what it depends on, through local names and path conditions too."""

    obey: ir.Obey
    path: tuple[ir.Expr, ...]
    reads: tuple[Access, ...]


def accesses(expr: ir.Expr) -> Iterator[Access]:
    """What an expression reads directly."""
    for part in every(expr):
        match part:
            case ir.Read(variable, index):
                yield Access(variable, index)
            case ir.Quantifier(domain=ir.Row(variable)):
                yield Access(variable, None)
            case _:
                pass


def _through(expr: ir.Expr, lets: Mapping[str, tuple[Access, ...]]) -> Iterator[Access]:
    yield from accesses(expr)
    for part in every(expr):
        if isinstance(part, ir.Name):
            yield from lets.get(part.name, ())


def judged(step: ir.Step) -> tuple[Judged, ...]:
    """Every obligation of a lowered step, in order."""
    out: list[Judged] = []
    _judge(step.effects, {}, (), (), out)
    return tuple(out)


def _judge(
    block: tuple[ir.Stmt, ...],
    lets: dict[str, tuple[Access, ...]],
    path: tuple[ir.Expr, ...],
    reads: tuple[Access, ...],
    out: list[Judged],
) -> None:
    for statement in block:
        direct = tuple(dict.fromkeys(a for e in expressions(statement) for a in _through(e, lets)))
        match statement:
            case ir.Let(name):
                lets[name] = tuple(dict.fromkeys((*lets.get(name, ()), *direct)))
            case ir.Obey():
                out.append(Judged(statement, path, tuple(dict.fromkeys((*reads, *direct)))))
            case ir.If(test, then, orelse, span):
                _judge(then, lets, (*path, test), (*reads, *direct), out)
                _judge(orelse, lets, (*path, ir.Not(test, span)), (*reads, *direct), out)
            case ir.For(domain=domain, body=body):
                row = (Access(domain.variable, None),) if isinstance(domain, ir.Row) else ()
                _judge(body, lets, path, (*reads, *direct, *row), out)
            case _:
                pass


def reads(step: ir.Step) -> tuple[Access, ...]:
    """Everything that a lowered step reads."""
    found: list[Access] = []
    for expr in step.guard if step.value is None else (step.value,):
        found += accesses(expr)
    for statement in all_statements(step.effects):
        for expr in expressions(statement):
            found += accesses(expr)
        if isinstance(statement, ir.For) and isinstance(statement.domain, ir.Row):
            found.append(Access(statement.domain.variable, None))
    return tuple(dict.fromkeys(found))


def writes(step: ir.Step, variables: Mapping[str, ir.Variable]) -> tuple[Access, ...]:
    """Everything that a lowered step may write."""
    found: list[Access] = []
    for statement in all_statements(step.effects):
        match statement:
            case ir.Store(variable, index):
                found.append(Access(variable, index))
            case ir.Reset(sort):
                found += [Access(v.name, None) for v in reset_by(sort, variables)]
            case _:
                pass
    return tuple(dict.fromkeys(found))


def reset_by(sort: str, variables: Mapping[str, ir.Variable]) -> tuple[ir.Variable, ...]:
    """The maps that `reset` of a member of this sort returns to their defaults."""
    return tuple(v for v in variables.values() if not v.const and v.keys and v.keys[0] == ir.SortType(sort))


def changes_row(loop: ir.For) -> bool:
    """Whether a turn of a loop over a row may change which keys the row has for a later turn."""
    assert isinstance(loop.domain, ir.Row)
    own = ir.Name(loop.name, loop.name_type)
    for statement in all_statements(loop.body):
        match statement:
            case ir.Store(variable, index) if variable == loop.domain.variable:
                if index[:2] != (loop.domain.first, own):
                    return True
            case ir.Reset():
                return True
            case _:
                pass
    return False
