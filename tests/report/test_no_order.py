"""The order of device work can be left out, and then nothing is said of it."""

from __future__ import annotations

from pathlib import Path

from kvsan.checker import check

RACE = Path(__file__).parents[2] / "traces" / "corpus" / "reject" / "mooncake-850.jsonl"


def test_order_that_was_not_asked_for_is_not_vouched_for() -> None:
    judged, left_out = check(RACE), check(RACE, order=False)
    assert [v.rule for v in judged.violations] == ["no_reuse_in_flight"]
    assert not left_out.violations
    assert left_out.coverage["no_reuse_in_flight"].checked == 0
    assert "the order of device work was not asked for" in left_out.assumptions
    assert check(RACE, order=False, require=("no_reuse_in_flight",)).verdict == "UNKNOWN"
