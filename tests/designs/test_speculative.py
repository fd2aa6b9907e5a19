"""Speculative decoding, over tables that give lookahead blocks back and over those that keep them; mutants caught."""

from __future__ import annotations

import random

import pytest
from kvsan.checker.explore.design import find, scoped
from kvsan.checker.explore.explore import Prepared, explore, prepare
from kvsan.checker.explore.module import build
from kvsan.checker.explore.search import search as compiled_search
from kvsan.checker.replay.check import check
from kvsan.spec.designs.catalog import SPECULATIVE, Mutant
from kvsan.spec.designs.lookahead import Mutant as Switch
from plain_search import Model, search
from test_logs import log_of, random_walk

LINTED = frozenset({"idle_since"})
"""Read by the lint `late_release` alone."""

WIDE = {"three_blocks", "across_blocks"}
MUTANTS = [pytest.param(m, marks=[pytest.mark.slow] if m.scope in WIDE else [], id=m.name) for m in SPECULATIVE.mutants]
ROLLED_BACK = {"can_rest", "can_keep_all", "can_keep_none", "can_speculate_together", "can_cancel_drafts"}


def prepared(scope: str, mutant: str = "") -> Prepared:
    pytest.importorskip("llvmlite", reason="the compiled search needs the extra `explore`")
    design = find("speculative")
    return prepare(design, scoped(design, scope=scope, mutant=mutant), "full")


@pytest.mark.parametrize(
    ("scope", "counts", "witnesses"),
    [
        ("one_branch", (98, 207, 17), {"can_give_block_back"}),
        ("one_branch_append_only", (326, 711, 25), {"can_keep_block", "can_resume_by_hit"}),
    ],
)
def test_one_branch_keeps_all_drafts_or_none_and_breaks_nothing(
    scope: str, counts: tuple[int, int, int], witnesses: set[str]
) -> None:
    found = search(SPECULATIVE, SPECULATIVE.at(scope), leaving_out=LINTED)
    assert (found.states, found.transitions, found.depth) == counts
    assert found.violations == {}
    assert set(found.witnesses) == ROLLED_BACK | witnesses


def test_a_step_that_was_promised_its_blocks_never_finds_the_pool_empty() -> None:
    found = search(SPECULATIVE, SPECULATIVE.at("one_block"), leaving_out=LINTED)
    assert found.performed["launch_in_place"] > 0
    assert found.performed["find_pool_empty"] == 0
    assert found.violations == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scope", "counts"),
    [
        ("one_branch", (54, 115, 17)),
        ("across_blocks", (111, 260, 19)),
        ("window", (102, 225, 18)),
        ("short_of_blocks", (265, 599, 20)),
        ("forks", (334822, 1822957, 35)),
        ("three_blocks", (5970, 24384, 29)),
        ("full_prompt", (3945, 16416, 27)),
        ("one_slot_tail", (2094, 7193, 27)),
        ("", (10549, 47248, 30)),
        ("append_only", (47208, 210195, 56)),
        ("full_prompt_append_only", (68872, 326449, 45)),
    ],
)
def test_every_named_scope_holds_in_so_many_states_up_to_symmetry(scope: str, counts: tuple[int, int, int]) -> None:
    found = explore(prepared(scope))
    assert (found.states, found.transitions, found.depth) == counts
    assert found.verdict == "HOLDS"
    assert found.judged["view_intact"] == found.states


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_is_caught_by_its_rule_and_by_no_other_before(mutant: Mutant) -> None:
    settings = SPECULATIVE.at(mutant.scope, mutant=mutant.name.upper())
    found = search(SPECULATIVE, settings, leaving_out=LINTED, stop_at=mutant.rule)
    lengths = {rule: len(steps) for rule, steps in found.violations.items()}
    assert lengths[mutant.rule] == mutant.steps == min(lengths.values())
    assert "view_intact" not in lengths


@pytest.mark.slow
@pytest.mark.parametrize("mutant", SPECULATIVE.mutants, ids=lambda m: m.name)
def test_no_way_of_a_mutant_that_breaks_no_rule_spoils_a_view(mutant: Mutant) -> None:
    """Not only the shortest ways: every state that no rule forbids is searched."""
    made = prepared(mutant.scope, mutant.name)
    begun = [start.state for start in made.begun]
    found = compiled_search(made.model, made.generated, build(made.generated.source), begun, stop=False)
    broken = {made.generated.judges[f.judge].rule for f in found.failures}
    assert found.stopped == ""
    assert mutant.rule in broken
    assert not broken & {"view_intact", "defined"}


CANCELLED = """admit_branch(r0) take_block(r0,b0) launch_in_place(r0) verify(r0,0) prepare_step(r0,1) take_block(r0,b1)
    launch_in_place(r0) end_branch(r0) admit_branch(r1) take_block(r1,b1) launch_in_place(r1) verify(r1,0)
    prepare_step(r1,1) take_block(r1,b0) launch_in_place(r1) verify(r1,1)"""


def test_blocks_of_cancelled_drafts_are_used_again_behind_their_step_on_its_stream() -> None:
    settings = SPECULATIVE.at("reuse_after_cancel")
    log = log_of(SPECULATIVE, settings, [step.replace(",", ", ") for step in CANCELLED.split()])
    kinds = [line["ev"] for line in log.lines]
    assert kinds.index("propose") < kinds.index("finish") < kinds.index("done", kinds.index("finish"))
    assert log.broken == ()
    assert check(log.lines).verdict == "HOLDS"


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("scope", ["append_only", "window"])
def test_a_walk_over_tables_that_keep_lookahead_is_a_log_that_holds(scope: str, seed: int) -> None:
    settings = SPECULATIVE.at(scope)
    log = log_of(SPECULATIVE, settings, random_walk(Model(SPECULATIVE, settings), 60, random.Random(seed)))
    outcome = check(log.lines)
    assert log.lines[0]["discipline"] == str(settings["discipline"]).lower()
    assert log.broken == ()
    assert [(v.rule, v.line, v.message) for v in outcome.violations] == []
    assert outcome.verdict == "HOLDS"


def test_every_mutant_of_the_design_is_in_the_catalog() -> None:
    assert [m.name.upper() for m in SPECULATIVE.mutants] == list(Switch.names[1:])
