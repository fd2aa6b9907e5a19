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
    """The same node over changed parts, itself where no part changed."""
    match expr:
        case ir.Name() | ir.Const() | ir.Empty():
            return expr
        case ir.Read(index=index):
            parts = tuple(map(change, index))
            return expr if _same(parts, index) else replace(expr, index=parts)
        case ir.Not(operand) | ir.IsNone(operand) | ir.Some(operand):
            part = change(operand)
            return expr if part is operand else replace(expr, operand=part)
        case ir.Only(member):
            part = change(member)
            return expr if part is member else replace(expr, member=part)
        case ir.And(items) | ir.Or(items):
            parts = tuple(map(change, items))
            return expr if _same(parts, items) else replace(expr, items=parts)
        case ir.Compare(left=left, right=right) | ir.Arith(left=left, right=right):
            a, b = change(left), change(right)
            return expr if a is left and b is right else replace(expr, left=a, right=b)
        case ir.Cond(test, then, other):
            parts = change(test), change(then), change(other)
            if _same(parts, (test, then, other)):
                return expr
            return replace(expr, test=parts[0], then=parts[1], other=parts[2])
        case ir.Quantifier(domain=domain, body=body):
            where, inside = domain_with(domain, change), change(body)
            return expr if where is domain and inside is body else replace(expr, domain=where, body=inside)
        case ir.CallExpr(arguments=arguments):
            parts = tuple(map(change, arguments))
            return expr if _same(parts, arguments) else replace(expr, arguments=parts)
        case ir.LetIn(value=value, body=body):
            bound, inside = change(value), change(body)
            return expr if bound is value and inside is body else replace(expr, value=bound, body=inside)
        case _:
            assert_never(expr)


def _same(parts: tuple[ir.Expr, ...], before: tuple[ir.Expr, ...]) -> bool:
    return all(a is b for a, b in zip(parts, before, strict=True))


def domain_with(domain: ir.Domain, change: Callable[[ir.Expr], ir.Expr]) -> ir.Domain:
    """The same domain over a changed first index."""
    if not isinstance(domain, ir.Row):
        return domain
    first = change(domain.first)
    return domain if first is domain.first else replace(domain, first=first)


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
