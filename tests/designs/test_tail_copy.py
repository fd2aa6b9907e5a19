"""The reference machine: its counts are those on which other model checkers agree, and each mutant is caught."""

from __future__ import annotations

import pytest
from kvsan.spec.designs.catalog import TAIL_COPY, Mutant
from plain_search import search

COUNTS = {"two_branches": (100, 296, 9), "": (3728, 16323, 18)}
LONG = {"drop_source_before_copy"}


def slow_where(condition: bool) -> list[pytest.MarkDecorator]:
    return [pytest.mark.slow] if condition else []


@pytest.mark.parametrize("scope", [pytest.param(s, marks=slow_where(s == "")) for s in COUNTS])
def test_the_whole_ledger_has_the_states_of_the_reference_machine(scope: str) -> None:
    """No variable is left out: the ledger keeps no history that the machine does not need."""
    found = search(TAIL_COPY, TAIL_COPY.at(scope))
    assert (found.states, found.transitions, found.depth) == COUNTS[scope]
    assert found.violations == {}
    assert set(found.witnesses) == {"can_copy", "can_rest", "can_append_after_copy"}


@pytest.mark.parametrize(
    "mutant", [pytest.param(m, marks=slow_where(m.name in LONG), id=m.name) for m in TAIL_COPY.mutants]
)
def test_a_mutant_is_caught_by_its_rule_and_by_no_other_before(mutant: Mutant) -> None:
    lints = mutant.rule == "needless_copy"
    found = search(TAIL_COPY, TAIL_COPY.at(mutant.scope, mutant=mutant.name.upper()), lints=lints, stop_at=mutant.rule)
    assert {rule: len(steps) for rule, steps in found.violations.items()} == {mutant.rule: mutant.steps}


def test_every_mutant_of_the_design_is_in_the_catalog() -> None:
    from kvsan.spec.designs.tail_copy import Mutant as Switch

    assert [m.name.upper() for m in TAIL_COPY.mutants] == list(Switch.names[1:])
