"""Expressions that name something: locals, constants of a module, state variables and their indexes."""

from __future__ import annotations

import ast

from kvsan.spec.lang import expressions as parse
from kvsan.spec.lang import ir
from kvsan.spec.lang.diagnostics import nearest
from kvsan.spec.lang.scope import NOTHING, Env
from kvsan.spec.lang.source import Module, defined_name, resolve


def name_of(env: Env, node: ast.Name) -> ir.Expr:
    """A local name or a constant of the module."""
    name, span = node.id, env.span(node)
    if name in env.names:
        type_ = env.names[name]
        return ir.Name(name, ir.bare(type_) if name in env.present else type_, span)
    if name == env.head.state_param:
        env.error("state-as-value", "the state is no value", node, f"{name}.variable", f"write {name}.variable[index]")
        return NOTHING
    constant = _module_constant(env, env.head.module, name)
    if constant is not None:
        return ir.Const(constant.value, constant.type, span)
    elsewhere = next((m.name for m in env.world.modules.values() if isinstance(m.names.get(name), ast.Assign)), "")
    close = nearest(name, [*env.names, *env.head.module.names])
    env.error(
        "unknown-name",
        f"`{name}` is not known here",
        node,
        "a parameter, a local name bound on every path to here, or a constant of the module",
        f"from {elsewhere} import {name}" if elsewhere else f"did you mean `{close}`?" if close else "",
    )
    return NOTHING


def _module_constant(env: Env, module: Module, name: str) -> ir.Const | None:
    found = resolve(env.world.modules, module, name)
    if not isinstance(found, tuple):
        return None
    defined, node = found
    name = defined_name(env.world.modules, module, name)
    match node:
        case ast.Assign(targets=[target], value=value):
            if isinstance(target, ast.Tuple):
                names = [t.id if isinstance(t, ast.Name) else "" for t in target.elts]
                return _nth_member(env, defined, value, names.index(name), len(names))
            return constant_value(env, defined, value)
        case ast.AnnAssign(value=ast.expr() as value):
            return constant_value(env, defined, value)
        case _:
            return None


def constant_value(env: Env, module: Module, value: ast.expr) -> ir.Const | None:
    """The value of a module's constant: a bool, a natural or a member of a choice; None for anything else."""
    match value:
        case ast.Constant(value=bool(v)):
            return ir.Const(v, ir.BOOL)
        case ast.Constant(value=int(v)) if v >= 0:
            return ir.Const(v, ir.NAT)
        case ast.Call(func=ast.Name(id=owner), args=[ast.Constant(value=str(name))]):
            choice = env.world.choices.get(defined_name(env.world.modules, module, owner))
            return ir.Const(choice.names.index(name), choice) if choice and name in choice.names else None
        case ast.Subscript(value=ast.Call() as call, slice=ast.Constant(value=int(n))):
            return _nth_member(env, module, call, n, None)
        case _:
            return None


def _nth_member(env: Env, module: Module, value: ast.expr, n: int, count: int | None) -> ir.Const | None:
    match value:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr="members"), args=[]):
            choice = env.world.choices.get(defined_name(env.world.modules, module, owner))
            if choice and n < len(choice.names) and count in (None, len(choice.names)):
                return ir.Const(n, choice)
        case ast.Tuple(elts=parts) if n < len(parts):
            return constant_value(env, module, parts[n])
        case _:
            pass
    return None


def constant(env: Env, node: ast.Constant) -> ir.Expr:
    """A literal."""
    match node.value:
        case None:
            return ir.Const(None, ir.NONE, env.span(node))
        case bool(v):
            return ir.Const(v, ir.BOOL, env.span(node))
        case int(v):
            return ir.Const(v, ir.NAT, env.span(node))
        case _:
            kind = type(node.value).__name__
            env.error(
                "unsupported-syntax", f"a {kind} is no value of the language", node, "a bool, a natural, None, a choice"
            )
            return NOTHING


def attribute(env: Env, node: ast.Attribute) -> ir.Expr:
    """A scalar, `s.x`."""
    match node.value:
        case ast.Name(id=owner) if owner == env.head.state_param:
            return read(env, node, node.attr, ())
        case _:
            env.error("unsupported-syntax", f"`{ast.unparse(node)}` is not part of the language", node, "s.variable")
            return NOTHING


def variable(env: Env, node: ast.AST, name: str) -> ir.Variable | None:
    """A state variable by name; an unknown one is reported."""
    found = env.world.variables.get(name)
    if found is None:
        close = nearest(name, env.world.variables)
        env.error(
            "unknown-variable",
            f"the state has no variable `{name}`",
            node,
            f"a variable of {env.world.state}",
            f"did you mean `{close}`?" if close else f"declare `{name}: ...` in {env.world.state}",
        )
    return found


def read(env: Env, node: ast.expr, name: str, parts: tuple[ast.expr, ...]) -> ir.Expr:
    """A read of a state variable, its index checked."""
    found = variable(env, node, name)
    if found is None:
        for part in parts:
            parse.expression(env, part)
        return NOTHING
    index = indexes(env, node, found, parts)
    if index is None:
        return NOTHING
    return ir.Read(name, index, found.value, env.span(node))


def indexes(env: Env, node: ast.AST, found: ir.Variable, parts: tuple[ast.expr, ...]) -> tuple[ir.Expr, ...] | None:
    """The checked indexes of a variable, or None where their number is wrong."""
    shape = ", ".join(map(str, found.keys))
    if len(parts) != len(found.keys):
        for part in parts:
            parse.expression(env, part)
        what = (
            f"`{found.name}` takes {len(found.keys)} indexes ({shape})" if found.keys else f"`{found.name}` is a scalar"
        )
        fix = "name one entry; a map is no value" if not parts else ""
        env.error("wrong-arity", f"{what}, not {len(parts)}", node, f"{found.name}[{shape}]", fix)
        return None
    return tuple(checked_index(env, p, k, f"`{found.name}`") for p, k in zip(parts, found.keys, strict=True))


def checked_index(env: Env, node: ast.expr, key: ir.Type, what: str) -> ir.Expr:
    """An index that must fit a key type; one range is not another, though both are numbers."""
    found = parse.expression(env, node)
    other = found.type
    if isinstance(key, ir.NatType) and isinstance(other, ir.NatType) and other.parameter and not other.inclusive:
        if other.parameter != key.parameter and not key.inclusive:
            env.error("wrong-index", f"the index of {what} ranges over {key}, this over {other}", node, str(key))
    else:
        parse.match_or_report(env, node, found, key, f"the index of {what}", "wrong-index")
    return found


def subscript(env: Env, node: ast.Subscript) -> ir.Expr:
    """An entry of a map, `s.v[i, j]`."""
    parts = tuple(node.slice.elts) if isinstance(node.slice, ast.Tuple) else (node.slice,)
    match node.value:
        case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner == env.head.state_param:
            return read(env, node, name, parts)
        case _:
            env.error("unsupported-syntax", "only a state variable has an index", node, "s.variable[index]")
            return NOTHING
