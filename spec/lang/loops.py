"""Loops and quantifiers: a bound name and what it ranges over."""

from __future__ import annotations

import ast

from kvsan.spec.lang import expressions as parse
from kvsan.spec.lang import ir
from kvsan.spec.lang.annotations import surface_word
from kvsan.spec.lang.diagnostics import nearest
from kvsan.spec.lang.names import checked_index, variable
from kvsan.spec.lang.scope import NOTHING, Env, present_if


def quantifier(env: Env, node: ast.Call, kind: str) -> ir.Expr:
    if not (len(node.args) == 1 and isinstance(node.args[0], ast.GeneratorExp)):
        env.error("unsupported-syntax", f"`{kind}` takes one generator", node, f"{kind}(... for k in members(Sort, s))")
        return NOTHING
    if env.head.kind in ("event", "action"):
        env.error(
            "quantifier-in-step",
            f"`{kind}(...)` ranges over a sort or a row, which an {env.head.kind} may not: its cost must stay constant",
            node,
            "a quantifier in an invariant, a witness or a settling event",
            "keep a counter as a Derived variable and test that",
        )
    generator = node.args[0]
    return _generators(env.inner(), generator, kind, 0)


def _generators(env: Env, node: ast.GeneratorExp, kind: str, depth: int) -> ir.Expr:
    if depth == len(node.generators):
        return parse.condition(env, node.elt)
    part = node.generators[depth]
    bound = loop(env, part.target, part.iter)
    filters: list[ir.Expr] = []
    for test in part.ifs:
        item = parse.condition(env, test)
        env = env.knowing(present_if(item, True))
        filters.append(item)
    body = _generators(env, node, kind, depth + 1)
    if filters and kind == "all":
        body = ir.Or((*(ir.Not(f, f.span) for f in filters), body), env.span(node))
    elif filters:
        body = ir.And((*filters, body), env.span(node))
    if bound is None:
        return NOTHING
    name, type_, domain = bound
    return ir.Quantifier(kind, name, type_, domain, body, env.span(node))


def loop(env: Env, target: ast.expr, domain: ast.expr) -> tuple[str, ir.Type, ir.Domain] | None:
    """The bound name, its type and the domain of a loop or quantifier; the name is added to env."""
    name = target.id if isinstance(target, ast.Name) else ""
    if not name:
        env.error("unsupported-syntax", "a loop binds one name", target, "for k in ...")
    elif name in env.names or name == env.head.state_param:
        env.error("shadowed-name", f"`{name}` is already bound", target, "a new name", "rename the loop's name")
    found = _domain(env, domain)
    if found is None:
        env.names[name] = ir.BAD
        return None
    type_, where = found
    env.names[name] = type_
    return name, type_, where


def _domain(env: Env, node: ast.expr) -> tuple[ir.Type, ir.Domain] | None:
    word = surface_word(env.world, env.head.module, node.func) if isinstance(node, ast.Call) else ""
    match node:
        case ast.Call(args=[ast.Name(id=sort), ast.Name(id=owner)]) if (
            word == "members" and owner == env.head.state_param
        ):
            known = env.world.sorts.get(env.defined(sort))
            if known is not None:
                return known, ir.Members(known.name)
            env.error("unknown-type", f"`{sort}` is no sort", node.args[0], "a Sort", _near_sort(env, sort))
            return None
        case ast.Call(args=[ast.Attribute(value=ast.Name(id=owner), attr=name), first]) if word == "row":
            found = variable(env, node.args[0], name) if owner == env.head.state_param else None
            if found is None:
                return None
            if len(found.keys) != 2:
                env.error("wrong-arity", f"`row` takes a map with two indexes, `{name}` has {len(found.keys)}", node)
                return None
            return found.keys[1], ir.Row(name, checked_index(env, first, found.keys[0], f"`{name}`"))
        case _:
            env.error(
                "bad-loop",
                "a loop ranges over the entries of one row, or over a sort",
                node,
                "row(s.variable, first) or members(Sort, s)",
                "numbers: use span(low, high) as a Set; a fixed count: write the lines out",
            )
            return None


def _near_sort(env: Env, sort: str) -> str:
    close = nearest(sort, env.world.sorts)
    return f"did you mean `{close}`?" if close else ""
