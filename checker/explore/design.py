"""Find a design, ours or in a user's file, and say what a scope of it means.

A file has a state class and either `SETTINGS`, its default scope in the names of `--set` (for a class that derives from
`Ownership`; `SCOPES` names others, `DISCIPLINE` names its discipline), or a function `scope(blocks: int = 4, ...) ->
Scope`. For liveness it names a helper `PENDING` and its `FAIR` actions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any  # the constants of a scope are values of any declared type

from kvsan.spec.designs import catalog
from kvsan.spec.designs.catalog import DESIGNS
from kvsan.spec.designs.settings import Setting, Settings, Sizing, sizing
from kvsan.spec.lang import ir
from kvsan.spec.lang.interpret import Plain, Value
from kvsan.spec.lang.load import load
from kvsan.spec.lang.surface import Choice, Scope, Set, Sort
from kvsan.spec.lang.symbolic import Sizes, size_of

from .design_file import BadDesign as BadDesign
from .design_file import (
    check_sizes,
    check_steps,
    discipline_of,
    liveness_of,
    run_file,
    scope_of,
    scopes_of,
    settings_of,
)


@dataclass(frozen=True)
class Design:
    """module: where the design runs as Python. settings: the default scope. scopes: what named scopes change. mutants:
    their names, by the scope that each is caught in. pending, fair: for liveness, as in the catalog."""

    name: str
    module: str
    discipline: str
    spec: ir.Spec
    settings: Settings
    sizing: Callable[[Settings], Sizing | Scope]
    scopes: Mapping[str, Settings]
    mutants: Mapping[str, str]
    pending: str = ""
    fair: tuple[str, ...] = ()

    @property
    def ours(self) -> catalog.Design | None:
        """The design of the catalog that this is. A user's file may have the name of one."""
        found = DESIGNS.get(self.name)
        return found if found is not None and found.module == self.module else None


@dataclass(frozen=True)
class Scoped:
    """One scope. known: constants with one value everywhere. constants: all of them, entry by entry."""

    settings: dict[str, Setting]
    sizes: Sizes
    known: dict[str, int | None]
    constants: Plain


def find(source: str) -> Design:
    """A design by its name, or by `path/to/file.py:Class`. Raises BadDesign, SpecError."""
    if source in DESIGNS:
        ours = DESIGNS[source]
        spec = load(f"{ours.module}:{ours.state}")
        mutants = {m.name: m.scope for m in ours.mutants}
        size = partial(sizing, discipline=ours.discipline)
        return Design(
            ours.name, ours.module, ours.discipline, spec, ours.settings, size, ours.scopes, mutants,
            ours.pending, ours.fair,
        )  # fmt: skip
    where, _, state = source.rpartition(":") if source.rpartition(":")[2].isidentifier() else (source, "", "")
    if not where.endswith(".py"):
        raise BadDesign(f"there is no design {source!r}: known are {', '.join(DESIGNS)}; or name path/to/file.py:Class")
    return _of_file(Path(where), state)


def _of_file(path: Path, state: str) -> Design:
    if not path.is_file():
        raise BadDesign(f"there is no file {path}")
    spec = load(f"{path}:{state}" if state else path)
    check_steps(path, spec)
    module = run_file(path)
    discipline = discipline_of(path, module)
    live = liveness_of(path, module, spec)
    scope = getattr(module, "scope", None)
    if scope is not None:
        return Design(path.stem, module.__name__, discipline, spec, *scope_of(path, scope), {}, {}, *live)
    settings = settings_of(path, module, spec)
    size = partial(sizing, discipline=discipline)
    scopes = scopes_of(path, module, settings)
    return Design(path.stem, module.__name__, discipline, spec, settings, size, scopes, {}, *live)


def scoped(design: Design, changes: Mapping[str, str] | None = None, scope: str = "", mutant: str = "") -> Scoped:
    """A scope of a design: a named one, with changes as `--set` gives them. Raises BadDesign."""
    settings = dict(design.settings)
    if scope:
        if scope not in design.scopes:
            raise BadDesign(f"{design.name} has no scope {scope!r}: {_known(design.scopes)}")
        settings.update(design.scopes[scope])
    if mutant:
        settings.update(_mutant(design, settings, mutant))
    for name, text in (changes or {}).items():
        if name not in settings:
            raise BadDesign(f"{design.name} has no setting {name!r}: known are {', '.join(settings)}")
        settings[name] = _setting(name, text, settings[name])
    check_sizes(settings)
    try:
        sizes = design.sizing(settings)
    except (KeyError, ValueError, ZeroDivisionError) as error:
        raise BadDesign(f"no scope has these settings: {error}") from error
    return _constants(design.spec, settings, sizes)


def _known(scopes: Mapping[str, Settings]) -> str:
    return f"known are {', '.join(scopes)}" if scopes else "it names none (SCOPES)"


def _mutant(design: Design, settings: Settings, mutant: str) -> dict[str, Setting]:
    choice = design.spec.choices.get("Mutant")
    if choice is None or "mutant" not in settings:
        if settings.get(mutant) is False:
            return {mutant: True}
        lacks = "" if choice is None else ": it has a choice `Mutant`, but SETTINGS has no 'mutant': 'NONE'"
        raise BadDesign(f"{design.name} has no mutants{lacks}")
    if mutant.upper() not in choice.names:
        known = ", ".join(n.lower() for n in choice.names if n != "NONE")
        raise BadDesign(f"{design.name} has no mutant {mutant!r}: known are {known}")
    return {"mutant": mutant.upper()}


def _setting(name: str, text: str, before: Setting) -> Setting:
    match before:
        case bool():
            if text.lower() not in ("true", "false", "1", "0"):
                raise BadDesign(f"--set {name}: {text!r} is neither true nor false")
            return text.lower() in ("true", "1")
        case int():
            if not text.isdecimal():
                raise BadDesign(f"--set {name}: {text!r} is no natural number")
            return int(text)
        case _:
            return text.upper()


# --- constants --------------------------------------------------------------------------------------------------------


def _constants(spec: ir.Spec, settings: dict[str, Setting], scope: Sizing | Scope) -> Scoped:
    _check_scope(spec, scope)
    sizes = Sizes(scope.sorts, scope.limits)
    known, constants = dict[str, int | None](), Plain()
    for v in spec.variables.values():
        if not v.const:
            continue
        given = scope.constants.get(v.name, ir.default(v.value))
        if isinstance(given, Mapping):
            constants[v.name] = {_index(i): _number(x, v) for i, x in given.items()}
            continue
        value = _number(given, v)
        assert value is None or isinstance(value, int)
        known[v.name] = value
        if value != ir.default(v.value):
            every = product(*(range(size_of(k, sizes)) for k in v.keys))
            constants[v.name] = dict.fromkeys(every, value)
    return Scoped(settings, sizes, known, constants)


def _check_scope(spec: ir.Spec, scope: Sizing | Scope) -> None:
    """Every size has a number; a `Scope` of a user's own says nothing else. Raises BadDesign."""
    for name in spec.parameters if not isinstance(scope, Scope) else ():
        if name not in scope.limits:
            raise BadDesign(
                f"{spec.file}: SETTINGS lacks a number for {name!r}, which ends a range of {spec.state}: add it"
            )
    for name in spec.sorts if not isinstance(scope, Scope) else ():
        if name not in scope.sorts:
            raise BadDesign(f"{spec.file}: SETTINGS says no number of {name!r}: write def scope(...) -> Scope for it")
    constants = [v.name for v in spec.variables.values() if v.const]
    known: Mapping[str, Sequence[str]] = {"sorts": spec.sorts, "limits": spec.parameters, "constants": constants}
    for part, names in known.items() if isinstance(scope, Scope) else ():
        given: Mapping[str, Any] = getattr(scope, part)
        for name in given:
            if name not in names:
                raise BadDesign(f"the {part} of the Scope name {name!r}: {spec.name} has {', '.join(names) or 'none'}")
        for name in names if part != "constants" else ():
            if not isinstance(given.get(name), int):
                raise BadDesign(f"the {part} of the Scope lack a number for {name!r}: add it")


def _index(index: Any) -> tuple[int, ...]:
    parts = index if isinstance(index, tuple) else (index,)
    return tuple(int(p.index if isinstance(p, Sort) else p) for p in parts)


def _number(value: Any, v: ir.Variable) -> Value:
    """A value of the surface language as the lowered forms hold it. Raises BadDesign."""
    type_ = v.value
    match value:
        case Sort(index):
            return index
        case Choice(name) | str(name):
            if not isinstance(type_, ir.ChoiceType) or name not in type_.names:
                known = f": known are {', '.join(type_.names)}" if isinstance(type_, ir.ChoiceType) else ""
                raise BadDesign(f"{v.name}={name!r} is no {type_}{known}")
            return type_.names.index(name)
        case Set(members):
            return frozenset(int(m.index if isinstance(m, Sort) else m) for m in members)
        case _:
            assert value is None or isinstance(value, int)
            return value
