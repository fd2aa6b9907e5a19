"""How many blocks a design needs, against the closed formulas of the reference machine.

F = floor(prompt / size) full prompt blocks stay shared by B branches of P positions. Diverged, every branch has its own
P - F blocks: F + B (P - F) is the steady state, and the smallest pool that is never stuck, because the last owner of a
tail appends in place. Where P = F + 1 and the tail is partial, all B may copy before the first publishes: F + B + 1.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from kvsan.checker.command.budget import as_json, as_text
from kvsan.checker.explore.budget import Budget, Figures, budget, figures, longest
from kvsan.checker.explore.design import BadDesign, Design, Scoped, find, scoped
from kvsan.checker.explore.explore import prepare
from kvsan.spec.lang.symbolic import Sizes

pytest.importorskip("llvmlite", reason="the compiled search needs the extra `explore`")

ENOUGH = Figures(23, "full", "", 4, 3, 2, 3, 2, None)
STUCK = Figures(7, "full", "", 2, 2, 0, 2, 0, ("fork_branch(r0, r1)",))


@cache
def tail_copy() -> Design:
    return find("tail_copy")


def made(*pools: tuple[int, Figures]) -> Budget:
    settings = {"branches": 2, "blocks": 4, "block_size": 2, "positions": 2, "prompt": 3, "mutant": "NONE"}
    return Budget("tail_copy", Scoped(settings, Sizes({}, {}), {}, {}), pools[-1][1], pools)


@pytest.fixture(scope="module")
def two() -> Budget:
    return made((2, STUCK), (3, ENOUGH), (4, ENOUGH))


def test_two_branches_need_what_the_formulas_say() -> None:
    found = figures(prepare(tail_copy(), scoped(tail_copy(), scope="two_branches")))
    full, branches = 1, 2
    assert (found.peak, found.transient) == (full + branches + 1, branches)
    assert (found.steady, found.tables) == (full + branches, full + branches)
    assert found.copies == branches
    assert found == ENOUGH


def test_the_smallest_pool_has_none_above_it_that_is_stuck(two: Budget) -> None:
    assert two.smallest == 3
    assert made((2, ENOUGH), (3, STUCK), (4, ENOUGH)).smallest == 4
    assert made((3, ENOUGH), (4, STUCK)).smallest is None
    assert made((3, replace(ENOUGH, stopped="the limit of states")), (4, ENOUGH)).smallest == 4


def test_the_whole_prompt_of_each_further_branch_is_what_sharing_saves(two: Budget) -> None:
    assert two.full_copies == 2  # one branch more, a prompt of 3 in blocks of 2


def test_the_most_copies_are_counted_along_one_way() -> None:
    ways = [[("copy", 1), ("step", 2)], [("step", 2)], [("copy", 3), ("step", 2)], []]
    assert longest(ways, frozenset({"copy"})) == 2
    assert longest(ways, frozenset({"step"})) is None  # taken in place, for ever
    assert longest([[("copy", 0)]], frozenset({"copy"})) is None
    assert longest([[("step", 1)], [("copy", 0)]], frozenset({"copy"})) is None
    assert (
        longest([[("step", 1)], [("step", 0), ("copy", 2)], []], frozenset({"copy"})) == 1
    )  # going round copies nothing


def test_the_report_says_each_figure(two: Budget) -> None:
    assert as_text(two) == (
        "tail_copy  branches=2 blocks=4 block_size=2 positions=2 prompt=3 mutant=none\n"
        "  states        23, symmetry full\n"
        "  peak          4 blocks held at most, 3 of them in tables at most\n"
        "  transient     2 at most held outside every table: targets of copies, pins, frees that wait\n"
        "  steady        3 at most while none is\n"
        "  copies        2 blocks at most on a way that gives no branch up, 2 branches;"
        " a copy of the prompt for each but one takes 2\n"
        "  pool          3 blocks are the fewest that are never stuck\n"
        "      2 blocks  every branch can wait: fork_branch(r0, r1)\n"
        "      3 blocks  never stuck\n"
        "      4 blocks  never stuck\n"
    )
    found = json.loads(as_json(two))
    assert (found["peak_blocks"], found["smallest_pool"], found["pools"][0]["stuck"]) == (4, 3, ["fork_branch(r0, r1)"])


def test_a_pool_in_which_nothing_leads_on_from_the_start_is_stuck_there() -> None:
    chosen = scoped(tail_copy(), {"branches": "1", "blocks": "1", "prompt": "2"})
    alone = figures(prepare(tail_copy(), chosen))  # a full prompt, and no block for the next token
    assert alone.stuck == ()
    text = as_text(made((1, alone), (2, ENOUGH)))
    assert "      1 blocks  no step leads on from the start\n" in text
    assert [pool["never_stuck"] for pool in json.loads(as_json(made((1, alone), (2, ENOUGH))))["pools"]] == [
        False,
        True,
    ]


def test_a_pool_that_lets_nobody_in_is_stuck() -> None:
    nobody = find(str(Path(__file__).parent / "designs" / "second_pool.py"))
    assert figures(prepare(nobody, scoped(nobody, {"blocks": "1"}))).stuck == ()
    assert figures(prepare(nobody, scoped(nobody))).stuck is None


def test_no_pool_is_measured_that_does_not_hold_the_prompt() -> None:
    with pytest.raises(BadDesign, match="a pool of 1 does not hold the prompt"):
        budget(tail_copy(), {"blocks": "1"}, "two_branches")


def test_a_design_without_the_ledger_is_refused() -> None:
    machine = find(str(Path(__file__).parent / "designs" / "tail_machine.py"))
    with pytest.raises(BadDesign, match="has no `held`"):
        figures(prepare(machine, scoped(machine, {"branches": "2", "blocks": "4"})))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scope", "changes"),
    [
        ("two_branches", {}),
        ("", {}),
        ("four_branches", {"blocks": "6"}),
        ("one_slot_tail", {"branches": "2", "blocks": "5"}),
        ("", {"branches": "2", "blocks": "6", "positions": "3"}),
        ("full_prompt", {"branches": "2", "blocks": "5"}),
    ],
)
def test_every_scope_agrees_with_the_closed_formulas(scope: str, changes: dict[str, str]) -> None:
    found = budget(tail_copy(), changes, scope)
    numbers = {k: int(v) for k, v in found.scoped.settings.items() if isinstance(v, int)}
    full, branches = numbers["prompt"] // numbers["block_size"], numbers["branches"]
    private = numbers["positions"] - full
    assert found.smallest == full + branches * private
    assert found.figures.steady == full + branches * private
    if private == 1 and numbers["prompt"] % numbers["block_size"]:
        assert found.figures.peak == full + branches + 1
        assert found.figures.transient == found.figures.copies == branches


@pytest.mark.slow
def test_paged_attention_maps_its_copy_at_once() -> None:
    found = budget(find("paged_cow"), {})
    assert found.smallest == found.figures.steady == 4  # no full prompt block, two branches of two positions
    assert found.figures.copies == 1  # the last owner appends in place
