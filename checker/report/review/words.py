"""What the source of a design says in its own words: docstrings of classes, comments, and where a decision is wrong."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePath
from types import ModuleType

from kvsan.checker.explore.design import Design
from kvsan.spec.lang import ir
from kvsan.spec.lang.diagnostics import Span
from kvsan.spec.ownership.state import Ownership

LEDGER = Path(inspect.getfile(Ownership)).parent
"""The folder of the discipline's own state, which no design repeats."""


@dataclass(frozen=True)
class Spot:
    """A line of source. step: the function that it stands in."""

    where: str
    step: str
    line: str


def where(span: Span) -> str:
    """A place in a specification: the last two parts of its path, and the line."""
    return _place(span.file, span.line)


def _place(file: str, line: int) -> str:
    return f"{'/'.join(PurePath(file).parts[-2:])}:{line}"


def without_folders(text: str) -> str:
    """A text with the places in it as `where` writes them: the same from whatever folder, on whatever machine."""
    return re.sub(r"[^\s`]*/([^/\s]+/[^/\s]+:\d+)", r"\1", text)


def told(doc: str) -> str:
    """The text of a docstring on one line."""
    return " ".join(doc.split())


def of_module(design: Design) -> str:
    """The design in the words of its module."""
    return (_module(design).__doc__ or "").strip()


def of_state(design: Design) -> tuple[tuple[str, str], ...]:
    """The state class and those that it adds to the ledger, each with its docstring; the design's own comes first."""
    state = getattr(_module(design), design.spec.state)
    return tuple((c.__name__, told(c.__doc__ or "")) for c in state.__mro__ if _adds(c))


def _adds(found: type) -> bool:
    return found.__module__ != "kvsan.spec.lang.surface" and found is not object and not _in_ledger(_file(found))


def of_choice(design: Design, name: str) -> str:
    """What the docstring of a choice says of its values, '' where its class cannot be found."""
    for file in sources(design):
        for node in _tree(file).body:
            if isinstance(node, ast.ClassDef) and node.name == name:
                return told(ast.get_docstring(node) or "")
    return ""


def own(design: Design) -> tuple[ir.Variable, ...]:
    """The variables that the design adds to the ledger, or all where it has a ledger of its own."""
    return tuple(v for v in design.spec.variables.values() if not _in_ledger(v.span.file))


def own_choices(design: Design) -> dict[str, tuple[str, ...]]:
    """The values of each type that the design names itself, its wrong decisions aside."""
    named = {n for file in sources(design) for n in _classes(file)}
    return {n: c.names for n, c in design.spec.choices.items() if n in named and n != "Mutant"}


@cache
def _classes(file: str) -> frozenset[str]:
    return frozenset(node.name for node in _tree(file).body if isinstance(node, ast.ClassDef))


def comment(span: Span) -> str:
    """What stands behind a declaration on its line."""
    return _comment(_lines(span.file)[span.line - 1])


def _comment(line: str) -> str:
    """Declarations hold no text, so the first hash begins the comment."""
    return line.partition("#")[2].strip()


def wrong(design: Design, mutant: str) -> tuple[str, tuple[Spot, ...]]:
    """A wrong decision: what the comments where it is named say of it, and the lines that take it."""
    name, said, spots = mutant.upper(), dict[str, None](), list[Spot]()
    for file in sources(design):
        for line in _lines(file):
            if re.search(rf'"{name}"', line) and _comment(line):
                said[_comment(line)] = None
        spots += _taken(file, name)
    return "; ".join(said), tuple(spots)


def _taken(file: str, name: str) -> Iterator[Spot]:
    """Every line of a function that asks for the decision, in source order."""
    for node in _tree(file).body:
        if isinstance(node, ast.FunctionDef):
            asked = {n.lineno for n in ast.walk(node) if isinstance(n, ast.Name) and n.id == name}
            for line in sorted(asked):
                yield Spot(_place(file, line), node.name, _lines(file)[line - 1].partition("  #")[0].strip())


def sources(design: Design) -> tuple[str, ...]:
    """The files that the design is written in, its own first: what its state and steps come from, the ledger aside."""
    spec = design.spec
    spans = [s.span for s in spec.steps.values()] + [v.span for v in spec.variables.values()]
    found = dict.fromkeys((spec.file, *(s.file for s in spans)))
    return tuple(file for file in found if not _in_ledger(file))


def _in_ledger(file: str) -> bool:
    return Path(file).parent == LEDGER


def _file(found: type) -> str:
    try:
        return inspect.getfile(found)
    except (OSError, TypeError):  # a design that was run from a file may be no module that can be found again
        return ""


def _module(design: Design) -> ModuleType:
    return importlib.import_module(design.module)


@cache
def _lines(file: str) -> tuple[str, ...]:
    return tuple(Path(file).read_text(encoding="utf-8").splitlines())


@cache
def _tree(file: str) -> ast.Module:
    return ast.parse("\n".join(_lines(file)))
