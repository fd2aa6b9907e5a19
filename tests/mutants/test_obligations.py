"""No rule is restated: what a condition in `spec/ownership` says is what the checker judges, and a log shows it.

Every obligation of the discipline is taken from the loaded specification, none is listed here. Its condition is once
always true, once always false, and a small log must then be judged otherwise.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import kvsan.spec.ownership as discipline
import pytest
from kvsan.checker.replay.replay import Replay, ownership
from kvsan.spec.lang import ir
from kvsan.spec.lang.load import load
from kvsan.spec.lang.walk import all_statements
from schemata import Case, Place, baseline, cases, judging, mutants, noticed_by, shown

JUDGEMENTS = [place for place in mutants().places if place.what in ("kept", "broken")]
IMPLIED = "branch {c} forked block {b} from {r}, but the block is free"
"""A table of a trusted block names a free one only after `free_once` or `entry_is_held` has said so of that block."""


def name(place: Place) -> str:
    return str(place).replace(" ", "-")


def test_every_rule_that_a_log_can_break_stands_in_an_obligation() -> None:
    judged = {place.name for place in JUDGEMENTS}
    assert judged == {rule.name for rule in ownership().rules.values() if rule.kind in ("rule", "lint")}


def test_every_obligation_has_a_mutant() -> None:
    mutated = {(place.name, place.span) for place in JUDGEMENTS}
    events = ownership().of_kind("event", "settling")
    obligations = [s for event in events for s in all_statements(event.effects) if isinstance(s, ir.Obey)]
    assert mutated == {(obligation.rule, obligation.span) for obligation in obligations}


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_mutants_left_alone_change_nothing(case: Case) -> None:
    replay = Replay(case.header, case.recorded, case.occurring)
    for batch in case.batches:
        replay.perform(batch)
    assert shown(replay) == shown(baseline()[case.name])


@pytest.mark.parametrize("place", [p for p in JUDGEMENTS if p.what == "kept"], ids=name)
def test_obligation_that_is_always_kept_spares_a_log(place: Place) -> None:
    found = next(noticed_by(place, judging().get((place.name, place.span), [])), None)
    if IMPLIED in place.text:
        assert found is None, "the obligation is no longer implied: take it off the exception"
    else:
        assert found is not None, f"no small log breaks {place}"


@pytest.mark.parametrize("place", [p for p in JUDGEMENTS if p.what == "broken"], ids=name)
def test_obligation_that_is_always_broken_accuses_a_log_that_holds(place: Place) -> None:
    within = [case for case in judging().get((place.name, place.span), []) if case.expect["x_expect"] == "HOLDS"]
    assert any(noticed_by(place, within)), f"no small log that holds judges {place}"


EDITS = {
    "blocks.py": ("alloc_from_free", "obey(alloc_from_free, not s.held[b],", "obey(alloc_from_free, s.held[b],"),
    "contents.py": ("exclusive_write", "owners == 1 or (slots <= s.agreed[b]", "owners >= 1 or (slots <= s.agreed[b]"),
    "quiescence.py": ("no_leak", "s.owners[b] > 0 or s.keeps[b] > 0,", "s.owners[b] > 0 or s.held[b],"),
}


@pytest.mark.parametrize("file", EDITS)
def test_edit_of_the_source_changes_the_verdict(file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / f"edited_{Path(file).stem}"
    shutil.copytree(Path(str(discipline.__file__)).parent, folder)
    rule, old, new = EDITS[file]
    source = (folder / file).read_text()
    assert source.count(old) == 1
    (folder / file).write_text(source.replace(old, new))
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    spec = load(folder.name)

    def judged_otherwise(case: Case) -> bool:
        replay = Replay(case.header, case.recorded, case.occurring, spec)
        for batch in case.batches:
            replay.perform(batch)
        return shown(replay) != shown(baseline()[case.name])

    assert any(judged_otherwise(case) for case in cases() if case.path.stem.startswith(rule))
