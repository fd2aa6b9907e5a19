"""What a plain solver finds alike after so many steps is so, and nothing else is said to be."""

from __future__ import annotations

import time

import pytest

pytest.importorskip("z3")

import z3
from kvsan.checker.prove.alike import TRUE as SETTLED
from kvsan.checker.prove.alike import alike, once
from kvsan.checker.prove.flat import decided
from kvsan.checker.prove.spacer import along
from kvsan.checker.prove.witness import Clause

one, two, new_one, new_two, other = z3.Bools("one two new_one new_two other")
SEEN, TRUE, FALSE = (one, two), z3.BoolVal(True), z3.BoolVal(False)
FLIP = Clause("flip", (SEEN,), (new_one == z3.Not(one), new_two == two), (new_one, new_two))
LOSE = Clause("lose", (SEEN,), (new_one == one,), (new_one, new_two))
MEET = Clause("meet", (SEEN, (other, two)), (one != other, new_one == two), (new_one, new_two))


YES, NO, OPEN = (SETTLED, True), (SETTLED, False), "open"


def found(*arguments: object) -> list[tuple[object, ...]]:
    """What is alike, with a word for what nothing is known of."""
    same = alike(*arguments)  # type: ignore[arg-type]  # as they are given below
    return [tuple(OPEN if one == (k, True) else one for k, one in enumerate(a)) for a in same]


def test_what_starts_and_steps_settle_is_alike_and_the_rest_may_be_either() -> None:
    assert found([(TRUE, TRUE), (TRUE, FALSE)], [FLIP], ["flip", "flip"]) == [(YES, OPEN), (NO, OPEN), (YES, OPEN)]
    assert found([(TRUE, TRUE)], [FLIP, LOSE], ["lose", "flip"]) == [(YES, YES), (YES, OPEN), (NO, OPEN)]


def test_two_things_are_alike_where_one_tells_the_other() -> None:
    both, either = [(TRUE, TRUE), (FALSE, FALSE)], [(TRUE, TRUE), (FALSE, FALSE), (FALSE, TRUE)]
    assert found(both, [FLIP], ["flip", "flip"]) == [(OPEN, (0, True)), (OPEN, (0, False)), (OPEN, (0, True))]
    assert found(either, [FLIP], ["flip"]) == [(OPEN, OPEN), (OPEN, OPEN)]


def test_things_that_part_from_others_together_are_alike_still() -> None:
    assert found([(TRUE, FALSE, TRUE), (FALSE, TRUE, TRUE)], [], []) == [(OPEN, (0, False), YES)]
    three = [(TRUE, FALSE, TRUE), (FALSE, TRUE, TRUE), (TRUE, TRUE, TRUE)]
    assert found(three, [], []) == [(OPEN, OPEN, YES)]


def test_clauses_of_one_name_lead_to_what_either_leads_to() -> None:
    stay = Clause("flip", (SEEN,), (new_one == one, new_two == two), (new_one, new_two))
    assert found([(TRUE, FALSE)], [FLIP, stay], ["flip"])[-1] == (OPEN, NO)


def test_it_ends_before_a_step_that_is_not_possible() -> None:
    assert found([(TRUE, TRUE)], [MEET], ["meet", "meet"]) == [(YES, YES)]
    assert len(alike([(TRUE, TRUE), (FALSE, TRUE)], [MEET], ["meet"])) == 2


def test_premises_of_members_that_must_be_one_are_told_once() -> None:
    block = z3.DeclareSort("Block")
    b, c = z3.Consts("b c", block)
    held, far = z3.Function("held", block, z3.BoolSort()), z3.Function("far", block, z3.BoolSort())
    pairs = tuple((held(x), far(x)) for x in (b, c, b))

    def told(*body: z3.BoolRef) -> int:
        trimmed = once(Clause("step", pairs, body, None), ((0, True), (SETTLED, False)))
        return 0 if trimmed is None else len(trimmed.pairs)

    assert [told(), told(b == c), told(held(b) == held(c)), told(held(b) != held(c)), told(far(c))] == [2, 1, 1, 2, 0]


@pytest.mark.parametrize("start", [(TRUE, TRUE), (FALSE, TRUE)])
def test_what_is_alike_is_held_against_the_steps(start: tuple[z3.BoolRef, ...]) -> None:
    breaks = Clause("rule at look", (SEEN,), (one, two), None)
    until = time.monotonic() + 60
    broken = [bool(along([start], [FLIP, breaks], [*["flip"] * n, breaks.name], until)) for n in range(3)]
    assert broken == ([True, False, True] if z3.is_true(start[0]) else [False, True, False])


def test_values_that_are_given_outright_are_put_in() -> None:
    assert z3.is_false(decided(z3.And(one, z3.Or(z3.Not(one), z3.Not(two)), two)))
    left = decided(z3.And(one, z3.Or(z3.Not(one), two == other)))
    solver = z3.Solver()
    solver.add(left != z3.And(one, two == other))
    assert solver.check() == z3.unsat


def test_whether_a_set_is_empty_that_a_model_only_describes_is_found_alike() -> None:
    """Z3's models leave such an equation as it stands; taken for untrue, it was looked for without end."""
    branch = z3.DeclareSort("Branch")
    q, r = z3.Consts("q r", branch)
    tail, before = (z3.Const(name, z3.SetSort(branch)) for name in ("tail", "before"))
    nothing = z3.EmptySet(branch)
    is_empty = z3.SetDifference(tail, z3.SetUnion(before, z3.SetAdd(nothing, r))) == nothing
    learn = Clause("learn", (SEEN,), (is_empty, z3.Not(tail[q])), (is_empty, two))
    assert found([(TRUE, TRUE)], [learn], ["learn"]) == [(YES, YES), (YES, YES)]
