"""Speculative decoding, over tables that give lookahead blocks back and over those that keep them; mutants caught."""

from __future__ import annotations

import random

import pytest
from kvsan.checker.explore.design import find, scoped
from kvsan.checker.explore.explore import Exploration, explore, prepare
from kvsan.checker.replay.check import check
from kvsan.spec.designs.catalog import SPECULATIVE, Mutant
from kvsan.spec.designs.speculative import Mutant as Switch
from plain_search import Model, search
from test_logs import log_of, random_walk

LINTED = frozenset({"idle_since"})
"""Read by the lint `late_release` alone."""

MUTANTS = [
    pytest.param(m, marks=[pytest.mark.slow] if m.scope == "three_blocks" else [], id=m.name)
    for m in SPECULATIVE.mutants
]
ROLLED_BACK = {"can_keep_none", "can_speculate_together", "can_cancel_drafts", "can_resume_by_hit"}


def explored(scope: str) -> Exploration:
    pytest.importorskip("llvmlite", reason="the compiled search needs the extra `explore`")
    design = find("speculative")
    return explore(prepare(design, scoped(design, scope=scope), "full"))


@pytest.mark.parametrize(
    ("scope", "counts", "witnesses"),
    [
        ("one_branch", (98, 207, 17), {"can_keep_all", "can_give_block_back"}),
        ("one_branch_append_only", (326, 711, 25), {"can_keep_all", "can_keep_block"}),
    ],
)
def test_one_branch_keeps_all_drafts_or_none_and_breaks_nothing(
    scope: str, counts: tuple[int, int, int], witnesses: set[str]
) -> None:
    found = search(SPECULATIVE, SPECULATIVE.at(scope), leaving_out=LINTED)
    assert (found.states, found.transitions, found.depth) == counts
    assert found.violations == {}
    assert set(found.witnesses) == ROLLED_BACK | witnesses


def test_a_step_that_was_promised_its_blocks_never_finds_the_pool_empty() -> None:
    promised = search(SPECULATIVE, SPECULATIVE.at("one_block"), leaving_out=LINTED)
    assert promised.performed["find_pool_empty"] == 0
    assert promised.violations == {}
    hoping = search(SPECULATIVE, SPECULATIVE.at("short_of_blocks"), leaving_out=LINTED)
    assert hoping.performed["find_pool_empty"] > 0
    assert hoping.violations == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scope", "counts"),
    [
        ("one_branch", (54, 115, 17)),
        ("across_blocks", (112, 261, 19)),
        ("window", (102, 225, 18)),
        ("short_of_blocks", (265, 599, 20)),
        ("three_blocks", (5996, 24470, 29)),
        ("full_prompt", (3945, 16416, 27)),
        ("one_slot_tail", (2245, 7666, 28)),
        ("", (10575, 47338, 29)),
        ("append_only", (47208, 210195, 56)),
    ],
)
def test_every_named_scope_holds_in_so_many_states_up_to_symmetry(scope: str, counts: tuple[int, int, int]) -> None:
    found = explored(scope)
    assert (found.states, found.transitions, found.depth) == counts
    assert found.verdict == "HOLDS"
    assert found.judged["view_intact"] == found.states


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_is_caught_by_its_rule_and_by_no_other_before(mutant: Mutant) -> None:
    settings = SPECULATIVE.at(mutant.scope, mutant=mutant.name.upper())
    found = search(SPECULATIVE, settings, leaving_out=LINTED, stop_at=mutant.rule)
    lengths = {rule: len(steps) for rule, steps in found.violations.items()}
    assert lengths[mutant.rule] == mutant.steps == min(lengths.values())
    assert "view_intact" not in lengths


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("scope", ["append_only", "window"])
def test_a_walk_over_tables_that_keep_lookahead_is_a_log_that_holds(scope: str, seed: int) -> None:
    settings = SPECULATIVE.at(scope)
    log = log_of(SPECULATIVE, settings, random_walk(Model(SPECULATIVE, settings), 60, random.Random(seed)))
    outcome = check(log.lines)
    assert log.lines[0]["discipline"] == str(settings["discipline"]).lower()
    assert log.broken == ()
    assert [(v.rule, v.line, v.message) for v in outcome.violations] == []
    assert outcome.verdict == "HOLDS"


def test_every_mutant_of_the_design_is_in_the_catalog() -> None:
    assert [m.name.upper() for m in SPECULATIVE.mutants] == list(Switch.names[1:])
