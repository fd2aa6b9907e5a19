"""The explorer counts what three independent checkers count on the reference machine, and what plain Python counts."""

from __future__ import annotations

from pathlib import Path

import pytest
from kvsan.checker.explore.design import Design, find, scoped
from kvsan.checker.explore.explore import Exploration, explore, prepare
from kvsan.checker.explore.search import UNLIMITED, Limits

pytest.importorskip("llvmlite", reason="the compiled search needs the extra `explore`")

MACHINE = str(Path(__file__).parent / "designs" / "tail_machine.py")
TWO = {"branches": "2", "blocks": "4"}


@pytest.fixture(scope="module")
def machine() -> Design:
    return find(MACHINE)


def explored(
    design: Design, symmetry: str, changes: dict[str, str] | None = None, mutant: str = "", limits: Limits = UNLIMITED
) -> Exploration:
    return explore(prepare(design, scoped(design, changes, mutant=mutant), symmetry), limits)


def counts(found: Exploration) -> tuple[int, int, int]:
    return found.states, found.transitions, found.depth


def test_four_branches_of_which_pairs_are_alike_have_one_state_an_orbit(machine: Design) -> None:
    """Three branches have no two pairs: every order that sorts their colours is then as good as any other."""
    four = {"branches": "4", "blocks": "6"}
    assert explored(machine, "full", four).states == explored(find("tail_copy"), "full", four).states == 503


def test_two_branches_have_the_reference_counts(machine: Design) -> None:
    found = explored(machine, "none", TWO)
    assert counts(found)[:2] == (100, 296)
    assert found.verdict == "HOLDS"
    assert found.ends == 1  # every branch is gone


@pytest.mark.slow
def test_a_design_on_the_ledger_has_the_reference_counts() -> None:
    found = explored(find("tail_copy"), "none")
    assert counts(found) == (3728, 16323, 18)
    assert found.verdict == "HOLDS"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("symmetry", "changes", "states"),
    [
        ("full", TWO, 23),
        ("blocks", {}, 519),
        ("full", {}, 111),
        ("blocks", {"branches": "4", "blocks": "7"}, 8080),
        ("full", {"branches": "4", "blocks": "7"}, 503),
        ("blocks", {"blocks": "6", "positions": "3"}, 87699),
        ("full", {"blocks": "6", "positions": "3"}, 14786),
    ],
)
def test_a_design_on_the_ledger_has_the_reference_orbits(symmetry: str, changes: dict[str, str], states: int) -> None:
    found = explored(find("tail_copy"), symmetry, changes)
    assert (found.symmetry, found.states, found.verdict) == (symmetry, states, "HOLDS")


def test_full_symmetry_keeps_one_state_of_each_orbit(machine: Design) -> None:
    assert explored(machine, "full", TWO).states == 23


@pytest.mark.slow
@pytest.mark.parametrize(
    ("symmetry", "changes", "states"),
    [
        ("none", {}, 3728),
        ("none", {"branches": "4", "blocks": "7"}, 610820),
        ("none", {"blocks": "6", "positions": "3"}, 8961248),
        ("blocks", {}, 519),
        ("blocks", {"branches": "4", "blocks": "7"}, 8080),
        ("blocks", {"blocks": "6", "positions": "3"}, 87699),
        ("full", {}, 111),
        ("full", {"branches": "4", "blocks": "7"}, 503),
        ("full", {"blocks": "6", "positions": "3"}, 14786),
    ],
)
def test_every_row_of_the_reference_table(machine: Design, symmetry: str, changes: dict[str, str], states: int) -> None:
    assert explored(machine, symmetry, changes).states == states


def test_a_limit_of_states_ends_in_unknown_with_what_was_covered(machine: Design) -> None:
    found = explored(machine, "none", TWO, limits=Limits(states=50))
    assert found.verdict == "UNKNOWN"
    assert found.stopped == "the limit of states"
    assert 50 <= found.states < 100


def test_a_limit_of_depth_expands_no_deeper(machine: Design) -> None:
    found = explored(machine, "none", TWO, limits=Limits(depth=3))
    assert found.verdict == "UNKNOWN"
    assert found.depth == 4
