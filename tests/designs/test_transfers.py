"""Transfers under pins: right in tiny scopes, able to do their job, and each mutant caught."""

from __future__ import annotations

import pytest
from kvsan.spec.designs.catalog import TRANSFERS, Mutant
from kvsan.spec.designs.transfers import Mutant as Switch
from plain_search import search

HOLD = {"can_read_what_was_loaded", "can_outlive_its_request", "can_abort", "can_lose_a_completion"}
WIDE = {"", "tiers_raced"}
"""Scopes that are out of reach of the plain search: the compiled one has them."""
MUTANTS = [
    pytest.param(m, marks=[pytest.mark.slow] if m.scope == "two_tiers" else [], id=m.name)
    for m in TRANSFERS.mutants
    if m.scope not in WIDE
]


def slow(*values: object) -> object:
    return pytest.param(*values, marks=[pytest.mark.slow])


@pytest.mark.parametrize(
    ("scope", "counts", "seen"),
    [
        ("full_prompt", (44, 107, 11), HOLD),
        ("one_block", (46, 116, 10), HOLD),
        ("several_handles", (474, 1452, 16), HOLD | {"can_fail_in_part"}),
        slow("two_tiers", (989, 3117, 19), HOLD | {"can_fail_in_part", "can_come_back"}),
    ],
)
def test_one_request_breaks_nothing_and_can_do_its_job(
    scope: str, counts: tuple[int, int, int], seen: set[str]
) -> None:
    found = search(TRANSFERS, TRANSFERS.at(scope))
    assert found.violations == {}
    assert (found.states, found.transitions, found.depth) == counts
    assert set(found.witnesses) == seen


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_is_caught_by_its_rule_and_by_no_other_before(mutant: Mutant) -> None:
    settings = TRANSFERS.at(mutant.scope, mutant=mutant.name.upper())
    found = search(TRANSFERS, settings, stop_at=mutant.rule)
    lengths = {rule: len(steps) for rule, steps in found.violations.items()}
    assert lengths[mutant.rule] == mutant.steps == min(lengths.values())
    assert "view_intact" not in lengths


def test_every_mutant_of_the_design_is_in_the_catalog() -> None:
    assert [m.name.upper() for m in TRANSFERS.mutants] == list(Switch.names[1:])
