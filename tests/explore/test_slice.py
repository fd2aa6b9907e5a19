"""What a verdict depends on stays in a state, through whatever it goes; what none depends on does not."""

from __future__ import annotations

from pathlib import Path

import pytest
from kvsan.checker.explore.slice import Parts, sliced
from kvsan.spec.lang.load import load

SPEC = '''
from __future__ import annotations

from kvsan.spec.lang import Map, Sort, State, action, initial, invariant, members, row, witness

class Block(Sort):
    """A block."""

class Branch(Sort):
    """A branch."""

class Model(State):
    """asked is what the invariant is about."""
    asked: Map[Block, bool]
    flag: Map[Branch, bool]
    more: Map[Branch, bool]
    held: Map[Branch, Block, bool]
    unseen: Map[Block, bool]
    idle: Map[Branch, Block, bool]

@initial
def nothing(s: Model) -> None:
    """All default."""

@action
def change(s: Model, r: Branch, b: Block) -> None:
    """Everything changes."""
    s.flag[r] = s.more[r]
    s.more[r] = not s.more[r]
    s.held[r, b] = not s.held[r, b]
    s.unseen[b] = not s.unseen[b]

@action
def act(s: Model, r: Branch, b: Block) -> None:
    """The case."""
    s.idle[r, b] = True
{body}

@invariant
def fact(s: Model) -> bool:
    """About one variable."""
    return not any(s.asked[b] for b in members(Block, s))

@witness
def can_be(s: Model) -> bool:
    """About all others; it is not asked."""
    return any(s.flag[r] and s.more[r] and s.idle[r, b] and s.held[r, b] and s.unseen[b]
               for r in members(Branch, s) for b in members(Block, s))
'''


def left(folder: Path, text: str, body: str) -> set[str]:
    path = folder / "model.py"
    path.write_text(text.format(body="\n".join("    " + line for line in body.splitlines())), encoding="utf-8")
    spec = load(path)
    parts = Parts(spec.of_kind("action"), spec.of_kind("invariant"), ())
    _, variables = sliced(parts, spec.variables, {}, frozenset(), frozenset())
    return {v.name for v in variables}


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        ("s.asked[b] = True", {"asked"}),
        ("s.asked[b] = s.unseen[b]", {"asked", "unseen"}),
        ("for k in row(s.held, r):\n    s.asked[k] = True", {"asked", "held"}),
        ("if s.more[r]:\n    s.unseen[b] = True\nelse:\n    s.asked[b] = True", {"asked", "more"}),
        ("if s.flag[r]:\n    s.asked[b] = True", {"asked", "flag", "more"}),  # more, because flag is stored from it
        ("was = s.more[r]\nso = was\ns.asked[b] = so", {"asked", "more"}),
        ("for k in row(s.held, r):\n    s.unseen[k] = True\ns.asked[b] = True", {"asked"}),
    ],
)
def test_a_variable_stays_that_a_verdict_depends_on(tmp_path: Path, body: str, kept: set[str]) -> None:
    assert left(tmp_path, SPEC, body) == kept


def test_the_row_that_an_invariant_ranges_over_stays(tmp_path: Path) -> None:
    over_row = "s.asked[b] for r in members(Branch, s) for b in row(s.held, r)"
    text = SPEC.replace("s.asked[b] for b in members(Block, s)", over_row)
    assert text != SPEC
    assert left(tmp_path, text, "s.asked[b] = True") == {"asked", "held"}
