"""Histories of a right engine are accepted; with one thing wrong they are rejected, or the reference finds no harm."""

from __future__ import annotations

import random

import pytest
from edits import EDITS, Edit, another_count, drop, edited, repeat
from engine_model import engine_log
from histories import twice_in_a_table
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from kvsan.checker import check
from reference import Line, first_breach
from test_reference import assert_agreement

DISCIPLINES = ("paged_cow", "append_only", "append_only_cow")
SEEDS = st.integers(min_value=0, max_value=2**48)
ENGINES = st.builds(engine_log, st.sampled_from(DISCIPLINES), SEEDS, st.integers(3, 25))
NEVER_HARMLESS: list[tuple[str, Edit]] = [
    *((kind, drop) for kind in ("alloc", "pin", "unpin")),
    *((kind, repeat) for kind in ("alloc", "free", "pin", "unpin")),
    ("pool", another_count),
]


def assert_accepted(log: list[Line]) -> None:
    outcome = check(log)
    assert outcome.verdict == "HOLDS", outcome.violations[:1]
    assert first_breach(log) is None


def assert_rejected_or_harmless(log: list[Line], seed: int) -> None:
    _, wrong = edited(log, random.Random(seed))
    shown = {event["ev"] for event in wrong}
    assume({"alloc", "map", "write"} <= shown and not twice_in_a_table(wrong))
    assert_agreement(wrong)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(ENGINES)
def test_history_of_a_right_engine_is_accepted(log: list[Line]) -> None:
    assert_accepted(log)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(ENGINES, SEEDS)
def test_one_wrong_event_is_rejected_or_harmless(log: list[Line], seed: int) -> None:
    assert_rejected_or_harmless(log, seed)


@pytest.mark.slow
@settings(max_examples=1_000, deadline=None)
@given(ENGINES)
def test_many_histories_of_a_right_engine_are_accepted(log: list[Line]) -> None:
    assert_accepted(log)


@pytest.mark.slow
@settings(max_examples=3_000, deadline=None)
@given(ENGINES, SEEDS)
def test_many_wrong_events_are_rejected_or_harmless(log: list[Line], seed: int) -> None:
    assert_rejected_or_harmless(log, seed)


@pytest.mark.parametrize(("kind", "edit"), NEVER_HARMLESS)
def test_some_wrong_events_are_always_rejected(kind: str, edit: Edit) -> None:
    rejected = []
    for seed in range(12):
        log, dice = engine_log(DISCIPLINES[seed % 3], seed, 15), random.Random(seed)
        at = [i for i, event in enumerate(log) if event["ev"] == kind]
        if at:
            n = dice.choice(at)
            rejected.append(check([*log[:n], *edit(log[n], log, dice), *log[n + 1 :]]).verdict == "VIOLATED")
    assert len(rejected) > 6
    assert all(rejected)


def test_the_engine_does_everything_that_an_edit_may_change() -> None:
    done = {event["ev"] for seed in range(60) for event in engine_log(DISCIPLINES[seed % 3], seed)}
    assert done >= EDITS.keys() | {"propose", "accept", "window", "quiescent", "read"}
