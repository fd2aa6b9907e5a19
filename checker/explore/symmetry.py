"""The strongest symmetry that is sound for a model, and why it is not the one asked for.

What is judged is what is left after slicing: a loop that sets apart a block in a variable on which no verdict depends
breaks nothing. The start need not have the symmetry (see `kvsan.spec.lang.scalarset`), however many there are: all are
renamed into the order of their orbits like any other state, and a way is walked again from the one that began it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kvsan.checker.explore.canon import canonical
from kvsan.checker.explore.emit import Model
from kvsan.checker.explore.sorting import NoSymmetry
from kvsan.spec.lang import ir
from kvsan.spec.lang.diagnostics import place
from kvsan.spec.lang.effects import reads
from kvsan.spec.lang.scalarset import exchangeable

SYMMETRIES = ("none", "blocks", "full")


@dataclass(frozen=True)
class Symmetry:
    """name: one of SYMMETRIES. text: the generated function `canonical`, or ""; note: why not what was asked for."""

    name: str
    text: str
    note: str


def symmetry(model: Model, wanted: str) -> Symmetry:
    """The strongest sound symmetry of a model up to the one wanted."""
    if wanted == "none":
        return Symmetry("none", "", "")
    refused = {sort: _refusal(model, sort) for sort in ("Block", "Branch")[: SYMMETRIES.index(wanted)]}
    notes = [f"{sort}: {why}" for sort, why in refused.items() if why]
    if refused["Block"]:
        return Symmetry("none", "", "; ".join(notes))
    sizes: Mapping[str, int] = model.sizes.sorts
    for name, tried in (("full", "Branch"), ("blocks", None)):
        if tried is not None and refused.get(tried, "not wanted"):
            continue
        try:
            return Symmetry(name, canonical(model.layout, "Block", tried, dict(sizes)), "; ".join(notes))
        except NoSymmetry as no:
            notes.append(str(no))
    return Symmetry("none", "", "; ".join(dict.fromkeys(notes)))


def _refusal(model: Model, sort: str) -> str:
    """What sets members of a sort apart, '' where nothing does."""
    if sort not in model.sizes.sorts:
        return "the design has no such sort"
    steps = (*model.actions, *model.invariants, *model.witnesses, *model.counted)
    found = exchangeable(sort, _variables(model, steps), steps)
    if found.breaks:
        return f"{place(found.breaks[0].span)}: {found.breaks[0].reason}"
    if found.constants:
        return f"the constant {found.constants[0]} differs from member to member"
    return ""


def _variables(model: Model, steps: tuple[ir.Step, ...]) -> dict[str, ir.Variable]:
    """The variables of a state, and the constants that have more than one value and matter."""
    read = {a.variable for step in steps for a in reads(step)}
    uneven = {n for n, v in model.variables.items() if v.const and n in read and n not in model.constants}
    return {n: v for n, v in model.variables.items() if n in model.working.fields or n in uneven}
