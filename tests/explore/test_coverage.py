"""What a search exercised: guards, obligations, and ends that are rest or deadlock."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kvsan.checker.command.explore import Request, run
from kvsan.checker.explore.coverage import GuardCount, guard_counts
from kvsan.checker.explore.design import find, scoped
from kvsan.checker.explore.explore import Exploration, explore, explore_plainly, prepare
from kvsan.checker.report.exploration import as_object, as_text

pytest.importorskip("llvmlite", reason="the compiled search needs the extra `explore`")

FOLDER = Path(__file__).parent / "designs"
MACHINE, WAITING, TIDY = (str(FOLDER / f"{name}.py") for name in ("tail_machine", "waiting", "tidy"))
TWO = {"branches": "2", "blocks": "4"}


def explored(file: str, changes: dict[str, str], plain: bool = False, symmetry: str = "none") -> Exploration:
    design = find(file)
    return (explore_plainly if plain else explore)(prepare(design, scoped(design, changes), symmetry))


@pytest.mark.parametrize("plain", [False, True])
def test_a_state_without_a_step_is_a_deadlock_where_the_design_may_not_rest(plain: bool) -> None:
    found = explored(WAITING, {}, plain)
    assert found.verdict == "VIOLATED"
    (told,) = found.violations
    assert told.rule == "no_deadlock"
    assert [s.text for s in told.steps] == ["take_first(r0, b0)", "take_first(r1, b1)"]
    assert found.deadlocks == 2  # the blocks either way round


@pytest.mark.parametrize("plain", [False, True])
def test_a_pool_large_enough_only_ends_at_rest(plain: bool) -> None:
    found = explored(WAITING, {"blocks": "3"}, plain)
    assert (found.verdict, found.ends, found.deadlocks) == ("HOLDS", 1, 0)
    assert "1 state has none, at rest" in as_text(found, "")


def test_symmetry_finds_the_deadlock_once() -> None:
    found = explored(WAITING, {}, symmetry="full")
    assert (found.verdict, found.deadlocks, len(found.violations[0].steps)) == ("VIOLATED", 1, 2)


def test_a_design_that_does_not_say_where_it_rests_has_ends_and_no_verdict_on_them() -> None:
    found = explored(MACHINE, TWO)
    assert (found.verdict, found.ends, found.deadlocks) == ("HOLDS", 1, None)
    assert "1 state has none (a deadlock, unless a witness `can_rest`" in as_text(found, "")


@pytest.mark.parametrize("plain", [False, True])
def test_a_step_that_breaks_a_rule_is_a_step(plain: bool) -> None:
    """Nothing else is left in that state, which is no rest; it is told once, by the rule."""
    assert [v.rule for v in explored(TIDY, {}, plain).violations] == ["clean"]


def test_an_obligation_is_counted_each_time_it_is_judged() -> None:
    found = explored(TIDY, {})
    assert [(o.action, o.rule, o.judged) for o in found.obligations] == [("look_around", "clean", 2)]


@pytest.fixture(scope="module")
def counts() -> dict[tuple[str, str], GuardCount]:
    design = find(MACHINE)
    found = guard_counts(design, scoped(design, TWO), "none")
    return {(c.guard.action, c.guard.text): c for c in found}


def test_a_guard_counts_what_it_refuses_and_what_it_lets_pass(counts: dict[tuple[str, str], GuardCount]) -> None:
    """In a hundred states each branch is alive or not; what passes the first guard meets the second."""
    alive, idle = counts["fork", "s.alive[r]"], counts["fork", "s.phase[r] == IDLE"]
    assert alive.refused + alive.passed == 100 * 2
    assert idle.refused + idle.passed == alive.passed
    writing = counts["finish_write", "s.phase[r] == WRITING"]
    assert writing.refused + writing.passed == 200


def test_what_passes_every_guard_is_taken(counts: dict[tuple[str, str], GuardCount]) -> None:
    taken = explored(MACHINE, TWO).actions
    last = {action: count.passed for (action, _), count in counts.items()}  # in source order: the last one stays
    assert last == taken


def test_a_guard_that_decides_nothing_is_named(counts: dict[tuple[str, str], GuardCount]) -> None:
    assert {key: c.said for key, c in counts.items() if c.said} == {
        ("grow", "tail_slot(s, r) == 0"): "never holds",
        ("grow", "s.refs[b] == 0"): "never reached",
        ("append_in_place", "tail_slot(s, r) != 0"): "never refuses",
        ("start_copy", "tail_slot(s, r) != 0"): "never refuses",
    }


def test_the_command_shows_each_guard_and_obligation(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(Request(WAITING, settings=("blocks=3",), coverage=True, quiet=True)) == 0
    said = capsys.readouterr().out
    assert "  take_second  taken " in said
    assert "  s.first[r] is not None  refused " in said
    assert "guards do not both refuse and pass, 0 of 0 obligations are never judged" in said
    assert run(Request(WAITING, settings=("blocks=3",), coverage=True, json=True, quiet=True)) == 0
    found = json.loads(capsys.readouterr().out)["coverage"]
    assert [g["guard"] for g in found["guards"]][-1] == "not s.taken[b]"
    assert (found["ends"], found["deadlocks"]) == (1, 0)


def test_without_counts_the_form_for_programs_has_obligations_and_no_guards() -> None:
    found = as_object(explored(TIDY, {}))["coverage"]
    assert "guards" not in found
    assert [o["judged"] for o in found["obligations"]] == [2]
    assert as_object(explored(MACHINE, TWO))["coverage"]["deadlocks"] == "unknown"
