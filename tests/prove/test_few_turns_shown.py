"""What a loop does in few turns breaks a rule where it does, and proves nothing."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("z3")

import z3
from kvsan.checker.prove.prove import prove
from kvsan.checker.prove.reach import Reached, reach
from kvsan.checker.prove.second import ALONG, Opinion, at_start, breaks_along, by_spacer, clauses_along, opinions
from kvsan.checker.prove.spacer import along
from kvsan.checker.prove.stands import stands
from kvsan.checker.prove.system import System
from kvsan.checker.report.opinion import Second, as_text
from kvsan.spec.lang.turns import FEW, few_turns
from test_wrong_designs import system_of

KEPT = '''    kept: Map[bool, Block, bool]
    gone: Count


@initial
def begin(s: Small) -> None:
    """Nothing is kept."""
    s.gone = 0


@action
def keep(s: Small, b: Block) -> None:
    """A block is taken and kept."""
    require(not s.held[b])

    alloc(s, b, None)
    s.kept[True, b] = True


@action
def let_go(s: Small) -> None:
    """Everything that is kept goes, and WRONG more."""
    require(s.gone == 0)

    for b in row(s.kept, True):
        free(s, b)
        s.gone += 1
        if s.gone == WRONG:
            free(s, b)
        s.kept[True, b] = False


@action
def begin_anew(s: Small) -> None:
    """More may be kept."""
    s.gone = 0
'''
NEVER = 99


def kept(folder: Path, wrong: int) -> System:
    """A design with two blocks. wrong: the turn that frees its block twice."""
    return system_of(folder, KEPT.replace("WRONG", str(wrong)))


def opinion(made: System) -> tuple[Opinion, Reached]:
    explored = reach(made, (), made.scoped)
    (found,) = opinions(made, ("free_once",), 60.0, way=explored.actions_to)
    return found, explored


@pytest.mark.parametrize("wrong", [1, 2])
def test_what_goes_wrong_within_the_turns_of_the_scope_has_a_counterexample(tmp_path: Path, wrong: int) -> None:
    made = kept(tmp_path, wrong)
    found, explored = opinion(made)
    assert (found.status, found.by, found.asked) == ("broken", "Spacer", ALONG)
    assert found.trace == (*["keep"] * wrong, "free_once at let_go")
    assert found.few == ("let_go",)
    text = as_text(Second(made, (found,), explored), "")
    assert "no more turns than the scope has members in the loops of let_go\n" in text


@pytest.mark.parametrize("wrong", [3, NEVER])
def test_what_goes_wrong_in_a_later_turn_or_never_is_unknown(tmp_path: Path, wrong: int) -> None:
    made = kept(tmp_path, wrong)
    found, explored = opinion(made)
    assert (found.status, found.invariant, found.trace) == ("unknown", (), ())
    assert "turns share `gone`" in found.tied
    assert "every step was not asked: " in as_text(Second(made, (found,), explored), "")
    proof = prove(made, explore=False)
    assert proof.verdict == "UNKNOWN" and "turns share `gone`" in proof.left["let_go"]


@pytest.mark.parametrize(("wrong", "blocks"), [(1, 1), (2, 2), (3, 3), (2, 1), (3, 2), (NEVER, 3)])
def test_a_breach_is_found_just_where_there_are_enough_turns(tmp_path: Path, wrong: int, blocks: int) -> None:
    made = kept(tmp_path, wrong)
    sizes = replace(made.scoped.sizes, sorts={**made.scoped.sizes.sorts, "Block": blocks})
    made = replace(made, scoped=replace(made.scoped, sizes=sizes))
    abstraction, clauses = clauses_along(made, "free_once", ("keep", "let_go"))
    begun, way = at_start(abstraction, made.scoped, made.begun), (*["keep"] * 3, "free_once at let_go")
    assert along(begun, clauses, way, time.monotonic() + 60) == (way if wrong <= blocks else ())


@pytest.mark.parametrize("wrong", [1, 2])
def test_steps_as_they_were_taken_leave_it_open_who_has_which_turn(tmp_path: Path, wrong: int) -> None:
    made = kept(tmp_path, wrong)
    explored = reach(made, (), made.scoped)
    taken = explored.ways["free_once"]
    trace, _ = breaks_along(made, "free_once", explored.actions_to("free_once"), time.monotonic() + 60, taken=taken)
    assert trace == (*(t.text for t in taken[:-1]), f"free_once at {taken[-1].text}")


def test_no_invariant_stands_on_few_turns(tmp_path: Path) -> None:
    made = kept(tmp_path, NEVER)
    abstraction, clauses = clauses_along(made, "free_once", ("keep", "let_go"))
    begun = at_start(abstraction, made.base, made.begun)
    other = [replace(c, few=False) for c in clauses]
    anything = lambda _: z3.BoolVal(True)  # noqa: E731  # an invariant
    assert stands(anything, begun, [c for c in other if c.head is not None])
    assert not stands(anything, begun, [c for c in clauses if c.head is not None])
    said = [by_spacer(made, abstraction, told, time.monotonic() + 60) for told in (other, clauses)]
    assert [o and o.status for o in said] == ["proved", None]


def test_no_induction_takes_few_turns_for_all(tmp_path: Path) -> None:
    made = kept(tmp_path, NEVER)
    few = tuple(few_turns(a, made.variables, made.sizes, made.scoped.sizes.sorts) for a in made.actions)
    proof = prove(replace(made, actions=few), explore=False)
    assert proof.verdict == "UNKNOWN" and not proof.left
    assert FEW in {r.rule for r in proof.failed}
