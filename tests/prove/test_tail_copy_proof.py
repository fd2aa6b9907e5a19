"""The reference machine is proved for any number of blocks and branches; a mutant is not, nor is it without a fact."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("z3")

from kvsan.checker.prove.prove import Proof, prove
from kvsan.checker.prove.system import system, with_facts
from kvsan.checker.report.proof import as_json, as_text
from kvsan.spec.designs.catalog import TAIL_COPY

DESIGN = with_facts("tail_copy")
SCOPE = "one_slot_tail"
FACTS = [s.name for s in DESIGN.spec.of_kind("auxiliary", "counted")]
STATE_MUTANTS = [m.name for m in TAIL_COPY.mutants if m.rule != "needless_copy"]


def attempt(*actions: str, mutant: str = "", without: tuple[str, ...] = (), explore: bool = False) -> Proof:
    return prove(system(DESIGN, {}, SCOPE, mutant, without), actions, explore=explore)


def open_ends(proof: Proof) -> set[tuple[str, str]]:
    return {(r.rule, r.action) for r in proof.results if r.status in ("failed", "unknown")}


def test_a_mutant_breaks_a_step_and_the_explorer_finds_its_start() -> None:
    proof = attempt("append_in_place", mutant="append_without_copy", explore=True)
    assert open_ends(proof) == {("writer_is_alone", "append_in_place")}
    assert proof.verdict == "VIOLATED"
    (broken,) = proof.failed
    assert broken.example is not None
    assert broken.example.action == "append_in_place(r0)"
    before = dict(broken.example.before)
    assert before["phase[r0]"] == "IDLE"
    assert int(before["owners[b0]"]) > 1
    assert "reached   yes" in as_text(proof, "")


@pytest.mark.slow
def test_a_fact_left_out_is_missed_and_the_explorer_does_not_find_the_start() -> None:
    proof = attempt("finish_write", without=("writer_is_alone",), explore=True)
    assert ("exclusive_write", "finish_write") in open_ends(proof)
    assert proof.verdict == "UNKNOWN"
    assert "a fact is missing" in as_text(proof, "")


def test_a_proof_for_machines_says_what_was_proved_by_what() -> None:
    proof = attempt("append_in_place")
    out = json.loads(as_json(proof))
    assert proof.never == []
    assert (out["verdict"], out["exit_code"], out["unbounded"]) == ("HOLDS", 0, ["Block", "Branch"])
    assert out["rests_on"] == ["count_members", "count_moves"]
    assert {r["status"] for r in out["results"]} == {"proved", "untouched"}


@pytest.mark.slow
def test_every_rule_and_fact_is_proved() -> None:
    proof = attempt()
    assert (proof.verdict, proof.never, proof.start) == ("HOLDS", [], [])
    assert {r.rule for r in proof.results if r.kind == "rule"} >= {
        "exclusive_write",
        "free_once",
        "private_copy_target",
    }


@pytest.mark.slow
@pytest.mark.parametrize("mutant", STATE_MUTANTS)
def test_every_mutant_makes_a_step_unprovable(mutant: str) -> None:
    assert open_ends(attempt(mutant=mutant))


@pytest.mark.slow
@pytest.mark.parametrize("fact", FACTS)
def test_every_fact_is_needed(fact: str) -> None:
    made = system(DESIGN, {}, SCOPE, without=(fact,))
    assert any(open_ends(prove(made, (a.name,), explore=False)) for a in made.actions)
