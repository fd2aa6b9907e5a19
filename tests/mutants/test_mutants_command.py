"""`kvsan mutants` compares what it finds with the catalog, and says what no rule notices."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from kvsan.checker.command.mutants import Request, as_json, as_text, exit_code, run
from kvsan.checker.explore import mutants as searching
from kvsan.checker.explore.design import find
from kvsan.checker.explore.guards import Drop, guards
from kvsan.checker.explore.mutants import Caught, Verdict, catch
from kvsan.spec.designs.catalog import DESIGNS, TAIL_COPY, Mutant

pytest.importorskip("llvmlite", reason="the compiled search needs the extra `explore`")

MACHINE = Path(__file__).parents[1] / "explore" / "designs" / "tail_machine.py"
RIGHT = Mutant("append_without_copy", "exclusive_write", 3, "two_branches")
LONGER = Mutant("cancel_frees_shared", "free_once", 3, "two_branches")


@pytest.fixture(scope="module")
def caught() -> Iterator[list[Caught]]:
    """Two mutants, the second of them pinned wrong."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(DESIGNS, "tail_copy", replace(TAIL_COPY, mutants=(RIGHT, LONGER)))
        yield catch(find("tail_copy"))


def test_a_difference_from_the_catalog_is_shown_and_fails(caught: list[Caught]) -> None:
    assert exit_code(caught, []) == 1
    assert exit_code(caught[:1], []) == 0
    assert as_text(caught, []) == (
        "mutant               caught by        steps  scope\n"
        "append_without_copy  exclusive_write      3  two_branches\n"
        "cancel_frees_shared  free_once            2  two_branches"
        "  DIFFERS: the catalog says free_once after 3 steps\n"
        "1 of 2 caught as the catalog says\n"
    )


def test_where_several_rules_fail_the_pinned_one_is_told(caught: list[Caught], monkeypatch: pytest.MonkeyPatch) -> None:
    found = caught[0].found
    first = replace(found.violations[0], rule="alloc_from_free")
    monkeypatch.setattr(searching, "every_mutant", lambda *_: None)
    monkeypatch.setattr(searching, "chosen", lambda *_: None)
    monkeypatch.setattr(searching, "explore", lambda *_: replace(found, violations=(first, *found.violations)))
    monkeypatch.setitem(DESIGNS, "tail_copy", replace(TAIL_COPY, mutants=(RIGHT,)))
    assert [c.rule for c in catch(find("tail_copy"))] == ["exclusive_write"]


def test_a_guard_that_a_limit_left_open_is_no_success(caught: list[Caught]) -> None:
    guard = guards(find("tail_copy").spec)[0]
    open_ = Verdict(Drop(guard, "unknown", None, 9, 9, 0, 0, ()), "two_branches", ("two_branches",))
    assert exit_code(caught[:1], [open_]) == 3
    assert exit_code(caught, [open_]) == 1
    assert "unknown: a limit was reached after 9 states, scope two_branches\n1 unknown" in as_text(caught, [open_])


def test_a_mutant_has_its_form_for_programs(caught: list[Caught]) -> None:
    first, second = json.loads(as_json(caught, []))["mutants"]
    assert first["way"] == ["fork_branch(r0, r1)", "append_in_place(r0)", "finish_write(r0)"]
    assert (first["name"], first["rule"], first["caught"], first["steps"]) == (RIGHT.name, RIGHT.rule, True, 3)
    assert first["scope"]["branches"] == 2
    assert first["scope"]["mutant"] == "APPEND_WITHOUT_COPY"
    assert (second["agrees"], second["pinned"]) == (False, {"rule": "free_once", "steps": 3})


def test_each_require_of_a_users_design_is_dropped(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(Request(str(MACHINE), settings=("branches=2", "blocks=4"), quiet=True)) == 1
    said = capsys.readouterr().out
    assert said.startswith("no mutants\n\neach require dropped in turn\ncancel  ")
    assert "s.phase[r] == IDLE\n        caught by exclusive_write after 2 steps, scope branches=2 blocks=4\n" in said
    assert "s.alive[r]\n        redundant: the same states in branches=2 blocks=4, by 8 more transitions" in said
    assert "can_append(s, r)\n        unnoticed by every rule and lint: 14 more states and 59 more transitions" in said
    assert said.endswith("10 caught, 5 redundant, 2 unnoticed\n")


@pytest.mark.slow
@pytest.mark.parametrize("name", list(DESIGNS))
def test_every_mutant_of_the_catalog_is_caught_as_it_says(name: str) -> None:
    caught = catch(find(name))
    assert [(c.name, c.rule, c.steps) for c in caught] == [(m.name, m.rule, m.steps) for m in DESIGNS[name].mutants]
    assert all(c.agrees for c in caught)
