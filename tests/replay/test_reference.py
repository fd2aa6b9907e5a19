"""The checker's verdict is the reference's: the same first line, and there the same rules."""

from __future__ import annotations

import pytest
from histories import random_log, twice_in_a_table
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from kvsan.checker import check
from reference import RULES, Line, first_breach

SEEDS = st.integers(min_value=0, max_value=2**48)


def first_violation(log: list[Line]) -> tuple[int, set[str]] | None:
    """The first line at which the checker finds a violation, and the rules."""
    found = check(log).violations
    line = min((violation.line for violation in found), default=None)
    return None if line is None else (line, {violation.rule for violation in found if violation.line == line})


def assert_agreement(log: list[Line]) -> None:
    """A rule that the reference does not know may come first; then it must have seen nothing before."""
    told, expected = first_violation(log), first_breach(log)
    if told and not told[1] & RULES:
        assert expected is None or expected[0] >= told[0]
    else:
        assert (told and (told[0], told[1] & RULES)) == expected


@settings(max_examples=120, deadline=None, derandomize=True)
@given(SEEDS)
def test_random_log_is_judged_as_by_owners_recomputed_from_scratch(seed: int) -> None:
    log = random_log(seed)
    assume(not twice_in_a_table(log))
    assert_agreement(log)


@pytest.mark.slow
@settings(max_examples=4_000, deadline=None)
@given(SEEDS)
def test_many_random_logs_are_judged_as_by_owners_recomputed_from_scratch(seed: int) -> None:
    log = random_log(seed)
    assume(not twice_in_a_table(log))
    assert_agreement(log)


def test_random_logs_break_every_rule_that_the_reference_knows() -> None:
    """Or agreement would say little: each rule comes first in some of the logs, and many logs break none."""
    firsts = [first_breach(random_log(seed)) for seed in range(600)]
    assert {rule for first in firsts if first for rule in first[1]} == RULES
    assert firsts.count(None) > 100
