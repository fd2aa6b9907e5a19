"""What `load` makes of a source: names across modules, safe subtraction, read and write sets, read back as data."""

from __future__ import annotations

from pathlib import Path

import pytest
from kvsan.spec.lang import ir
from kvsan.spec.lang.diagnostics import SpecError
from kvsan.spec.lang.effects import judged, reads, writes
from kvsan.spec.lang.load import load

SPECS = Path(__file__).parent / "specs"


def test_names_are_followed_through_the_modules_of_a_package() -> None:
    spec = load(SPECS / "split" / "__init__.py")
    (store, _) = spec.steps["freeze"].effects
    assert isinstance(store, ir.Store)
    assert store.value == ir.Const(1, spec.choices["Mode"])
    assert spec.rules["frozen"].labels["Source"] == "ours, and nobody else's."
    assert spec.rules["frozen"].statement == "A frozen block stays so."


def test_one_state_class_is_chosen_by_name(tmp_path: Path) -> None:
    text = (SPECS.parents[1] / "golden" / "lang" / "two-states.py").read_text(encoding="utf-8")
    path = tmp_path / "two.py"
    path.write_text(text, encoding="utf-8")
    assert load(f"{path}:Pool").state == "Pool"
    with pytest.raises(SpecError, match="two state classes"):
        load(path)


def test_a_derived_state_class_adds_variables(tmp_path: Path) -> None:
    text = (SPECS / "split" / "state.py").read_text(encoding="utf-8")
    text = text.replace("from kvsan.spec.lang import", "from kvsan.spec.lang import event,")
    text += (
        "\n\nclass More(Pool):\n    extra: Map[Block, bool]\n\n\n@event\ndef flip(s: More, b: Block) -> None:\n"
        '    """Both."""\n    s.extra[b] = not s.extra[b]\n    s.mode[b] = KEEP if s.mode[b] == FREEZE else FREEZE\n'
    )
    path = tmp_path / "more.py"
    path.write_text(text, encoding="utf-8")
    assert list(load(path).variables) == ["mode", "extra"]


# --- subtraction ------------------------------------------------------------------------------------------------------

COUNTERS = '''
from __future__ import annotations

from typing import Annotated

from kvsan.spec.lang import Map, Sort, State, UpTo, action, excess, helper, members, require, reset, row


class Block(Sort):
    """A block."""


Count = Annotated[int, UpTo("count")]


class Model(State):
    """Counters."""

    n: Map[Block, Count]
    pairs: Map[Block, Block, Count]


@helper
def clear(s: Model, b: Block) -> None:
    s.n[b] = 0


@action
def probe(s: Model, b: Block, c: Block, k: Count) -> None:
    """The subtraction under test."""
    require(s.pairs[b, c] == k)
    {body}
    clear(s, b)
    s.pairs[b, c] = k
'''


def loads(tmp_path: Path, body: str) -> bool:
    path = tmp_path / "counters.py"
    path.write_text(COUNTERS.replace("{body}", body.replace("\n", "\n    ")), encoding="utf-8")
    try:
        load(path)
    except SpecError as error:
        assert {d.code for d in error.diagnostics} == {"below-zero"}, error
        return False
    return True


@pytest.mark.parametrize(
    "body",
    [
        "require(s.n[b] >= k)\ns.n[b] -= k",
        "require(k <= s.n[b])\ns.n[b] -= k",
        "if s.n[b] > k:\n    s.n[b] -= k",
        "if not s.n[b] < k:\n    s.n[b] -= k",
        "if s.n[b] != 0:\n    s.n[b] -= 1",
        "if s.n[b] == k:\n    s.n[b] -= k",
        "if s.n[b] > 2:\n    s.n[b] -= 3",
        "s.n[c] = s.n[b] - k if s.n[b] >= k else 0",
        "if s.n[b] == 0:\n    s.n[c] = 0\nelse:\n    s.n[c] = s.n[b] - 1",
        "if k > 0 and s.n[b] - 0 < k - 1:\n    s.n[c] = 0",
        "if k == 0 or s.n[b] < k - 1:\n    s.n[c] = 0",
        "m = s.n[b]\nif m >= k:\n    s.n[b] = s.n[b] - k",
        "m = s.n[b]\nif s.n[b] >= k:\n    s.n[b] = m - k",
        "s.n[b] = max(s.n[b], k) - k",
        "s.n[b] = k - min(s.n[b], k)",
        "s.n[b] = (s.n[b] + 2) - 1",
        "s.n[b] = excess(s.n[b], k)",
        "for d in row(s.pairs, b):\n    if s.n[d] > 0:\n        s.n[d] -= 1",
    ],
)
def test_a_dominated_subtraction_is_accepted(tmp_path: Path, body: str) -> None:
    assert loads(tmp_path, body)


@pytest.mark.parametrize(
    "body",
    [
        "s.n[b] -= 1",
        "if s.n[b] >= k:\n    s.n[b] -= k + 1",
        "if s.n[c] >= k:\n    s.n[b] -= k",
        "if s.n[b] >= 1:\n    s.n[c] = 0\n    s.n[b] -= 1",
        "if s.n[b] >= 1:\n    clear(s, c)\n    s.n[b] -= 1",
        "if s.n[b] >= 1:\n    reset(s, c)\n    s.n[b] -= 1",
        "if s.n[b] >= 1 or k == 0:\n    s.n[b] -= 1",
        "if s.n[b] >= 1:\n    s.n[c] = 0\nelse:\n    s.n[c] = s.n[b] - 1",
        "m = s.n[b]\ns.n[b] = 0\nif m >= k:\n    s.n[b] = s.n[b] - k",
        "if s.n[b] > 0:\n    for d in row(s.pairs, b):\n        s.n[b] -= 1",
    ],
)
def test_a_subtraction_that_nothing_keeps_above_zero_is_refused(tmp_path: Path, body: str) -> None:
    assert not loads(tmp_path, body)


# --- effects ----------------------------------------------------------------------------------------------------------


def test_read_and_write_sets_are_exact() -> None:
    spec = load(SPECS / "constructs.py")
    move = spec.steps["move"]
    assert {
        (a.variable, str(a.index and [e.name for e in a.index if isinstance(e, ir.Name)])) for a in reads(move)
    } == {
        ("count", "['c']"),
        ("count", "['d']"),
        ("weight", "['c']"),
        ("color", "['c']"),
    }
    assert {a.variable for a in writes(move, spec.variables)} == {"count"}
    forget = {a.variable: a.index for a in writes(spec.steps["forget"], spec.variables)}
    assert set(forget) == {"count", "owner", "color", "marks", "seen", "flag", "friends", "table", "pairs", "cube"}
    assert forget["pairs"] is None


def test_an_obligation_reads_through_locals_and_conditions() -> None:
    spec = load(SPECS / "constructs.py")
    by_rule = {j.obey.rule: {a.variable for a in j.reads} for j in judged(spec.steps["stack"])}
    assert by_rule == {"tidy": {"table", "owner"}}
    loud = [j for j in judged(spec.steps["paint"]) if j.obey.message == "green is loud"]
    assert {a.variable for a in loud[0].reads} == {"loud"}
    assert [str(p) for p in loud[0].path] == [str(loud[0].path[0])]


def test_an_obligation_of_an_inlined_helper_says_where_it_was_called() -> None:
    spec = load(SPECS / "constructs.py")
    small = next(j.obey for j in judged(spec.steps["shift"]) if j.obey.rule == "small")
    lines = (SPECS / "constructs.py").read_text(encoding="utf-8").splitlines()
    assert "bump(s, c, 1)" in lines[small.via[0].line - 1]
    assert "obey(small" in lines[small.span.line - 1]
