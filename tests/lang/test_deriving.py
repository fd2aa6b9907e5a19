"""A design may derive its state from another module's and perform the events that stand there."""

from __future__ import annotations

from pathlib import Path

import pytest
from kvsan.spec.lang import ir
from kvsan.spec.lang.diagnostics import SpecError
from kvsan.spec.lang.load import load

SPECS = Path(__file__).parent / "specs"
DESIGN = (SPECS / "derived_design.py").read_text()


def written(folder: Path, text: str) -> Path:
    (folder / "base_ledger.py").write_text((SPECS / "base_ledger.py").read_text())
    (folder / "design.py").write_text(text)
    return folder / "design.py"


def test_a_design_has_the_variables_of_its_base_and_its_own() -> None:
    spec = load(SPECS / "derived_design.py")
    assert (spec.state, list(spec.variables)) == ("Design", ["held", "spare", "mark"])


def test_an_action_carries_the_obligations_of_the_events_it_performs() -> None:
    step = load(SPECS / "derived_design.py").steps["take_free"]
    assert [s.rule for s in step.effects if isinstance(s, ir.Obey)] == ["free_before_take"]
    assert [s.variable for s in step.effects if isinstance(s, ir.Store)] == ["held", "mark"]


def test_an_invariant_may_say_what_a_ghost_rule_means_and_bear_its_name() -> None:
    spec = load(SPECS / "derived_design.py")
    assert spec.rules["mark_is_true"].kind == "ghost"
    assert spec.steps["mark_is_true"].kind == "invariant"


def test_any_other_rule_keeps_its_name_to_itself(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="two definitions of `free_before_take`"):
        load(written(tmp_path, DESIGN.replace("def mark_is_true", "def free_before_take")))


def test_what_a_design_declares_itself_must_be_used(tmp_path: Path) -> None:
    text = DESIGN.replace("    mark: ", "    idle: Map[Block, bool]\n    mark: ")
    with pytest.raises(SpecError) as caught:
        load(written(tmp_path, text))
    assert [(d.code, d.message) for d in caught.value.diagnostics] == [("never-read", "no step reads `idle`")]


def test_a_base_alone_must_use_all_that_it_declares() -> None:
    with pytest.raises(SpecError) as caught:
        load(SPECS / "base_ledger.py")
    assert {d.code for d in caught.value.diagnostics} == {"never-read", "unused-rule"}
