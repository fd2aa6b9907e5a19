"""Checks over the whole specification: what is declared and never used, circles of calls, ghosts, derived counters."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping

from kvsan.spec.lang import ir
from kvsan.spec.lang.diagnostics import Span
from kvsan.spec.lang.source import resolve
from kvsan.spec.lang.walk import all_expressions, all_statements, every, only_ghosts
from kvsan.spec.lang.world import World


def check(world: World, steps: Mapping[str, ir.Step]) -> None:
    """Report what the parser, which sees one step at a time, cannot.

    A step with mistakes is incomplete: whatever its source mentions counts as used.
    """
    broken = {name for name, step in steps.items() if _has_mistakes(world, step)}
    mentioned = {word for name in broken for word in _words(world, name)}
    _unused_variables(world, steps, mentioned)
    _unused_rules(world, steps, mentioned)
    for name, step in steps.items():
        if name not in broken:
            _unused_names(world, step)
    _judging_actions(world, steps)
    _ranging_steps(world, steps)
    for variable in world.variables.values():
        _marks(world, variable)


def calls(step: ir.Step) -> Iterable[tuple[str, Span]]:
    """The steps that a step calls, each with the place of the call."""
    for statement in all_statements(step.body):
        if isinstance(statement, ir.CallStmt):
            yield statement.step, statement.span
    for part in _parts(step):
        if isinstance(part, ir.CallExpr):
            yield part.step, part.span


def _parts(step: ir.Step) -> Iterator[ir.Expr]:
    yield from all_expressions(step.body)
    if step.result is not None:
        yield from every(step.result)


def check_calls(world: World, steps: Mapping[str, ir.Step]) -> None:
    """Report every call that closes a circle; later passes need that there is none."""
    done: set[str] = set()

    def visit(name: str, above: tuple[str, ...]) -> None:
        for callee, span in calls(steps[name]):
            if callee in (*above, name):
                circle = [*above, name][[*above, name].index(callee) :]
                world.report.add(
                    "recursion",
                    "steps call each other in a circle: " + " -> ".join([*circle, callee]),
                    span,
                    "calls that end",
                    "write the levels out, or loop over row(s.variable, first)",
                )
            elif callee not in done:
                visit(callee, (*above, name))
        done.add(name)

    for name in steps:
        if name not in done:
            visit(name, ())


def _has_mistakes(world: World, step: ir.Step) -> bool:
    at = step.span
    return any(d.span.file == at.file and at.line <= d.span.line <= at.end_line for d in world.report.diagnostics)


def _words(world: World, name: str) -> Iterator[str]:
    for node in ast.walk(world.heads[name].node):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Name):
            yield node.id


# --- declared and not used --------------------------------------------------------------------------------------------


def _is_own(world: World, span: Span) -> bool:
    """Whether this specification must use it: one that derives from another file's state need not use all of that."""
    if world.state not in world.states:
        return True
    module, node = world.states[world.state]
    bases = (resolve(world.modules, module, base.id) for base in node.bases if isinstance(base, ast.Name))
    derives = any(isinstance(found, tuple) and found[0] is not module for found in bases)
    return not derives or span.file == str(module.path)


def _unused_variables(world: World, steps: Mapping[str, ir.Step], mentioned: set[str]) -> None:
    kinds = {step.kind for step in steps.values() if _is_own(world, step.span)}
    if not kinds & {"event", "action"}:
        return  # what would read them is not written yet, which is said where it is looked for
    read, written = set(mentioned), set(mentioned)
    for step in steps.values():
        for part in _parts(step):
            if isinstance(part, ir.Read):
                read.add(part.variable)
            elif isinstance(part, ir.Quantifier) and isinstance(part.domain, ir.Row):
                read.add(part.domain.variable)
        for statement in all_statements(step.body):
            if isinstance(statement, ir.Store):
                written.add(statement.variable)
            elif isinstance(statement, ir.For) and isinstance(statement.domain, ir.Row):
                read.add(statement.domain.variable)
    for variable in world.variables.values():
        if not _is_own(world, variable.span) or (variable.const and not kinds & {"event", "initial"}):
            continue
        if variable.name not in read:
            world.report.add(
                "never-read",
                f"no step reads `{variable.name}`",
                variable.span,
                "a variable that some condition or value depends on",
                "delete it, or read it where it was meant to matter",
            )
        elif variable.name not in written and not variable.const:
            world.report.add(
                "never-written",
                f"no step assigns `{variable.name}`, so it is its default for ever",
                variable.span,
                "a variable that some step assigns",
                "mark it Const if it comes with the scope, or delete it",
            )


def _unused_rules(world: World, steps: Mapping[str, ir.Step], mentioned: set[str]) -> None:
    used = mentioned | {s.rule for step in steps.values() for s in all_statements(step.body) if isinstance(s, ir.Obey)}
    for rule in world.rules.values():
        if rule.name not in used and rule.kind in ("rule", "lint") and _is_own(world, rule.span):
            word = "advise" if rule.kind == "lint" else "obey"
            world.report.add(
                "unused-rule",
                f"no event judges `{rule.name}`",
                rule.span,
                f"{word}({rule.name}, ...) in some event",
                "add the obligation, or delete the rule; order, step and ghost rules are judged elsewhere",
            )


def _unused_names(world: World, step: ir.Step) -> None:
    used = {part.name for part in _parts(step) if isinstance(part, ir.Name)}
    bound: dict[str, Span] = {p.name: p.span for p in step.params}
    for statement in all_statements(step.body):
        if isinstance(statement, ir.Obey):
            used |= {name for name, _ in statement.names}
        elif isinstance(statement, ir.Let) and not statement.name.startswith("_"):
            bound.setdefault(statement.name, statement.span)
    params = {p.name for p in step.params}
    for name, span in bound.items():
        if name not in used and not (name in params and step.kind in ("event", "settling")):  # a log line's fields
            world.report.add(
                "unused-parameter" if name in params else "unused-name",
                f"`{name}` is never used in `{step.name}`",
                span,
                "a name that a condition, a value or a message uses",
                "delete it",
            )


# --- discipline -------------------------------------------------------------------------------------------------------


def _helpers_that(steps: Mapping[str, ir.Step], does: Callable[[ir.Step], bool]) -> set[str]:
    """The helpers that do something, themselves or through other helpers."""
    found = {s.name for s in steps.values() if s.kind == "helper" and does(s)}
    while True:
        more = {s.name for s in steps.values() if s.kind == "helper" and any(c in found for c, _ in calls(s))} - found
        if not more:
            return found
        found |= more


def _ranging_steps(world: World, steps: Mapping[str, ir.Step]) -> None:
    """An event or action does not range over a sort through a helper either."""

    def ranges(step: ir.Step) -> bool:
        loops = any(
            isinstance(s, ir.For) and isinstance(s.domain, ir.Members) and not only_ghosts(s.body, world.variables)
            for s in all_statements(step.body)
        )
        return loops or any(isinstance(p, ir.Quantifier) for p in _parts(step))

    ranging = _helpers_that(steps, ranges)
    for step in steps.values():
        for callee, span in calls(step) if step.kind in ("event", "action") else ():
            if callee in ranging:
                world.report.add(
                    "quantifier-in-step",
                    f"the helper `{callee}` ranges over a sort or a row, which the {step.kind} `{step.name}` may not",
                    span,
                    "such a helper in an invariant, a witness or a settling event",
                    "keep a counter as a Derived variable and test that",
                )


def _judging_actions(world: World, steps: Mapping[str, ir.Step]) -> None:
    """An action reaches an obligation only through an event."""
    judging = _helpers_that(steps, lambda s: any(isinstance(i, ir.Obey) for i in all_statements(s.body)))
    for step in steps.values():
        for callee, span in calls(step) if step.kind == "action" else ():
            if callee in judging:
                world.report.add(
                    "obligation-outside-event",
                    f"the action `{step.name}` reaches an obligation through the helper `{callee}`",
                    span,
                    "obligations belong to ownership events",
                    f"make `{callee}` an @event, or call an event that uses it",
                )


def _marks(world: World, variable: ir.Variable) -> None:
    marks = [m for m, on in (("Const", variable.const), ("Derived", variable.derived), ("Ghost", variable.ghost)) if on]
    if len(marks) > 1:
        world.report.add(
            "clashing-marks",
            f"`{variable.name}` is marked {' and '.join(marks)}",
            variable.span,
            "one mark at most",
            "Const: no step changes it; Derived: follows from others; Ghost: the explorer's alone",
        )
    if variable.derived and not isinstance(variable.value, ir.NatType | ir.BoolType | ir.SetType | ir.BadType):
        world.report.add(
            "bad-derived",
            f"`{variable.name}` is Derived but holds {variable.value}",
            variable.span,
            "a count, a bool or a set, which can be computed from other variables",
            "drop the Derived mark",
        )


def check_ghosts(world: World, lowered: Mapping[str, ir.Step]) -> None:
    """Report where a guard, an obligation or a lasting store depends on a ghost."""
    for step in lowered.values():
        if step.kind in ("event", "settling", "action"):
            names: set[str] = set()
            for guard in step.guard:
                if _haunted(world, guard, names):
                    _ghost_error(world, "a guard", guard.span, step)
            _ghost_block(world, step, step.effects, names, False)


def _haunted(world: World, expr: ir.Expr, names: set[str]) -> bool:
    for part in every(expr):
        match part:
            case ir.Read(variable) if world.variables[variable].ghost:
                return True
            case ir.Name(name) if name in names:
                return True
            case ir.Quantifier(domain=ir.Row(variable)) if world.variables[variable].ghost:
                return True
            case _:
                pass
    return False


def _ghost_block(world: World, step: ir.Step, block: tuple[ir.Stmt, ...], names: set[str], under: bool) -> None:
    """names: locals that depend on a ghost. under: a ghost decided that we are here."""
    for statement in block:
        match statement:
            case ir.Let(name, value):
                if under or _haunted(world, value, names):
                    names.add(name)
            case ir.Store(variable, index, value) if not world.variables[variable].ghost:
                if under or any(_haunted(world, e, names) for e in (*index, value)):
                    _ghost_error(world, f"`{variable}`, which is no ghost,", statement.span, step)
            case ir.Obey(condition=condition):
                if under or _haunted(world, condition, names):
                    _ghost_error(world, "an obligation", statement.span, step)
            case ir.Reset(entity=entity):
                if under or _haunted(world, entity, names):
                    _ghost_error(world, "a reset", statement.span, step)
            case ir.If(test, then, orelse):
                inside = under or _haunted(world, test, names)
                _ghost_block(world, step, then, names, inside)
                _ghost_block(world, step, orelse, names, inside)
            case ir.For(domain=domain, body=body):
                inside = under or (
                    isinstance(domain, ir.Row)
                    and (world.variables[domain.variable].ghost or _haunted(world, domain.first, names))
                )
                _ghost_block(world, step, body, names, inside)
            case _:
                pass


def _ghost_error(world: World, what: str, span: Span, step: ir.Step) -> None:
    world.report.add(
        "ghost-read",
        f"{what} depends on a ghost in `{step.name}`",
        span,
        "guards, obligations and lasting variables that do without ghosts: these exist only in the explorer",
        "drop the Ghost mark, or move the check to an invariant",
    )
