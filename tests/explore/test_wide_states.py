"""A state of many words is an array: the steps do what the interpreter does, and the text is of one length."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from kvsan.checker.explore.design import find, scoped
from kvsan.checker.explore.explore import Prepared, explore, explore_plainly, prepare
from kvsan.checker.explore.module import build
from kvsan.checker.explore.packed import entries, pack, unpack
from kvsan.checker.explore.path import successors
from kvsan.checker.explore.recount import count, variable_of
from kvsan.checker.explore.search import Limits, Search, search
from kvsan.spec.lang import ir
from kvsan.spec.lang.interpret import Plain, holds, run
from kvsan.spec.lang.symbolic import functional, predicate

pytest.importorskip("llvmlite", reason="the compiled search needs the extra `explore`")

SPREAD = str(Path(__file__).parent / "designs" / "spread.py")
slow = pytest.mark.slow


def asked(found: Search) -> tuple[bool, ...]:
    """What a search says of its only state: of each invariant that it holds, of each witness that it is seen."""
    judges, failed = found.generated.judges, {f.judge for f in found.failures if f.code < 0}
    kinds = ("invariant", "witness")
    return tuple((k in failed) == (j.kind == "witness") for k, j in enumerate(judges) if j.kind in kinds)


def made(source: str, changes: dict[str, str] | None = None, symmetry: str = "none") -> Prepared:
    design = find(source)
    return prepare(design, scoped(design, changes), symmetry)


def states(prepared: Prepared, number: int) -> list[Plain]:
    """Random ones, full and nearly empty, with their counters."""
    rng, model, out = random.Random(5), prepared.model, list[Plain]()
    for _ in range(number):
        state: Plain = {}
        for name, field in model.layout.fields.items():
            often = rng.choice((0.03, 0.5, 0.97))
            least, top = (0, field.values - 2) if field.optional else (1, field.values - 1)
            held = {index: rng.randint(least, top) for _, index in entries(field) if rng.random() < often}
            if name == "group":
                held = {i: frozenset(n for n in range(5) if v >> n & 1) for i, v in held.items()}
            if name == "holds":
                held = dict.fromkeys(held, True)
            state |= {name: held} if held else {}
        out.append(counting(prepared, state))
    return out


def counting(prepared: Prepared, state: Plain) -> Plain:
    """The state with what its facts count in it."""
    model = prepared.model
    found = {variable_of(f): count(f, model.variables, model.sizes, state) for f in model.counted}
    return {**state, **{name: counts for name, counts in found.items() if counts}}


def stored(prepared: Prepared, state: Plain) -> Plain:
    return {n: held for n, held in state.items() if n in prepared.model.layout.fields}


def test_steps_and_questions_are_those_of_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over states in which every entry has been something, so that a wrong word or shift is seen."""
    monkeypatch.setattr("kvsan.checker.explore.layout.MOST_NAMED", 0)  # the counters' words too
    prepared = made(SPREAD)
    model, even = prepared.model, {f.name: f.even for f in prepared.model.working.fields.values() if f.even}
    assert set(even) == {"table", "wide", "holds", "line", "level", "group", "owner", "aims"}
    forms = {a.name: functional(a, model.variables, model.sizes) for a in model.actions}
    sights = [predicate(w, model.variables, model.sizes) for w in (*model.invariants, *model.witnesses)]
    module = build(prepared.generated.source)
    taken = set[str]()
    seen = list[tuple[bool, ...]]()
    for state in states(prepared, 20):
        found = search(model, prepared.generated, module, [state], Limits(depth=0), stop=False)
        answers = tuple(bool(holds(s, model.variables, state)) for s in sights)
        assert asked(found) == answers
        seen.append(answers)
        expected = {}
        for code in range(model.bases[-1]):
            action, values = model.decode(code)
            given = {p.name: v for p, v in zip(action.params, values, strict=True)}
            outcome = run(forms[action.name], model.variables, state, given)
            if outcome.enabled and outcome.defined and answers[0]:
                taken.add(action.name)
                if action.name != "aim_uncounted":  # that is reported, and not gone on with
                    expected[code] = stored(prepared, outcome.after)
        after = {code: unpack(words, model.layout) for code, words, _ in successors(found, pack(state, model.layout))}
        assert after == expected
    assert taken == {a.name for a in model.actions}
    assert [set(answers) for answers in zip(*seen, strict=True)] == [{True, False}] * len(sights)


@slow
@pytest.mark.parametrize(
    ("design", "changes", "depth"),
    [
        ("tail_copy", {"branches": "8", "blocks": "9"}, 2),
        ("paged_cow", {"branches": "4", "blocks": "8"}, 3),
        ("prefix_append_only", {"branches": "4", "blocks": "8"}, 4),
        ("prefix_cow", {"branches": "3", "blocks": "6"}, 5),
        ("speculative", {"branches": "4", "blocks": "8"}, 3),
        ("transfers", {"branches": "4", "blocks": "6"}, 3),
    ],
)
def test_our_designs_have_the_states_that_the_interpreter_finds(
    design: str, changes: dict[str, str], depth: int
) -> None:
    prepared = made(design, changes)
    assert prepared.model.layout.spread
    found, plain = (search(prepared, Limits(depth=depth)) for search in (explore, explore_plainly))
    for name in ("states", "levels", "actions", "judged", "fan", "verdict"):
        assert getattr(found, name) == getattr(plain, name), name


# --- the length of the text -------------------------------------------------------------------------------------------

WIDER = [
    ("tail_copy", "full", {"branches": 10, "blocks": 12}),
    pytest.param("tail_copy", "none", {"branches": 10, "blocks": 12}, marks=slow),
    pytest.param("paged_cow", "none", {"branches": 4, "blocks": 8}, marks=slow),
    pytest.param("prefix_append_only", "none", {"branches": 4, "blocks": 8}, marks=slow),
    pytest.param("prefix_cow", "none", {"branches": 3, "blocks": 6}, marks=slow),
    pytest.param("speculative", "none", {"branches": 4, "blocks": 8}, marks=slow),
    pytest.param("transfers", "none", {"branches": 4, "blocks": 6}, marks=slow),
]
"""Scopes that take an array."""
MOST_BLOCKS = 62
"""A set of blocks has no more."""


@pytest.mark.parametrize(("design", "symmetry", "scope"), WIDER)
def test_the_text_does_not_grow_with_the_scope(design: str, symmetry: str, scope: dict[str, int]) -> None:
    """Compiling takes as long as the text is. A field that no longer fits in a word has a line or two more wherever it
    is read; a choice between its words would make the text several times as long."""
    times = 3 if symmetry == "full" else 10  # more blocks than that cannot be sorted
    small = made(design, {n: str(v) for n, v in scope.items()}, symmetry)
    large = made(design, {n: str(min(times * v, MOST_BLOCKS)) for n, v in scope.items()}, symmetry)
    assert small.model.layout.spread and small.symmetry == large.symmetry
    assert large.model.layout.words > 5 * small.model.layout.words
    before, after = small.generated.source, large.generated.source
    assert len(after) < 1.3 * len(before)
    assert len(after.splitlines()) < 1.2 * len(before.splitlines())


def test_an_initial_step_has_no_choice_for_each_block() -> None:
    """The loop that takes blocks for the prompt is decided where the state before it is known."""
    design = find("tail_copy")
    chosen = scoped(design, {"branches": "30", "blocks": "100"})
    (step,) = design.spec.of_kind("initial")
    form = functional(step, design.spec.variables, chosen.sizes, chosen.constants)
    assert {u.path for updates in form.updates.values() for u in updates} == {ir.TRUE}
    assert len(form.defined) < 10
