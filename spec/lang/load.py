"""The way in: from a module to a checked, lowered specification."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

from kvsan.spec.lang import ir
from kvsan.spec.lang.check import check, check_calls, check_ghosts
from kvsan.spec.lang.declare import declare
from kvsan.spec.lang.diagnostics import Report
from kvsan.spec.lang.lower import lower
from kvsan.spec.lang.source import read_modules
from kvsan.spec.lang.statements import step as parse_step
from kvsan.spec.lang.subtract import check_subtraction
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
    clean = not report.diagnostics
    check(world, steps)
    if not any(d.code == "recursion" for d in report.diagnostics):
        texts = {str(m.path): m.lines for m in modules.values()}
        check_subtraction(steps, world.variables, texts, report)
    lowered = {n: lower(s, steps) for n, s in steps.items()} if clean else {}
    check_ghosts(world, lowered)
    report.raise_if_any()
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
