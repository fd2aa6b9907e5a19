"""What is found first is the nearest, limits end where they say, and depths are counted from the start."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from kvsan.checker.explore.design import find, scoped
from kvsan.checker.explore.explore import Exploration, Prepared, explore, prepare
from kvsan.checker.explore.liveness import Liveness
from kvsan.checker.explore.search import UNLIMITED, Limits
from kvsan.checker.explore.simulate import simulate

pytest.importorskip("llvmlite", reason="the compiled search needs the extra `explore`")

DESIGNS = Path(__file__).parent / "designs"


@cache
def prepared(name: str, *settings: tuple[str, str]) -> Prepared:
    design = find(str(DESIGNS / f"{name}.py"))
    return prepare(design, scoped(design, dict(settings)), "none", lints=name == "advised")


def explored(top: int, limits: Limits = UNLIMITED) -> Exploration:
    return explore(prepared("fork_in_the_road", ("top", str(top))), limits)


def test_of_two_failures_of_one_depth_the_shorter_way_is_told_first() -> None:
    """A step from the first state of the depth breaks a rule; the second state is wrong itself, a step before."""
    found = explored(2)
    assert [(v.rule, [s.text for s in v.steps]) for v in found.violations] == [
        ("never_wrong", ["turn(true)"]),
        ("go_on_once", ["turn(false)", "go_on()"]),
    ]


def test_a_witness_is_seen_at_the_depth_of_the_first_state_that_shows_it() -> None:
    assert explored(4).witnesses == {"can_turn": 1, "can_go_on": 2}


@pytest.mark.parametrize(("depth", "verdict", "expanded"), [(4, "HOLDS", 5), (3, "UNKNOWN", 4), (0, "UNKNOWN", 1)])
def test_a_limit_of_depth_expands_the_states_of_that_depth_too(depth: int, verdict: str, expanded: int) -> None:
    found = explored(4, Limits(depth=depth))
    assert (found.verdict, sum(found.fan.values())) == (verdict, expanded)


def test_a_walk_goes_on_after_a_lint() -> None:
    """Of a design whose first step every walk takes, and which a lint calls one too many."""
    found = simulate(prepared("advised"), 3, 2, 0)
    assert (found.found, found.steps) == (None, 6)


def test_a_walk_judges_its_start(tmp_path: Path) -> None:
    path = tmp_path / "road.py"
    path.write_text((DESIGNS / "fork_in_the_road.py").read_text().replace("    s.at = 0\n", "    s.wrong = True\n"))
    design = find(str(path))
    found = simulate(prepare(design, scoped(design), "none"), 2, 5, 0)
    assert found.found is not None and (found.found.rule, found.found.steps, found.steps) == ("never_wrong", (), 0)


def test_a_scope_in_which_nothing_is_ever_pending_shows_no_liveness() -> None:
    chosen = prepared("advised").scoped
    assert Liveness(chosen, 5, {0: 0, 1: 0}, None).verdict == "UNKNOWN"
    assert Liveness(chosen, 5, {0: 0, 1: 2}, None).verdict == "HOLDS"
