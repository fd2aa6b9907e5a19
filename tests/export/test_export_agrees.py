"""Two checkers that share nothing with ours count the same states and find the same faults in what is exported."""

from __future__ import annotations

from pathlib import Path

import pytest
from kvsan.checker.command.export_model import EXCHANGED
from kvsan.checker.explore.design import find, scoped
from kvsan.checker.explore.explore import Exploration, explore, prepare
from kvsan.checker.explore.symmetry import symmetry as strongest
from kvsan.checker.export.promela import promela
from kvsan.checker.export.subject import Subject, subject
from kvsan.checker.export.tla import tla
from kvsan.spec.designs.catalog import DESIGNS, Design, Mutant
from outside import needs_spin, needs_tlc, spin, tlc

MACHINE = str(Path(__file__).parents[1] / "explore" / "designs" / "tail_machine.py")
TWO = {"branches": "2", "blocks": "4"}

SMALL: dict[str, dict[str, str]] = {
    "tail_copy": {},
    "paged_cow": {"blocks": "3"},
    "prefix_append_only": {"blocks": "3"},
    "speculative": {"blocks": "2"},
    "transfers": {"blocks": "2"},
}
"""One scope of each design; any other has one branch."""

TINY: dict[str, dict[str, str]] = {
    "tail_copy": TWO,
    "paged_cow": {"blocks": "2"},
    "prefix_append_only": {"blocks": "3"},
    "transfers": {"branches": "1", "blocks": "2"},
}
"""The same for TLC, which takes seconds for a thousand states."""

SAMPLE = [
    pytest.param(design, mutant, id=f"{design.name}-{mutant.name}")
    for design in DESIGNS.values()
    for mutant in sorted(design.mutants, key=lambda m: m.steps)[:2]
]
"""The mutants of each design that are caught first."""


def small(scopes: dict[str, dict[str, str]], name: str) -> dict[str, str]:
    return scopes.get(name, {"branches": "1"})


def explored(
    name: str,
    changes: dict[str, str],
    scope: str = "",
    mutant: str = "",
    lints: bool = False,
    symmetry: str = "none",
) -> Exploration:
    pytest.importorskip("llvmlite", reason="the compiled search needs the extra `explore`")
    design = find(name)
    return explore(prepare(design, scoped(design, changes, scope, mutant), symmetry, lints))


def exported(name: str, changes: dict[str, str]) -> Subject:
    return subject(find(name), changes)


@needs_spin
def test_spin_counts_the_states_of_the_reference_machine(tmp_path: Path) -> None:
    """100 states and 296 transitions: what three checkers count on the TLA+ module. SPIN has one state more."""
    found = spin(promela(exported(MACHINE, TWO)), tmp_path)
    assert (found.states, found.transitions, found.broken) == (101, 298, "")


@needs_tlc
def test_tlc_counts_the_states_of_the_reference_machine(tmp_path: Path) -> None:
    found = tlc(tla(exported(MACHINE, TWO)), tmp_path)
    assert (found.states, found.transitions, found.broken) == (100, 296, "")


@pytest.mark.slow
@needs_spin
@pytest.mark.parametrize("name", DESIGNS)
def test_spin_counts_what_the_explorer_counts(name: str, tmp_path: Path) -> None:
    changes = small(SMALL, name)
    ours, found = explored(name, changes), spin(promela(exported(name, changes)), tmp_path)
    assert ours.verdict == "HOLDS"
    assert (found.states - 1, found.transitions - 2, found.broken) == (ours.states, ours.transitions, "")


@pytest.mark.slow
@needs_tlc
@pytest.mark.parametrize("wanted", ["none", "full"])
@pytest.mark.parametrize("name", [MACHINE, *DESIGNS])
def test_tlc_counts_what_the_explorer_counts(name: str, wanted: str, tmp_path: Path) -> None:
    """With symmetry too: TLC exchanges what the analysis proves exchangeable, and keeps as many states."""
    changes = small(TINY, name)
    ours, made = explored(name, changes, symmetry=wanted), exported(name, changes)
    used = strongest(made.model, wanted)
    found = tlc(tla(made, EXCHANGED[used.name]), tmp_path)
    assert (ours.verdict, used.name) == ("HOLDS", ours.symmetry)
    assert (found.states, found.transitions, found.broken) == (ours.states, ours.transitions, "")


def shortest(design: Design, mutant: Mutant, lints: bool) -> set[str]:
    """What may be broken after as many steps as the explorer's shortest counterexample has.

    Its search ends at the steps that break a rule, and has not judged the states of that depth yet: another checker may
    find an invariant broken there.
    """
    ours = explored(design.name, {}, mutant.scope, mutant.name, lints)
    found = {f.rule: len(f.steps) for f in (*ours.violations, *ours.lints)}
    assert found[mutant.rule] == mutant.steps
    invariants = {i.name for i in find(design.name).spec.of_kind("invariant")}
    return invariants | {rule for rule, steps in found.items() if steps == mutant.steps}


@pytest.mark.slow
@needs_spin
@pytest.mark.parametrize(("design", "mutant"), SAMPLE)
def test_spin_finds_no_shorter_counterexample(design: Design, mutant: Mutant, tmp_path: Path) -> None:
    lints = find(design.name).spec.rules[mutant.rule].kind == "lint"
    model = promela(subject(find(design.name), {}, mutant.scope, mutant.name, lints))
    found = spin(model, tmp_path, deepest=mutant.steps)
    assert found.broken in shortest(design, mutant, lints)
    assert found.steps == mutant.steps


@pytest.mark.slow
@needs_tlc
@pytest.mark.parametrize(("design", "mutant"), SAMPLE)
def test_tlc_finds_no_shorter_counterexample(design: Design, mutant: Mutant, tmp_path: Path) -> None:
    lints = find(design.name).spec.rules[mutant.rule].kind == "lint"
    made = tla(subject(find(design.name), {}, mutant.scope, mutant.name, lints))
    found = tlc(made, tmp_path)
    assert found.broken in shortest(design, mutant, lints)
    assert found.steps == mutant.steps
