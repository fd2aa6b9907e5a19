"""Asking all entries of a word at once gives the interpreter's answer, in states of all kinds."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from kvsan.checker.explore.design import find, scoped
from kvsan.checker.explore.emit_expr import Emitter, Places
from kvsan.checker.explore.layout import Layout, layout
from kvsan.checker.explore.packed import entries, pack
from kvsan.checker.explore.writer import Writer
from kvsan.spec.lang import ir
from kvsan.spec.lang.interpret import Plain, value
from kvsan.spec.lang.symbolic import Sizes, predicate

DESIGN = find(str(Path(__file__).parent / "designs" / "anywhere.py"))
SIZES = scoped(DESIGN).sizes
VARIABLES = DESIGN.spec.variables
LAYOUT = layout(VARIABLES.values(), SIZES)
ASKED = {s.name.removeprefix("can_"): s for s in DESIGN.spec.of_kind("witness")}
NEVER = ("heaped", "beyond")
LOOPED = {
    *("all_aim_at", "aimed_or_not_held", "some_hold_only", "holds_far", "heaped", "beyond", "other_row", "own_row"),
    *("repeat", "peer_holds", "level_of_a_cell", "hold_what_another_has", "be_alone", "hold_like"),
}


def written(step: ir.Step, placed: Layout = LAYOUT, sizes: Sizes = SIZES) -> list[str]:
    """The lines that compute a witness, which are Python too."""
    assert step.value is not None
    emit = Emitter(Writer(), placed, VARIABLES, {}, sizes, Places(0))
    with emit.out.block(f"def asked({'*w' if placed.spread else emit.words.names('w')})"):
        emit.out.line(f"return {emit.expr(step.value).text}")
    return emit.out.lines


def compiled(step: ir.Step, placed: Layout = LAYOUT, sizes: Sizes = SIZES) -> Callable[..., bool]:
    made: dict[str, Callable[..., bool]] = {}
    exec("\n".join(written(step, placed, sizes)), made)
    return made["asked"]


def states(count: int) -> list[Plain]:
    """Random ones, full and nearly empty."""
    rng, out = random.Random(7), list[Plain]()
    for n in range(count):
        state: Plain = {}
        for name, field in LAYOUT.fields.items():
            often = rng.choice((0.02, 0.2, 0.9))
            some = [index for _, index in entries(field) if rng.random() < often]
            top = field.values - (2 if field.optional else 1)
            low = 0 if field.optional else 1
            last = top if n % 3 == 0 else rng.randint(low, top)  # few values, so that some are nowhere
            state[name] = {i: rng.randint(low, last) for i in some}
        out.append({name: held for name, held in state.items() if held})
    return out


STATES = states(150)


@pytest.fixture(params=["names", "an array"])
def placed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Layout:
    if request.param == "an array":
        monkeypatch.setattr("kvsan.checker.explore.layout.MOST_NAMED", 0)
    return layout(VARIABLES.values(), SIZES)


@pytest.mark.parametrize("name", ASKED)
def test_the_answer_is_that_of_the_interpreter(name: str, placed: Layout) -> None:
    condition, asked = predicate(ASKED[name], VARIABLES, SIZES).condition, compiled(ASKED[name], placed)
    answers = [bool(value(condition, VARIABLES, state, {})) for state in STATES]
    assert [bool(asked(*pack(state, placed))) for state in STATES] == answers
    assert len(set(answers)) == (1 if name in NEVER else 2)


def test_what_takes_no_bits_is_not_looked_for_in_a_word() -> None:
    alone = scoped(DESIGN, {"branches": "1"}).sizes
    small = layout(VARIABLES.values(), alone)
    assert compiled(ASKED["be_peer"], small, alone)(*pack({}, small))


def test_only_questions_about_every_entry_are_asked_at_once() -> None:
    """The others have a loop for each of their names."""
    assert len(LAYOUT.fields["wide"].chunks) > 1
    loops = {name: sum(line.lstrip().startswith("for ") for line in written(step)) for name, step in ASKED.items()}
    quantifiers = {name: str(step.value).count("Quantifier(") for name, step in ASKED.items()}
    assert {name for name in ASKED if loops[name] == quantifiers[name]} == LOOPED
