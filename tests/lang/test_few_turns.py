"""A loop over an open sort with few turns does what the loop does, where it has no more of them."""

from __future__ import annotations

from itertools import combinations, permutations, product
from pathlib import Path

import pytest
from kvsan.spec.lang import interpret, ir
from kvsan.spec.lang.load import load
from kvsan.spec.lang.symbolic import Entangled, Sizes, functional, predicate
from kvsan.spec.lang.turns import FEW, few_turns

MODEL = '''
from kvsan.spec.lang.surface import Choice, Map, Sort, State, UpTo, action, initial, members, row, witness
from typing import Annotated

class Block(Sort):
    """A block."""

class Stage(Choice):
    """When a block goes."""

    names = ("NOW", "LATER")

NOW, LATER = Stage("NOW"), Stage("LATER")
Count = Annotated[int, UpTo("count")]

class Model(State):
    kept: Map[Stage, Block, bool]
    place: Map[Block, Count]
    gone: Count
    last: Block | None

@action
def pass_on(s: Model) -> None:
    """Every block that is kept goes, and waits; then those that wait are looked at once more."""
    for b in row(s.kept, NOW):
        s.gone += 1
        s.place[b] = s.gone
        s.kept[NOW, b], s.kept[LATER, b] = False, True
        if s.gone % 2 == 1:
            s.last = b
    for b in row(s.kept, LATER):
        for c in row(s.kept, LATER):
            if b != c:
                s.gone += 1
        s.place[b] += 1

@initial
def count_all(s: Model) -> None:
    """Every block is counted."""
    for b in members(Block, s):
        s.gone += 1
        s.place[b] = s.gone

@action
def mark(s: Model, b: Block) -> None:
    """A turn that sees its own member alone."""
    for c in row(s.kept, NOW):
        s.place[c] = 1
    s.last = b

@witness
def can_go(s: Model) -> bool:
    """A block is gone."""
    return s.gone > 0 and s.last is not None
'''
BLOCKS = 3
SIZED, OPEN = Sizes({"Block": BLOCKS}, {"count": 20}), Sizes({}, {"count": 20})


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> ir.Spec:
    path: Path = tmp_path_factory.mktemp("few") / "model.py"
    path.write_text(MODEL)
    return load(path)


def few(spec: ir.Spec, name: str, turns: int) -> ir.Step:
    return few_turns(spec.steps[name], spec.variables, OPEN, {"Block": turns})


def kept(*blocks: int) -> interpret.Plain:
    return {"kept": {(0, b): True for b in blocks}} if blocks else {}


def subsets() -> list[tuple[int, ...]]:
    return [chosen for n in range(BLOCKS + 1) for chosen in combinations(range(BLOCKS), n)]


def obeyed(outcome: interpret.Outcome) -> bool:
    return all(v.holds for v in outcome.verdicts if v.rule == FEW)


@pytest.mark.parametrize("row", subsets())
def test_few_turns_obey_just_where_the_row_is_among_them_and_then_leave_the_state_of_the_loop(
    spec: ir.Spec, row: tuple[int, ...]
) -> None:
    whole = interpret.run(functional(spec.steps["pass_on"], spec.variables, SIZED), spec.variables, kept(*row), {})
    form = functional(few(spec, "pass_on", 2), spec.variables, SIZED)
    for first, second in product(range(BLOCKS), repeat=2):
        values = {"Block#0": first, "Block#1": second}
        done = interpret.run(form, spec.variables, kept(*row), values)
        assert done.defined
        assert obeyed(done) == (first != second and {*row} <= {first, second})
        if obeyed(done) and first < second:
            assert done.after == whole.after


def test_other_orders_of_the_turns_are_other_steps(spec: ir.Spec) -> None:
    form = functional(few(spec, "pass_on", 2), spec.variables, SIZED)
    ways = [
        interpret.run(form, spec.variables, kept(0, 2), {"Block#0": a, "Block#1": b}) for a, b in permutations((0, 2))
    ]
    assert all(map(obeyed, ways))
    assert [w.after["place"] for w in ways] == [{(0,): 2, (2,): 3}, {(0,): 3, (2,): 2}]


@pytest.mark.parametrize("row", subsets())
def test_the_open_form_agrees_with_the_sized_one(spec: ir.Spec, row: tuple[int, ...]) -> None:
    step, state, values = few(spec, "pass_on", 2), kept(*row), {"Block#0": 0, "Block#1": 2}
    done = interpret.run(functional(step, spec.variables, SIZED), spec.variables, state, values)
    form = functional(step, spec.variables, OPEN)
    for b in range(BLOCKS):
        at = ir.Const(b, ir.SortType("Block"))
        read = ir.Step("", "helper", "", (), (), None, "", value=ir.Read("place", (at,), spec.variables["place"].value))
        after = predicate(read, spec.variables, OPEN, form).condition
        assert interpret.value(after, spec.variables, state, values) == done.after.get("place", {}).get((b,), 0)


@pytest.mark.parametrize(("turns", "right"), [(2, False), (3, True)])
def test_a_loop_over_a_sort_has_a_turn_for_every_member(spec: ir.Spec, turns: int, right: bool) -> None:
    form = functional(few(spec, "count_all", turns), spec.variables, SIZED)
    done = interpret.run(form, spec.variables, {}, {f"Block#{k}": k for k in range(turns)})
    whole = interpret.run(functional(spec.steps["count_all"], spec.variables, SIZED), spec.variables, {}, {})
    assert (obeyed(done), done.after == whole.after) == (right, right)


def test_a_step_with_a_functional_form_stays_as_it_is(spec: ir.Spec) -> None:
    assert few(spec, "mark", 2) is spec.steps["mark"]


def test_only_few_turns_have_a_functional_form(spec: ir.Spec) -> None:
    with pytest.raises(Entangled, match="turns share"):
        functional(spec.steps["pass_on"], spec.variables, OPEN)
    assert functional(few(spec, "pass_on", 2), spec.variables, OPEN).updates
