"""Told no fact, Spacer or an enumeration finds invariants of one block and branch; no wrong design is called right."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any  # what pytest.param makes has no name

import pytest

pytest.importorskip("z3")

import z3
from attempts import design
from kvsan.checker.explore.replay import Step
from kvsan.checker.prove import second
from kvsan.checker.prove.cover import cover, holds, lemmas
from kvsan.checker.prove.flat import Flat, without_bits
from kvsan.checker.prove.reach import Reached, reach
from kvsan.checker.prove.second import (
    ALONG,
    AS_TAKEN,
    Level,
    Opinion,
    asked,
    breaks_along,
    by_spacer,
    clauses_of,
    opinions,
)
from kvsan.checker.prove.spacer import along, spacer
from kvsan.checker.prove.stands import stands
from kvsan.checker.prove.system import System, ownership, system
from kvsan.checker.prove.terms import Terms
from kvsan.checker.prove.views import BLOCK
from kvsan.checker.prove.witness import Clause, indexed
from kvsan.checker.report.opinion import Second, as_json, as_text
from kvsan.checker.report.rulebook import rulebook
from kvsan.spec.designs.catalog import DESIGNS, TAIL_COPY, Design, Mutant
from test_ownership_proof import broken, without_store

SCOPE = "one_slot_tail"
FACTS = (
    "entries_are_held",
    "held_is_not_queued",
    "filling_is_held",
    "pinned_is_held",
    "lone_owner_agrees_with_nobody",
    "owners_counted",
    "places_counted",
)

COUNTERS = ("places_counted", "owners_counted")
RULES = {
    "places_counted": "Spacer",
    "owners_counted": "Spacer",
    "alloc_from_free": "Spacer",
    "tables_agree": "Spacer",
    "write_within_table": "Spacer",
    "entry_is_held": "",
    "exclusive_write": "",
    "free_once": "",
    "private_copy_target": "",
    "read_is_initialised": "enumeration",
}
"""What is counted, the state rules of the reference machine, and who proves each; where either may, nobody is named."""


def tail_copy(mutant: str = "") -> System:
    return system(design("tail_copy"), {}, SCOPE, mutant)


# --- the pieces -------------------------------------------------------------------------------------------------------


def test_entries_of_equal_members_are_equal_without_functions() -> None:
    block = z3.DeclareSort("Block")
    b, c = z3.Consts("b c", block)
    held = z3.Function("held", block, z3.BoolSort())
    flat = Flat()
    solver = z3.Solver()
    solver.add(flat(z3.And(held(b), z3.Not(held(c)))), *flat.congruence)
    assert solver.check() == z3.sat
    solver.add(flat(b) == flat(c))
    assert solver.check() == z3.unsat


def test_equal_sets_have_the_same_of_the_members_that_are_asked_for() -> None:
    block = z3.DeclareSort("Block")
    b, c = z3.Consts("b c", block)
    whole = z3.Const("whole", z3.SetSort(block))
    nothing = z3.EmptySet(block)
    flat = Flat()
    solver = z3.Solver()
    solver.add(*map(flat, (whole[b], b != c, z3.SetDel(whole, c) == nothing)), *flat.congruence)
    assert solver.check() == z3.sat
    solver.add(*flat.equations())
    assert solver.check() == z3.unsat


branch = z3.DeclareSort("Branch")
r, q = z3.Consts("r q", branch)
nobody = z3.K(branch, z3.BoolVal(False))
group = z3.Function("group", branch, z3.ArraySort(branch, z3.BoolSort()))
ALONE = z3.Store(nobody, r, z3.BoolVal(True))


@pytest.mark.parametrize(
    ("told", "possible"),
    [
        ([group(r) == nobody], True),
        ([group(r) != nobody], True),
        ([group(r) == nobody, z3.Select(group(r), q)], False),
        ([nobody == group(r), group(r) != nobody], False),
        ([group(r) == nobody, group(q) != nobody], True),
        ([group(r) == nobody, group(q) != nobody, r == q], False),
        ([nobody != nobody], False),
        ([z3.SetUnion(group(r), ALONE) == nobody], False),
        ([z3.SetUnion(group(r), group(q)) == nobody, group(q) != nobody], False),
        ([z3.SetUnion(group(r), group(q)) != nobody, group(r) == nobody, group(q) == nobody], False),
        ([z3.If(r == q, group(r), nobody) != nobody, r != q], False),
        ([z3.SetDifference(group(r), group(q)) == nobody, group(r) != nobody], True),
        ([z3.SetDifference(group(r), group(q)) != nobody, group(r) != nobody], True),
        ([z3.SetDifference(group(r), ALONE) == nobody, z3.Select(group(r), q), r != q], False),
        ([z3.SetIntersect(group(r), group(q)) == nobody, z3.Select(group(r), r), z3.Select(group(q), r)], False),
    ],
)
def test_a_set_is_empty_or_it_is_not(told: list[z3.BoolRef], possible: bool) -> None:
    flat, solver, sets = Flat(), z3.Solver(), z3.Solver()
    solver.add(*map(flat, told), *flat.equations(), *flat.congruence)
    sets.add(*told)
    assert (solver.check() == z3.sat) == possible == (sets.check() == z3.sat)


def test_a_block_that_a_set_is_asked_for_is_one_of_the_blocks_that_are_read() -> None:
    made = tail_copy()
    terms = Terms(made.variables, made.sizes)
    b, c, d = (z3.Const(n, terms.sort(BLOCK)) for n in "bcd")
    whole = z3.Const("whole", z3.SetSort(b.sort()))
    assert indexed(terms, [z3.And(whole[b], terms.read("held", (c,)), c == d)]) == [b, c]


@pytest.mark.parametrize("number", range(9))
def test_a_division_by_cases_is_a_division(number: int) -> None:
    n = z3.Int("n")
    flat = Flat()
    quotient, rest = flat(n / 2), flat(n % 2)
    solver = z3.Solver()
    solver.add(flat(n) == number, z3.Or(quotient != number // 2, rest != number % 2))
    assert solver.check() == z3.unsat


def test_sets_of_slots_become_truth_values() -> None:
    block = z3.DeclareSort("Block")
    written = z3.Function("written", block, z3.BitVecSort(3))(z3.Const("b", block))
    flat = Flat()
    formula = without_bits(flat(z3.And(written & 1 == 1, written & 2 == 0)))
    assert "bv" not in formula.sexpr() and all(z3.is_bool(v) for v in flat.variables if "written" in str(v))
    solver = z3.Solver()
    solver.add(formula)
    assert solver.check() == z3.sat


def test_an_invariant_that_a_step_leaves_or_that_is_broken_does_not_stand() -> None:
    p, q = z3.Bools("p q")
    step = Clause("flip", ((p,),), (q == z3.Not(p),), (q,))
    breaks = Clause("rule at flip", ((p,),), (z3.Not(p),), None)
    start = (z3.BoolVal(True),)
    assert stands(lambda _: z3.BoolVal(True), [start], [step])
    assert not stands(lambda seen: seen[0], [start], [step])
    assert not stands(lambda _: z3.BoolVal(True), [start], [breaks])
    assert not stands(lambda seen: z3.Not(seen[0]), [start], [])


one, two, new_one, new_two = z3.Bools("one two new_one new_two")
BREAKS = Clause("rule at look", ((one, two),), (one == two,), None)


def flip(*changes: z3.BoolRef) -> list[Clause]:
    return [BREAKS, Clause("flip", ((one, two),), changes, (new_one, new_two))]


def test_an_enumeration_ends_with_an_invariant_in_clauses_that_hold_of_all_that_was_reached() -> None:
    clauses, start = flip(new_one == z3.Not(one), new_two == z3.Not(two)), (z3.BoolVal(True), z3.BoolVal(False))
    found = cover([start], clauses, time.monotonic() + 60)
    assert found is not None and found.complete and not found.broken
    assert set(found.origins) == {(True, False), (False, True)}
    told = lemmas(found, clauses)
    assert {frozenset(t) for t in told} == {frozenset({(0, True), (1, True)}), frozenset({(0, False), (1, False)})}
    assert stands(lambda seen: z3.And([holds(t, seen) for t in told]), [start], clauses)


def test_an_enumeration_names_the_steps_to_what_breaks() -> None:
    clauses, start = flip(new_one == z3.Not(one), new_two == two), (z3.BoolVal(True), z3.BoolVal(False))
    found = cover([start], clauses, time.monotonic() + 60)
    assert found is not None and not found.complete
    assert found.broken == ("flip", "rule at look")


def test_an_enumeration_without_time_has_no_answer() -> None:
    start = (z3.BoolVal(True), z3.BoolVal(False))
    assert cover([start], flip(new_one == one, new_two == two), time.monotonic()) is None


def test_steps_in_their_order_break_the_rule_or_they_do_not() -> None:
    clauses, start = flip(new_one == z3.Not(one), new_two == two), (z3.BoolVal(True), z3.BoolVal(False))
    ways, until = [(*["flip"] * n, BREAKS.name) for n in range(4)], time.monotonic() + 60
    assert [along([start], clauses, way, until) for way in ways] == [(), ways[1], (), ways[3]]


def test_premises_of_a_step_in_an_order_hold_after_the_same_number_of_steps() -> None:
    unlike = Clause("rule at look", ((one,), (two,)), (one != two,), None)
    clauses = [Clause("flip", ((one,),), (new_one == z3.Not(one),), (new_one,)), unlike]
    start, until = (z3.BoolVal(True),), time.monotonic() + 60
    assert spacer([start], clauses, until) == ("flip", unlike.name)
    assert [along([start], clauses, [*["flip"] * n, unlike.name], until) for n in range(4)] == [(), (), (), ()]


def test_the_output_says_what_is_proved_and_what_is_not() -> None:
    made = tail_copy()
    assert set(asked(made)) == set(RULES)
    proved = Opinion("free_once", "proved", "Spacer", ("owners[b] is 0 or held[b]",), (), 3, 1.0)
    counted = tuple(Opinion(name, "proved", "Spacer") for name in COUNTERS)
    second = Second(made, (proved, *counted, Opinion("exclusive_write", "unknown")))
    assert second.verdict == "UNKNOWN" and Second(made, (*counted, proved)).verdict == "HOLDS"
    assert Second(made, ()).verdict == "UNKNOWN"
    assert "UNKNOWN: not proved: exclusive_write\n" in as_text(second, "")
    assert "free_once  proved by Spacer" in as_text(second, "")
    assert json.loads(as_json(second))["opinions"][0]["invariant"] == ["owners[b] is 0 or held[b]"]


def test_no_rule_is_proved_on_counters_that_nothing_showed() -> None:
    proved = Opinion("free_once", "proved", "Spacer")
    alone = Second(tail_copy(), (Opinion("places_counted", "proved", "Spacer"), proved))
    assert alone.verdict == "UNKNOWN"
    assert "UNKNOWN: not proved: owners_counted\n" in as_text(alone, "")


@pytest.mark.slow
def test_an_action_that_counts_owners_wrong_is_found() -> None:
    """Taken for granted, the counter let `free_once` be proved of a design that frees what another branch owns."""
    made = tail_copy()
    steps = {**made.design.spec.steps, "fork_branch": without_store(made.design.spec.steps["fork_branch"], "owners")}
    forgets = replace(made, design=replace(made.design, spec=replace(made.design.spec, steps=steps)))
    (opinion,) = opinions(forgets, ("owners_counted",), way=lambda _: ("fork_branch",))
    assert (opinion.status, opinion.trace[-1]) == ("broken", "owners_counted at fork_branch")


def test_what_only_the_abstraction_breaks_is_unknown_and_what_the_explorer_breaks_too_is_violated() -> None:
    made, steps = tail_copy(), ("append_in_place(r0)",)
    broken = Opinion("exclusive_write", "broken", "Spacer", (), ("append_in_place", "exclusive_write at finish_write"))
    settings: dict[str, int | bool | str] = {"branches": 3, "blocks": 5}
    alone = Second(made, (broken,), Reached(settings, 10, 5, "", {}))
    assert alone.verdict == "UNKNOWN"
    assert json.loads(as_json(alone))["opinions"][0]["status"] == "unknown"
    assert "the abstraction is too weak for it" in as_text(alone, "")
    counter = Second(made, (replace(broken, rule="owners_counted"),), alone.reached)
    assert counter.verdict == "UNKNOWN" and "states that the explorer sees" not in as_text(counter, "")
    real = Second(made, (broken,), Reached(settings, 10, 5, "", {"exclusive_write": steps}))
    assert real.verdict == "VIOLATED"
    assert "VIOLATED: exclusive_write" in as_text(real, "") and "append_in_place(r0)" in as_text(real, "")
    assert "asked of" not in as_text(real, "")
    fewer = Second(made, (replace(broken, asked=ALONG),), real.reached)
    assert f"asked of {ALONG}" in as_text(fewer, "")
    assert json.loads(as_json(fewer))["opinions"][0]["asked"] == ALONG


def taken(*steps: tuple[str, dict[str, int | None]]) -> tuple[Step, ...]:
    """Steps as the explorer took them."""
    return tuple(Step(action, values, f"{action}{values}", (), (), {}) for action, values in steps)


RULE, ACTIONS = "exclusive_write", ("fork_branch", "append_in_place", "finish_write")
BEGUN = ("fork_branch", {"r": 0, "c": 1}), ("append_in_place", {"r": 0})


def test_steps_break_a_rule_by_the_members_that_take_them_and_by_no_others() -> None:
    wrong, until = tail_copy("append_without_copy"), time.monotonic() + 60
    same, other = (taken(*BEGUN, ("finish_write", {"r": r})) for r in (0, 1))
    found, _ = breaks_along(wrong, RULE, ACTIONS, until, taken=same)
    assert found == (*(s.text for s in same[:2]), f"{RULE} at {same[2].text}")
    assert breaks_along(wrong, RULE, ACTIONS, until, taken=other)[0] == ()


def test_values_and_members_are_told_where_there_is_no_answer_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second, "along", lambda _1, _2, steps, _4: tuple(steps) if "{" in steps[0] else None)
    full = taken(*BEGUN, ("finish_write", {"r": 0}))
    (opinion,) = opinions(tail_copy(), (RULE,), way=lambda _: ACTIONS, taken=lambda _: full)
    assert (opinion.status, opinion.asked, opinion.trace[0]) == ("broken", AS_TAKEN, full[0].text)


# --- the questions ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_every_fact_of_the_ledger_is_asked() -> None:
    assert set(asked(ownership())) == set(FACTS)


@pytest.mark.slow
@pytest.mark.parametrize("fact", FACTS)
def test_events_that_obey_keep_each_fact_of_the_ledger(fact: str) -> None:
    (opinion,) = opinions(ownership(), (fact,))
    assert (opinion.rule, opinion.status) == (fact, "proved")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("event", "variable", "fact"),
    [
        ("free", "held", "held_is_not_queued"),
        ("unmap", "owners", "owners_counted"),
        ("map", "owners", "owners_counted"),
    ],
)
def test_an_event_that_forgets_a_variable_breaks_a_fact(event: str, variable: str, fact: str) -> None:
    (opinion,) = opinions(broken(ownership(), event, variable), (fact,))
    assert opinion.status == "broken"


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
def test_every_state_rule_of_the_reference_machine_is_proved(rule: str) -> None:
    (opinion,) = opinions(tail_copy(), (rule,), budget=3600)
    assert opinion.status == "proved"
    assert opinion.by in (RULES[rule] or ("Spacer", "enumeration"))


def breaking(*designs: Design) -> list[Any]:
    """The mutants that break a state rule, each with its design."""
    return [
        pytest.param(d.name, m, id=f"{d.name}-{m.name}")
        for d in designs
        for m in d.mutants
        if rulebook()[m.rule].kind == "rule" or m.rule == "read_is_initialised"
    ]


TOLD = {"rollback_keeps_blocks", "promise_without_copy"}
"""The mutants by whose actions alone the right design breaks the rule too, in the abstraction."""

QUESTIONS = ((Level(), False), (Level(counting=True), False), (Level(), True), (Level(wide=True), True))
"""How much the abstraction keeps, and whether Spacer is told the values and members of the steps: ever more."""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "mutant"), breaking(*DESIGNS.values()))
def test_a_mutant_has_a_counterexample_whose_steps_break_no_right_design(name: str, mutant: Mutant) -> None:
    """Where the right design has a way by the same actions, it has none by the same steps with their values and
    members, and there the wrong one has a counterexample too."""
    wrong, right = (system(design(name), {}, mutant.scope, chosen) for chosen in (mutant.name, ""))
    explored = reach(wrong, (), wrong.scoped)
    *steps, last = explored.actions_to(mutant.rule)
    way = (*steps, f"{mutant.rule} at {last}")
    ways = (explored.actions_to, lambda rule: explored.ways[rule])
    (opinion,) = opinions(wrong, (mutant.rule,), 3600, lambda _: None, *ways)
    assert (opinion.status, opinion.by, opinion.asked, opinion.trace) == ("broken", "Spacer", ALONG, way)

    def broken_by(made: System, level: Level, told: bool) -> tuple[str, ...] | None:
        taken = explored.ways[mutant.rule] if told else ()
        return breaks_along(made, mutant.rule, (*steps, last), time.monotonic() + 3600, level, taken)[0]

    level, told = next((q for q in QUESTIONS if broken_by(right, *q) == ()), QUESTIONS[-1])
    assert broken_by(right, level, told) == ()
    assert told == (mutant.name in TOLD)
    assert not told or broken_by(wrong, level, told)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "mutant"), breaking(TAIL_COPY))
def test_spacer_finds_a_counterexample_alone(name: str, mutant: Mutant) -> None:
    made = system(design(name), {}, mutant.scope, mutant.name)
    found = by_spacer(made, *clauses_of(made, mutant.rule), time.monotonic() + 3600)
    assert found is not None and found.status == "broken"
    assert found.trace[-1].startswith(f"{mutant.rule} at ")
    assert mutant.rule in reach(made, (), made.scoped).broken  # it is no weakness of the abstraction
