"""Operators: connectives, comparisons, arithmetic and set operators, with the types that they take."""

from __future__ import annotations

import ast

from kvsan.spec.lang import expressions as parse
from kvsan.spec.lang import ir
from kvsan.spec.lang.scope import NOTHING, Env, comparable, join, present_if

COMPARE = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
ARITH = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%", ast.BitOr: "|", ast.BitAnd: "&"}


def bool_op(env: Env, node: ast.BoolOp) -> ir.Expr:
    conjunction = isinstance(node.op, ast.And)
    items: list[ir.Expr] = []
    for value in node.values:
        item = parse.condition(env, value)
        env = env.knowing(present_if(item, conjunction))
        items.append(item)
    return (ir.And if conjunction else ir.Or)(tuple(items), env.span(node))


def conditional(env: Env, node: ast.IfExp) -> ir.Expr:
    test = parse.condition(env, node.test)
    then = parse.expression(env.knowing(present_if(test, True)), node.body)
    other = parse.expression(env.knowing(present_if(test, False)), node.orelse)
    type_ = join(then.type, other.type)
    if type_ is None:
        env.error("wrong-type", f"the two arms differ: {then.type} and {other.type}", node, "one type")
        type_ = ir.BAD
    return ir.Cond(test, then, other, type_, env.span(node))


def comparison(env: Env, node: ast.Compare) -> ir.Expr:
    terms = [node.left, *node.comparators]
    found: list[ir.Expr] = []
    for left, op, right in zip(terms, node.ops, terms[1:], strict=False):
        item = _one_comparison(env, node, left, op, right)
        env = env.knowing(present_if(item, True))
        found.append(item)
    return found[0] if len(found) == 1 else ir.And(tuple(found), env.span(node))


def _one_comparison(env: Env, node: ast.Compare, left: ast.expr, op: ast.cmpop, right: ast.expr) -> ir.Expr:
    span = env.span(node)
    match op:
        case ast.Is() | ast.IsNot():
            test = _is_none(env, node, left, right)
            return ir.Not(test, span) if isinstance(op, ast.IsNot) else test
        case ast.In() | ast.NotIn():
            member, group = parse.expression(env, left), parse.expression(env, right)
            if not isinstance(group.type, ir.SetType | ir.BadType):
                env.error("wrong-type", f"`in` looks into a Set, this is {group.type}", right, "a Set")
            elif isinstance(group.type, ir.SetType) and group.type.element is not None:
                parse.match_or_report(env, left, member, group.type.element, f"`in` a {group.type}")
            test = ir.Compare("in", member, group, span)
            return ir.Not(test, span) if isinstance(op, ast.NotIn) else test
        case ast.Eq() | ast.NotEq():
            return _equality(env, node, left, COMPARE[type(op)], right)
        case _:
            return _ordering(env, node, left, COMPARE[type(op)], right)


def _is_none(env: Env, node: ast.Compare, left: ast.expr, right: ast.expr) -> ir.Expr:
    found = parse.expression(env, left)
    if not (isinstance(right, ast.Constant) and right.value is None):
        env.error("unsupported-syntax", "`is` compares with None only", node, "`is None`", "write ==")
    elif not isinstance(found.type, ir.OptionType | ir.NoneType | ir.BadType):
        env.error(
            "never-none",
            f"`{ast.unparse(left)}` is {found.type} here and never None",
            node,
            "an option",
            "drop the test",
        )
    return ir.IsNone(found, env.span(node))


def _equality(env: Env, node: ast.Compare, left: ast.expr, op: str, right: ast.expr) -> ir.Expr:
    a, b = parse.expression(env, left), parse.expression(env, right)
    if ir.NONE in (a.type, b.type):
        env.error("compare-none", f"`{op} None` is not how an option is tested", node, "`is None` or `is not None`")
    elif not comparable(a.type, b.type):
        env.error("different-sorts", f"{a.type} and {b.type} are never equal", node, "two values of one type")
    return ir.Compare(op, a, b, env.span(node))


def _ordering(env: Env, node: ast.Compare, left: ast.expr, op: str, right: ast.expr) -> ir.Expr:
    a, b = parse.expression(env, left), parse.expression(env, right)
    span = env.span(node)
    if isinstance(a.type, ir.SetType) and op == "<=":
        parse.match_or_report(env, right, b, a.type, "`<=` (subset)")
        return ir.Compare("subset", a, b, span)
    for side, found in ((left, a), (right, b)):
        if isinstance(ir.bare(found.type), ir.SortType | ir.ChoiceType):
            env.error(
                "ordering-on-sort",
                f"members of {ir.bare(found.type)} have no order",
                node,
                "== or != on sorts and choices",
                "compare for equality, or keep a natural for what is meant to be ordered",
            )
            return ir.Compare(op, a, b, span)
        parse.match_or_report(env, side, found, ir.NAT, f"`{op}`")
    return ir.Compare(op, a, b, span)


def binary(env: Env, node: ast.BinOp) -> ir.Expr:
    op = ARITH.get(type(node.op))
    if op is None:
        text = ast.unparse(node)
        fix = "write a // b" if isinstance(node.op, ast.Div) else ""
        env.error(
            "unsupported-syntax", f"the operator of `{text}` is not part of the language", node, "+ - * // % | &", fix
        )
        return NOTHING
    return arith(
        env, node, op, parse.expression(env, node.left), parse.expression(env, node.right), node.left, node.right
    )


def arith(env: Env, node: ast.AST, op: str, a: ir.Expr, b: ir.Expr, left: ast.AST, right: ast.AST) -> ir.Expr:
    """An arithmetic or set operator over two parsed operands, types checked."""
    span = env.span(node)
    if op in "|&" or (op == "-" and isinstance(a.type, ir.SetType)):
        if not isinstance(a.type, ir.SetType | ir.BadType):
            env.error(
                "wrong-type", f"`{op}` works on Sets, this is {a.type}", left, "a Set", "write `and` / `or` for bools"
            )
            return NOTHING
        parse.match_or_report(env, right, b, a.type, f"`{op}`")
        known = a.type if isinstance(a.type, ir.SetType) and a.type.element is not None else b.type
        return ir.Arith(op, a, b, known, span)
    for side, found in ((left, a), (right, b)):
        if isinstance(ir.bare(found.type), ir.SortType):
            env.error(
                "arithmetic-on-sort",
                f"members of {ir.bare(found.type)} are no numbers",
                side,
                "a natural",
                "keep a counter or a range for what is counted",
            )
            return NOTHING
        parse.match_or_report(env, side, found, ir.NAT, f"`{op}`")
    return ir.Arith(op, a, b, ir.NAT, span)
