"""Walk and rebuild expressions: the one place that knows every node's parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import assert_never

from kvsan.spec.lang import ir


def children(expr: ir.Expr) -> tuple[ir.Expr, ...]:
    """The direct parts of an expression, in evaluation order."""
    match expr:
        case ir.Name() | ir.Const() | ir.Empty():
            return ()
        case ir.Read(index=index):
            return index
        case ir.Not(operand) | ir.IsNone(operand) | ir.Some(operand) | ir.Only(operand):
            return (operand,)
        case ir.And(items) | ir.Or(items):
            return items
        case ir.Compare(left=left, right=right) | ir.Arith(left=left, right=right):
            return (left, right)
        case ir.Cond(test, then, other):
            return (test, then, other)
        case ir.Quantifier(domain=domain, body=body):
            return (domain.first, body) if isinstance(domain, ir.Row) else (body,)
        case ir.CallExpr(arguments=arguments):
            return arguments
        case ir.LetIn(value=value, body=body):
            return (value, body)
        case _:
            assert_never(expr)


def every(expr: ir.Expr) -> Iterator[ir.Expr]:
    """The expression and all its parts."""
    yield expr
    for child in children(expr):
        yield from every(child)


def rebuild(expr: ir.Expr, change: Callable[[ir.Expr], ir.Expr]) -> ir.Expr:
    """The same node over changed parts."""
    match expr:
        case ir.Name() | ir.Const() | ir.Empty():
            return expr
        case ir.Read(index=index):
            return replace(expr, index=tuple(map(change, index)))
        case ir.Not(operand) | ir.IsNone(operand) | ir.Some(operand):
            return replace(expr, operand=change(operand))
        case ir.Only(member):
            return replace(expr, member=change(member))
        case ir.And(items) | ir.Or(items):
            return replace(expr, items=tuple(map(change, items)))
        case ir.Compare(left=left, right=right) | ir.Arith(left=left, right=right):
            return replace(expr, left=change(left), right=change(right))
        case ir.Cond(test, then, other):
            return replace(expr, test=change(test), then=change(then), other=change(other))
        case ir.Quantifier(domain=domain, body=body):
            return replace(expr, domain=domain_with(domain, change), body=change(body))
        case ir.CallExpr(arguments=arguments):
            return replace(expr, arguments=tuple(map(change, arguments)))
        case ir.LetIn(value=value, body=body):
            return replace(expr, value=change(value), body=change(body))
        case _:
            assert_never(expr)


def domain_with(domain: ir.Domain, change: Callable[[ir.Expr], ir.Expr]) -> ir.Domain:
    """The same domain over a changed first index."""
    return replace(domain, first=change(domain.first)) if isinstance(domain, ir.Row) else domain


def expressions(statement: ir.Stmt) -> tuple[ir.Expr, ...]:
    """The expressions that stand directly in a statement."""
    match statement:
        case ir.Let(value=value):
            return (value,)
        case ir.Store(index=index, value=value):
            return (*index, value)
        case ir.If(test=test):
            return (test,)
        case ir.For(domain=domain):
            return (domain.first,) if isinstance(domain, ir.Row) else ()
        case ir.Obey(condition=condition) | ir.Require(condition=condition):
            return (condition,)
        case ir.Reset(entity=entity):
            return (entity,)
        case ir.CallStmt(arguments=arguments):
            return arguments
        case _:
            assert_never(statement)


def inner(statement: ir.Stmt) -> tuple[tuple[ir.Stmt, ...], ...]:
    """The blocks inside a statement."""
    match statement:
        case ir.If(then=then, orelse=orelse):
            return (then, orelse)
        case ir.For(body=body):
            return (body,)
        case _:
            return ()


def all_statements(block: tuple[ir.Stmt, ...]) -> Iterator[ir.Stmt]:
    """Every statement of a block, outer before inner."""
    for statement in block:
        yield statement
        for part in inner(statement):
            yield from all_statements(part)


def all_expressions(block: tuple[ir.Stmt, ...]) -> Iterator[ir.Expr]:
    """Every expression of a block with all its parts."""
    for statement in all_statements(block):
        for expr in expressions(statement):
            yield from every(expr)


def only_ghosts(block: Iterable[ir.Stmt], variables: Mapping[str, ir.Variable]) -> bool:
    """Whether statements change nothing but ghosts."""
    for statement in block:
        match statement:
            case ir.Store(name):
                if not variables[name].ghost:
                    return False
            case ir.If(_, then, orelse):
                if not (only_ghosts(then, variables) and only_ghosts(orelse, variables)):
                    return False
            case ir.For(body=inner):
                if not only_ghosts(inner, variables):
                    return False
            case ir.Let():
                pass
            case _:
                return False
    return True
