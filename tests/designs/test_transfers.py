"""Transfers under pins: right in tiny scopes, able to do their job, and each mutant caught."""

from __future__ import annotations

import pytest
from kvsan.checker.explore.design import find, scoped
from kvsan.checker.explore.explore import explore, prepare
from kvsan.spec.designs.catalog import TRANSFERS, Mutant
from kvsan.spec.designs.pinning import Mutant as Switch
from kvsan.spec.lang.surface import judged
from plain_search import Model, search, short

LINTS = {"duplicate_full_block", "sealed_twice", "late_release", "full_block_unsealed"}
HOLD = {"can_rest", "can_read_what_was_loaded", "can_outlive_its_request", "can_abort", "can_lose_a_completion"}
WIDE = {"", "tiers_raced"}
"""Scopes that are out of reach of the plain search: the compiled one has them."""
MUTANTS = [
    pytest.param(m, marks=[pytest.mark.slow] if m.scope == "two_tiers" else [], id=m.name)
    for m in TRANSFERS.mutants
    if m.scope not in WIDE
]


EVERY = HOLD | {"can_move_a_shared_block", "can_fail_in_part"}


def slow(*values: object) -> object:
    return pytest.param(*values, marks=[pytest.mark.slow])


@pytest.mark.parametrize(
    ("scope", "counts", "seen"),
    [
        ("full_prompt", (44, 107, 11), HOLD),
        ("one_block", (46, 116, 10), HOLD),
        ("several_handles", (474, 1452, 16), HOLD | {"can_fail_in_part"}),
        slow("two_tiers", (989, 3117, 19), HOLD | {"can_fail_in_part", "can_come_back"}),
    ],
)
def test_one_request_breaks_nothing_and_can_do_its_job(
    scope: str, counts: tuple[int, int, int], seen: set[str]
) -> None:
    found = search(TRANSFERS, TRANSFERS.at(scope))
    assert found.violations == {}
    assert (found.states, found.transitions, found.depth) == counts
    assert set(found.witnesses) == seen


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scope", "counts", "seen"),
    [
        ("", (9809, 49688, 27), EVERY),
        ("two_transfers", (1012862, 7335619, 40), EVERY),
        ("tiers_raced", (362668, 2430023, 39), EVERY | {"can_come_back"}),
    ],
)
def test_two_requests_share_what_transfers_move_and_break_nothing(
    scope: str, counts: tuple[int, int, int], seen: set[str]
) -> None:
    pytest.importorskip("llvmlite", reason="the compiled search needs the extra `explore`")
    design = find("transfers")
    found = explore(prepare(design, scoped(design, scope=scope)))
    assert found.verdict == "HOLDS"
    assert (found.states, found.transitions, found.depth) == counts
    assert {name for name, depth in found.witnesses.items() if depth is not None} == seen


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_is_caught_by_its_rule_and_by_no_other_before(mutant: Mutant) -> None:
    settings = TRANSFERS.at(mutant.scope, mutant=mutant.name.upper())
    found = search(TRANSFERS, settings, stop_at=mutant.rule)
    lengths = {rule: len(steps) for rule, steps in found.violations.items()}
    assert lengths[mutant.rule] == mutant.steps == min(lengths.values())
    assert "view_intact" not in lengths


def test_every_mutant_of_the_design_is_in_the_catalog() -> None:
    assert [m.name.upper() for m in TRANSFERS.mutants] == list(Switch.names[1:])


ANOTHER_LIFE = """admit_request(r0) take_block(r0,b1) take_block(r0,b2) prefill(r0) finish_step(r0) claim_store(r0,h0)
    end_request(r0) admit_request(r0) take_block(r0,b2) take_block(r0,b1) prefill(r0) finish_step(r0)
    launch_store(h0,b0) finish_handle(h0,0)"""


def test_a_store_of_another_life_is_not_sealed() -> None:
    """The store is decided in one life of block 1 and launched in the next, which it pins and copies as it should."""
    settings = TRANSFERS.at("two_tiers", mutant="STORE_NOT_PINNED")
    model = Model(TRANSFERS, settings)
    moves = {f"{action.__name__}({','.join(map(short, args))})": (action, args) for action, args in model.moves}
    steps = [(model.initial[0], ())] + [moves[step] for step in ANOTHER_LIFE.split()]
    broken = [{j.rule.name for j in judged(action, model.state, *args) if not j.holds} for action, args in steps]
    assert broken[-1] - LINTS == {"seal_is_earned"}
    assert not set().union(*broken[:-1]) - LINTS
