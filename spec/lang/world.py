"""What the declarations of a specification say, before any body is read."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path

from kvsan.spec.lang import ir
from kvsan.spec.lang.diagnostics import Report
from kvsan.spec.lang.source import Module


@dataclass(frozen=True)
class Head:
    """A step's signature and where its body is. result: the declared result of an expression; None for statements."""

    name: str
    kind: str
    params: tuple[ir.Param, ...]
    result: ir.Type | None
    state_param: str
    module: Module
    node: ast.FunctionDef


@dataclass
class World:
    """Filled by `declare`, read by every pass after it. parameters: the range parameters, used as an ordered set."""

    name: str
    modules: dict[Path, Module]
    report: Report
    state: str = ""
    states: dict[str, tuple[Module, ast.ClassDef]] = field(default_factory=dict)
    sorts: dict[str, ir.SortType] = field(default_factory=dict)
    choices: dict[str, ir.ChoiceType] = field(default_factory=dict)
    parameters: dict[str, None] = field(default_factory=dict)
    variables: dict[str, ir.Variable] = field(default_factory=dict)
    rules: dict[str, ir.RuleDecl] = field(default_factory=dict)
    heads: dict[str, Head] = field(default_factory=dict)
