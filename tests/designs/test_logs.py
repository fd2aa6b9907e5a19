"""One theory: a counterexample of a design is a log that the checker judges the same, a right walk one that holds."""

from __future__ import annotations

import random

import pytest
from kvsan.checker.replay.check import check
from kvsan.spec.designs.catalog import DESIGNS, PAGED_COW, Design, Mutant
from kvsan.spec.lang.surface import NotEnabled, performed
from plain_log import begin, record, walk
from plain_search import Model, search

LINTS = {"needless_copy", "sealed_twice", "recomputed_sealed"}
ROOMY = {"tail_copy": "three_positions", "paged_cow": "three_positions", "prefix_append_only": "full_prompt"}
CASES = [
    pytest.param(d, m, id=f"{d.name}-{m.name}", marks=[pytest.mark.slow] if m.steps >= 8 else [])
    for d in DESIGNS.values()
    for m in d.mutants
    if m.rule not in LINTS
]


@pytest.mark.parametrize(("design", "mutant"), CASES)
def test_a_counterexample_breaks_the_same_rule_at_the_same_event_of_its_log(design: Design, mutant: Mutant) -> None:
    settings = design.at(mutant.scope, mutant=mutant.name.upper())
    steps = search(design, settings, stop_at=mutant.rule).violations[mutant.rule]
    log = walk(Model(design, settings), begin(design, settings), steps)
    told = [(v.rule, v.line) for v in check(log.lines).violations]
    first = min(line for _, line in log.broken)
    assert (mutant.rule, first) in log.broken
    assert (mutant.rule, first) in told
    assert min(line for _, line in told) == first


REUSE = """admit_branch(r0) take_block(r0,b0) prefill(r0) finish_step(r0) fork_branch(r0,r2)
    admit_branch(r1) take_block(r1,b1) prefill(r1) end_branch(r1) append_in_copy(r0,b1)"""


def test_a_copy_that_ignores_steps_meets_one_that_outlives_its_branch() -> None:
    """The last step of this walk alone is wrong, and by the order of device work alone."""
    settings = PAGED_COW.at("event_wait_three_branches", mutant="COPY_IGNORES_STEPS")
    steps = [step.replace(",", ", ") for step in REUSE.split()]
    log = walk(Model(PAGED_COW, settings), begin(PAGED_COW, settings), steps)
    ((rule, line),) = log.broken
    assert (rule, log.lines[line - 1]["ev"]) == ("no_reuse_in_flight", "copy")
    assert [(v.rule, v.line) for v in check(log.lines).violations] == [(rule, line)]
    right = PAGED_COW.at("event_wait_three_branches")
    log = walk(Model(PAGED_COW, right), begin(PAGED_COW, right), steps)
    assert log.broken == []
    assert check(log.lines).violations == ()


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
        model, log = Model(design, settings), begin(design, settings)
        walk(model, log, [])
        for _ in range(80):
            for action, args in dice.sample(model.moves, len(model.moves)):
                try:
                    record(log, performed(action, model.state, *args))
                    break
                except NotEnabled:
                    continue
        outcome = check(log.lines)
        assert log.broken == []
        assert [(v.rule, v.line, v.message) for v in outcome.violations] == []
        assert outcome.verdict == "HOLDS"
