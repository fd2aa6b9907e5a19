"""What a review tells: what was searched, proved and measured of one design."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any  # JSON values

from kvsan.checker.explore.budget import Budget
from kvsan.checker.explore.design import Design
from kvsan.checker.explore.explore import Exploration
from kvsan.checker.explore.mutants import Caught
from kvsan.spec.designs.settings import Setting, as_set
from kvsan.spec.lang import ir

LABELS = ("Source", "Catches", "Except", "Deviates")


@dataclass(frozen=True)
class Shown:
    """A mutant with its counterexample drawn: a sequence diagram in Mermaid's text, '' where nothing was found."""

    caught: Caught
    diagram: str


@dataclass(frozen=True)
class Material:
    """scopes: each search of the right design, by the name of its scope. wrong_scopes: those that are a wrong decision,
    and what they change. proof: the object of `kvsan prove`, or a sentence that says why there is none. no_mutants: a
    sentence for where there are none. facts: what the proof needs beside the design's own invariants. run: version,
    date and seconds, which differ from run to run."""

    design: Design
    scopes: tuple[tuple[str, Exploration], ...]
    mutants: tuple[Shown, ...]
    proof: dict[str, Any] | str
    budget: Budget | str
    run: str
    facts: tuple[ir.Step, ...] = ()
    wrong_scopes: tuple[tuple[str, str], ...] = ()
    no_mutants: str = "The design names no wrong decision, so none was tried."

    @property
    def judged(self) -> dict[str, int]:
        """Evaluations of each rule and invariant in all scopes."""
        out: dict[str, int] = {}
        for _, found in self.scopes:
            for rule, count in found.judged.items():
                out[rule] = out.get(rule, 0) + count
        return out


def settings(found: Mapping[str, Setting]) -> str:
    """The settings of a scope on one line, the decision that is taken wrong aside."""
    return as_set({name: value for name, value in found.items() if name != "mutant"})


@cache
def public_bugs() -> tuple[dict[str, Any], ...]:
    """The public bugs that our corpus answers to, none where it is not installed."""
    try:
        text = files("kvsan.traces").joinpath("corpus/bugs.json").read_text(encoding="utf-8")
    except (FileNotFoundError, ModuleNotFoundError, NotADirectoryError):
        return ()
    found = json.loads(text)
    assert isinstance(found, list)
    return tuple(found)
