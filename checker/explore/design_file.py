"""A user's file as a design: it is run as Python, and what it says of its scope is checked before anything is searched.

Whatever a user got wrong here is refused with its place; nothing that was misspelt is passed over.
"""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any  # what a user's file holds may be of any type

from kvsan.spec.designs.settings import Setting, Settings
from kvsan.spec.lang import ir
from kvsan.spec.lang.diagnostics import nearest
from kvsan.spec.lang.surface import REGISTRY, Scope
from kvsan.spec.ownership.disciplines import DISCIPLINES

SIZES = ("branches", "blocks", "block_size", "positions")
"""What every scope of an ownership design says, each at least 1."""
OTHERS = ("prompt", "holders", "identities", "ops", "discipline")
MOST = 1000
"""The largest number of a scope: a search is of small ones, and a larger one never ends."""


class BadDesign(Exception):
    """A design that cannot be explored as it is asked for: the message says why and what to do."""


def run_file(path: Path) -> ModuleType:
    """Run a design as Python. Raises BadDesign with the line that fails."""
    name = f"kvsan_design_{path.stem}"
    made = importlib.util.spec_from_file_location(name, path)
    assert made is not None and made.loader is not None
    module = importlib.util.module_from_spec(made)
    sys.modules[name] = module  # its annotations are looked up there
    REGISTRY.pop(name, None)
    folder = str(path.parent.resolve())  # a design may be split over files, as it is when it is read
    sys.path.append(folder)
    try:
        made.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # whatever a user's file does
        raise BadDesign(_failed(path, error)) from error
    finally:
        sys.path.remove(folder)
    return module


def _failed(path: Path, error: BaseException) -> str:
    ours = [
        f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename in (str(path), str(path.resolve()))
    ]
    where = f"{path}:{ours[-1]}" if ours else str(path)
    if isinstance(error, ModuleNotFoundError):
        return f"{where} imports {error.name}, which is not installed beside kvsan: install it, or import it nowhere"
    said = f"{type(error).__name__}: {error}"
    return f"{where} fails when it is run as Python, which a design is before it is explored: mend it. {said}"


def settings_of(path: Path, module: ModuleType, spec: ir.Spec) -> Settings:
    """`SETTINGS` of a file. Raises BadDesign where a name means nothing there, or a size is missing."""
    found = getattr(module, "SETTINGS", None)
    example = "SETTINGS = {'branches': 2, 'blocks': 4, 'block_size': 2, 'positions': 2}"
    if found is None:
        raise BadDesign(f"{path} says no scope: add {example}, or def scope(...)")
    where = f"{path}:{_line(path, 'SETTINGS')}"
    if not isinstance(found, Mapping) or not all(isinstance(v, int | str) for v in found.values()):
        raise BadDesign(f"{where}: SETTINGS is a dict from names to numbers, switches and words: {example}")
    known = [*SIZES, *OTHERS, *(v.name for v in spec.variables.values() if v.const), *spec.parameters]
    for name in found:
        if name not in known:
            close = nearest(str(name), known)
            raise BadDesign(
                f"{where}: SETTINGS has {name!r}, which is no `Const` of {spec.state} and no size:"
                f" {f'did you mean {close!r}?' if close else 'declare it, or leave it out'}"
            )
    for name in SIZES:
        if name not in found:
            raise BadDesign(f"{where}: SETTINGS lacks {name!r}: add it, as in {example}")
    for name, value in found.items():
        number = isinstance(value, int) and not isinstance(value, bool)
        if (name in SIZES and not number) or (number and int(value) < 0):
            raise BadDesign(f"{where}: SETTINGS has {value!r} for {name!r}: write a natural number")
    return dict(found)


def scopes_of(path: Path, module: ModuleType, settings: Settings) -> dict[str, Settings]:
    """`SCOPES` of a file: what each named scope changes. Raises BadDesign where one changes what is no setting."""
    found = getattr(module, "SCOPES", {})
    where, example = f"{path}:{_line(path, 'SCOPES')}", "SCOPES = {'wide': {'branches': 3, 'blocks': 6}}"
    if not isinstance(found, Mapping) or not all(isinstance(changed, Mapping) for changed in found.values()):
        raise BadDesign(f"{where}: SCOPES is a dict from names to what each changes of SETTINGS: {example}")
    for scope, changed in found.items():
        for name, value in changed.items():
            if name not in settings:
                raise BadDesign(f"{where}: {scope!r} changes {name!r}, which is no setting: add it to SETTINGS first")
            if type(value) is not type(settings[name]):
                raise BadDesign(f"{where}: {scope!r} has {value!r} for {name!r}, where SETTINGS has {settings[name]!r}")
    return {str(scope): dict(changed) for scope, changed in found.items()}


def liveness_of(path: Path, module: ModuleType, spec: ir.Spec) -> tuple[str, tuple[str, ...]]:
    """`PENDING` and `FAIR` of a file. Raises BadDesign where one names what is not there."""
    pending, fair = getattr(module, "PENDING", ""), getattr(module, "FAIR", ())
    if not isinstance(pending, str) or not isinstance(fair, tuple | list):
        raise BadDesign(f"{path}:{_line(path, 'PENDING|FAIR')}: PENDING is the name of a helper, FAIR a tuple of names")
    for what, kind, names in (("PENDING", "helper", [pending] if pending else []), ("FAIR", "action", fair)):
        known = [s.name for s in spec.of_kind(kind)]
        for name in names:
            if name not in known:
                close = nearest(str(name), known)
                more = f": did you mean {close!r}?" if close else ""
                raise BadDesign(f"{path}:{_line(path, what)}: {what} names {name!r}, which is no {kind}{more}")
    return pending, tuple(fair)


def discipline_of(path: Path, module: ModuleType) -> str:
    """`DISCIPLINE` of a file. Raises BadDesign."""
    found = getattr(module, "DISCIPLINE", "paged_cow")
    if found not in DISCIPLINES:
        where = f"{path}:{_line(path, 'DISCIPLINE')}"
        raise BadDesign(f"{where}: there is no discipline {found!r}: known are {', '.join(DISCIPLINES)}")
    return str(found)


def scope_of(path: Path, scope: Any) -> tuple[Settings, Callable[[Settings], Scope]]:
    """The default settings that `def scope(...)` of a file says, and what it makes of settings. Raises BadDesign."""
    where = f"{path}:{_line(path, 'def scope|scope')}"
    if not callable(scope):
        raise BadDesign(f"{where}: `scope` is no function: write def scope(blocks: int = 4) -> Scope, or rename it")
    parameters = inspect.signature(scope).parameters
    defaults: dict[str, Setting] = {n: p.default for n, p in parameters.items()}
    for name, parameter in parameters.items():
        if parameter.default is parameter.empty:
            raise BadDesign(f"{where}: `{name}` of `scope` has no default, which its default scope needs: {name}=2")

    def made(settings: Settings) -> Scope:
        found = scope(**settings)
        if not isinstance(found, Scope):
            raise BadDesign(f"{where}: `scope` returned {found!r}: return a Scope")
        return found

    return defaults, made


def check_steps(path: Path, spec: ir.Spec) -> None:
    """Raises BadDesign where a design cannot begin, or does nothing then."""
    state = spec.state
    where = f"{path}:{_line(path, f'class {state}')}: {state} has"
    if not spec.of_kind("initial"):
        raise BadDesign(f"{where} no @initial step: write one that says how it begins, def start(s: {state}) -> None")
    if not spec.of_kind("action"):
        raise BadDesign(f"{where} no @action: write one for each step that it can take, def step(s: {state}) -> None")


def check_sizes(settings: Settings) -> None:
    """Raises BadDesign where a size is nothing, or a number is past every search."""
    for name, value in settings.items():
        if name in SIZES and value == 0:
            raise BadDesign(f"{name}=0: a scope has at least 1 of them")
        if isinstance(value, int) and value > MOST:
            raise BadDesign(f"{name}={value}: a scope is small, {MOST} at most, for every state of it is visited")


def _line(path: Path, name: str) -> int:
    """The line that gives a name its value, or 1."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return next((n for n, text in enumerate(lines, 1) if re.match(rf"({name})\b", text)), 1)
