"""Copy-on-write of partial tails with step fences: right in every named scope, and each mutant caught."""

from __future__ import annotations

import pytest
from kvsan.checker.explore.design import find, scoped
from kvsan.checker.explore.explore import Prepared, explore, prepare
from kvsan.checker.explore.module import build
from kvsan.checker.explore.search import search as compiled_search
from kvsan.spec.designs.catalog import PREFIX_COW, Mutant
from kvsan.spec.designs.tails import Mutant as Switch
from plain_search import search

MUTANTS = [pytest.param(m, marks=[pytest.mark.slow] if m.steps >= 8 else [], id=m.name) for m in PREFIX_COW.mutants]
ALWAYS = {"admit_request", "find_tail", "take_block", "evict_block", "schedule_prefill", "schedule_behind_copy"}
ALWAYS |= {"launch_built", "process_step", "give_up", "end_request", "settle"}
LOADS = {"start_load", "finish_load", "doom_request", "end_doomed"}


def test_one_request_after_another_finds_its_own_tail_and_breaks_nothing() -> None:
    found = search(PREFIX_COW, PREFIX_COW.at(branches=1, blocks=2))
    assert (found.states, found.transitions, found.depth) == (268, 683, 24)
    assert found.violations == {}
    assert set(found.witnesses) == {"can_rest", "can_append_after_copy", "can_run_ahead"}
    assert set(found.performed) == ALWAYS | {"append_in_place"}


def test_a_request_can_end_in_every_phase_of_its_loads_and_steps() -> None:
    found = search(PREFIX_COW, PREFIX_COW.at("connector", branches=1, blocks=2))
    assert (found.states, found.transitions, found.depth) == (382, 931, 20)
    assert found.violations == {}
    assert set(found.witnesses) == {"can_rest", "can_append_after_copy", "can_run_ahead", "can_outlive_its_request"}
    assert set(found.performed) == ALWAYS | LOADS | {"append_in_place"}


COUNTS = {
    "": (58784, 215982, 30),
    "in_step": (27630, 95688, 33),
    "connector": (126808, 440926, 32),
    "states": (39552, 137237, 33),
    "states_connector": (71716, 233097, 34),
    "two_slot_tail": (5840, 19144, 22),
    "full_prompt": (17620, 52896, 27),
}
"""States, transitions and depth of the whole scope, without a symmetry."""

ORBITS = {
    "behind_a_full_block": (6555, 23779, 35),
    "three_positions": (10189, 34583, 38),
    "three_writers": (2257591, 10680014, 43),
    "states_behind_a_full_block": (25757, 93607, 40),
}
"""The same of larger scopes, where states that differ in the names of blocks alone are one."""

SCOPES = [("none", scope, counts) for scope, counts in COUNTS.items()]
SCOPES += [("blocks", scope, counts) for scope, counts in ORBITS.items()]


def prepared(scope: str, mutant: str = "", symmetry: str = "none") -> Prepared:
    pytest.importorskip("llvmlite", reason="the compiled search needs the extra `explore`")
    design = find("prefix_cow")
    return prepare(design, scoped(design, scope=scope, mutant=mutant), symmetry)


@pytest.mark.slow
@pytest.mark.parametrize(("symmetry", "scope", "counts"), SCOPES)
def test_a_named_scope_breaks_nothing(symmetry: str, scope: str, counts: tuple[int, int, int]) -> None:
    found = explore(prepared(scope, symmetry=symmetry))
    assert (found.states, found.transitions, found.depth) == counts
    assert found.verdict == "HOLDS"
    assert found.judged["view_intact"] == found.states


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_is_caught_by_its_rule_and_by_no_other_before(mutant: Mutant) -> None:
    settings = PREFIX_COW.at(mutant.scope, mutant=mutant.name.upper())
    found = search(PREFIX_COW, settings, stop_at=mutant.rule)
    lengths = {rule: len(steps) for rule, steps in found.violations.items()}
    assert lengths[mutant.rule] == mutant.steps == min(lengths.values())
    assert "view_intact" not in lengths


@pytest.mark.slow
@pytest.mark.parametrize("mutant", PREFIX_COW.mutants, ids=lambda m: m.name)
def test_no_way_of_a_mutant_that_breaks_no_rule_spoils_a_view(mutant: Mutant) -> None:
    """Not only the shortest ways: every state that no rule forbids is searched."""
    made = prepared(mutant.scope, mutant.name, "blocks")
    begun = [start.state for start in made.begun]
    found = compiled_search(made.model, made.generated, build(made.generated.source), begun, stop=False)
    broken = {made.generated.judges[f.judge].rule for f in found.failures}
    assert found.stopped == ""
    assert mutant.rule in broken
    assert not broken & {"view_intact", "defined"}


@pytest.mark.slow
@pytest.mark.parametrize("mutant", ["END_FREES_AT_ONCE", "COPY_ENDS_NOT_FENCED", "FENCE_TOO_EARLY"])
def test_on_one_stream_nothing_needs_a_fence(mutant: str) -> None:
    """vLLM gives blocks back at once there: whatever uses them next is queued behind the step."""
    found = search(PREFIX_COW, PREFIX_COW.at(blocks=2, mutant=mutant))
    assert found.violations == {}


def test_every_named_scope_is_counted() -> None:
    assert set(PREFIX_COW.scopes) | {""} == set(COUNTS) | set(ORBITS)


def test_every_mutant_of_the_design_is_in_the_catalog() -> None:
    assert [m.name.upper() for m in PREFIX_COW.mutants] == list(Switch.names[1:])
