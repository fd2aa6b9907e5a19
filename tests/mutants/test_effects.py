"""What the ledger keeps is needed: leave one store out, and the small logs are judged otherwise."""

from __future__ import annotations

import pytest
from schemata import cases, mutants, noticed_by

FLOOR = 0.62
"""The share of left-out stores that some small log shows, at least."""


@pytest.mark.slow
def test_most_stores_left_out_are_noticed() -> None:
    stores = [place for place in mutants().places if place.what == "dropped"]
    unnoticed = [place for place in stores if not any(noticed_by(place, cases()))]
    share = 1 - len(unnoticed) / len(stores)
    print(f"{share:.0%} of {len(stores)} left-out stores are noticed; not:", *unnoticed, sep="\n  ")
    assert share >= FLOOR
