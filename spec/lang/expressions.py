"""Second pass, expressions: from `ast` to the typed form. Every mistake is reported; what is wrong becomes BAD."""

from __future__ import annotations

import ast

from kvsan.spec.lang import ir
from kvsan.spec.lang.annotations import surface_word
from kvsan.spec.lang.diagnostics import nearest
from kvsan.spec.lang.refusals import UNSUPPORTED
from kvsan.spec.lang.scope import Env, bare, comparable, fits, present_if
from kvsan.spec.lang.source import Module, resolve

COMPARE = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
ARITH = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%", ast.BitOr: "|", ast.BitAnd: "&"}
EFFECTS = ("require", "obey", "advise", "reset")
NOTHING = ir.Const(0, ir.BAD)


def expression(env: Env, node: ast.expr) -> ir.Expr:
    """The typed form of an expression."""
    match node:
        case ast.Name():
            return _name(env, node)
        case ast.Constant():
            return _constant(env, node)
        case ast.Attribute():
            return _attribute(env, node)
        case ast.Subscript():
            return _subscript(env, node)
        case ast.BoolOp():
            return _bool_op(env, node)
        case ast.UnaryOp(op=ast.Not()):
            return ir.Not(condition(env, node.operand), env.span(node))
        case ast.UnaryOp(op=ast.USub()):
            env.error("negative-number", "there are no negative numbers", node, "a natural", "use None for `no value`")
            return NOTHING
        case ast.Compare():
            return _compare(env, node)
        case ast.BinOp():
            return _arith(env, node)
        case ast.IfExp():
            return _conditional(env, node)
        case ast.Call():
            return _call(env, node)
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


# --- names and state --------------------------------------------------------------------------------------------------


def _name(env: Env, node: ast.Name) -> ir.Expr:
    name, span = node.id, env.span(node)
    if name in env.names:
        type_ = env.names[name]
        return ir.Name(name, bare(type_) if name in env.present else type_, span)
    if name == env.head.state_param:
        env.error("state-as-value", "the state is no value", node, f"{name}.variable", f"write {name}.variable[index]")
        return NOTHING
    constant = _module_constant(env, env.head.module, name)
    if constant is not None:
        return ir.Const(constant.value, constant.type, span)
    close = nearest(name, [*env.names, *env.head.module.names])
    env.error(
        "unknown-name",
        f"`{name}` is not known here",
        node,
        "a parameter, a local name bound on every path to here, or a constant of the module",
        f"did you mean `{close}`?" if close else "",
    )
    return NOTHING


def _module_constant(env: Env, module: Module, name: str) -> ir.Const | None:
    found = resolve(env.world.modules, module, name)
    if not isinstance(found, tuple):
        return None
    defined, node = found
    match node:
        case ast.Assign(targets=[target], value=value):
            if isinstance(target, ast.Tuple):
                names = [t.id if isinstance(t, ast.Name) else "" for t in target.elts]
                return _nth_member(env, defined, value, names.index(name), len(names))
            return _constant_value(env, defined, value)
        case ast.AnnAssign(value=ast.expr() as value):
            return _constant_value(env, defined, value)
        case _:
            return None


def _constant_value(env: Env, module: Module, value: ast.expr) -> ir.Const | None:
    match value:
        case ast.Constant(value=bool(v)):
            return ir.Const(v, ir.BOOL)
        case ast.Constant(value=int(v)) if v >= 0:
            return ir.Const(v, ir.NAT)
        case ast.Call(func=ast.Name(id=owner), args=[ast.Constant(value=str(name))]):
            choice = env.world.choices.get(owner)
            return ir.Const(choice.names.index(name), choice) if choice and name in choice.names else None
        case ast.Subscript(value=ast.Call() as call, slice=ast.Constant(value=int(n))):
            return _nth_member(env, module, call, n, None)
        case _:
            return None


def _nth_member(env: Env, module: Module, value: ast.expr, n: int, count: int | None) -> ir.Const | None:
    match value:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr="members"), args=[]):
            choice = env.world.choices.get(owner)
            if choice and n < len(choice.names) and count in (None, len(choice.names)):
                return ir.Const(n, choice)
        case ast.Tuple(elts=parts) if n < len(parts):
            return _constant_value(env, module, parts[n])
        case _:
            pass
    return None


def _constant(env: Env, node: ast.Constant) -> ir.Expr:
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


def _attribute(env: Env, node: ast.Attribute) -> ir.Expr:
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
            expression(env, part)
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
            expression(env, part)
        what = (
            f"`{found.name}` takes {len(found.keys)} indexes ({shape})" if found.keys else f"`{found.name}` is a scalar"
        )
        fix = "name one entry; a map is no value" if not parts else ""
        env.error("wrong-arity", f"{what}, not {len(parts)}", node, f"{found.name}[{shape}]", fix)
        return None
    return tuple(_index(env, p, k, f"`{found.name}`") for p, k in zip(parts, found.keys, strict=True))


def _index(env: Env, node: ast.expr, key: ir.Type, what: str) -> ir.Expr:
    found = expression(env, node)
    other = found.type
    if isinstance(key, ir.NatType) and isinstance(other, ir.NatType) and other.parameter and not other.inclusive:
        if other.parameter != key.parameter and not key.inclusive:
            env.error("wrong-index", f"the index of {what} ranges over {key}, this over {other}", node, str(key))
    else:
        match_or_report(env, node, found, key, f"the index of {what}", "wrong-index")
    return found


def _subscript(env: Env, node: ast.Subscript) -> ir.Expr:
    parts = tuple(node.slice.elts) if isinstance(node.slice, ast.Tuple) else (node.slice,)
    match node.value:
        case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner == env.head.state_param:
            return read(env, node, name, parts)
        case _:
            env.error("unsupported-syntax", "only a state variable has an index", node, "s.variable[index]")
            return NOTHING


# --- operators --------------------------------------------------------------------------------------------------------


def _bool_op(env: Env, node: ast.BoolOp) -> ir.Expr:
    conjunction = isinstance(node.op, ast.And)
    items: list[ir.Expr] = []
    for value in node.values:
        item = condition(env, value)
        env = env.knowing(present_if(item, conjunction))
        items.append(item)
    return (ir.And if conjunction else ir.Or)(tuple(items), env.span(node))


def _conditional(env: Env, node: ast.IfExp) -> ir.Expr:
    test = condition(env, node.test)
    then = expression(env.knowing(present_if(test, True)), node.body)
    other = expression(env.knowing(present_if(test, False)), node.orelse)
    type_ = join(then.type, other.type)
    if type_ is None:
        env.error("wrong-type", f"the two arms differ: {then.type} and {other.type}", node, "one type")
        type_ = ir.BAD
    return ir.Cond(test, then, other, type_, env.span(node))


def join(a: ir.Type, b: ir.Type) -> ir.Type | None:
    """The type of a value that is one or the other; None where there is none."""
    match a, b:
        case (ir.BadType(), _) | (_, ir.BadType()):
            return ir.BAD
        case (ir.NoneType(), other) | (other, ir.NoneType()):
            return other if isinstance(other, ir.OptionType | ir.NoneType) else ir.OptionType(other)
        case (ir.OptionType(), _) | (_, ir.OptionType()):
            inner = join(bare(a), bare(b))
            return inner and ir.OptionType(inner)
        case ir.NatType(), ir.NatType():
            return a if a == b else ir.NAT
        case ir.SetType(x), ir.SetType():
            return b if x is None else a if fits(a, b) else None
        case _:
            return a if a == b else None


def _compare(env: Env, node: ast.Compare) -> ir.Expr:
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
            member, group = expression(env, left), expression(env, right)
            if not isinstance(group.type, ir.SetType | ir.BadType):
                env.error("wrong-type", f"`in` looks into a Set, this is {group.type}", right, "a Set")
            elif isinstance(group.type, ir.SetType) and group.type.element is not None:
                match_or_report(env, left, member, group.type.element, f"`in` a {group.type}")
            test = ir.Compare("in", member, group, span)
            return ir.Not(test, span) if isinstance(op, ast.NotIn) else test
        case ast.Eq() | ast.NotEq():
            return _equality(env, node, left, COMPARE[type(op)], right)
        case _:
            return _ordering(env, node, left, COMPARE[type(op)], right)


def _is_none(env: Env, node: ast.Compare, left: ast.expr, right: ast.expr) -> ir.Expr:
    found = expression(env, left)
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
    a, b = expression(env, left), expression(env, right)
    if ir.NONE in (a.type, b.type):
        env.error("compare-none", f"`{op} None` is not how an option is tested", node, "`is None` or `is not None`")
    elif not comparable(a.type, b.type):
        env.error("different-sorts", f"{a.type} and {b.type} are never equal", node, "two values of one type")
    return ir.Compare(op, a, b, env.span(node))


def _ordering(env: Env, node: ast.Compare, left: ast.expr, op: str, right: ast.expr) -> ir.Expr:
    a, b = expression(env, left), expression(env, right)
    span = env.span(node)
    if isinstance(a.type, ir.SetType) and op == "<=":
        match_or_report(env, right, b, a.type, "`<=` (subset)")
        return ir.Compare("subset", a, b, span)
    for side, found in ((left, a), (right, b)):
        if isinstance(bare(found.type), ir.SortType | ir.ChoiceType):
            env.error(
                "ordering-on-sort",
                f"members of {bare(found.type)} have no order",
                node,
                "== or != on sorts and choices",
                "compare for equality, or keep a natural for what is meant to be ordered",
            )
            return ir.Compare(op, a, b, span)
        match_or_report(env, side, found, ir.NAT, f"`{op}`")
    return ir.Compare(op, a, b, span)


def _arith(env: Env, node: ast.BinOp) -> ir.Expr:
    op = ARITH.get(type(node.op))
    if op is None:
        text = ast.unparse(node)
        fix = "write a // b" if isinstance(node.op, ast.Div) else ""
        env.error(
            "unsupported-syntax", f"the operator of `{text}` is not part of the language", node, "+ - * // % | &", fix
        )
        return NOTHING
    return arith(env, node, op, expression(env, node.left), expression(env, node.right), node.left, node.right)


def arith(env: Env, node: ast.AST, op: str, a: ir.Expr, b: ir.Expr, left: ast.AST, right: ast.AST) -> ir.Expr:
    """An arithmetic or set operator over two parsed operands, types checked."""
    span = env.span(node)
    if op in "|&" or (op == "-" and isinstance(a.type, ir.SetType)):
        if not isinstance(a.type, ir.SetType | ir.BadType):
            env.error(
                "wrong-type", f"`{op}` works on Sets, this is {a.type}", left, "a Set", "write `and` / `or` for bools"
            )
            return NOTHING
        match_or_report(env, right, b, a.type, f"`{op}`")
        known = a.type if isinstance(a.type, ir.SetType) and a.type.element is not None else b.type
        return ir.Arith(op, a, b, known, span)
    for side, found in ((left, a), (right, b)):
        if isinstance(bare(found.type), ir.SortType):
            env.error(
                "arithmetic-on-sort",
                f"members of {bare(found.type)} are no numbers",
                side,
                "a natural",
                "keep a counter or a range for what is counted",
            )
            return NOTHING
        match_or_report(env, side, found, ir.NAT, f"`{op}`")
    return ir.Arith(op, a, b, ir.NAT, span)


# --- calls ------------------------------------------------------------------------------------------------------------


def _call(env: Env, node: ast.Call) -> ir.Expr:
    word = surface_word(env.world, env.head.module, node.func)
    if isinstance(node.func, ast.Name) and node.func.id in env.names:
        env.error("unsupported-syntax", f"`{node.func.id}` is a value; values are not called", node, "a helper")
        return NOTHING
    match node.func, word:
        case ast.Name(id="min" | "max" as op), "" if op not in env.head.module.names:
            return _fold(env, node, op)
        case ast.Name(id="all" | "any" as kind), "" if kind not in env.head.module.names:
            return _quantifier(env, node, kind)
        case _, "excess" | "span":
            parts = _arguments(env, node, (ir.NAT, ir.NAT), word)
            type_: ir.Type = ir.NAT if word == "excess" else ir.SetType(ir.NAT)
            return ir.Arith(word, parts[0], parts[1], type_, env.span(node)) if parts else NOTHING
        case _, "some":
            return _some(env, node)
        case _, "only":
            member = expression(env, node.args[0]) if len(node.args) == 1 else NOTHING
            if not isinstance(member.type, ir.SortType | ir.NatType | ir.BadType):
                match_or_report(env, node.args[0], member, bare(member.type), "`only`")
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
    return [wanted(env, a, t, f"`{what}`") for a, t in zip(node.args, types, strict=True)]


def _fold(env: Env, node: ast.Call, op: str) -> ir.Expr:
    parts = [wanted(env, a, ir.NAT, f"`{op}`") for a in node.args]
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
    operand = expression(env, node.args[0])
    if not isinstance(operand.type, ir.OptionType | ir.BadType):
        env.error(
            "never-none", f"`some` unwraps an option, this is {operand.type} here", node, "an option", "drop `some`"
        )
        return operand
    return ir.Some(operand, bare(operand.type), env.span(node))


def _quantifier(env: Env, node: ast.Call, kind: str) -> ir.Expr:
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
        return condition(env, node.elt)
    part = node.generators[depth]
    bound = loop(env, part.target, part.iter)
    filters: list[ir.Expr] = []
    for test in part.ifs:
        item = condition(env, test)
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
            if sort in env.world.sorts:
                return env.world.sorts[sort], ir.Members(sort)
            env.error("unknown-type", f"`{sort}` is no sort", node.args[0], "a Sort", _near_sort(env, sort))
            return None
        case ast.Call(args=[ast.Attribute(value=ast.Name(id=owner), attr=name), first]) if word == "row":
            found = variable(env, node.args[0], name) if owner == env.head.state_param else None
            if found is None:
                return None
            if len(found.keys) != 2:
                env.error("wrong-arity", f"`row` takes a map with two indexes, `{name}` has {len(found.keys)}", node)
                return None
            return found.keys[1], ir.Row(name, _index(env, first, found.keys[0], f"`{name}`"))
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


def _helper_call(env: Env, node: ast.Call) -> ir.Expr:
    if env.head.kind == "initial" and _is_sort_call(env, node) and isinstance(node.func, ast.Name):
        match node.args:
            case [ast.Constant(value=int(n))] if n >= 0:
                return ir.Const(n, env.world.sorts[node.func.id], env.span(node))
    match node.func:
        case ast.Name(id=owner) if owner in env.world.choices:
            constant = _constant_value(env, env.head.module, node)
            if constant is not None:
                return ir.Const(constant.value, constant.type, env.span(node))
            env.error(
                "unknown-name",
                f"`{ast.unparse(node)}` is no member of {owner}",
                node,
                ", ".join(env.world.choices[owner].names),
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
                expression(env, argument)
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
    return isinstance(node.func, ast.Name) and node.func.id in env.world.sorts


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
            found.append(wanted(env, by_name[param.name], param.type, f"`{param.name}` of `{name}`"))
        elif param.optional:
            found.append(ir.Const(None, ir.NONE, env.span(node)))
        else:
            env.error(
                "wrong-arity", f"`{name}` misses its argument `{param.name}`", node, f"{param.name}: {param.type}"
            )
            return None
    return tuple(found)
