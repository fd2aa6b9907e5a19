"""A sort without a size: one store for all turns of a loop says what the turns say one after the other."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from agreement import World
from kvsan.spec.lang import interpret, ir
from kvsan.spec.lang.diagnostics import SpecError
from kvsan.spec.lang.load import load
from kvsan.spec.lang.symbolic import Entangled, Sizes, functional, predicate, size_of

SPEC = load("kvsan.spec.ownership")
SIZES = Sizes(
    {"Block": 3, "Branch": 3} | {s: 2 for s in SPEC.sorts if s not in ("Block", "Branch")},
    {p: {"positions": 2, "block_size": 2, "tokens": 6, "count": 9}.get(p, 5) for p in SPEC.parameters},
)
OPEN = replace(SIZES, sorts={n: k for n, k in SIZES.sorts.items() if n not in ("Block", "Branch")})
WORLD = World(SPEC, [], SIZES)


@pytest.mark.parametrize("name", ["alloc", "free", "fork", "finish", "preempt", "write", "read", "map", "copy"])
def test_the_open_form_agrees_with_the_sized_one(name: str) -> None:
    step, dice = SPEC.steps[name], random.Random(name)
    sized, opened = functional(step, SPEC.variables, SIZES), functional(step, SPEC.variables, OPEN)
    reads = {v: entries(SPEC.variables[v], opened) for v in opened.updates}
    compared = 0
    while compared < 3:
        state = WORLD.draw_state(dice)
        values = {p.name: WORLD.draw(p.type, dice) for p in step.params}
        done = interpret.run(sized, SPEC.variables, state, values)
        if not done.defined:
            continue
        compared += 1
        for variable, cells in reads.items():
            absent = interpret.default(SPEC.variables[variable].value)
            for index, expr in cells.items():
                now = interpret.value(expr, SPEC.variables, state, values)
                assert now == done.after.get(variable, {}).get(index, absent), (variable, index)


def entries(variable: ir.Variable, after: object) -> dict[tuple[int, ...], ir.Expr]:
    """Each entry of a variable after a step, as an expression over the state before it."""
    out: dict[tuple[int, ...], ir.Expr] = {}
    for index in product(*(range(size_of(k, SIZES)) for k in variable.keys)):
        at = tuple(ir.Const(i, k) for i, k in zip(index, variable.keys, strict=True))
        read = ir.Step("", "helper", "", (), (), None, "", value=ir.Read(variable.name, at, variable.value))
        out[index] = predicate(read, SPEC.variables, OPEN, after).condition  # type: ignore[arg-type]  # a form
    return out


MODEL = '''
from kvsan.spec.lang.surface import Derived, Map, Sort, State, UpTo, auxiliary, initial, members, witness
from typing import Annotated

class Block(Sort):
    """A block."""

Count = Annotated[int, UpTo("count")]

class Model(State):
    held: Map[Block, bool]
    free: Derived[Count]

@initial
def fill(s: Model) -> None:
    for b in members(Block, s):
        s.free += 1
        s.held[b] = s.free > 1

@witness
def can_hold(s: Model) -> bool:
    """A block is held."""
    return any(s.held[b] for b in members(Block, s))
'''
NO_LABELS = '''
@auxiliary
def never_held(s: Model, b: Block) -> bool:
    """No block is held."""
    return not s.held[b]
'''


def write(folder: Path, text: str) -> Path:
    path = folder / "model.py"
    path.write_text(text)
    return path


def test_turns_that_share_a_variable_are_refused(tmp_path: Path) -> None:
    spec = load(write(tmp_path, MODEL))
    with pytest.raises(Entangled, match="turns share `free`"):
        functional(spec.steps["fill"], spec.variables, Sizes({}, {}))


def test_a_fact_without_its_labels_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="auxiliary `never_held` lacks `Source:`"):
        load(write(tmp_path, MODEL + NO_LABELS))
