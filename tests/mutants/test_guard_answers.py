"""Every `require` of every design has an answer: a rule catches its absence, a fact is against it, the same states are
reached without it, or it says itself which choice it is, and no rule and no view breaks without it.

The answers are kept as `kvsan mutants DESIGN` prints them, in the scopes that the catalog names for it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from kvsan.checker.command.mutants import Request, exit_code, guards_off, said, scopes_of
from kvsan.checker.explore.design import find
from kvsan.checker.explore.guards import guards
from kvsan.checker.explore.search import Limits
from kvsan.spec.designs.catalog import ALL

pytest.importorskip("llvmlite", reason="the compiled search needs the extra `explore`")

GOLDEN = Path(__file__).parents[1] / "golden" / "mutants"
NAMES = [design.name for design in ALL]


@pytest.mark.parametrize("name", NAMES)
def test_every_guard_has_its_answer(name: str) -> None:
    kept = (GOLDEN / f"{name}.txt").read_text()
    asked = [f"{g.action}: {g.text}" for g in guards(find(name).spec)]
    assert [line for line in kept.splitlines() if not line.startswith("  ")] == asked
    assert "unknown" not in kept
    assert "caught by view_intact" not in kept  # rules come before contents, else they are incomplete


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_answers_are_what_a_search_gives(name: str) -> None:
    design, request = find(name), Request(name)
    found = guards_off(design, scopes_of(design, request), request, Limits(request.limit_states), lambda _: None)
    text = "".join(f"{v.drop.guard.action}: {v.drop.guard.text}\n  {said(v)}\n" for v in found)
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("KVSAN_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text(), f"{path} differs; KVSAN_GOLDEN=write keeps the new text"
    assert exit_code([], found) == 0
