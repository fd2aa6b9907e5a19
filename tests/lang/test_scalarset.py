"""A sort is a scalarset when its members are exchangeable; else the analysis names the line that breaks it."""

from __future__ import annotations

from pathlib import Path

import pytest
from kvsan.spec.lang.load import load
from kvsan.spec.lang.scalarset import Scalarset, scalarset

SPEC = '''
from __future__ import annotations

from typing import Annotated

from kvsan.spec.lang import Const, Map, Sort, State, UpTo, event, obey, reset, row, rule

class Block(Sort):
    """A block."""

class Branch(Sort):
    """A branch."""

Count = Annotated[int, UpTo("count")]

class Model(State):
    """Both."""
    pairs: Map[Branch, Block, Count]
    beside: Map[Block, Block, Count]
    weight: Map[Block, Count]
    sums: Map[Branch, Count]
    home: Const[Map[Block, Count]]
{variables}

@rule
def fine() -> None:
    """All is well.

    Source: ours.
    Catches: nothing.
    Except: never.
    Deviates: no.
    """

@event
def probe(s: Model, r: Branch, b: Block) -> None:
    """One loop over a row of blocks."""
    obey(fine, s.sums[r] + s.weight[b] + s.home[b] + s.pairs[r, b] + s.beside[b, b] < 9, "{{b}}")
    s.weight[b] = 1
    s.pairs[r, b] = 1
    s.beside[b, b] = 0
    s.sums[r] = 0
    for k in row(s.pairs, r):
{body}
'''


def analysed(tmp_path: Path, body: str, variables: str = "") -> Scalarset:
    path = tmp_path / "model.py"
    lines = "\n".join("        " + line for line in body.splitlines())
    path.write_text(SPEC.format(body=lines, variables=variables), encoding="utf-8")
    return scalarset(load(path), "Block")


@pytest.mark.parametrize(
    "body",
    [
        "s.weight[k] = s.weight[k] + 1",
        "s.sums[r] += s.weight[k]",
        "s.sums[r] = 0",
        "if s.sums[r] > 0:\n    s.sums[r] -= 1",
        "s.weight[k] = s.home[k]\ns.sums[r] += s.weight[k]",
        "reset(s, k)",
        "s.beside[k, b] = s.weight[k]\ns.weight[k] = s.beside[k, k]",
    ],
)
def test_turns_that_commute_keep_the_symmetry(tmp_path: Path, body: str) -> None:
    found = analysed(tmp_path, body)
    assert found.proved, found.breaks
    assert found.constants == ("home",)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("s.sums[r] = s.weight[k]", "sets `sums`"),
        ("s.sums[r] = s.sums[r] * 2 + 1", "sets `sums`"),
        ("s.sums[r] += 1\ns.sums[r] = 0", "sets `sums`"),
        ("s.weight[k] = s.sums[r]\ns.sums[r] += 1", "reads `sums`"),
        ("if s.sums[r] < 2:\n    s.sums[r] += s.weight[k]", "reads `sums`"),
        ("s.weight[b] = s.weight[k]", "sets `weight`"),
        ("s.weight[k] = s.weight[b] + 1", "reads `weight`"),
        ("s.beside[k, b] = s.home[b]\ns.beside[b, k] = s.home[k]", "sets `beside`"),
        ("s.beside[k, b] = s.beside[b, k]", "reads `beside`"),
        ("s.weight[b] += 1\nreset(s, k)", "resets entries that all turns share: beside, weight"),
        ("s.sums[r] += s.weight[b]\nreset(s, k)", "reads `weight`"),
        ("for m in row(s.beside, b):\n    s.sums[r] += 1\ns.beside[b, k] = 0", "reads `beside`"),
        ("s.sums[r] += 1\ns.weight[b] += s.sums[r]", "reads `sums`"),
        ("s.sums[r] += s.sums[r]", "reads `sums`"),
        (
            "if s.weight[k] > 0:\n    if s.sums[r] > 0:\n        s.sums[r] = s.weight[k] - 1",
            "sets `sums`",
        ),
        ("reset(s, b)", "resets entries that all turns share: beside, weight"),
    ],
)
def test_turns_that_depend_on_their_order_break_it_at_their_line(tmp_path: Path, body: str, reason: str) -> None:
    found = analysed(tmp_path, body)
    assert not found.proved
    assert any(reason in b.reason for b in found.breaks)
    lines = (tmp_path / "model.py").read_text(encoding="utf-8").splitlines()
    first = next(i for i, line in enumerate(lines, 1) if "for k in" in line)
    assert all(b.span.line > first for b in found.breaks)


def test_a_variable_that_starts_as_a_member_breaks_the_symmetry(tmp_path: Path) -> None:
    found = analysed(tmp_path, "s.first[r] = b\nobey(fine, s.first[r] == k)", "    first: Map[Branch, Block]")
    assert "starts as the first Block" in found.breaks[0].reason


def test_blocks_and_branches_of_the_discipline_are_exchangeable() -> None:
    spec = load("kvsan.spec.ownership")
    for sort in spec.sorts:
        assert scalarset(spec, sort).proved, scalarset(spec, sort).breaks
