"""Fold one expression over folded parts: what it is whatever the state is."""

from __future__ import annotations

from kvsan.spec.lang import ir
from kvsan.spec.lang.simplify import simplified


def fold(expr: ir.Expr) -> ir.Expr:
    """One node over folded parts."""
    match expr:
        case ir.Arith(op, a, b, type_) if isinstance(type_, ir.SetType):
            return _sets(expr, op, a, b)
        case ir.Arith(op, ir.Const(int(a)), ir.Const(int(b)), type_):
            return _numbers(expr, op, a, b)
        case ir.Arith("+", ir.Const(0), other) | ir.Arith("+" | "-" | "excess", other, ir.Const(0)):
            return other
        case ir.Arith("excess" | "*", ir.Const(0), _, type_) | ir.Arith("*", _, ir.Const(0), type_):
            return ir.Const(0, type_, expr.span)
        case ir.Arith("//", other, ir.Const(1)):
            return other
        case ir.Compare("==" | "!=" as op, ir.Empty(), ir.Empty()):
            return ir.Const(op == "==", ir.BOOL, expr.span)
        case ir.Compare("==" | "!=" as op, ir.Const(a), ir.Const(b)):
            return ir.Const((a == b) == (op == "=="), ir.BOOL, expr.span)
        case ir.Compare("subset", ir.Empty(), _):
            return ir.TRUE
        case ir.Compare("in", _, ir.Empty()):
            return ir.FALSE
        case ir.Compare(">", ir.Const(0), _):
            return ir.FALSE
        case ir.Compare("<=", ir.Const(0), _):
            return ir.TRUE
        case ir.Some(ir.Const(int(value)), type_):
            return ir.Const(value, type_, expr.span)
        case ir.IsNone(ir.Const(value)):
            return ir.Const(value is None, ir.BOOL, expr.span)
        case _:
            return simplified(expr)


def _numbers(expr: ir.Arith, op: str, a: int, b: int) -> ir.Expr:
    match op:
        case "+":
            value = a + b
        case "*":
            value = a * b
        case "min":
            value = min(a, b)
        case "max":
            value = max(a, b)
        case "excess":
            value = max(a - b, 0)
        case "//" if b:
            value = a // b
        case "%" if b:
            value = a % b
        case "-" if a >= b:
            value = a - b
        case _:
            return expr
    return ir.Const(value, expr.type, expr.span)


def _sets(expr: ir.Arith, op: str, a: ir.Expr, b: ir.Expr) -> ir.Expr:
    match op, a, b:
        case "|", ir.Empty(), other:
            return other
        case "|" | "-", other, ir.Empty():
            return other
        case "&", ir.Empty(), _:
            return ir.Empty(expr.type, expr.span)
        case "&", _, ir.Empty():
            return ir.Empty(expr.type, expr.span)
        case "-", ir.Only(ir.Name()), other if a == other:
            return ir.Empty(expr.type, expr.span)
        case "-", ir.Empty(), _:
            return ir.Empty(expr.type, expr.span)
        case "span", ir.Const(int(low)), ir.Const(int(high)) if high <= low:
            return ir.Empty(expr.type, expr.span)
        case _:
            return expr
