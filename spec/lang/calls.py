"""Calls: built-in words, helpers and events, and their arguments."""

from __future__ import annotations

import ast

from kvsan.spec.lang import expressions as parse
from kvsan.spec.lang import ir
from kvsan.spec.lang.annotations import surface_word
from kvsan.spec.lang.diagnostics import nearest
from kvsan.spec.lang.loops import quantifier
from kvsan.spec.lang.names import constant_value
from kvsan.spec.lang.scope import NOTHING, Env
from kvsan.spec.lang.source import resolve

EFFECTS = ("require", "obey", "advise", "reset")
WORDS = (*EFFECTS, "some", "excess", "span", "only", "empty", "members", "row")


def call(env: Env, node: ast.Call) -> ir.Expr:
    word = surface_word(env.world, env.head.module, node.func)
    if isinstance(node.func, ast.Name) and node.func.id in env.names:
        env.error("unsupported-syntax", f"`{node.func.id}` is a value; values are not called", node, "a helper")
        return NOTHING
    match node.func, word:
        case ast.Name(id="min" | "max" as op), "" if op not in env.head.module.names:
            return _fold(env, node, op)
        case ast.Name(id="all" | "any" as kind), "" if kind not in env.head.module.names:
            return quantifier(env, node, kind)
        case _, "excess" | "span":
            parts = _arguments(env, node, (ir.NAT, ir.NAT), word)
            type_: ir.Type = ir.NAT if word == "excess" else ir.SetType(ir.NAT)
            return ir.Arith(word, parts[0], parts[1], type_, env.span(node)) if parts else NOTHING
        case _, "some":
            return _some(env, node)
        case _, "only":
            member = parse.expression(env, node.args[0]) if len(node.args) == 1 else NOTHING
            if not isinstance(member.type, ir.SortType | ir.NatType | ir.BadType):
                parse.match_or_report(env, node.args[0], member, ir.bare(member.type), "`only`")
            return ir.Only(member, ir.SetType(member.type), env.span(node))
        case _, "empty":
            return ir.Empty(ir.SetType(None), env.span(node))
        case _, "members" | "row":
            env.error("loop-as-value", f"`{word}(...)` is no value", node, "", f"loop: for k in {ast.unparse(node)}")
            return NOTHING
        case _, _ if word in EFFECTS:
            env.error(
                "effect-in-expression", f"`{word}` is a statement", node, "an expression", "write it on its own line"
            )
            return NOTHING
        case _:
            return _helper_call(env, node)


def _arguments(env: Env, node: ast.Call, types: tuple[ir.Type, ...], what: str) -> list[ir.Expr]:
    if len(node.args) != len(types) or node.keywords:
        env.error(
            "wrong-arity", f"`{what}` takes {len(types)} arguments, not {len(node.args) + len(node.keywords)}", node
        )
        return []
    return [parse.wanted(env, a, t, f"`{what}`") for a, t in zip(node.args, types, strict=True)]


def _fold(env: Env, node: ast.Call, op: str) -> ir.Expr:
    parts = [parse.wanted(env, a, ir.NAT, f"`{op}`") for a in node.args]
    if len(parts) < 2:
        env.error("wrong-arity", f"`{op}` takes two or more naturals", node, f"{op}(a, b)")
        return NOTHING
    result = parts[0]
    for part in parts[1:]:
        result = ir.Arith(op, result, part, ir.NAT, env.span(node))
    return result


def _some(env: Env, node: ast.Call) -> ir.Expr:
    if len(node.args) != 1 or node.keywords:
        env.error("wrong-arity", "`some` takes one option", node, "some(x)")
        return NOTHING
    operand = parse.expression(env, node.args[0])
    if not isinstance(operand.type, ir.OptionType | ir.BadType):
        env.error(
            "never-none", f"`some` unwraps an option, this is {operand.type} here", node, "an option", "drop `some`"
        )
        return operand
    return ir.Some(operand, ir.bare(operand.type), env.span(node))


def _helper_call(env: Env, node: ast.Call) -> ir.Expr:
    if env.head.kind == "initial" and _is_sort_call(env, node) and isinstance(node.func, ast.Name):
        match node.args:
            case [ast.Constant(value=int(n))] if n >= 0:
                return ir.Const(n, env.world.sorts[env.defined(node.func.id)], env.span(node))
    match node.func:
        case ast.Name(id=owner) if env.defined(owner) in env.world.choices:
            constant = constant_value(env, env.head.module, node)
            if constant is not None:
                return ir.Const(constant.value, constant.type, env.span(node))
            env.error(
                "unknown-name",
                f"`{ast.unparse(node)}` is no member of {owner}",
                node,
                ", ".join(env.world.choices[env.defined(owner)].names),
            )
            return NOTHING
    found = callee(env, node)
    if found is None:
        return NOTHING
    name, result = found
    if env.world.heads[name].kind != "helper" or result is None:
        env.error(
            "effect-in-expression",
            f"`{name}` is called for its effects and has no value",
            node,
            "",
            "call it on its own line",
        )
        return NOTHING
    given = arguments(env, node, name)
    return ir.CallExpr(name, given, result, env.span(node)) if given is not None else NOTHING


def callee(env: Env, node: ast.Call) -> tuple[str, ir.Type | None] | None:
    """The step that a call names and its result type; what cannot be called is reported."""
    text = ast.unparse(node.func)
    name = _step_name(env, node.func)
    if name is None:
        for argument in node.args:
            if not isinstance(argument, ast.Name) or argument.id != env.head.state_param:
                parse.expression(env, argument)
        if _is_sort_call(env, node):
            env.error(
                "literal-member",
                f"`{ast.unparse(node)}` names one member of a scalarset",
                node,
                "members only from parameters and state",
                "take it as a parameter; literal members stand in initial steps only",
            )
            return None
        close = nearest(text, [h for h in env.world.heads if env.world.heads[h].kind in ("helper", "event")])
        known = resolve(env.world.modules, env.head.module, text)
        fix = f"did you mean `{close}`?" if close else ""
        if isinstance(known, tuple) and isinstance(known[1], ast.FunctionDef):
            fix = "decorate it with @helper"
        elif known is None and text in WORDS:
            fix = f"import it: from kvsan.spec.lang.surface import {text}"
        env.error(
            "unknown-function",
            f"`{text}` cannot be called in a step",
            node,
            "a helper, an event, or a word of the language",
            fix,
        )
        return None
    return name, env.world.heads[name].result


def _is_sort_call(env: Env, node: ast.Call) -> bool:
    return isinstance(node.func, ast.Name) and env.defined(node.func.id) in env.world.sorts


def _step_name(env: Env, func: ast.expr) -> str | None:
    match func:
        case ast.Name(id=name):
            found = resolve(env.world.modules, env.head.module, name)
        case ast.Attribute(value=ast.Name(id=owner), attr=name):
            module = env.head.module.names.get(owner)
            inner = getattr(module, "module", None)
            if inner not in env.world.modules:
                return None
            found = resolve(env.world.modules, env.world.modules[inner], name)
        case _:
            return None
    if isinstance(found, tuple) and isinstance(found[1], ast.FunctionDef) and found[1].name in env.world.heads:
        return found[1].name
    return None


def arguments(env: Env, node: ast.Call, name: str) -> tuple[ir.Expr, ...] | None:
    """The arguments of a call of a step, one per parameter, in order; None after a report."""
    head = env.world.heads[name]
    given = list(node.args)
    state = given.pop(0) if given else None
    if not (isinstance(state, ast.Name) and state.id == env.head.state_param):
        env.error(
            "no-state-argument",
            f"the first argument of `{name}` is the state",
            node,
            f"{name}({env.head.state_param}, ...)",
        )
        return None
    by_name: dict[str, ast.expr] = {k.arg or "": k.value for k in node.keywords}
    known = [p.name for p in head.params]
    extra = [k for k in by_name if k not in known]
    if len(given) > len(known) or extra or any(k in by_name for k in known[: len(given)]):
        shape = ", ".join(["s", *known])
        env.error("wrong-arity", f"`{name}` takes ({shape})", node, f"{name}({shape})")
        return None
    by_name |= dict(zip(known, given, strict=False))
    found: list[ir.Expr] = []
    for param in head.params:
        if param.name in by_name:
            found.append(parse.wanted(env, by_name[param.name], param.type, f"`{param.name}` of `{name}`"))
        elif param.optional:
            found.append(ir.Const(None, ir.NONE, env.span(node)))
        else:
            env.error(
                "wrong-arity", f"`{name}` misses its argument `{param.name}`", node, f"{param.name}: {param.type}"
            )
            return None
    return tuple(found)
