"""Each `require` dropped in turn is caught, redundant or unnoticed; an oracle without a compiler says the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from kvsan.checker.explore.design import Design, find, scoped
from kvsan.checker.explore.guards import Broken, Drop, drops, guards
from kvsan.checker.explore.model import model, starts
from kvsan.checker.explore.mutants import without_guards
from kvsan.checker.explore.packed import pack
from kvsan.checker.explore.search import Limits
from kvsan.spec.lang.interpret import Plain, run
from kvsan.spec.lang.symbolic import functional

pytest.importorskip("llvmlite", reason="the compiled search needs the extra `explore`")

MACHINE = str(Path(__file__).parents[1] / "explore" / "designs" / "tail_machine.py")
TWO = {"branches": "2", "blocks": "4"}

NEEDED = {
    ("fork", "s.phase[r] == IDLE"): ("exclusive_write", 2),
    ("fork", "not s.alive[c]"): ("defined", 2),
    ("grow", "can_append(s, r)"): ("refs_cover_holds", 2),
    ("grow", "tail_slot(s, r) == 0"): ("refs_cover_holds", 1),
    ("append_in_place", "s.refs[tail(s, r)] == 1 or s.shared_append"): ("exclusive_write", 2),
    ("start_copy", "can_append(s, r)"): ("refs_cover_holds", 3),
    ("start_copy", "s.refs[b] == 0"): ("refs_cover_holds", 3),
    ("finish_copy", "s.phase[r] == COPYING"): ("defined", 1),
    ("publish", "s.phase[r] == COPIED or (s.early_publish and s.phase[r] == COPYING)"): ("defined", 1),
    ("finish_write", "s.phase[r] == WRITING"): ("defined", 1),
}
REDUNDANT = {
    ("grow", "s.refs[b] == 0"): 0,
    ("append_in_place", "tail_slot(s, r) != 0"): 0,
    ("start_copy", "tail_slot(s, r) != 0"): 0,
    ("cancel", "s.alive[r]"): 8,
    ("start_copy", "s.refs[tail(s, r)] > 1"): 4,
}
"""With the transitions that are more: between states that are reached anyway."""
UNNOTICED = {
    ("fork", "s.alive[r]"): (785, 2944),
    ("append_in_place", "can_append(s, r)"): (14, 59),
}


@pytest.fixture(scope="module")
def machine() -> Design:
    return find(MACHINE)


@pytest.fixture(scope="module")
def dropped(machine: Design) -> list[Drop]:
    return list(drops(machine, scoped(machine, TWO)))


def key(drop: Drop) -> tuple[str, str]:
    return drop.guard.action, drop.guard.text


def test_every_require_is_dropped_once(machine: Design, dropped: list[Drop]) -> None:
    source = Path(MACHINE).read_text()
    assert len(dropped) == source.count("    require(") == len(guards(machine.spec))
    lines = source.splitlines()
    assert all(f"require({d.guard.text})" in lines[d.guard.span.line - 1] for d in dropped)


def test_a_needed_guard_is_caught_by_a_rule_after_the_shortest_way(dropped: list[Drop]) -> None:
    found = {key(d): (d.finding.rule, len(d.finding.steps)) for d in dropped if d.finding}
    assert found == NEEDED
    assert {key(d) for d in dropped if d.result == "caught"} == set(NEEDED)


def test_without_a_redundant_guard_the_same_states_are_reached(dropped: list[Drop]) -> None:
    found = [d for d in dropped if d.result == "redundant"]
    assert {key(d): d.more_transitions for d in found} == REDUNDANT
    assert all((d.states, d.transitions - d.more_transitions, d.more_states) == (23, 71, 0) for d in found)


def test_what_no_rule_notices_is_said_with_a_way_there(dropped: list[Drop]) -> None:
    found = [d for d in dropped if d.result == "unnoticed"]
    assert {key(d): (d.more_states, d.more_transitions) for d in found} == UNNOTICED
    assert all(d.first for d in found)
    first = next(d.first for d in found if d.guard.action == "append_in_place")
    assert [s.text for s in first] == ["fork(r0, r1)", "start_copy(r0, b2)", "cancel(r1)", "append_in_place(r0)"]


def counted(design: Design, without: int) -> tuple[int, int]:
    """States and transitions of a design without one guard (0: with all), by the interpreter, without symmetry."""
    chosen, number = scoped(design, TWO), 0
    steps = dict(design.spec.steps)
    for action in design.spec.of_kind("action"):
        kept = []
        for condition in action.guard:
            number += 1
            kept += [condition] if number != without else []
        steps[action.name] = replace(action, guard=tuple(kept))
    begun = starts(design.spec, chosen)
    made = model(replace(design.spec, steps=steps), chosen, begun)
    whole = model(design.spec, chosen, begun)  # its layout: the variables that the right design needs
    forms = {a.name: functional(a, made.variables, made.sizes) for a in made.actions}
    seen, queue, taken = {pack(begun[0].state, whole.layout)}, list[Plain]([begun[0].state]), 0
    for state in queue:
        for code in range(made.bases[-1]):
            action, values = made.decode(code)
            given = {p.name: v for p, v in zip(action.params, values, strict=True)}
            outcome = run(forms[action.name], made.variables, state, given)
            taken += outcome.enabled
            if outcome.enabled and (words := pack(outcome.after, whole.layout)) not in seen:
                seen.add(words)
                queue.append(outcome.after)
    return len(seen), taken


@pytest.mark.slow
def test_an_oracle_without_a_compiler_counts_the_same(machine: Design) -> None:
    for drop in drops(machine, scoped(machine, TWO), "none", only={7, 8, 13}):
        assert drop.result == {7: "redundant", 8: "unnoticed", 13: "redundant"}[drop.guard.number]
        assert (drop.states, drop.transitions) == counted(machine, drop.guard.number)
        assert (drop.states - drop.more_states, drop.transitions - drop.more_transitions) == counted(machine, 0)


def test_a_design_that_is_wrong_itself_is_refused() -> None:
    tidy = find(str(Path(MACHINE).with_name("tidy.py")))
    with pytest.raises(Broken, match="tidy itself breaks clean in this scope"):
        next(drops(tidy, scoped(tidy)))


def test_a_limit_leaves_a_guard_unknown(machine: Design) -> None:
    found = list(drops(machine, scoped(machine, TWO), only={2}, limits=Limits(states=300)))
    assert [d.result for d in found] == ["unknown"]


@pytest.mark.slow
def test_a_later_scope_in_which_the_design_is_wrong_is_left_out(machine: Design) -> None:
    right, wrong = scoped(machine, TWO), scoped(machine, {**TWO, "shared_append": "true"})
    found = without_guards(machine, [("right", right), ("wrong", wrong)])
    assert {v.searched for v in found} == {("right",)}
    with pytest.raises(Broken):
        without_guards(machine, [("wrong", wrong), ("right", right)])


@pytest.mark.slow
def test_one_scope_in_which_a_guard_is_needed_decides(machine: Design) -> None:
    """With three positions a branch grows, so both guards of that are reached; with two neither is."""
    larger = {"branches": "2", "blocks": "5", "positions": "3"}
    found = without_guards(machine, [("two", scoped(machine, TWO)), ("three", scoped(machine, larger))])
    by_key = {key(v.drop): v for v in found}
    grown = by_key["grow", "s.refs[b] == 0"]
    assert (grown.drop.result, grown.scope, grown.searched) == ("caught", "three", ("two", "three"))
    assert by_key["start_copy", "s.refs[b] == 0"].searched == ("two",)  # caught, so not searched again
    assert by_key["cancel", "s.alive[r]"].drop.result == "redundant"


@pytest.mark.slow
def test_what_a_step_breaks_after_it_left_its_domain_is_not_told() -> None:
    """Without its guard finish_copy reads a source that is None; that this is no held block says nothing."""
    design = find("tail_copy")
    number = next(g.number for g in guards(design.spec) if g.action == "finish_copy")
    (found,) = drops(design, scoped(design, scope="two_branches"), only={number})
    assert found.finding is not None
    assert (found.finding.rule, found.finding.kind) == ("defined", "undefined")
