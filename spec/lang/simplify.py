"""Fold constants and drop dead branches. Nothing changes where an expression is defined; a fold never hides a mistake
that plain Python would raise, except under a condition that is constant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kvsan.spec.lang import ir
from kvsan.spec.lang.walk import domain_with, rebuild


def negate(expr: ir.Expr) -> ir.Expr:
    match expr:
        case ir.Const(value):
            return ir.Const(not value, ir.BOOL, expr.span)
        case ir.Not(operand):
            return operand
        case _:
            return ir.Not(expr, expr.span)


def conj(*items: ir.Expr) -> ir.Expr:
    """Short-circuit `and`, flattened, constants folded."""
    kept: list[ir.Expr] = []
    for item in items:
        for part in item.items if isinstance(item, ir.And) else (item,):
            if isinstance(part, ir.Const):
                if part.value:
                    continue
                return ir.FALSE if not kept else ir.And((*kept, ir.FALSE))
            kept.append(part)
    return ir.TRUE if not kept else kept[0] if len(kept) == 1 else ir.And(tuple(kept), kept[0].span)


def disj(*items: ir.Expr) -> ir.Expr:
    """Short-circuit `or`, flattened, constants folded."""
    kept: list[ir.Expr] = []
    for item in items:
        for part in item.items if isinstance(item, ir.Or) else (item,):
            if isinstance(part, ir.Const):
                if not part.value:
                    continue
                return ir.TRUE if not kept else ir.Or((*kept, ir.TRUE))
            kept.append(part)
    return ir.FALSE if not kept else kept[0] if len(kept) == 1 else ir.Or(tuple(kept), kept[0].span)


def choose(test: ir.Expr, then: ir.Expr, other: ir.Expr, type_: ir.Type) -> ir.Expr:
    """A conditional expression, folded where the test is constant or the arms are one object."""
    if isinstance(test, ir.Const):
        return then if test.value else other
    return then if then is other else ir.Cond(test, then, other, type_, test.span)


def equal(left: ir.Expr, right: ir.Expr) -> ir.Expr:
    """left == right, folded between constants and for one and the same name."""
    match left, right:
        case ir.Const(a), ir.Const(b):
            return ir.Const(a == b, ir.BOOL)
        case ir.Name(a), ir.Name(b) if a == b:
            return ir.TRUE
        case _:
            return ir.Compare("==", left, right, left.span)


_FOLD = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def simplify(expr: ir.Expr, constants: Mapping[str, int | None]) -> ir.Expr:
    """The expression with the scalars in `constants` replaced by their values, folded."""
    if isinstance(expr, ir.Read) and not expr.index and expr.variable in constants:
        return ir.Const(constants[expr.variable], expr.type, expr.span)
    return simplified(rebuild(expr, lambda e: simplify(e, constants)))


def simplified(expr: ir.Expr) -> ir.Expr:
    """One node over folded parts."""
    match expr:
        case ir.Not(operand):
            return negate(operand) if isinstance(operand, ir.Const) else expr
        case ir.And(items):
            return conj(*items)
        case ir.Or(items):
            return disj(*items)
        case ir.Cond(test, then, other, type_):
            return choose(test, then, other, type_)
        case ir.IsNone(ir.Const(value)):
            return ir.Const(value is None, ir.BOOL, expr.span)
        case ir.IsNone(operand) if not isinstance(operand.type, ir.OptionType | ir.NoneType | ir.BadType):
            return ir.FALSE if isinstance(operand, ir.Name) else expr
        case ir.Compare(op, ir.Const(int(a)), ir.Const(int(b))) if op in _FOLD:
            return ir.Const(_FOLD[op](a, b), ir.BOOL, expr.span)
        case _:
            return expr


def simplify_block(block: tuple[ir.Stmt, ...], constants: Mapping[str, int | None]) -> tuple[ir.Stmt, ...]:
    """The statements with constants folded and branches that cannot run dropped."""
    out: list[ir.Stmt] = []
    for statement in block:
        out += _statement(statement, constants)
    return tuple(out)


def _statement(statement: ir.Stmt, constants: Mapping[str, int | None]) -> tuple[ir.Stmt, ...]:
    def fold(expr: ir.Expr) -> ir.Expr:
        return simplify(expr, constants)

    match statement:
        case ir.Let(value=value):
            return (replace(statement, value=fold(value)),)
        case ir.Store(index=index, value=value):
            return (replace(statement, index=tuple(map(fold, index)), value=fold(value)),)
        case ir.If(test, then, orelse):
            decided = fold(test)
            if isinstance(decided, ir.Const):
                return simplify_block(then if decided.value else orelse, constants)
            arms = simplify_block(then, constants), simplify_block(orelse, constants)
            return (replace(statement, test=decided, then=arms[0], orelse=arms[1]),) if any(arms) else ()
        case ir.For(domain=domain, body=body):
            return (replace(statement, domain=domain_with(domain, fold), body=simplify_block(body, constants)),)
        case ir.Obey(condition=condition):
            return (replace(statement, condition=fold(condition)),)
        case ir.Reset(entity=entity):
            return (replace(statement, entity=fold(entity)),)
        case ir.Require(condition=condition):
            return (replace(statement, condition=fold(condition)),)
        case ir.CallStmt():
            return (replace(statement, arguments=tuple(map(fold, statement.arguments))),)
