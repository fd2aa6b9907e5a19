"""Counterexamples are as short as any, replay on whole states, and say what each step changed."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from kvsan.checker.explore.design import BadDesign, find, scoped
from kvsan.checker.explore.explore import Finding, explore, prepare
from kvsan.spec.designs.catalog import DESIGNS

pytest.importorskip("llvmlite", reason="the compiled search needs the extra `explore`")


known = cache(find)


def first(mutant: str, symmetry: str) -> Finding:
    design = known("tail_copy")
    found = explore(prepare(design, scoped(design, scope="two_branches", mutant=mutant), symmetry))
    assert found.verdict == "VIOLATED"
    return found.violations[0]


def test_append_after_fork_without_copy_is_caught_in_three_steps() -> None:
    found = first("append_without_copy", "none")
    assert found.rule == "exclusive_write"
    assert found.message == "branch r0 wrote slots [1,2) of block b1, which 2 branches own"
    assert [s.text for s in found.steps] == ["fork_branch(r0, r1)", "append_in_place(r0)", "finish_write(r0)"]
    assert [b.rule for s in found.steps for b in s.breaches] == ["exclusive_write"]


@pytest.mark.parametrize("symmetry", ["none", "blocks"])
def test_a_way_begins_at_its_own_start_and_ends_with_a_member_that_is_there(symmetry: str) -> None:
    """Orbits have one member each; the way has the members that its own steps name."""
    design = find(str(Path(__file__).parent / "designs" / "two_starts.py"))
    found = explore(prepare(design, scoped(design), symmetry))
    (wrong,) = found.violations
    assert (found.symmetry, wrong.start["strict"]) == (symmetry, {(True,): True})
    one, other = (s.values for s in wrong.steps)
    assert one == other and [b.rule for b in wrong.steps[-1].breaches] == ["used_once"]


@pytest.mark.slow
def test_symmetry_finds_a_counterexample_of_the_same_length() -> None:
    found = first("append_without_copy", "full")
    assert (found.rule, len(found.steps)) == ("exclusive_write", 3)
    assert [b.rule for b in found.steps[-1].breaches] == ["exclusive_write"]


@pytest.mark.slow
@pytest.mark.parametrize("symmetry", ["none", "blocks", "full"])
@pytest.mark.parametrize("number", range(len(DESIGNS["tail_copy"].mutants)))
def test_every_mutant_is_caught_as_the_catalog_says(number: int, symmetry: str) -> None:
    mutant = DESIGNS["tail_copy"].mutants[number]
    design = known("tail_copy")
    made = prepare(design, scoped(design, scope=mutant.scope, mutant=mutant.name), symmetry, lints=True)
    found = explore(made)
    caught = {f.rule: len(f.steps) for f in (*found.violations, *found.lints)}
    assert caught.get(mutant.rule) == mutant.steps


@pytest.mark.parametrize(
    ("changes", "scope", "mutant", "said"),
    [
        ({"wings": "2"}, "", "", "has no setting 'wings'"),
        ({"branches": "many"}, "", "", "no natural number"),
        ({}, "nowhere", "", "has no scope 'nowhere'"),
        ({}, "", "nonsense", "has no mutant 'nonsense'"),
    ],
)
def test_a_scope_that_does_not_exist_is_refused(changes: dict[str, str], scope: str, mutant: str, said: str) -> None:
    with pytest.raises(BadDesign, match=said):
        scoped(known("tail_copy"), changes, scope, mutant)
