"""A damaged specification gets diagnostics that point into its text, never a crash of the compiler."""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path

import pytest
from agreement import World, run_module
from kvsan.spec.lang.diagnostics import SpecError, render
from kvsan.spec.lang.load import load
from kvsan.spec.lang.symbolic import Sizes

SOURCE = (Path(__file__).parent / "specs" / "constructs.py").read_text(encoding="utf-8")
WORD = re.compile(r"[A-Za-z_]+|\d+|[=<>+*/%|&-]+|[()\[\]:,.]")


def damaged(seed: int) -> str:
    """The source after a few random edits: words swapped, dropped or doubled, lines dropped or doubled."""
    dice = random.Random(seed)
    text = SOURCE
    for _ in range(dice.randrange(1, 4)):
        words = list(WORD.finditer(text))
        one, other = dice.choice(words), dice.choice(words)
        lines = text.splitlines(keepends=True)
        k = dice.randrange(len(lines))
        match dice.randrange(5):
            case 0:
                text = text[: one.start()] + other[0] + text[one.end() :]
            case 1:
                text = text[: one.start()] + text[one.end() :]
            case 2:
                text = text[: one.end()] + " " + other[0] + text[one.end() :]
            case 3:
                text = "".join(lines[:k] + lines[k + 1 :])
            case _:
                text = "".join([*lines[:k], lines[k], *lines[k:]])
    return text


def outcome(tmp_path: Path, text: str) -> str:
    path = tmp_path / "damaged.py"
    path.write_text(text, encoding="utf-8")
    try:
        load(path)
    except SpecError as error:
        last = len(text.splitlines()) + 1
        for diagnostic in error.diagnostics:
            assert 1 <= diagnostic.span.line <= last
            assert render(diagnostic, "damaged.py").startswith(f"error[{diagnostic.code}]: ")
        return "refused"
    return "accepted"


@pytest.mark.parametrize("batch", range(8))
def test_damage_is_reported_and_never_crashes(tmp_path: Path, batch: int) -> None:
    seen = {outcome(tmp_path, damaged(seed)) for seed in range(batch * 15, batch * 15 + 15)}
    assert "refused" in seen


def accepted_program(tmp_path: Path, seed: int) -> World | None:
    text = damaged(seed)
    if outcome(tmp_path, text) == "refused":
        return None
    path = tmp_path / f"program_{seed}.py"
    path.write_text(text, encoding="utf-8")
    spec = load(path)
    limits = {p: {"places": 3, "count": 5}.get(p, 3) for p in spec.parameters}
    return World(spec, [run_module(path)], Sizes({s: {"Cell": 3, "Row": 2}.get(s, 2) for s in spec.sorts}, limits))


@pytest.mark.slow
def test_damaged_programs_that_are_accepted_mean_the_same_in_all_evaluators(tmp_path: Path) -> None:
    """Random edits make programs that nobody thought of."""
    programs = 0
    for seed in range(300):
        world = accepted_program(tmp_path, seed)
        programs += world is not None
        for step in world.spec.of_kind("event", "settling", "action") if world is not None else ():
            assert world is not None
            for draw in range(4):
                dice = random.Random(draw)
                state = world.draw_state(dice)
                values = {p.name: world.draw(p.type, dice) for p in step.params}
                expected = world.by_python(step, state, values)
                assert world.by_functional(step, state, values) == expected
                if step.kind != "action" and not isinstance(expected, str):
                    failed, counted, _ = world.by_replay(world.machine(state), step, values)
                    assert failed == [rule for rule, holds in expected[0] if not holds]
                    assert counted == Counter(rule for rule, _ in expected[0])
    assert programs > 25


@pytest.mark.slow
def test_much_damage_is_reported_and_never_crashes(tmp_path: Path) -> None:
    for seed in range(1500):
        outcome(tmp_path, damaged(seed))
