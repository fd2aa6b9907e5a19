"""A counter that its fact defines takes no bits of a state, and a step that keeps it otherwise breaks the fact."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from kvsan.checker.explore import recount
from kvsan.checker.explore.design import find, scoped
from kvsan.checker.explore.emit import Model
from kvsan.checker.explore.explore import Exploration, explore, prepare
from kvsan.checker.explore.model import model, starts
from kvsan.checker.explore.recount import count, recounted, variable_of
from kvsan.spec.lang import ir
from kvsan.spec.lang.interpret import Plain, run
from kvsan.spec.lang.symbolic import functional

TUTORIAL = Path(__file__).parents[2] / "spec" / "TUTORIAL.md"
MISCOUNTED = str(Path(__file__).parent / "designs" / "miscounted.py")
slow = pytest.mark.slow


def made(design: str, changes: dict[str, str] | None = None, scope: str = "") -> tuple[Model, list[Plain]]:
    found = find(design)
    chosen = scoped(found, changes, scope)
    begun = starts(found.spec, chosen)
    return model(found.spec, chosen, begun), [s.state for s in begun]


def frozen(state: Plain) -> frozenset[object]:
    return frozenset((n, frozenset(entries.items())) for n, entries in state.items())


def reached(model: Model, states: list[Plain]) -> list[Plain]:
    """Every state, with the counters as the steps keep them."""
    forms = {a.name: functional(a, model.variables, model.sizes) for a in model.actions}
    seen = set(map(frozen, states))
    for state in states:
        for code in range(model.bases[-1]):
            action, values = model.decode(code)
            given = {p.name: v for p, v in zip(action.params, values, strict=True)}
            outcome = run(forms[action.name], model.variables, state, given)
            if outcome.enabled and frozen(outcome.after) not in seen:
                seen.add(frozen(outcome.after))
                states.append(outcome.after)
    return states


@pytest.mark.parametrize(
    ("design", "changes", "scope"),
    [
        (MISCOUNTED, {}, ""),
        ("tail_copy", {"branches": "2", "blocks": "3"}, ""),
        pytest.param("tail_copy", {}, "two_branches", marks=slow),
        pytest.param("paged_cow", {"blocks": "2", "positions": "1"}, "", marks=slow),
        pytest.param("prefix_append_only", {"blocks": "2"}, "", marks=slow),
        pytest.param("speculative", {}, "one_block", marks=slow),
        pytest.param("speculative", {}, "one_branch_append_only", marks=slow),
    ],
)
def test_what_steps_keep_is_what_the_facts_count_in_every_state(
    design: str, changes: dict[str, str], scope: str
) -> None:
    model, begun = made(design, changes, scope)
    assert model.counted
    assert not {variable_of(f) for f in model.counted} & set(model.layout.fields)
    for state in reached(model, begun):
        for fact in model.counted:
            assert count(fact, model.variables, model.sizes, state) == state.get(variable_of(fact), {})


def searched(forgets: bool) -> Exploration:
    pytest.importorskip("llvmlite", reason="the compiled search needs the extra `explore`")
    design = find(MISCOUNTED)
    return explore(prepare(design, scoped(design, {"forgets": str(forgets)}), "none"))


def test_a_counter_that_is_not_stored_guards_steps_as_it_did() -> None:
    found = searched(False)
    assert (found.verdict, found.variables) == ("HOLDS", ("taken",))
    assert found.states == 25  # of the 27 ways to give 3 blocks to nobody or one of 2, all but those with 3 for one


def test_a_step_that_miscounts_breaks_the_fact() -> None:
    found = searched(True)
    assert [(v.rule, len(v.steps)) for v in found.violations] == [("has_counted", 2)]


def test_a_counter_is_stored_where_what_it_counts_is_not_in_the_state() -> None:
    model, _ = made("tail_copy", {"branches": "2", "blocks": "3"})
    kept = {n: model.variables[n] for n in model.working.fields}
    assert [variable_of(f) for f in recounted(model.counted, kept, model.sizes)] == ["places", "owners"]
    del kept["table"]
    assert recounted(model.counted, kept, model.sizes) == ()  # owners are told by places


def test_a_counter_is_stored_that_is_not_derived_has_no_room_or_may_be_undefined() -> None:
    model, _ = made(MISCOUNTED)
    (fact,), kept = model.counted, {n: model.variables[n] for n in model.working.fields}
    name = variable_of(fact)
    assert fact.value is not None and recounted((fact,), kept, model.sizes) == (fact,)
    assert recounted((fact,), kept | {name: replace(kept[name], derived=False)}, model.sizes) == ()
    narrow = replace(kept[name], value=ir.NatType("narrow"))
    for most, counts in ((3, ()), (4, (fact,))):  # of three blocks
        sizes = replace(model.sizes, limits={**model.sizes.limits, "narrow": most})
        assert recounted((fact,), kept | {name: narrow}, sizes) == counts
    one = ir.Const(1, ir.NAT)
    partial = ir.Compare("==", ir.Arith("//", one, one, ir.NAT), one)
    assert recounted((replace(fact, value=ir.And((fact.value, partial))),), kept, model.sizes) == ()


@pytest.mark.parametrize(
    ("changes", "words"), [({"branches": "4", "blocks": "7"}, 5), ({"blocks": "6", "positions": "3"}, 4)]
)
def test_a_state_of_the_reference_machine_takes_few_words(changes: dict[str, str], words: int) -> None:
    assert made("tail_copy", changes)[0].layout.words == words


def test_a_step_that_counts_of_its_own_accord_is_held_to_the_fact_for_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the events of the ledger the first states are enough; here nothing has shown that it counts right."""
    monkeypatch.setattr(recount, "JUDGED", 0)
    text = TUTORIAL.read_text(encoding="utf-8").partition("```python file=beams.py\n")[2].partition("```")[0]
    path = tmp_path / "beams.py"
    path.write_text(text.replace("        unmap(s, r, p, b)\n", "        unmap(s, r, p, b)\n        s.owners[b] = 0\n"))
    design = find(str(path))
    found = explore(prepare(design, scoped(design)))
    assert [v.rule for v in found.violations] == ["owners_counted"]
