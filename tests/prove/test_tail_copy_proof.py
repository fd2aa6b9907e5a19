"""The reference machine is proved for any number of blocks and branches; a mutant is not, nor is it without a fact."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("z3")

from attempts import attempt, breaks, design, open_ends
from kvsan.checker.prove.prove import Proof, prove
from kvsan.checker.prove.system import ownership, system
from kvsan.checker.report.proof import as_json, as_text
from kvsan.spec.designs.catalog import TAIL_COPY
from kvsan.spec.lang import ir
from kvsan.spec.lang.walk import every

SCOPE = "one_slot_tail"
FACTS = {
    "places_counted": "cancel_branch",
    "owners_counted": "publish_copy",
    "entries_are_held": "grow_tail",
    "spot_is_an_entry": "finish_copy",
    "entries_differ": "finish_copy",
    "only_the_living_hold": "fork_branch",
    "entries_reach_length": "finish_write",
    "room_to_write": "finish_write",
    "copy_has_ends": "publish_copy",
    "target_is_private": "finish_copy",
    "filled_targets": "publish_copy",
    "writer_is_alone": "finish_write",
    "tokens_are_written": "finish_write",
    "tokens_have_authors": "finish_write",
    "expected_is_had": "fork_branch",
    "copies_have_authors": "publish_copy",
}
"""Each fact, with a step that it is needed for: where that one turns out not to need it, the test tries all others."""

CONCLUSIONS = {
    "held_is_owned",
    "pinned_is_held",
    "lone_owner_agrees_with_nobody",
    "held_is_not_queued",
    "filling_is_held",
}
"""Facts of every ledger that nothing else rests on here: what they say is itself worth knowing."""

MUTANTS = {
    "append_without_copy": "append_in_place",
    "share_empty_tail": "fork_branch",
    "publish_before_copy": "publish_copy",
    "copy_too_few": "finish_copy",
    "drop_source_before_copy": "start_copy",
    "cancel_frees_shared": "cancel_branch",
    "free_twice": "complete_late",
    "fork_released_block": "publish_copy",
}


def test_every_fact_and_every_mutant_of_a_rule_is_looked_at() -> None:
    facts = {s.name for s in design("tail_copy").spec.of_kind("auxiliary", "counted")}
    assert set(FACTS) | CONCLUSIONS == facts
    assert set(MUTANTS) == {m.name for m in TAIL_COPY.mutants if m.rule != "needless_copy"}


def test_a_mutant_breaks_a_step_and_what_matters_is_shown() -> None:
    proof = attempt("tail_copy", "append_in_place", scope=SCOPE, mutant="append_without_copy")
    assert open_ends(proof) == {("writer_is_alone", "append_in_place")}
    assert proof.verdict == "UNKNOWN"  # nobody has looked for the start
    (broken,) = proof.failed
    assert broken.example is not None
    assert broken.example.action == "append_in_place(r0)"
    before = dict(broken.example.before)
    assert before["phase[r0]"] == "IDLE"
    assert int(before["owners[b0]"]) > 1
    assert len(before) < 10  # what matters, not the whole state
    read = {e.variable for e in every(broken.example.start) if isinstance(e, ir.Read)}
    assert read == {entry.partition("[")[0] for entry in before}  # what the explorer looks for is what is shown


def test_a_proof_for_machines_says_what_was_proved_by_what() -> None:
    proof = attempt("tail_copy", "append_in_place", scope=SCOPE)
    out = json.loads(as_json(proof))
    assert proof.never == []
    assert (out["verdict"], out["exit_code"], out["unbounded"]) == ("HOLDS", 0, ["Block", "Branch"])
    assert out["rests_on"] == ["count_members", "count_moves"]
    assert {r["status"] for r in out["results"]} == {"proved", "untouched"}


def test_a_step_that_no_state_enables_is_not_called_proved_in_silence() -> None:
    proof = attempt("tail_copy", "grow_tail")  # three tokens of prompt leave room for one: no new block
    assert proof.never == ["grow_tail"]
    assert "never         grow_tail" in as_text(proof, "")


def test_rules_by_which_no_step_is_judged_are_named() -> None:
    proof = Proof(system(design("tail_copy")))
    named = set(json.loads(as_json(proof))["not_judged"])
    assert {"survivors_unharmed", "ref_count_agrees", "hit_is_live"} < named
    assert not named & {"exclusive_write", "view_intact", "needless_copy"}
    assert "survivors_unharmed, " in as_text(proof, "")


@pytest.mark.slow
def test_the_discipline_says_which_counts_are_not_proved() -> None:
    proof = Proof(ownership())
    assert "owners+pins" in as_text(proof, "")
    assert "survivors_unharmed" in json.loads(as_json(proof))["not_judged"]


@pytest.mark.slow
def test_two_processes_find_what_one_finds() -> None:
    made = system(design("tail_copy"), {}, SCOPE)
    names = ("append_in_place", "grow_tail")
    one, two = (prove(made, names, explore=False, processes=n) for n in (1, 2))
    assert [(r.rule, r.action, r.status) for r in one.results] == [(r.rule, r.action, r.status) for r in two.results]
    assert len({r.action for r in two.results}) == 2


@pytest.mark.slow
def test_the_explorer_finds_the_start_of_a_bug() -> None:
    proof = attempt("tail_copy", "append_in_place", scope=SCOPE, mutant="append_without_copy", explore=True)
    assert proof.verdict == "VIOLATED"
    (broken,) = proof.failed
    assert broken.started is not None and broken.started[-1].startswith("fork_branch")  # then the tail has two owners
    assert "reached   yes" in as_text(proof, "")


@pytest.mark.slow
def test_without_a_fact_the_explorer_does_not_find_the_start() -> None:
    proof = attempt("tail_copy", "finish_write", scope=SCOPE, without=("writer_is_alone",), explore=True, first=True)
    assert ("exclusive_write", "finish_write") in open_ends(proof)
    assert proof.verdict == "UNKNOWN"
    assert "a fact is missing" in as_text(proof, "")


@pytest.mark.slow
def test_every_rule_and_fact_is_proved() -> None:
    proof = attempt("tail_copy", scope=SCOPE)
    assert (proof.verdict, proof.never, proof.start) == ("HOLDS", [], [])
    assert {r.rule for r in proof.results if r.kind == "rule"} >= {
        "exclusive_write",
        "free_once",
        "private_copy_target",
    }


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS)
def test_every_mutant_makes_a_step_unprovable(mutant: str) -> None:
    assert breaks("tail_copy", SCOPE, MUTANTS[mutant], mutant=mutant)


@pytest.mark.slow
@pytest.mark.parametrize("fact", FACTS)
def test_every_fact_is_needed(fact: str) -> None:
    assert breaks("tail_copy", SCOPE, FACTS[fact], without=(fact,))
