"""First pass: collect classes, state variables, rules with their labels, and the heads of the steps."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from kvsan.spec.lang import ir
from kvsan.spec.lang.annotations import surface_word, type_of, variable_of
from kvsan.spec.lang.diagnostics import Span, nearest, place
from kvsan.spec.lang.labels import LABELS, split_doc
from kvsan.spec.lang.source import Module, resolve
from kvsan.spec.lang.world import Head, World

STEP_KINDS = ("event", "settling", "action", "helper", "invariant", "witness", "initial", "auxiliary", "counted")
PREDICATES = ("invariant", "witness", "auxiliary", "counted")
RULE_KINDS = {"rule": "rule", "order_rule": "order", "step_rule": "step", "ghost_rule": "ghost", "lint": "lint"}


def declare(world: World, state: str | None) -> None:
    """Fill the world. state: the state class to use, where a specification has several. Mistakes go to its report.

    Raises SpecError where the definitions themselves are in doubt.
    """
    for module in world.modules.values():
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef):
                _class(world, module, node)
    _choose_state(world, state)
    world.report.raise_if_first()
    for module in world.modules.values():
        for node in module.tree.body:
            if isinstance(node, ast.FunctionDef):
                _function(world, module, node)
            elif not (isinstance(node, ast.ClassDef) and node.name in world.states):
                _hidden(world, module, node)
    world.report.raise_if_first()


# --- classes ----------------------------------------------------------------------------------------------------------


def _bases(world: World, module: Module, node: ast.ClassDef) -> Iterator[tuple[str, ast.AST | None]]:
    for base in node.bases:
        if word := surface_word(world, module, base):
            yield word, None
        elif isinstance(base, ast.Name):
            found = resolve(world.modules, module, base.id)
            if isinstance(found, tuple) and isinstance(found[1], ast.ClassDef):
                yield from _bases(world, found[0], found[1])


def _class(world: World, module: Module, node: ast.ClassDef) -> None:
    words = {word for word, _ in _bases(world, module, node)}
    taken = {**world.sorts, **world.choices, **world.states}
    if words & {"Sort", "Choice", "State"} and node.name in taken:
        own = next(iter(world.modules.values()))
        here = next((n for n in own.tree.body if isinstance(n, ast.ClassDef) and n.name == node.name), node)
        there = "" if here is node else f": the other is at {place(module.span(node))}"
        world.report.add(
            "duplicate-name",
            f"the specification has two classes `{node.name}`{there}",
            (module if here is node else own).span(here),
            fix="rename one, or import it where it is needed",
        )
    elif "Sort" in words:
        world.sorts[node.name] = ir.SortType(node.name)
    elif "Choice" in words:
        world.choices[node.name] = ir.ChoiceType(node.name, _choice_names(world, module, node))
    elif "State" in words:
        world.states[node.name] = (module, node)


def _choice_names(world: World, module: Module, node: ast.ClassDef) -> tuple[str, ...]:
    for statement in node.body:
        match statement:
            case (
                ast.Assign(targets=[ast.Name(id="names")], value=ast.Tuple(elts=parts))
                | ast.AnnAssign(target=ast.Name(id="names"), value=ast.Tuple(elts=parts))
            ):
                names = [p.value for p in parts if isinstance(p, ast.Constant) and isinstance(p.value, str)]
                if len(names) == len(parts) > 0:
                    return tuple(names)
            case _:
                pass
    world.report.add(
        "bad-choice",
        f"the choice `{node.name}` does not list its names",
        module.span(node),
        "a class attribute of literal strings",
        'write names = ("FIRST", "SECOND")',
    )
    return ()


def _choose_state(world: World, wanted: str | None) -> None:
    parents = {
        base.id for module, node in world.states.values() for base in node.bases if isinstance(base, ast.Name)
    } & set(world.states)
    leaves = [name for name in world.states if name not in parents]
    if wanted is not None:
        leaves = [wanted] if wanted in world.states else []
    first = next(iter(world.modules.values()))
    if not leaves or (wanted is None and world.states[leaves[0]][0].path.parent != first.path.parent):
        _no_state(world, wanted)  # a state that is merely imported is another specification's
        return
    for extra in leaves[1:]:
        module, node = world.states[extra]
        world.report.add(
            "two-states",
            f"the specification has two state classes, `{leaves[0]}` and `{extra}`",
            module.span(node),
            "one state class, or one that derives from all others",
            f"merge them, derive one from the other, or load {world.name}:{extra}",
        )
    world.state = leaves[0]
    for module, node in _lineage(world, world.state):
        _state_body(world, module, node)


def _no_state(world: World, wanted: str | None) -> None:
    module = next(iter(world.modules.values()))
    here = [name for name, (where, _) in world.states.items() if where is module]
    world.report.add(
        "no-state",
        f"{world.name} has no state class" + (f" `{wanted}`" if wanted else ""),
        module.span(module.tree),
        f"one of {', '.join(here)}" if here else "one class that derives from State",
        f"name {world.name}:{here[0]}" if here else f"class Model({next(iter(world.states), 'State')}): ...",
    )


def _lineage(world: World, name: str) -> Iterator[tuple[Module, ast.ClassDef]]:
    module, node = world.states[name]
    for base in node.bases:
        if isinstance(base, ast.Name) and base.id in world.states:
            yield from _lineage(world, base.id)
    yield module, node


def _state_body(world: World, module: Module, node: ast.ClassDef) -> None:
    for statement in node.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), value=None) if name not in world.variables:
                d = variable_of(world, module, statement.annotation)
                span = module.span(statement)
                world.variables[name] = ir.Variable(name, d.keys, d.value, d.const, d.derived, d.ghost, span)
            case ast.AnnAssign(target=ast.Name(id=name), value=None):
                other = world.variables[name].span
                there = f"line {other.line}" if other.file == str(module.path) else place(other)
                world.report.add(
                    "duplicate-name",
                    f"the state has two variables `{name}`: the other is at {there}",
                    module.span(statement),
                    fix="rename this one",
                )
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                pass
            case _:
                world.report.add(
                    "bad-state-class",
                    "a state class declares variables and nothing else",
                    module.span(statement),
                    "name: Type",
                    "start values come from defaults and initial steps; functions stand outside the class",
                )


# --- functions --------------------------------------------------------------------------------------------------------


def _function(world: World, module: Module, node: ast.FunctionDef) -> None:
    words = [surface_word(world, module, d) for d in node.decorator_list]
    unknown = False
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Name) and decorator.id not in module.names:
            unknown = True
            close = nearest(decorator.id, [*STEP_KINDS, *RULE_KINDS])
            world.report.add(
                "unknown-decorator",
                f"`@{decorator.id}` is not known here",
                module.span(decorator),
                "exactly one of " + ", ".join([*STEP_KINDS, *RULE_KINDS]) + ", imported here",
                f"did you mean `@{close}`?" if close else "",
            )
    kinds = [w for w in words if w in STEP_KINDS or w in RULE_KINDS]
    if not kinds:
        if not unknown:
            _unmarked(world, module, node)
        return
    if len(words) > 1:
        world.report.add(
            "bad-decorator",
            f"`{node.name}` has more than one decorator",
            module.span(node.decorator_list[1]),
            "exactly one of " + ", ".join([*STEP_KINDS, *RULE_KINDS]),
            "keep one decorator",
        )
    taken = world.heads.get(node.name) or world.rules.get(node.name)
    if taken is not None and {kinds[0], taken.kind} in ({"invariant", "ghost"}, {"invariant", "ghost_rule"}):
        taken = None  # what a ghost rule means in a design is said by the design's invariant of that name
    if taken is not None and taken.module in (module, module.name):
        return  # reported where the module was read
    if taken is not None:
        _twice(world, module, node, taken)
        return
    if kinds[0] in RULE_KINDS:
        _rule(world, module, node, RULE_KINDS[kinds[0]])
    else:
        _head(world, module, node, kinds[0])


def _twice(world: World, module: Module, node: ast.FunctionDef, taken: Head | ir.RuleDecl) -> None:
    """Said at the definition that its author can rename: that of the first module, the specification's own."""
    there = taken.span if isinstance(taken, ir.RuleDecl) else name_span(taken.module, taken.node)
    here = name_span(module, node)
    if there.file == str(next(iter(world.modules.values())).path):
        here, there = there, here
    world.report.add(
        "duplicate-name",
        f"the specification has two definitions of `{node.name}`: the other is at {place(there)}",
        here,
        "names that are unique across the modules of a specification",
        "rename this one",
    )


def _unmarked(world: World, module: Module, node: ast.FunctionDef) -> None:
    """A function of the state without a decorator would be passed over, and a design without its step holds easily."""
    if _is_of_state(world, node):
        other = " of the language" if node.decorator_list else ""
        world.report.add(
            "no-decorator",
            f"`{node.name}` is a function of the state without a decorator{other}, so it would never be a step",
            name_span(module, node),
            "exactly one of " + ", ".join([*STEP_KINDS, *RULE_KINDS]),
            "write @action above a step, @helper above what steps call",
        )


def _hidden(world: World, module: Module, node: ast.stmt) -> None:
    """So would one that is `async`, or stands under an `if` or in a class: which steps there are is read, not run."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef) and _is_of_state(world, inner):
            world.report.add(
                "hidden-step",
                f"`{inner.name}` is a function of the state that is no plain function of its module",
                name_span(module, inner),
                f"def {inner.name}(...) at the left margin",
                "move it out, and let a Const decide whether it may happen",
            )


def _is_of_state(world: World, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    match node.args.args[0].annotation if node.args.args else None:
        case ast.Name(name) | ast.Constant(str(name)):
            return name in world.states
        case _:
            return False


def name_span(module: Module, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Span:
    """The span of the name in `def name(...)`."""
    start = node.col_offset + len("def " if isinstance(node, ast.FunctionDef) else "async def ")
    return Span(str(module.path), node.lineno, start, node.lineno, start + len(node.name))


def _rule(world: World, module: Module, node: ast.FunctionDef, kind: str) -> None:
    span = name_span(module, node)
    if ast.get_docstring(node) is None:
        _no_docstring(world, f"rule `{node.name}`", span)
    statement, labels = _labels(world, node, "rule", span)
    world.rules[node.name] = ir.RuleDecl(node.name, kind, statement, labels, module.name, span)


def _labels(world: World, node: ast.FunctionDef, kind: str, span: Span) -> tuple[str, dict[str, str]]:
    """The statement and the labels of a docstring; missing ones are reported."""
    doc = ast.get_docstring(node) or ""
    statement, labels = split_doc(doc)
    missing = [label for label in LABELS if not labels.get(label)]
    if doc and missing:
        world.report.add(
            "missing-label",
            f"{kind} `{node.name}` lacks " + ", ".join(f"`{m}:`" for m in missing),
            span,
            "the four labels " + ", ".join(f"{label}:" for label in LABELS),
            f"add a line `{missing[0]}: ...` to its docstring",
        )
    return statement, labels


def _no_docstring(world: World, what: str, span: Span) -> None:
    world.report.add(
        "missing-docstring",
        f"{what} has no docstring",
        span,
        "a sentence that says what it means",
        'start the body with """..."""',
    )


def _head(world: World, module: Module, node: ast.FunctionDef, kind: str) -> None:
    span = name_span(module, node)
    if ast.get_docstring(node) is None and kind not in ("helper", "initial"):
        _no_docstring(world, f"{kind} `{node.name}`", span)
    if kind in ("auxiliary", "counted"):
        _labels(world, node, kind, span)
    if kind == "witness" and not node.name.startswith("can_"):
        world.report.add(
            "witness-name",
            f"the witness `{node.name}` does not start with `can_`",
            span,
            "can_...",
            f"rename it to can_{node.name}",
        )
    if kind == "counted" and node.name.removesuffix("_counted") not in world.variables:
        world.report.add(
            "counted-name",
            f"`{node.name}` is not named after a variable of the state",
            span,
            "variable_counted",
            "name it after the variable that it counts",
        )
    a = node.args
    for extra in [a.vararg, a.kwarg, *a.kwonlyargs, *a.posonlyargs]:
        if extra is not None:
            world.report.add(
                "bad-parameter",
                "a step takes plain parameters only",
                module.span(extra),
                "name: Type, or name: Type | None = None",
                "name each argument",
            )
    state_param, rest = _state_param(world, module, node)
    defaults: list[ast.expr | None] = [*[None] * (len(a.args) - len(a.defaults)), *a.defaults]
    params = tuple(
        _param(world, module, arg, value) for arg, value in zip(a.args, defaults, strict=True) if arg in rest
    )
    returns = node.returns
    plain = returns is None or (isinstance(returns, ast.Constant) and returns.value is None)
    result = None if plain or returns is None else type_of(world, module, returns)
    if kind in PREDICATES and result not in (ir.BOOL, ir.BAD):
        world.report.add("bad-result", f"{kind} `{node.name}` returns no bool", span, "-> bool", "annotate `-> bool`")
    if kind in ("event", "settling", "action", "initial") and result is not None:
        world.report.add(
            "bad-result", f"{kind} `{node.name}` returns a value", span, "-> None", "move the expression to a helper"
        )
    for p in params:
        _check_parameter(world, node.name, kind, p)
    world.heads[node.name] = Head(node.name, kind, params, result, state_param, module, node)


def _check_parameter(world: World, step: str, kind: str, p: ir.Param) -> None:
    """An action is taken for every value of its parameters; what holds of a state, and a start, has none."""
    if kind in ("invariant", "witness", "initial"):
        world.report.add(
            "bad-parameter",
            f"`{p.name}`: the {kind}{' step' * (kind == 'initial')} `{step}` takes the state and nothing else",
            p.span,
            f"{step}(s)",
            f"name a member, {p.type}(0)"
            if kind == "initial"
            else f"all(... for {p.name} in members({p.type}, s)), or any(...)",
        )
    finite = (ir.SortType, ir.ChoiceType, ir.BoolType, ir.BadType)
    inner = ir.bare(p.type)
    ranged = isinstance(inner, ir.NatType) and inner.parameter is not None
    if kind == "action" and not (ranged or isinstance(inner, finite)):
        world.report.add(
            "endless-parameter",
            f"`{p.name}` of the action `{step}` is {p.type}: an action is tried for every value of its parameters",
            p.span,
            "a Sort, a Choice, bool, or a range, each possibly `| None`",
            'a range is Annotated[int, UpTo("name")]' if isinstance(inner, ir.NatType) else "",
        )


def _state_param(world: World, module: Module, node: ast.FunctionDef) -> tuple[str, list[ast.arg]]:
    args = node.args.args
    if args and isinstance(args[0].annotation, ast.Name):
        found = resolve(world.modules, module, args[0].annotation.id)
        if isinstance(found, tuple) and isinstance(found[1], ast.ClassDef) and found[1].name in world.states:
            return args[0].arg, args[1:]
    world.report.add(
        "no-state-parameter",
        f"the first parameter of `{node.name}` is not the state",
        name_span(module, node),
        f"s: {world.state or 'the state class'}",
        f"write def {node.name}(s: {world.state or 'Model'}, ...)",
    )
    return "s", args[1:] if args and args[0].arg == "s" else args


def _param(world: World, module: Module, arg: ast.arg, value: ast.expr | None) -> ir.Param:
    span = module.span(arg)
    if arg.annotation is None:
        world.report.add(
            "missing-annotation",
            f"parameter `{arg.arg}` has no type",
            span,
            "a sort, a range, int, bool, a choice, Set[...], each possibly `| None`",
            f"write {arg.arg}: Block",
        )
        type_: ir.Type = ir.BAD
    else:
        type_ = type_of(world, module, arg.annotation)
    if value is not None and not (isinstance(value, ast.Constant) and value.value is None):
        world.report.add(
            "bad-default", "the only default is None", module.span(value), "None", "pass the value at each call"
        )
    elif value is not None and not isinstance(type_, ir.OptionType | ir.BadType):
        world.report.add(
            "bad-default",
            f"`{arg.arg}` is no option, so it cannot default to None",
            span,
            f"{type_} | None",
            f"write {arg.arg}: {type_} | None = None",
        )
    return ir.Param(arg.arg, type_, value is not None, span)
