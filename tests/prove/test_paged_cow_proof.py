"""PagedAttention's copy-on-write is proved under each right schedule; with a decision taken wrong, it is not."""

from __future__ import annotations

import pytest

pytest.importorskip("z3")

from attempts import attempt, breaks, design
from kvsan.spec.designs.catalog import PAGED_COW

FACTS = {
    "places_counted": ("", "end_branch"),
    "owners_counted": ("", "append_in_place"),
    "entries_are_held": ("", "take_block"),
    "spot_is_an_entry": ("", "append_in_copy"),
    "entries_differ": ("", "append_in_copy"),
    "entries_reach_tokens": ("", "append_in_place"),
    "collects_what_it_needs": ("", "prefill"),
    "copy_has_ends": ("host_wait", "finish_copy"),
    "target_is_private": ("host_wait", "finish_copy"),
    "filled_targets": ("host_wait", "finish_copy"),
    "held_is_owned": ("", "settle"),
    "collector_is_alone": ("", "prefill"),
    "tokens_are_written": ("", "append_in_place"),
    "tokens_are_right": ("", "finish_step"),
    "work_is_ordered": ("", "append_in_place"),
    "awaited_copy_is_known": ("host_wait", "append_in_place"),
}
"""Each fact, with a scope and a step that it is needed for."""

CONCLUSIONS = {
    "pinned_is_held",
    "lone_owner_agrees_with_nobody",
    "held_is_not_queued",
    "filling_is_held",
    "present_counted",
}
"""Facts that nothing else rests on here: what they say is itself worth knowing."""

MUTANTS = {
    "append_without_copy": "append_in_place",
    "copy_too_few": "append_in_copy",
    "step_before_copy": "finish_copy",
    "cancel_under_copy": "end_branch",
    "cancel_frees_shared": "end_branch",
    "free_on_completion_too": "complete_owed",
    "copy_keeps_source": "finish_copy",
    "cancel_keeps_target": "end_doomed",
    "stale_check_copies": "append_in_copy",
    "stale_check_appends": "append_in_place",
    "preempt_frees_shared": "preempt_branch",
    "preempt_keeps_blocks": "preempt_branch",
    "prefill_last_token_only": "prefill",
    "fork_under_prefill": "fork_branch",
    "drop_source_under_copy": "start_copy",
    "copy_ignores_steps": "append_in_copy",
}
SCOPES = {m.name: m.scope for m in PAGED_COW.mutants}


def test_every_fact_and_every_mutant_of_a_rule_is_looked_at() -> None:
    facts = {s.name for s in design("paged_cow").spec.of_kind("auxiliary", "counted")}
    assert set(FACTS) | CONCLUSIONS == facts
    assert set(MUTANTS) == {m.name for m in PAGED_COW.mutants if m.rule != "needless_copy"}


def test_a_finished_step_keeps_every_fact() -> None:
    proof = attempt("paged_cow", "finish_step")
    assert (proof.verdict, proof.never) == ("HOLDS", [])


@pytest.mark.slow
@pytest.mark.parametrize("scope", ["", "host_wait", "event_wait"])
def test_every_rule_and_fact_is_proved(scope: str) -> None:
    assert attempt("paged_cow", scope=scope).verdict == "HOLDS"


@pytest.mark.slow
def test_without_an_order_between_copy_and_step_a_launch_is_not_proved() -> None:
    proof = attempt("paged_cow", "append_in_copy", scope="unordered")
    assert "copy_precedes_use" in {r.rule for r in proof.failed}


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS)
def test_every_mutant_makes_a_step_unprovable(mutant: str) -> None:
    assert breaks("paged_cow", SCOPES[mutant], MUTANTS[mutant], mutant=mutant)


@pytest.mark.slow
@pytest.mark.parametrize("fact", FACTS)
def test_every_fact_is_needed(fact: str) -> None:
    scope, action = FACTS[fact]
    assert breaks("paged_cow", scope, action, without=(fact,))
