"""What the ledger keeps is needed: leave one store out, and some log is judged otherwise."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from schemata import Case, cases, mutants

sys.path.append(str(Path(__file__).parents[1] / "replay"))

from engine_model import engine_log
from histories import random_log

FLOOR = 0.62
"""The share of left-out stores that some log shows, at least."""


def logs() -> list[Case]:
    """The logs reduced by hand, some random ones, and some of the engine model."""
    disciplines = ("paged_cow", "append_only", "append_only_cow")
    generated = [random_log(seed) for seed in range(200)]
    generated += [engine_log(disciplines[seed % 3], seed) for seed in range(24)]
    return [*cases(), *(Case(Path(f"generated-{n}"), lines) for n, lines in enumerate(generated))]


@pytest.mark.slow
def test_most_stores_left_out_are_noticed() -> None:
    every = logs()
    before = [case.shows() for case in every]
    stores = [place for place in mutants().places if place.what == "dropped"]
    unnoticed = []
    for place in stores:
        number, reached_by = mutants().number(place), mutants().events(place)
        reached = ((case, was) for case, was in zip(every, before, strict=True) if case.occurring & reached_by)
        if not any(case.shows(number) != was for case, was in reached):
            unnoticed.append(place)
    share = 1 - len(unnoticed) / len(stores)
    print(f"{share:.0%} of {len(stores)} left-out stores are noticed; not:", *unnoticed, sep="\n  ")
    assert share >= FLOOR
