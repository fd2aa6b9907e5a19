"""Three evaluators of one source agree: plain Python, the functional form, and the emitted replay code."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import kvsan.spec.ownership as ownership
import pytest
from agreement import World, run_module
from hypothesis import given, settings
from hypothesis import strategies as st
from kvsan.spec.lang import interpret, ir
from kvsan.spec.lang.load import load
from kvsan.spec.lang.symbolic import Sizes, predicate

CONSTRUCTS = Path(__file__).parent / "specs" / "constructs.py"


def constructs() -> World:
    sizes = Sizes({"Cell": 3, "Row": 2}, {"places": 3, "count": 5})
    return World(load(CONSTRUCTS), [run_module(CONSTRUCTS)], sizes)


def discipline() -> World:
    import importlib

    modules = ["state", "rules", "ledger", "blocks", "branches", "contents", "identities", "quiescence"]
    found = [importlib.import_module(f"{ownership.__name__}.{m}") for m in modules]
    spec = load("kvsan.spec.ownership")
    sizes = Sizes(
        {"Block": 3, "Branch": 2} | {s: 2 for s in spec.sorts if s not in ("Block", "Branch")},
        {p: {"positions": 3, "block_size": 2, "tokens": 9, "count": 9}.get(p, 5) for p in spec.parameters},
    )
    return World(spec, found, sizes)


WORLDS = {"constructs": constructs(), "ownership": discipline()}
STEPS = [(n, s.name) for n, w in WORLDS.items() for s in w.spec.of_kind("event", "settling", "action", "initial")]
EVENTS = [(n, s.name) for n, w in WORLDS.items() for s in w.spec.of_kind("event", "settling")]
SEEDS = st.integers(min_value=0, max_value=2**32)


def drawn(world: World, step: ir.Step, seed: int) -> tuple[interpret.Plain, dict[str, interpret.Value]]:
    dice = random.Random(seed)
    state = world.draw_state(dice)
    return state, {p.name: world.draw(p.type, dice) for p in step.params}


@pytest.mark.parametrize(("name", "step"), STEPS)
@settings(max_examples=15, deadline=None, derandomize=True)
@given(seed=SEEDS)
def test_functional_form_agrees_with_plain_python(name: str, step: str, seed: int) -> None:
    world = WORLDS[name]
    state, values = drawn(world, world.spec.steps[step], seed)
    assert world.by_functional(world.spec.steps[step], state, values) == world.by_python(
        world.spec.steps[step], state, values
    )


def without_constants_and_ghosts(world: World, state: interpret.Plain) -> interpret.Plain:
    """What a replay machine holds: Const scalars are in its code, ghosts are the explorer's."""
    variables = world.spec.variables
    return {
        n: e for n, e in state.items() if not ((variables[n].const and not variables[n].keys) or variables[n].ghost)
    }


@pytest.mark.parametrize(("name", "step"), EVENTS)
@settings(max_examples=10, deadline=None, derandomize=True)
@given(seed=SEEDS)
def test_replay_code_agrees_with_plain_python(name: str, step: str, seed: int) -> None:
    world = WORLDS[name]
    state, values = drawn(world, world.spec.steps[step], seed)
    expected = world.by_python(world.spec.steps[step], state, values)
    if expected == "undefined":
        return
    judged, after = expected
    failed, counted, replayed = world.by_replay(world.machine(state), world.spec.steps[step], values)
    assert failed == [rule for rule, holds in judged if not holds]
    assert counted == Counter(rule for rule, _ in judged)
    held = without_constants_and_ghosts(world, replayed)
    assert held == without_constants_and_ghosts(world, after)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(seed=SEEDS)
def test_predicates_agree_with_plain_python(seed: int) -> None:
    world = WORLDS["constructs"]
    for step in world.spec.of_kind("invariant", "witness"):
        state = world.draw_state(random.Random(seed))
        value = interpret.holds(predicate(step, world.spec.variables, world.sizes), world.spec.variables, state)
        assert value == world.python(step.name)(world.python_state(state))


def test_random_states_reach_defined_and_undefined_steps_with_both_verdicts() -> None:
    """The tests above are not vacuous: every event runs defined somewhere, and obligations hold and fail."""
    world, seen = WORLDS["constructs"], Counter[str]()
    for step in world.spec.of_kind("event", "settling"):
        for seed in range(60):
            outcome = world.by_python(step, *drawn(world, step, seed))
            if isinstance(outcome, str):
                seen[outcome] += 1
            else:
                seen[f"{step.name} defined"] += 1
                seen.update(f"{rule} {holds}" for rule, holds in outcome[0])
    wanted = [f"{s.name} defined" for s in world.spec.of_kind("event", "settling")]
    wanted += ["undefined", *(f"{r} {h}" for r in ("small", "tidy", "pretty") for h in (True, False))]
    assert all(seen[w] > 0 for w in wanted), seen
