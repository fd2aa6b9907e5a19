"""The way in: from a module to a checked, lowered specification."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType

from kvsan.spec.lang import ir
from kvsan.spec.lang.declare import declare
from kvsan.spec.lang.diagnostics import Report, Span
from kvsan.spec.lang.lower import lower
from kvsan.spec.lang.source import read_modules
from kvsan.spec.lang.statements import step as parse_step
from kvsan.spec.lang.walk import all_expressions, all_statements, every
from kvsan.spec.lang.world import World


def load(source: str | Path | ModuleType) -> ir.Spec:
    """Read a specification: a dotted module name, a file, or a module, optionally with `:StateClass` behind a name.

    Raises SpecError with every mistake found.
    """
    report = Report()
    where, state = _split(source)
    name, modules = read_modules(where, report)
    if not modules:
        report.raise_if_any()
    world = World(name, modules, report)
    declare(world, state)
    steps = {head.name: parse_step(world, head) for head in world.heads.values()}
    check_calls(world, steps)
    report.raise_if_any()
    lowered = {n: lower(s, steps) for n, s in steps.items()}
    return ir.Spec(
        name,
        str(next(iter(modules.values())).path),
        world.state,
        world.variables,
        tuple(world.sorts),
        world.choices,
        tuple(world.parameters),
        world.rules,
        lowered,
    )


def _split(source: str | Path | ModuleType) -> tuple[str | Path | ModuleType, str | None]:
    if isinstance(source, str) and ":" in source:
        where, _, state = source.rpartition(":")
        if state.isidentifier():
            return where, state
    return source, None


def calls(step: ir.Step) -> Iterable[tuple[str, Span]]:
    """The steps that a step calls, each with the place of the call."""
    for statement in all_statements(step.body):
        if isinstance(statement, ir.CallStmt):
            yield statement.step, statement.span
    parts = [*all_expressions(step.body), *(every(step.result) if step.result else ())]
    for part in parts:
        if isinstance(part, ir.CallExpr):
            yield part.step, part.span


def check_calls(world: World, steps: Mapping[str, ir.Step]) -> None:
    """Report every call that closes a cycle."""
    done: set[str] = set()

    def visit(name: str, above: tuple[str, ...]) -> None:
        for callee, span in calls(steps[name]):
            if callee in (*above, name):
                cycle = [*above, name][[*above, name].index(callee) :]
                world.report.add(
                    "recursion",
                    "steps call each other in a circle: " + " -> ".join([*cycle, callee]),
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
