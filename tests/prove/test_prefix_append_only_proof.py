"""The append-only prefix cache is proved; with a decision taken wrong, or without a fact, it is not."""

from __future__ import annotations

import pytest

pytest.importorskip("z3")

from attempts import attempt, breaks, design
from kvsan.spec.designs.catalog import PREFIX_APPEND_ONLY

FACTS = {
    "places_counted": "end_request",
    "owners_counted": "append_in_place",
    "entries_are_held": "take_block",
    "spot_is_an_entry": "schedule_prefill",
    "entries_differ": "end_request",
    "entries_reach_tokens": "append_in_place",
    "prompt_is_had": "schedule_prefill",
    "finds_less_than_the_prompt": "take_block",
    "work_is_known": "append_in_place",
    "no_hit_waits": "take_block",
    "hashes_differ": "schedule_prefill",
    "carries_whole_blocks": "find_block",
    "sealed_holds_the_prompt": "find_block",
    "sealed_is_written": "settle",
    "shared_is_sealed": "append_in_place",
    "sealed_is_full": "append_in_place",
    "held_is_owned": "settle",
    "nothing_leaves": "end_request",
    "held_is_not_queued": "end_request",
    "tokens_are_written": "append_in_place",
    "tokens_are_right": "finish_step",
}
"""Each fact, with a step that it is needed for."""

CONCLUSIONS = {"pinned_is_held", "lone_owner_agrees_with_nobody", "filling_is_held", "present_counted"}
"""Facts that nothing else rests on here: what they say is itself worth knowing."""

MUTANTS = {
    "hit_not_held": "find_block",
    "alloc_keeps_identity": "find_block",
    "seal_partial": "schedule_prefill",
    "seal_beyond_tokens": "schedule_prefill",
    "launch_late": "schedule_prefill",
    "deduplicate": "deduplicate",
    "end_frees_shared": "end_request",
    "end_keeps_blocks": "end_request",
}
LINTS = {"sealed_twice", "recomputed_sealed"}


def test_every_fact_and_every_mutant_of_a_rule_is_looked_at() -> None:
    facts = {s.name for s in design("prefix_append_only").spec.of_kind("auxiliary", "counted")}
    assert set(FACTS) | CONCLUSIONS == facts
    assert set(MUTANTS) == {m.name for m in PREFIX_APPEND_ONLY.mutants if m.rule not in LINTS}


def test_a_late_completion_keeps_every_fact() -> None:
    proof = attempt("prefix_append_only", "learn_late")
    assert (proof.verdict, proof.never) == ("HOLDS", [])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scope", "never"), [("", {"launch_sealed", "append_in_new_block"}), ("full_prompt", {"launch_sealed"})]
)
def test_every_rule_and_fact_is_proved(scope: str, never: set[str]) -> None:
    proof = attempt("prefix_append_only", scope=scope)
    assert (proof.verdict, set(proof.never), proof.start) == ("HOLDS", never, [])


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS)
def test_every_mutant_makes_a_step_unprovable(mutant: str) -> None:
    assert breaks("prefix_append_only", "", MUTANTS[mutant], mutant=mutant)


@pytest.mark.slow
@pytest.mark.parametrize("fact", FACTS)
def test_every_fact_is_needed(fact: str) -> None:
    assert breaks("prefix_append_only", "", FACTS[fact], without=(fact,))
