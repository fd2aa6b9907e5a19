"""Second pass, statements: the body of a step, from `ast` to the typed form."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from kvsan.spec.lang import ir
from kvsan.spec.lang.annotations import surface_word
from kvsan.spec.lang.calls import arguments, callee
from kvsan.spec.lang.declare import PREDICATES
from kvsan.spec.lang.diagnostics import nearest
from kvsan.spec.lang.expressions import condition, expression, match_or_report, wanted
from kvsan.spec.lang.loops import loop
from kvsan.spec.lang.names import indexes, variable
from kvsan.spec.lang.operators import ARITH, arith
from kvsan.spec.lang.refusals import UNSUPPORTED
from kvsan.spec.lang.scope import Env, join, present_if
from kvsan.spec.lang.source import resolve
from kvsan.spec.lang.walk import only_ghosts
from kvsan.spec.lang.world import Head, World


@dataclass
class Body:
    """The statements read so far. effect: one of them changes or judges the state, so no guard may follow."""

    statements: list[ir.Stmt] = field(default_factory=list)
    effect: bool = False
    temporaries: int = 0


def step(world: World, head: Head) -> ir.Step:
    """The typed form of one step's body."""
    env = Env(world, head, {p.name: p.type for p in head.params})
    seen: set[str] = set()
    for param in head.params:
        if param.name in seen or param.name == head.state_param:
            world.report.add("duplicate-name", f"two parameters `{param.name}`", param.span, fix="rename one")
        seen.add(param.name)
    nodes = head.node.body
    if nodes and isinstance(nodes[0], ast.Expr) and isinstance(nodes[0].value, ast.Constant):
        nodes = nodes[1:]
    body, result = Body(), None
    if head.result is not None or head.kind in PREDICATES:
        result = _expression_body(env, nodes, body)
    else:
        block(env, nodes, body, top=True)
    module = head.module
    doc = ast.get_docstring(head.node) or ""
    return ir.Step(
        head.name, head.kind, doc, head.params, tuple(body.statements), result, module.name, module.span(head.node)
    )


def _expression_body(env: Env, nodes: list[ast.stmt], body: Body) -> ir.Expr:
    head = env.head
    for node in nodes[:-1]:
        if isinstance(node, ast.Assign):
            _assign(env, node, body)
        else:
            env.error(
                "effect-in-expression",
                f"`{head.name}` returns a value, so it is local names and one `return`",
                node,
                "name = expression, or return expression",
                "use a conditional expression `a if c else b`, or drop the result type for a block of statements",
            )
    last = nodes[-1] if nodes else head.node
    type_ = head.result or ir.BOOL
    if isinstance(last, ast.Return) and last.value is not None:
        return wanted(env, last.value, type_, f"the result of `{head.name}`")
    env.error(
        "missing-return",
        f"`{head.name}` does not end in a `return`",
        last,
        f"return {type_}",
        "end it with `return ...`",
    )
    return ir.Const(0, ir.BAD)


def block(env: Env, nodes: list[ast.stmt], body: Body, top: bool = False) -> Env:
    """Read statements into `body`; returns the scope after them. top: guards may stand here."""
    for node in nodes:
        env = _statement(env, node, body, top)
    return env


def _statement(env: Env, node: ast.stmt, body: Body, top: bool) -> Env:
    match node:
        case ast.Assign():
            _assign(env, node, body)
        case ast.AugAssign():
            _augmented(env, node, body)
        case ast.If():
            _if(env, node, body)
        case ast.For():
            _for(env, node, body)
        case ast.Expr(value=ast.Call() as call):
            return _call(env, node, call, body, top)
        case ast.Expr(value=ast.Constant(value=str())) | ast.Pass():
            pass
        case ast.Return():
            env.error(
                "return-in-step",
                f"`{env.head.name}` is a block of statements and returns nothing",
                node,
                "no `return`",
                "use if / else; for a value, annotate the result type of a @helper",
            )
        case ast.Expr():
            env.error(
                "unused-value",
                "this line computes a value and drops it",
                node,
                "an effect",
                "bind it to a name or delete it",
            )
        case _:
            what, instead = UNSUPPORTED.get(
                type(node), (f"`{type(node).__name__}`", "see the syntax page of kvsan.spec.lang")
            )
            env.error("unsupported-syntax", f"{what} is not part of the language", node, "", instead)
    return env


# --- assignment -------------------------------------------------------------------------------------------------------


def _assign(env: Env, node: ast.Assign, body: Body) -> None:
    if len(node.targets) != 1:
        env.error(
            "unsupported-syntax",
            "a chained assignment is not part of the language",
            node,
            "",
            "write one line for each target",
        )
        return
    target = node.targets[0]
    if not isinstance(target, ast.Tuple):
        _assign_one(env, target, node.value, None, body)
        return
    if not isinstance(node.value, ast.Tuple) or len(node.value.elts) != len(target.elts):
        env.error("wrong-arity", f"{len(target.elts)} targets need as many values", node, "a, b = x, y")
        return
    values: list[ir.Expr] = []
    stores = any(not isinstance(t, ast.Name) for t in target.elts)
    for part in node.value.elts:
        value = expression(env, part)
        if stores and not isinstance(value, ir.Const | ir.Name | ir.Empty):
            body.temporaries += 1
            name = f"_{body.temporaries}"
            body.statements.append(ir.Let(name, value, value.span))
            value = ir.Name(name, value.type, value.span)
        values.append(value)
    for one, part, value in zip(target.elts, node.value.elts, values, strict=True):
        _assign_one(env, one, part, value, body)


def _assign_one(env: Env, target: ast.expr, node: ast.expr, value: ir.Expr | None, body: Body) -> None:
    if isinstance(target, ast.Name):
        _bind(env, target, expression(env, node) if value is None else value, body)
        return
    place = _place(env, target)
    value = expression(env, node) if value is None else value
    if place is None:
        return
    found, index = place
    match_or_report(env, node, value, found.value, f"`{found.name}`")
    body.effect = True
    body.statements.append(ir.Store(found.name, index, value, env.span(target)))


def _bind(env: Env, target: ast.Name, value: ir.Expr, body: Body) -> None:
    name = target.id
    if name in [p.name for p in env.head.params] or name == env.head.state_param:
        env.error("parameter-assigned", f"`{name}` is a parameter", target, "a new name", f"write new_{name} = ...")
        return
    if name in env.names:
        env.error(
            "rebound-name",
            f"`{name}` is bound already; a local name has one value on a path",
            target,
            "a new name",
            f"write new_{name} = ..., or one conditional expression",
        )
        return
    known = resolve(env.world.modules, env.head.module, name)
    if known is not None:
        env.error(
            "shadowed-name", f"`{name}` hides a name of the module", target, "a new name", f"write the_{name} = ..."
        )
    env.names[name] = value.type
    body.statements.append(ir.Let(name, value, env.span(target)))


def _place(env: Env, target: ast.expr) -> tuple[ir.Variable, tuple[ir.Expr, ...]] | None:
    match target:
        case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner == env.head.state_param:
            parts: tuple[ast.expr, ...] = ()
        case ast.Subscript(value=ast.Attribute(value=ast.Name(id=owner), attr=name), slice=inner) if (
            owner == env.head.state_param
        ):
            parts = tuple(inner.elts) if isinstance(inner, ast.Tuple) else (inner,)
        case _:
            env.error(
                "unsupported-syntax",
                f"`{ast.unparse(target)}` cannot be assigned to",
                target,
                "a name, s.scalar or s.variable[index]",
            )
            return None
    found = variable(env, target, name)
    if found is None:
        return None
    if found.const:
        env.error(
            "const-assigned",
            f"`{name}` is Const; no step changes it",
            target,
            "a variable that is not Const",
            "drop the Const mark",
        )
    index = indexes(env, target, found, parts)
    return None if index is None else (found, index)


def _augmented(env: Env, node: ast.AugAssign, body: Body) -> None:
    op = ARITH.get(type(node.op))
    if isinstance(node.target, ast.Name):
        env.error(
            "rebound-name",
            f"`{node.target.id}` is a local name and has one value",
            node,
            "a new name",
            "bind a new name",
        )
        return
    place = _place(env, node.target)
    value = expression(env, node.value)
    if place is None:
        return
    found, index = place
    if op not in ("+", "-", "|", "&"):
        env.error("unsupported-syntax", "this augmented assignment is not part of the language", node, "+= -= |= &=")
        return
    old = ir.Read(found.name, index, found.value, env.span(node.target))
    new = arith(env, node, op, old, value, node.target, node.value)
    body.effect = True
    body.statements.append(ir.Store(found.name, index, new, env.span(node)))


# --- control ----------------------------------------------------------------------------------------------------------


def _if(env: Env, node: ast.If, body: Body) -> None:
    test = condition(env, node.test)
    arms: list[tuple[Env, Body]] = []
    for truth, nodes in ((True, node.body), (False, node.orelse)):
        inner = env.inner().knowing(present_if(test, truth))
        arm = Body(effect=body.effect, temporaries=body.temporaries)
        inner = block(inner, nodes, arm)
        arms.append((inner, arm))
    (then_env, then), (else_env, orelse) = arms
    for name in then_env.names:
        if name not in env.names and name in else_env.names:
            env.names[name] = join(then_env.names[name], else_env.names[name]) or ir.BAD
    body.effect = then.effect or orelse.effect
    body.temporaries = max(then.temporaries, orelse.temporaries)
    body.statements.append(ir.If(test, tuple(then.statements), tuple(orelse.statements), env.span(node.test)))


def _for(env: Env, node: ast.For, body: Body) -> None:
    if node.orelse:
        env.error(
            "unsupported-syntax",
            "`for ... else` is not part of the language",
            node,
            "",
            "write the else part after the loop",
        )
    inner = env.inner()
    bound = loop(inner, node.target, node.iter)
    arm = Body(effect=True, temporaries=body.temporaries)
    block(inner, node.body, arm)
    body.effect, body.temporaries = True, arm.temporaries
    if bound is None:
        return
    name, type_, domain = bound
    if (
        isinstance(domain, ir.Members)
        and env.head.kind in ("event", "action")
        and not only_ghosts(arm.statements, env.world.variables)
    ):
        env.error(
            "quantifier-in-step",
            f"a loop over {domain.sort} in an {env.head.kind}, whose cost must stay constant",
            node.iter,
            "row(s.variable, first); members(...) in settling events, initial steps, invariants and ghost updates",
            "keep what it computes as a Derived variable",
        )
    body.statements.append(ir.For(name, type_, domain, tuple(arm.statements), env.span(node.iter)))


# --- calls ------------------------------------------------------------------------------------------------------------


def _call(env: Env, node: ast.Expr, call: ast.Call, body: Body, top: bool) -> Env:
    word = surface_word(env.world, env.head.module, call.func)
    match word:
        case "require":
            return _require(env, call, body, top)
        case "obey" | "advise":
            _obey(env, call, body, word)
        case "reset":
            _reset(env, call, body)
        case _:
            _step_call(env, node, call, body)
    return env


def _require(env: Env, call: ast.Call, body: Body, top: bool) -> Env:
    if env.head.kind not in ("action", "initial"):
        env.error(
            "guard-outside-action",
            f"`require` in the {env.head.kind} `{env.head.name}`"
            + ("; an event has already happened" if env.head.kind in ("event", "settling") else ""),
            call,
            "`require` at the top of an action",
            "use `obey` for an obligation, `if` for a case"
            if env.head.kind != "helper"
            else "move it to the actions that call this",
        )
    elif not top:
        env.error(
            "guard-under-if",
            "`require` stands under an `if` or a loop",
            call,
            "the top level of the action",
            "require(not case or cond)",
        )
    elif body.effect:
        env.error(
            "guard-after-effect",
            "`require` after an effect",
            call,
            "docstring, guards, effects, in this order",
            "move it above the first effect, or split the action in two",
        )
    if not 1 <= len(call.args) <= 2 or call.keywords:
        env.error(
            "wrong-arity",
            "`require` takes one condition, and a reason where no rule needs it",
            call,
            'require(cond) or require(cond, "why")',
            "write one `require` for each condition",
        )
        return env
    test = condition(env, call.args[0])
    choice = _choice(env, call.args[1]) if len(call.args) == 2 else ""
    body.statements.append(ir.Require(test, env.span(call), choice))
    return env.knowing(present_if(test, True))


def _choice(env: Env, node: ast.expr) -> str:
    """Why a guard is there that no rule needs."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value:
        return node.value
    env.error(
        "bad-reason",
        "the reason of a guard is a literal string",
        node,
        'require(cond, "why")',
        "write one `require` for each condition",
    )
    return ""


def _obey(env: Env, call: ast.Call, body: Body, word: str) -> None:
    body.effect = True
    if env.head.kind not in ("event", "settling", "helper"):
        env.error(
            "obligation-outside-event",
            f"`{word}` in the {env.head.kind} `{env.head.name}`",
            call,
            "obligations belong to ownership events",
            "perform an event that carries it, or use `require`",
        )
    if not 2 <= len(call.args) <= 3 or call.keywords:
        env.error(
            "wrong-arity", f"`{word}` takes a rule, a condition and a message", call, f'{word}(rule, cond, "message")'
        )
        return
    rule = _rule(env, call.args[0], word)
    test = condition(env, call.args[1])
    message, names = _message(env, call.args[2]) if len(call.args) == 3 else ("", ())
    if rule:
        body.statements.append(ir.Obey(rule, test, message, names, env.span(call)))


def _rule(env: Env, node: ast.expr, word: str) -> str:
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    rule = env.world.rules.get(name) if isinstance(node, ast.Attribute) else None
    if isinstance(node, ast.Name):
        found = resolve(env.world.modules, env.head.module, name)
        if isinstance(found, tuple) and isinstance(found[1], ast.FunctionDef):
            rule = env.world.rules.get(found[1].name)
    if rule is None:
        close = nearest(name, env.world.rules)
        env.error(
            "unknown-rule",
            f"`{ast.unparse(node)}` is no rule known here",
            node,
            "a function decorated with @rule, @order_rule, @step_rule or @lint, imported here",
            f"did you mean `{close}`?" if close else "",
        )
        return ""
    if (rule.kind == "lint") != (word == "advise"):
        right = "advise" if rule.kind == "lint" else "obey"
        env.error("rule-kind", f"`{name}` is a {rule.kind}", node, f"{right}({name}, ...)", f"write {right}")
    return rule.name


def _message(env: Env, node: ast.expr) -> tuple[str, tuple[tuple[str, ir.Expr], ...]]:
    if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        what, fix = UNSUPPORTED.get(type(node), ("this", ""))
        env.error("bad-message", f"a message is a literal string, not {what}", node, '"... {name} ..."', fix)
        return "", ()
    names: dict[str, ir.Expr] = {}
    for part in re.findall(r"\{([^}]*)\}", node.value):
        if part in env.names:
            names[part] = ir.Name(part, env.names[part], env.span(node))
        else:
            close = nearest(part, env.names)
            env.error(
                "unknown-name-in-message",
                f"the message names `{{{part}}}`, which is not known here",
                node,
                "a parameter or a local name",
                f"did you mean `{{{close}}}`?" if close else "bind the expression to a local name first",
            )
    return node.value, tuple(names.items())


def _reset(env: Env, call: ast.Call, body: Body) -> None:
    body.effect = True
    if len(call.args) != 2 or not (isinstance(call.args[0], ast.Name) and call.args[0].id == env.head.state_param):
        env.error("wrong-arity", "`reset` takes the state and one member", call, f"reset({env.head.state_param}, b)")
        return
    entity = expression(env, call.args[1])
    if isinstance(entity.type, ir.SortType):
        body.statements.append(ir.Reset(entity.type.name, entity, env.span(call)))
    elif isinstance(entity.type, ir.OptionType) and isinstance(entity.type.inner, ir.SortType):
        match_or_report(env, call.args[1], entity, entity.type.inner, "`reset`")
    elif entity.type != ir.BAD:
        env.error(
            "wrong-type", f"`reset` takes a member of a sort, this is {entity.type}", call.args[1], "a sort's member"
        )


def _step_call(env: Env, node: ast.Expr, call: ast.Call, body: Body) -> None:
    found = callee(env, call)
    if found is None:
        return
    name, result = found
    kind = env.world.heads[name].kind
    if result is not None:
        env.error(
            "unused-value", f"the value of `{name}` is dropped", call, "an effect", f"bind it: x = {ast.unparse(call)}"
        )
        return
    if kind not in ("event", "helper") and not (
        kind == "settling" and env.head.kind in ("settling", "initial", "action")
    ):
        env.error("bad-call", f"the {kind} `{name}` cannot be called from a step", call, "an event or a helper")
        return
    given = arguments(env, call, name)
    body.effect = True
    if given is not None:
        body.statements.append(ir.CallStmt(name, given, env.span(node)))
