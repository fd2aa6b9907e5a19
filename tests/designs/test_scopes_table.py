"""The table of scopes that fit says what a search finds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from kvsan.checker.explore.design import find, scoped
from kvsan.checker.explore.explore import explore, prepare
from kvsan.spec.designs.catalog import DESIGNS

pytest.importorskip("llvmlite", reason="the compiled search needs the extra `explore`")

TABLE = Path(__file__).parents[2] / "spec" / "designs" / "SCOPES.md"
ROWS = [
    [cell.strip() for cell in line.strip("|\n").split("|")]
    for line in TABLE.read_text(encoding="utf-8").splitlines()
    if line.startswith("| `")
]
QUICK = [
    row for row in ROWS if row[0] == "`tail_copy`" and row[1] in ("`--scope two_branches`", "`--scope wide_blocks`")
]
MINUTE = [row for row in ROWS if row[9] == "a minute" and row not in QUICK]


def settled(row: list[str]) -> tuple[str, str, dict[str, str]]:
    """The design, the scope and the changes that a row names."""
    scope = re.search(r"--scope (\w+)", row[1])
    changes = dict(re.findall(r"--set (\w+)=(\w+)", row[1]))
    return row[0].strip("`"), scope[1] if scope else "", changes


def test_every_design_has_a_row() -> None:
    assert {settled(row)[0] for row in ROWS} == set(DESIGNS)


def test_the_hard_cases_are_in_scopes_that_have_a_name() -> None:
    named = re.findall(r"`(\w+) (\w+)`", TABLE.read_text(encoding="utf-8").partition("## Where the hard cases are")[2])
    assert {name for name, _ in named} == set(DESIGNS)
    assert all(scope == "default" or scope in DESIGNS[name].scopes for name, scope in named)
    tails = {(name, scope): DESIGNS[name].at("" if scope == "default" else scope) for name, scope in named}
    assert all(int(s["positions"]) > 2 for (_, scope), s in tails.items() if scope == "three_positions")


@pytest.mark.parametrize(
    "row",
    [*QUICK, *(pytest.param(row, marks=[pytest.mark.slow]) for row in MINUTE)],
    ids=lambda row: f"{row[0]} {row[1]}",
)
def test_a_row_is_what_a_search_finds(row: list[str]) -> None:
    name, scope, changes = settled(row)
    design = find(name)
    found = explore(prepare(design, scoped(design, changes, scope=scope), row[2] if row[2] != "blocks" else "full"))
    assert found.verdict == "HOLDS"
    told = [found.symmetry, f"{found.states:,}", f"{found.transitions:,}", str(found.depth)]
    assert told == row[2:6]
