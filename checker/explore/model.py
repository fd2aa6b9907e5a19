"""From a design to what the search needs: constants folded, sizes known, the state laid out."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any  # a scope's constants are values of any declared type

from kvsan.checker.explore.emit import Model
from kvsan.checker.explore.layout import layout
from kvsan.spec.lang import ir
from kvsan.spec.lang.interpret import Plain, Value, run
from kvsan.spec.lang.load import load
from kvsan.spec.lang.simplify import simplify, simplify_block
from kvsan.spec.lang.surface import Choice, Scope, Set, Sort
from kvsan.spec.lang.symbolic import Sizes, functional


class BadDesign(Exception):
    """A design that cannot be explored as it is asked for: the message says why and what to do."""


@dataclass(frozen=True)
class Design:
    """A loaded specification and the function that makes its scopes."""

    name: str
    spec: ir.Spec
    scope: Callable[..., Scope]

    def parameters(self) -> dict[str, int]:
        """The parameters of its scopes, with their defaults."""
        return {n: p.default for n, p in inspect.signature(self.scope).parameters.items()}


def design(source: str) -> Design:
    """A design by its name among ours, by module, or by `path/to/file.py:Class`. Raises BadDesign, SpecError."""
    where, _, state = source.partition(":")
    if where.endswith(".py"):
        path = Path(where)
        if not path.is_file():
            raise BadDesign(f"there is no file {where}")
        module_spec = importlib.util.spec_from_file_location(path.stem, path)
        assert module_spec is not None and module_spec.loader is not None
        module = importlib.util.module_from_spec(module_spec)
        module_spec.loader.exec_module(module)
        spec = load(path)
    else:
        name = where if "." in where else f"kvsan.spec.designs.{where}"
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as error:
            raise BadDesign(f"there is no design {where}: name one of ours, or path/to/file.py:Class") from error
        spec = load(f"{name}:{state}" if state else name)
    scope = getattr(module, "scope", None)
    if scope is None:
        raise BadDesign(f"{where} has no function `scope`, which says the sizes: def scope(blocks: int = 4) -> Scope")
    if state and spec.state != state:
        raise BadDesign(f"{where} has the state class {spec.state}, not {state}")
    return Design(Path(where).stem, spec, scope)


def constants_of(spec: ir.Spec, scope: Scope) -> dict[str, Any]:
    """The scalar constants of a scope, as numbers."""
    out: dict[str, Any] = {}
    for v in spec.variables.values():
        if v.const and not v.keys:
            out[v.name] = number(scope.constants.get(v.name, ir.default(v.value)))
    return out


def number(value: Any) -> Value:
    """A value of the surface language as the lowered forms hold it."""
    match value:
        case Sort(index):
            return index
        case Choice():
            return type(value).names.index(value.name)
        case Set(members):
            return frozenset(m for m in map(number, members) if isinstance(m, int))
        case _:
            assert value is None or isinstance(value, int)
            return value


def model(spec: ir.Spec, scope: Scope) -> Model:
    """The model of one scope."""
    constants = constants_of(spec, scope)
    sizes = Sizes(scope.sorts, scope.limits)
    actions = tuple(_folded(s, constants) for s in spec.of_kind("action"))
    actions = tuple(a for a in actions if ir.FALSE not in a.guard)
    kept = [v for v in spec.variables.values() if not (v.const and not v.keys)]
    return Model(
        spec.name,
        actions,
        tuple(_folded(s, constants) for s in spec.of_kind("invariant")),
        tuple(_folded(s, constants) for s in spec.of_kind("witness")),
        spec.variables,
        constants,
        sizes,
        layout(kept, sizes),
        frozenset(r.name for r in spec.rules.values() if r.kind == "lint"),
    )


def _folded(step: ir.Step, constants: Mapping[str, int | None]) -> ir.Step:
    guard = tuple(g for g in (simplify(g, constants) for g in step.guard) if g != ir.TRUE)
    value = None if step.value is None else simplify(step.value, constants)
    return replace(step, guard=guard, effects=simplify_block(step.effects, constants), value=value)


def starts(spec: ir.Spec, scope: Scope) -> Iterator[tuple[ir.Step, Plain]]:
    """Each initial step and the state it makes. Raises BadDesign where a start is undefined or breaks a rule."""
    constants = constants_of(spec, scope)
    sizes = Sizes(scope.sorts, scope.limits)
    blank: Plain = {n: {(): v} for n, v in constants.items()}
    for v in spec.variables.values():
        if v.const and v.keys:
            blank[v.name] = {
                tuple(int(number(i) or 0) for i in (at if isinstance(at, tuple) else (at,))): number(value)
                for at, value in scope.constants.get(v.name, {}).items()
            }
    for step in spec.of_kind("initial"):
        outcome = run(functional(_folded(step, constants), spec.variables, sizes), spec.variables, blank, {})
        broken = [v.rule for v in outcome.verdicts if not v.holds]
        if not outcome.defined or broken:
            raise BadDesign(f"the initial step {step.name} {'breaks ' + broken[0] if broken else 'is undefined'}")
        yield step, outcome.after
