"""Every construct of the language means the same to SPIN, to TLC and to both searches, whether a design uses it or not.

The events of the specification that uses every construct (`tests/lang/specs/constructs.py`) become the steps of
machines. Each machine stops after so many steps, and its guards keep every step within its domain.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from kvsan.checker.explore.design import Design, find, scoped
from kvsan.checker.explore.explore import Exploration, explore, explore_plainly, prepare
from kvsan.checker.export.promela import promela
from kvsan.checker.export.subject import subject
from kvsan.checker.export.tla import tla
from outside import UNDEFINED, needs_spin, needs_tlc, spin, tlc

CONSTRUCTS = (Path(__file__).parents[1] / "lang" / "specs" / "constructs.py").read_text()

FRAME = '''
from kvsan.spec.lang.surface import Scope


class Machine(Toy):
    """The toy, and how many steps it has done."""

    steps: Count


def scope(cells: int = 2, rows: int = 2, places: int = 2, count: int = {count}) -> Scope:
    """Two of everything."""
    sizes = {{"places": places, "count": count}}
    return Scope({{"Cell": cells, "Row": rows}}, sizes, {{"width": 2, "weight": 1, "loud": False}})


@helper
def tick(s: Machine) -> None:
    """One step more."""
    s.steps += 1


@initial
def begin(s: Machine) -> None:
    """Something is in its place."""
    s.table[Row(0), 1] = Cell(1)
    s.owner[Cell(0)] = Row(1)
    s.count[Cell(0)] = 2
    s.pairs[Row(1), Cell(0)] = 1


@witness
def can_see(s: Machine) -> bool:
    """It depends on everything, so that nothing is left out of a state."""
    return (
        (s.last is not None or s.total > 0 or s.strip[0] > 0 or s.hues[RED] > 0)
        or any(
            s.count[c] > 0 or s.owner[c] is not None or s.color[c] != RED or s.marks[c] != empty() or s.seen[c] > 0
            for c in members(Cell, s)
        )
        or any(
            s.flag[r]
            or s.friends[r] != empty()
            or any(s.table[r, p] is not None or s.cube[r, p, RED] > 0 for p in row(s.table, r))
            or any(s.pairs[r, c] > 0 for c in members(Cell, s))
            for r in members(Row, s)
        )
    )
'''

STEP = '''

@action
def do_{name}(s: Machine{parameters}) -> None:
    """A step of its own."""
    require(s.steps < {fuel})
{guards}

    {call}
    tick(s)
'''


Step = tuple[str, str, str, tuple[str, ...]]


def step(name: str, parameters: str, call: str, *guards: str) -> Step:
    return name, f", {parameters}" if parameters else "", call, guards


STEPS = {
    "rows": (
        4,
        step("place", "r: Row, p: Place, c: Cell", "s.table[r, p] = c", "s.table[r, p] is None"),
        step("swap", "r: Row, q: Row, p: Place", "swap(s, r, q, p)"),
        step("shift", "r: Row, p: Place", "shift(s, r, p)"),
        step("settle", "", "settle(s)"),
    ),
    "cells": (
        4,
        step("move", "c: Cell, d: Cell", "move(s, c, d)"),
        step("pair_up", "r: Row, q: Row, c: Cell | None", "pair_up(s, r, q, c)"),
        step("forget", "c: Cell, r: Row", "forget(s, c, r)", "s.count[c] < 4"),
        step("haunt", "c: Cell", "haunt(s, c)"),
    ),
    "colors": (
        3,
        step(
            "paint",
            "c: Cell, color: Color, low: Place, high: Count",
            "paint(s, c, color, low, high)",
            "high <= 2",
            "s.hues[color] < 4",
        ),
        step("stack", "r: Row, p: Place, color: Color", "stack(s, r, p, color)", "s.cube[r, p, color] < 4"),
    ),
}
"""Groups of events, each with how many steps its machine does."""


def machine(group: str, folder: Path, fuel: int, *steps: Step) -> Design:
    toy = CONSTRUCTS[: CONSTRUCTS.index("@action\n")]
    text = toy + FRAME.format(count=3 * fuel)
    for name, parameters, call, guards in steps:
        required = "\n".join(f"    require({g})" for g in guards)
        text += STEP.format(name=name, parameters=parameters, call=call, guards=required, fuel=fuel)
    path = folder / f"{group}.py"
    path.write_text(text)
    return find(f"{path}:Machine")


JUDGED = ("small", "tidy")


@pytest.mark.slow
@pytest.mark.parametrize("group", STEPS)
@pytest.mark.parametrize("checker", [pytest.param("spin", marks=needs_spin), pytest.param("tlc", marks=needs_tlc)])
def test_both_checkers_count_the_states_that_the_explorer_counts(group: str, checker: str, tmp_path: Path) -> None:
    pytest.importorskip("llvmlite", reason="the compiled search needs the extra `explore`")
    design = machine(group, tmp_path, *STEPS[group])
    ours = explore(prepare(design, scoped(design), "none", without=JUDGED))
    exported = subject(design, without=JUDGED)
    assert ours.verdict == "HOLDS"
    assert ours.depth == STEPS[group][0]
    if checker == "spin":
        found = spin(promela(exported), tmp_path)
        assert (found.states - 1, found.transitions - 2, found.broken) == (ours.states, ours.transitions, "")
    else:
        found = tlc(tla(exported), tmp_path)
        assert (found.states, found.transitions, found.broken) == (ours.states, ours.transitions, "")


def counted(found: Exploration) -> tuple[object, ...]:
    ways = [(f.rule, [s.text for s in f.steps]) for f in (*found.violations, *found.lints)]
    return found.levels, found.fan, found.actions, found.judged, found.witnesses, ways


LOOP = "for p in row(s.table, r):\n        s.table[{}, p] = {}"
WHOLE = (
    step("place", "r: Row, p: Place, c: Cell", "s.table[r, p] = c", "s.table[r, p] is None"),
    step("copy", "r: Row, q: Row", LOOP.format("q", "s.table[r, p]")),
    step("clear", "r: Row, q: Row", LOOP.format("q", "None"), "r != q"),
)
"""Loops over a row that the compiled search does at once, or must not."""


@pytest.mark.parametrize(("group", "fuel"), [("rows", 3), ("cells", 3), ("colors", 1), ("whole", 3)])
def test_the_search_by_the_interpreter_counts_the_states_that_the_compiled_one_counts(
    group: str, fuel: int, tmp_path: Path
) -> None:
    pytest.importorskip("llvmlite", reason="the compiled search needs the extra `explore`")
    design = machine(group, tmp_path, fuel, *(WHOLE if group == "whole" else STEPS[group][1:]))
    made = prepare(design, scoped(design), "none", without=JUDGED)
    ours = explore(made)
    assert (ours.verdict, ours.depth) == ("HOLDS", fuel)
    assert counted(ours) == counted(explore_plainly(made))


RISKY = {
    "none": (1, step("unwrap", "r: Row", "s.owner[some(s.table[r, 0])] = r")),
    "place": (1, step("beyond", "c: Cell", "s.strip[s.count[c]] = 1")),
    "range": (3, step("more", "c: Cell", "s.count[c] += 4")),
    "set": (1, step("wide", "c: Cell, high: Count", "s.marks[c] = span(0, high)")),
    "zero": (1, step("divide", "c: Cell", "s.strip[0] = 1 // s.count[c]")),
}
"""Steps that leave their domain somewhere."""
TOLD = {
    "none": "`some` of None",
    "place": "an index of `strip` is out of range",
    "range": "`count` gets a value out of its range",
    "set": "`marks` gets a value out of its range",
    "zero": "a division by zero",
    "arms": "`strip` gets a value out of its range",
    "guard": "an index of `strip` is out of range",
}
MORE = {
    "arms": (
        1,
        step(
            "either",
            "c: Cell",
            "if s.count[c] > 1:\n        n = s.count[c] * 2\n    else:\n        n = 1\n    s.strip[0] = n",
        ),
    ),
    "guard": (1, step("look", "c: Cell", "s.strip[0] = 1", "s.strip[s.count[c]] == 0")),
}
"""Steps that do so by a name that is bound in both arms, or in a guard, which the compiled search tells of the
state; both searches are asked, and no outside checker."""


@pytest.mark.parametrize("group", [*RISKY, *MORE])
def test_what_leaves_its_domain_is_told_by_both_searches_at_the_same_step(group: str, tmp_path: Path) -> None:
    pytest.importorskip("llvmlite", reason="the compiled search needs the extra `explore`")
    design = machine(group, tmp_path, *(RISKY | MORE)[group])
    made = prepare(design, scoped(design), "none", without=JUDGED)
    (ours,), (plain,) = explore(made).violations, explore_plainly(made).violations
    steps = [s.text for s in plain.steps]
    assert (ours.rule, [s.text for s in ours.steps]) == (plain.rule, steps if group != "guard" else steps[:-1])
    assert ours.message.endswith(TOLD[group])


FACTS = """

@invariant
def in_range(s: Machine) -> bool:
    \"\"\"Undefined at the start, where a count is 2.\"\"\"
    return all(s.strip[s.count[c]] < {limit} for c in members(Cell, s) if s.steps == {steps})


@witness
def can_look(s: Machine) -> bool:
    \"\"\"Undefined too, in every state.\"\"\"
    return any(s.strip[s.count[c]] == 0 for c in members(Cell, s))
"""


@pytest.mark.parametrize(("steps", "verdict"), [(0, "VIOLATED"), (5, "HOLDS")])
def test_a_fact_that_is_undefined_does_not_hold_and_is_not_seen(steps: int, verdict: str, tmp_path: Path) -> None:
    pytest.importorskip("llvmlite", reason="the compiled search needs the extra `explore`")
    machine("facts", tmp_path, 1, step("store", "p: Place", "s.strip[p] = 1"))
    path = tmp_path / f"facts_{steps}.py"
    path.write_text((tmp_path / "facts.py").read_text() + FACTS.format(limit=4, steps=steps))
    design = find(f"{path}:Machine")
    made = prepare(design, scoped(design), "none", without=JUDGED)
    for found in (explore(made), explore_plainly(made)):
        assert (found.verdict, found.witnesses["can_look"]) == (verdict, None)


@pytest.mark.slow
@pytest.mark.parametrize("group", RISKY)
@pytest.mark.parametrize("checker", [pytest.param("spin", marks=needs_spin), pytest.param("tlc", marks=needs_tlc)])
def test_what_leaves_its_domain_is_an_error_of_both_checkers(group: str, checker: str, tmp_path: Path) -> None:
    pytest.importorskip("llvmlite", reason="the compiled search needs the extra `explore`")
    design = machine(group, tmp_path, *RISKY[group])
    ours = explore(prepare(design, scoped(design), "none", without=JUDGED))
    assert [f.rule for f in ours.violations] == ["defined"]
    exported = subject(design, without=JUDGED)
    if checker == "spin":
        assert spin(promela(exported), tmp_path).broken == UNDEFINED
    else:
        assert tlc(tla(exported), tmp_path).broken in (UNDEFINED, "TypeOK")
