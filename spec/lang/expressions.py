"""Second pass, expressions: from `ast` to the typed form. Every mistake is reported; what is wrong becomes BAD."""

from __future__ import annotations

import ast

from kvsan.spec.lang import calls, ir, names, operators  # these call back into this module: a tree walks itself
from kvsan.spec.lang.refusals import UNSUPPORTED
from kvsan.spec.lang.scope import NOTHING, Env, fits


def expression(env: Env, node: ast.expr) -> ir.Expr:
    """The typed form of an expression."""
    match node:
        case ast.Name():
            return names.name_of(env, node)
        case ast.Constant():
            return names.constant(env, node)
        case ast.Attribute():
            return names.attribute(env, node)
        case ast.Subscript():
            return names.subscript(env, node)
        case ast.BoolOp():
            return operators.bool_op(env, node)
        case ast.UnaryOp(op=ast.Not()):
            return ir.Not(condition(env, node.operand), env.span(node))
        case ast.UnaryOp(op=ast.USub()):
            env.error("negative-number", "there are no negative numbers", node, "a natural", "use None for `no value`")
            return NOTHING
        case ast.Compare():
            return operators.comparison(env, node)
        case ast.BinOp():
            return operators.binary(env, node)
        case ast.IfExp():
            return operators.conditional(env, node)
        case ast.Call():
            return calls.call(env, node)
        case _:
            what, instead = UNSUPPORTED.get(
                type(node), (f"`{type(node).__name__}`", "see the syntax page of kvsan.spec.lang")
            )
            env.error("unsupported-syntax", f"{what} is not part of the language", node, "", instead)
            return NOTHING


def condition(env: Env, node: ast.expr) -> ir.Expr:
    """An expression that must be a bool."""
    found = expression(env, node)
    if not fits(found.type, ir.BOOL):
        fix = ""
        if isinstance(found.type, ir.OptionType):
            fix = f"write `{ast.unparse(node)} is not None`"
        elif isinstance(found.type, ir.NatType):
            fix = f"write `{ast.unparse(node)} > 0`"
        elif isinstance(found.type, ir.SetType):
            fix = f"write `{ast.unparse(node)} != empty()`"
        env.error("not-a-condition", f"a condition is a bool, this is {found.type}", node, "bool", fix)
    return found


def wanted(env: Env, node: ast.expr, type_: ir.Type, what: str, code: str = "wrong-type") -> ir.Expr:
    """An expression that must fit a type; `what` names the place for the error."""
    found = expression(env, node)
    match_or_report(env, node, found, type_, what, code)
    return found


def match_or_report(
    env: Env, node: ast.AST, found: ir.Expr, type_: ir.Type, what: str, code: str = "wrong-type"
) -> None:
    """Report where an expression does not fit the type wanted at a place."""
    if fits(found.type, type_):
        return
    if isinstance(found.type, ir.OptionType) and fits(found.type.inner, type_):
        text = ast.unparse(node)
        fix = (
            f"test `{text} is not None` first"
            if isinstance(found, ir.Name)
            else f"write some({text}), after `{text} is not None`"
        )
        env.error("maybe-none", f"{what} takes {type_}, and `{text}` may be None", node, str(type_), fix)
        return
    env.error(code, f"{what} takes {type_}, this is {found.type}", node, str(type_))
