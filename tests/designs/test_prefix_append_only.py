"""The prefix cache of full blocks: right in tiny scopes, and each mutant caught."""

from __future__ import annotations

import pytest
from kvsan.spec.designs.catalog import PREFIX_APPEND_ONLY, Mutant
from kvsan.spec.designs.prefix_append_only import Mutant as Switch
from plain_search import search

LINTS = {"sealed_twice", "recomputed_sealed"}
MUTANTS = [
    pytest.param(m, marks=[pytest.mark.slow] if m.steps >= 7 else [], id=m.name) for m in PREFIX_APPEND_ONLY.mutants
]


def test_two_requests_over_two_blocks_share_and_revive_and_break_nothing() -> None:
    found = search(PREFIX_APPEND_ONLY, PREFIX_APPEND_ONLY.at(blocks=2))
    assert (found.states, found.transitions, found.depth) == (492, 1145, 20)
    assert found.violations == {}
    assert set(found.witnesses) == {"can_rest", "can_share", "can_revive"}


@pytest.mark.slow
def test_two_requests_over_three_blocks_break_nothing() -> None:
    found = search(PREFIX_APPEND_ONLY, PREFIX_APPEND_ONLY.at("three_blocks"))
    assert found.violations == {}
    assert found.performed["find_block"] > 0


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_is_caught_by_its_rule_and_by_no_other_before(mutant: Mutant) -> None:
    settings = PREFIX_APPEND_ONLY.at(mutant.scope, mutant=mutant.name.upper())
    found = search(PREFIX_APPEND_ONLY, settings, lints=mutant.rule in LINTS, stop_at=mutant.rule)
    assert len(found.violations[mutant.rule]) == mutant.steps
    others = {rule: len(steps) for rule, steps in found.violations.items() if mutant.rule not in LINTS}
    assert all(steps >= mutant.steps for steps in others.values())
    assert "view_intact" not in others


def test_every_mutant_of_the_design_is_in_the_catalog() -> None:
    assert [m.name.upper() for m in PREFIX_APPEND_ONLY.mutants] == list(Switch.names[1:])
