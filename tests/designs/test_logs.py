"""One theory: a counterexample of a design is a log that the checker judges the same, a right walk one that holds."""

from __future__ import annotations

import random
import re
from functools import cache

import pytest
from kvsan.checker.explore.design import find, scoped
from kvsan.checker.explore.log import Way, way
from kvsan.checker.replay.check import check
from kvsan.spec.designs.catalog import DESIGNS, PAGED_COW, PREFIX_COW, TRANSFERS, Design, Mutant
from kvsan.spec.designs.settings import Settings
from kvsan.spec.lang.surface import NotEnabled, judged
from plain_search import Model, search, short

LINTS = {"needless_copy", "sealed_twice", "recomputed_sealed"}
ROOMY = {
    "tail_copy": "three_positions",
    "paged_cow": "three_positions",
    "prefix_append_only": "full_prompt",
    "speculative": "one_slot_tail",
    "transfers": "tiers_raced",
    "prefix_cow": "three_positions",
}
STORED = """admit_request(r0) admit_request(r1) take_block(r0,b1) take_block(r0,b2) prefill(r0) finish_step(r0)
    claim_store(r0,h0) claim_store(r0,h1) launch_store(h0,b0) finish_handle(h0,0) look_up(r1,b0,h0)"""
RACED = {
    "tiers_raced": {
        "lookup_not_pinned": f"{STORED} launch_store(h1,b0)",
        "source_freed_at_launch": f"{STORED} launch_fetch(h0,b3) launch_store(h1,b0)",
    }
}
"""Scopes out of reach of the plain search, with the ways that the compiled one finds."""
CASES = [
    pytest.param(d, m, id=f"{d.name}-{m.name}", marks=[pytest.mark.slow] if m.steps >= 8 else [])
    for d in DESIGNS.values()
    for m in d.mutants
    if m.rule not in LINTS and m.scope not in RACED
]


known = cache(find)


def log_of(design: Design, settings: Settings, steps: list[str]) -> Way:
    """The steps `fork_branch(r0, r1)` as a log."""
    split = [(step.split("(")[0], [int(n) for n in re.findall(r"\d+", step.split("(")[1])], step) for step in steps]
    found = known(design.name)
    changes = {name: str(value) for name, value in settings.items()}
    return way(found, scoped(found, changes), split)


@pytest.mark.parametrize(("design", "mutant"), CASES)
def test_a_counterexample_breaks_the_same_rule_at_the_same_event_of_its_log(design: Design, mutant: Mutant) -> None:
    settings = design.at(mutant.scope, mutant=mutant.name.upper())
    steps = search(design, settings, stop_at=mutant.rule).violations[mutant.rule]
    log = log_of(design, settings, steps)
    told = [(v.rule, v.line) for v in check(log.lines).violations]
    first = min(line for _, line in log.broken)
    assert (mutant.rule, first) in log.broken
    assert (mutant.rule, first) in told
    assert min(line for _, line in told) == first


@pytest.mark.parametrize("mutant", [m for m in TRANSFERS.mutants if m.scope in RACED], ids=lambda m: m.name)
def test_a_race_of_two_tiers_breaks_the_same_rule_at_the_same_event_of_its_log(mutant: Mutant) -> None:
    steps = RACED[mutant.scope][mutant.name].split()
    log = log_of(TRANSFERS, TRANSFERS.at(mutant.scope, mutant=mutant.name.upper()), steps)
    assert len(steps) == mutant.steps
    assert [rule for rule, _ in log.broken] == [mutant.rule]
    assert [(v.rule, v.line) for v in check(log.lines).violations] == list(log.broken)
    assert log.lines[0]["pools"] == {"cpu": {"blocks": 1, "block_size": 2}}
    copies = [line for line in log.lines if line["ev"] == "copy"]
    assert [(c.get("src_pool"), c.get("dst_pool")) for c in copies[:1]] == [(None, "cpu")]  # a store
    assert all(line.get("pool") == "cpu" for line in log.lines if line.get("block") == copies[0]["dst"])


SHARED = """admit_branch(r0) take_block(r0,b0) prefill(r0) finish_step(r0) fork_branch(r0,r1) fork_branch(r1,r2)
    end_branch(r1)"""


@pytest.mark.parametrize(("last", "copies"), [("append_in_copy(r2,b1)", 1), ("end_branch(r0) append_in_place(r2)", 0)])
def test_who_is_left_alone_with_a_shared_tail_appends_in_place(last: str, copies: int) -> None:
    """No state tells who once was there: a way shows that the last owner needs no copy, and a step before it does."""
    log = log_of(PAGED_COW, PAGED_COW.at("three_writers"), [*SHARED.split(), *last.split()])
    assert sum(line["ev"] == "copy" for line in log.lines) == copies
    assert check(log.lines).violations == ()


def test_who_is_not_alone_yet_may_not_append_in_place() -> None:
    settings = PAGED_COW.at("three_writers", mutant="APPEND_WITHOUT_COPY")
    log = log_of(PAGED_COW, settings, [*SHARED.split(), "append_in_place(r2)"])
    assert [rule for rule, _ in log.broken] == ["exclusive_write"]


def test_what_failed_is_written_as_failed() -> None:
    steps = (
        "admit_request(r0) take_block(r0,b0) take_block(r0,b1) start_load(r0,h0) fail_handle(h0,0) finish_handle(h0,1)"
    )
    log = log_of(TRANSFERS, TRANSFERS.at("several_handles"), steps.split())
    done = [(line["op"], line.get("ok")) for line in log.lines if line["ev"] == "done"]
    assert done == [("load1", False), ("load2", None)]
    assert check(log.lines).violations == ()


def test_a_step_that_is_learned_was_its_copies_too() -> None:
    steps = """admit_request(r0) take_block(r0,b0) schedule_prefill(r0) launch_built() admit_request(r1)
        find_tail(r1,b0,h0) schedule_behind_copy(r1,b1) launch_built() process_step() process_step()"""
    log = log_of(PREFIX_COW, PREFIX_COW.at(), steps.split())
    assert [line["op"] for line in log.lines if line["ev"] == "done"] == ["step1", "copies2", "step3"]
    assert [line["op"] for line in log.lines if line["ev"] == "copy"] == ["copies2"]
    assert check(log.lines).violations == ()


REUSE = """admit_branch(r0) take_block(r0,b0) prefill(r0) finish_step(r0) fork_branch(r0,r2)
    admit_branch(r1) take_block(r1,b1) prefill(r1) end_branch(r1) append_in_copy(r0,b1)"""


def test_a_copy_that_ignores_steps_meets_one_that_outlives_its_branch() -> None:
    """The last step of this walk alone is wrong, and by the order of device work alone."""
    settings = PAGED_COW.at("event_wait_three_branches", mutant="COPY_IGNORES_STEPS")
    steps = [step.replace(",", ", ") for step in REUSE.split()]
    log = log_of(PAGED_COW, settings, steps)
    ((rule, line),) = log.broken
    assert (rule, log.lines[line - 1]["ev"]) == ("no_reuse_in_flight", "copy")
    assert [(v.rule, v.line) for v in check(log.lines).violations] == [(rule, line)]
    right = PAGED_COW.at("event_wait_three_branches")
    log = log_of(PAGED_COW, right, steps)
    assert log.broken == ()
    assert check(log.lines).violations == ()


def random_walk(model: Model, length: int, dice: random.Random) -> list[str]:
    """The names of steps that the design can take one after the other."""
    judged(model.initial[0], model.state)
    steps: list[str] = []
    for _ in range(length):
        for action, args in dice.sample(model.moves, len(model.moves)):
            try:
                judged(action, model.state, *args)
            except NotEnabled:
                continue
            steps.append(f"{action.__name__}({', '.join(map(short, args))})")
            break
    return steps


@pytest.mark.parametrize("schedule", ["HOST_WAIT", "SAME_STREAM", "EVENT_WAIT"])
@pytest.mark.parametrize("seed", range(6))
def test_a_walk_of_a_right_design_is_a_log_that_holds(schedule: str, seed: int) -> None:
    dice = random.Random(seed)
    for design in DESIGNS.values():
        if "schedule" not in design.settings and schedule != "SAME_STREAM":
            continue
        settings = design.at(ROOMY[design.name])
        if "schedule" in settings:
            settings["schedule"] = schedule
        log = log_of(design, settings, random_walk(Model(design, settings), 80, dice))
        outcome = check(log.lines)
        assert log.broken == ()
        assert [(v.rule, v.line, v.message) for v in outcome.violations] == []
        assert outcome.verdict == "HOLDS"
