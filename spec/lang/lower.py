"""Inline every call: one guard and one body of stores, loops and obligations for each step.

A call binds its arguments first, so a callee that writes what an argument read still sees the value passed. Local
names become unique within the step. Expression helpers turn into bindings before the statement that uses them, or,
where their evaluation depends on a condition, into a `LetIn` on the spot.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from kvsan.spec.lang import ir
from kvsan.spec.lang.diagnostics import Span
from kvsan.spec.lang.walk import domain_with, rebuild


@dataclass
class Naming:
    """The names taken in one lowered step, and its obligations so far."""

    taken: set[str] = field(default_factory=set)
    obligations: int = 0

    def fresh(self, name: str) -> str:
        candidate, n = name, 1
        while candidate in self.taken:
            n += 1
            candidate = f"{name}_{n}"
        self.taken.add(candidate)
        return candidate


@dataclass
class Frame:
    """One inlined call. values: what its parameters stand for. renamed: its locals."""

    steps: Mapping[str, ir.Step]
    naming: Naming
    values: dict[str, ir.Expr]
    renamed: dict[str, str] = field(default_factory=dict)
    via: tuple[Span, ...] = ()

    def local(self, name: str) -> str:
        if name not in self.renamed:
            self.renamed[name] = self.naming.fresh(name)
        return self.renamed[name]


def lower(step: ir.Step, steps: Mapping[str, ir.Step]) -> ir.Step:
    """The step with guard, effects and value filled in; calls inlined. Needs calls to be free of recursion."""
    naming = Naming({p.name for p in step.params})
    frame = Frame(steps, naming, {p.name: ir.Name(p.name, p.type, p.span) for p in step.params})
    out: list[ir.Stmt] = []
    for statement in step.body:
        _statement(statement, frame, out)
    if step.result is not None:
        value = _expr(step.result, frame, out)
        for let in reversed(out):
            assert isinstance(let, ir.Let)  # the body of an expression is local names
            value = ir.LetIn(let.name, let.value, value, value.type, let.span)
        return replace(step, value=value)
    guard, effects = _split(out)
    return replace(step, guard=guard, effects=effects)


def _split(block: list[ir.Stmt]) -> tuple[tuple[ir.Expr, ...], tuple[ir.Stmt, ...]]:
    """Guards, each with the local names that stand before it, and the rest."""
    guard: list[ir.Expr] = []
    lets: list[ir.Let] = []
    for statement in block:
        if isinstance(statement, ir.Require):
            condition = statement.condition
            for let in reversed(lets):
                condition = ir.LetIn(let.name, let.value, condition, ir.BOOL, let.span)
            guard.append(condition)
        elif isinstance(statement, ir.Let):
            lets.append(statement)
    return tuple(guard), tuple(s for s in block if not isinstance(s, ir.Require))


# --- statements -------------------------------------------------------------------------------------------------------


def _block(block: tuple[ir.Stmt, ...], frame: Frame) -> tuple[ir.Stmt, ...]:
    out: list[ir.Stmt] = []
    for statement in block:
        _statement(statement, frame, out)
    return tuple(out)


def _statement(statement: ir.Stmt, frame: Frame, out: list[ir.Stmt]) -> None:
    match statement:
        case ir.Let(name, value, span):
            lowered = _expr(value, frame, out)
            out.append(ir.Let(frame.local(name), lowered, span))
        case ir.Store(index=index, value=value):
            at = tuple(_expr(i, frame, out) for i in index)
            out.append(replace(statement, index=at, value=_expr(value, frame, out)))
        case ir.If(test, then, orelse, span):
            decided = _expr(test, frame, out)
            out.append(ir.If(decided, _block(then, frame), _block(orelse, frame), span))
        case ir.For(name, name_type, domain, body, span):
            where = domain_with(domain, lambda e: _expr(e, frame, out))
            out.append(ir.For(frame.local(name), name_type, where, _block(body, frame), span))
        case ir.Obey():
            condition = _expr(statement.condition, frame, out)
            names = tuple((n, _expr(e, frame, out)) for n, e in statement.names)
            number = frame.naming.obligations
            frame.naming.obligations += 1
            out.append(replace(statement, condition=condition, names=names, via=frame.via, number=number))
        case ir.Reset(entity=entity):
            out.append(replace(statement, entity=_expr(entity, frame, out)))
        case ir.Require(condition=condition):
            out.append(replace(statement, condition=_expr(condition, frame, out)))
        case ir.CallStmt(name, arguments, span):
            callee = frame.steps[name]
            values = _bind(callee, arguments, frame, out, out)
            inner = Frame(frame.steps, frame.naming, values, via=(*frame.via, span))
            for part in callee.body:
                _statement(part, inner, out)
        case _:
            assert_never(statement)


def _bind(
    callee: ir.Step, arguments: tuple[ir.Expr, ...], frame: Frame, lets: list[ir.Stmt], out: list[ir.Stmt] | None
) -> dict[str, ir.Expr]:
    """What the callee's parameters stand for; arguments that are no plain name are bound in `lets`."""
    values: dict[str, ir.Expr] = {}
    for param, argument in zip(callee.params, arguments, strict=True):
        value = _expr(argument, frame, out)
        if not isinstance(value, ir.Name | ir.Const | ir.Empty):
            name = frame.naming.fresh(param.name)
            lets.append(ir.Let(name, value, value.span))
            value = ir.Name(name, value.type, value.span)
        values[param.name] = value
    return values


# --- expressions ------------------------------------------------------------------------------------------------------


def _expr(expr: ir.Expr, frame: Frame, out: list[ir.Stmt] | None) -> ir.Expr:
    """out: where bindings may go; None where evaluation depends on a condition."""
    match expr:
        case ir.Name():
            return _name(expr, frame)
        case ir.And(items) | ir.Or(items):
            first, *rest = items
            lowered = [_expr(first, frame, out), *(_expr(i, frame, None) for i in rest)]
            return replace(expr, items=tuple(lowered))
        case ir.Cond(test, then, other):
            return replace(
                expr, test=_expr(test, frame, out), then=_expr(then, frame, None), other=_expr(other, frame, None)
            )
        case ir.Quantifier(domain=domain, body=body, name=name):
            where = domain_with(domain, lambda e: _expr(e, frame, out))
            inner = replace(frame, renamed=dict(frame.renamed))  # the name ends with the quantifier
            inner.renamed[name] = frame.naming.fresh(name)
            return replace(expr, name=inner.renamed[name], domain=where, body=_expr(body, inner, None))
        case ir.CallExpr():
            return _call(expr, frame, out)
        case _:
            return rebuild(expr, lambda e: _expr(e, frame, out))


def _name(expr: ir.Name, frame: Frame) -> ir.Expr:
    value = frame.values.get(expr.name)
    if value is None:
        return replace(expr, name=frame.local(expr.name))
    if isinstance(value, ir.Name):
        narrowed = isinstance(value.type, ir.OptionType) and not isinstance(expr.type, ir.OptionType)
        return replace(value, type=expr.type if narrowed else value.type, span=expr.span)
    return replace(value, span=expr.span)


def _call(call: ir.CallExpr, frame: Frame, out: list[ir.Stmt] | None) -> ir.Expr:
    callee = frame.steps[call.step]
    lets: list[ir.Stmt] = [] if out is None else out
    values = _bind(callee, call.arguments, frame, lets, out)
    inner = Frame(frame.steps, frame.naming, values, via=(*frame.via, call.span))
    for statement in callee.body:
        _let(statement, inner, lets, out)
    assert callee.result is not None  # the parser lets only expression helpers stand here
    value = _expr(callee.result, inner, out)
    if out is None:
        for let in reversed(lets):
            assert isinstance(let, ir.Let)
            value = ir.LetIn(let.name, let.value, value, value.type, let.span)
    return value


def _let(statement: ir.Stmt, frame: Frame, lets: list[ir.Stmt], out: list[ir.Stmt] | None) -> None:
    assert isinstance(statement, ir.Let)  # the body of an expression is local names
    value = _expr(statement.value, frame, out)
    lets.append(ir.Let(frame.local(statement.name), value, statement.span))
