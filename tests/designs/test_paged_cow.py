"""PagedAttention with its device: right under every schedule that orders it, and each mutant caught."""

from __future__ import annotations

import pytest
from kvsan.spec.designs.catalog import PAGED_COW, Mutant
from kvsan.spec.designs.paged_cow import Mutant as Switch
from plain_search import search

HISTORY = frozenset({"claimant"})
"""Who mapped a block last is read only where a copy names no branch, or where a promise pays; here neither happens."""

DEEP = {"copy_ignores_steps"}
MUTANTS = [
    pytest.param(m, marks=[pytest.mark.slow] if m.steps >= 8 else [], id=m.name)
    for m in PAGED_COW.mutants
    if m.name not in DEEP  # three branches: out of reach of this search, see test_logs
]


def test_one_branch_is_right_and_can_do_its_job() -> None:
    found = search(PAGED_COW, PAGED_COW.at(branches=1, blocks=2), leaving_out=HISTORY)
    assert found.violations == {}
    assert set(found.witnesses) == {"can_rest", "can_fill_every_table", "can_cancel_under_step", "can_resume"}


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["HOST_WAIT", "SAME_STREAM", "EVENT_WAIT"])
def test_two_branches_are_right_under_every_schedule_that_orders_them(schedule: str) -> None:
    found = search(PAGED_COW, PAGED_COW.at("three_blocks", schedule=schedule), leaving_out=HISTORY)
    assert found.violations == {}
    assert found.performed["finish_copy" if schedule == "HOST_WAIT" else "append_in_copy"] > 0


def test_nothing_between_two_streams_is_a_race() -> None:
    settings = PAGED_COW.at("three_blocks", schedule="UNORDERED")
    found = search(PAGED_COW, settings, leaving_out=HISTORY, stop_at="copy_precedes_use")
    assert {rule: len(steps) for rule, steps in found.violations.items()} == {"copy_precedes_use": 6}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_is_caught_by_its_rule_and_by_no_other_before(mutant: Mutant) -> None:
    settings = PAGED_COW.at(mutant.scope, mutant=mutant.name.upper())
    lints = mutant.rule == "needless_copy"
    found = search(PAGED_COW, settings, lints=lints, leaving_out=HISTORY, stop_at=mutant.rule)
    lengths = {rule: len(steps) for rule, steps in found.violations.items()}
    assert lengths[mutant.rule] == mutant.steps == min(lengths.values())
    assert "view_intact" not in lengths


def test_every_mutant_of_the_design_is_in_the_catalog() -> None:
    assert [m.name.upper() for m in PAGED_COW.mutants] == list(Switch.names[1:])
