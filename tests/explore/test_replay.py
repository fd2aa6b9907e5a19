"""What a step broke is said once for each turn of a loop that broke it, in the words of that turn."""

from __future__ import annotations

from pathlib import Path

from kvsan.checker.explore.design import find, scoped
from kvsan.checker.explore.model import starts
from kvsan.checker.explore.replay import Breach, Performer

TIDY = str(Path(__file__).parent / "designs" / "tidy.py")


def test_the_turn_of_a_loop_that_failed_is_the_one_that_is_told() -> None:
    design = find(TIDY)
    chosen = scoped(design)
    step = Performer(design.spec, chosen).step("look_around", {"r": 0}, starts(design.spec, chosen)[0].state)
    assert step.breaches == (Breach("clean", "block b1 at 1 is dirty"),)
