"""Logs that start mid-run, have gaps or lack event kinds: no false alarm, and no blindness for what they do show."""

from __future__ import annotations

import random

import pytest
from engine_model import engine_log
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from kvsan.checker import check
from partial import cut, with_gap, without_kinds
from reference import Line

SEEDS = st.integers(min_value=0, max_value=2**48)
ENGINES = st.builds(
    engine_log, st.sampled_from(("paged_cow", "append_only", "append_only_cow")), SEEDS, st.integers(5, 25)
)
KINDS = (
    "admit", "accept", "alloc", "cancel", "copy", "evict", "finish", "fork", "free", "grow", "hit", "map", "pin",
    "pool", "preempt", "quiescent", "read", "ref", "seal", "table", "unmap", "unpin", "write",
)  # fmt: skip
"""Kinds that a recorder may leave out, if it says so. Not `propose`: reads of its tokens are judged."""

few = settings(max_examples=50, deadline=None, derandomize=True)
many = settings(max_examples=2_000, deadline=None)


def never_accuses_after_a_cut(log: list[Line], seed: int) -> None:
    first = random.Random(seed).randrange(1, len(log) - 1)
    assert check(cut(log, first)).violations == ()


def never_accuses_after_a_gap(log: list[Line], seed: int) -> None:
    dice = random.Random(seed)
    first = dice.randrange(1, len(log) - 3)
    outcome = check(with_gap(log, first, dice.randrange(first + 1, len(log) - 1)))
    assert outcome.violations == ()
    assert outcome.verdict == "UNKNOWN"
    assert outcome.exit_code == 3


long_enough = ENGINES.filter(lambda log: len(log) > 6)


@few
@given(long_enough, SEEDS)
def test_log_that_starts_late_accuses_nobody(log: list[Line], seed: int) -> None:
    never_accuses_after_a_cut(log, seed)


@few
@given(long_enough, SEEDS)
def test_log_with_a_gap_accuses_nobody_and_vouches_for_nobody(log: list[Line], seed: int) -> None:
    never_accuses_after_a_gap(log, seed)


@few
@given(long_enough, st.sets(st.sampled_from(KINDS), min_size=1))
def test_log_without_some_kinds_that_it_does_not_list_accuses_nobody(log: list[Line], kinds: set[str]) -> None:
    assert check(without_kinds(log, kinds)).violations == ()


@pytest.mark.slow
@many
@given(long_enough, SEEDS)
def test_many_logs_that_start_late_accuse_nobody(log: list[Line], seed: int) -> None:
    never_accuses_after_a_cut(log, seed)


@pytest.mark.slow
@many
@given(long_enough, SEEDS)
def test_many_logs_with_a_gap_accuse_nobody_and_vouch_for_nobody(log: list[Line], seed: int) -> None:
    never_accuses_after_a_gap(log, seed)


# --- what a cut log still shows ---------------------------------------------------------------------------------------


@few
@given(long_enough, SEEDS, st.sampled_from(["alloc", "free"]))
def test_block_handed_out_or_freed_twice_after_the_start_is_told(log: list[Line], seed: int, kind: str) -> None:
    """Both events are in the log, so nothing about its past could excuse the second."""
    dice = random.Random(seed)
    at = [i for i, event in enumerate(log) if event["ev"] == kind]
    assume(at)
    n = dice.choice(at)
    first = dice.randrange(0, n)
    late = cut([*log[: n + 1], log[n], *log[n + 1 :]], first)
    found = {(violation.rule, violation.line) for violation in check(late).violations}
    assert ("alloc_from_free" if kind == "alloc" else "free_once", n + 2 - first) in found


@few
@given(long_enough, SEEDS)
def test_write_outside_a_table_is_told_where_branch_and_block_began_after_the_start(log: list[Line], seed: int) -> None:
    dice = random.Random(seed)
    b = dice.randrange(log[0]["blocks"])  # all are free at the end
    wrong = [{"ev": "admit", "branch": "z"}, {"ev": "alloc", "block": b}]
    wrong.append({"ev": "write", "branch": "z", "block": b, "slots": [0, 1]})
    late = cut([*log, *wrong], dice.randrange(1, len(log)))
    found = {(violation.rule, violation.line) for violation in check(late).violations}
    assert ("write_within_table", len(late)) in found


def test_what_explains_a_breach_after_a_gap_is_from_after_the_gap() -> None:
    header = {"ev": "trace", "schema": "kvsan/1", "engine": "e", "version": "1", "discipline": "paged_cow",
              "block_size": 4, "blocks": 8}  # fmt: skip
    before = [{"ev": "alloc", "block": 3}, {"ev": "pin", "block": 3, "holder": "x"}]
    after = [{"ev": "admit", "branch": "q", "tokens": 1}, {"ev": "alloc", "block": 1}, {"ev": "alloc", "block": 1}]
    log = [header, *before, {"ev": "alloc", "block": 2}, *after]
    (found,) = check(with_gap(log, 2, 3)).violations
    assert [fact.line for fact in found.because] == [5]
