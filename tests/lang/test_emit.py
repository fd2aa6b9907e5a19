"""The emitted replay code: folded constants, bounded memory, the order of a row, what a failure carries."""

from __future__ import annotations

from pathlib import Path

from kvsan.checker.replay.emit import Machine
from kvsan.spec.lang.load import load

SPEC = load(Path(__file__).parent / "specs" / "constructs.py")


def machine(**constants: int | str | None) -> Machine:
    made = Machine(SPEC, constants)
    for sort in SPEC.sorts:
        made.grow(sort, 4)
    return made


def test_a_constant_that_is_false_drops_the_branch_it_guards() -> None:
    loud, quiet = machine(loud=True), machine(loud=False)
    dead = [o for o in quiet.obligations if not o.live]
    assert [o.message for o in dead] == ["green is loud"]
    assert all(o.live for o in loud.obligations)
    assert "V_loud" not in loud.source


def test_a_constant_map_is_a_container_to_fill() -> None:
    made = machine()
    made.state["weight"][2] = 3
    made.events["move"](2, 2)
    assert [made.obligations[k].rule for k, _ in made.failures] == ["pretty"]


def test_rows_hold_no_defaults() -> None:
    made = machine()
    made.state["table"][0][1] = 2
    made.events["swap"](0, 1, 1)
    assert made.state["table"][:2] == [{}, {1: 2}]
    made.events["stack"](1, 0, 0)
    made.events["forget"](0, 1)
    assert made.state["cube"][1] == {(0, 0): 1}


def test_a_failure_carries_the_values_of_its_message() -> None:
    made = machine()
    made.state["owner"][3] = 2
    made.state["table"][1][0] = 3
    made.state["count"][3] = 7
    made.events["stack"](1, 0, 0)
    ((k, values),) = made.failures
    assert made.obligations[k].message == "row {r} holds another's cell, count {n}"
    assert dict(zip([n for n, _ in made.obligations[k].names], values, strict=True)) == {"r": 1, "n": 7}


def test_a_row_is_walked_in_order_from_a_snapshot() -> None:
    made = machine()
    made.state["table"][0] |= {2: 1, 0: 3}
    made.events["shift"](0, 1)
    assert made.state["table"][0] == {1: 1}
    assert made.state["count"] == [0, 1, 0, 1]


def test_growing_keeps_what_is_known() -> None:
    made = machine()
    made.state["count"][3] = 5
    made.blur("Cell", 3, 1)
    made.grow("Cell", 9)
    made.grow("Cell", 2)
    assert made.state["count"] == [0, 0, 0, 5, 0, 0, 0, 0, 0]
    assert made.fuzzy["Cell"][3] == 1
    assert made.fuzzy["Cell"][-1] == 0


def test_machines_share_code_and_no_state() -> None:
    first, second = machine(), machine()
    first.events["move"](0, 0)
    first.state["count"][0] = 4
    assert first.source is second.source
    assert second.state["count"][0] == 0
    assert sum(second.checked) == 0


def test_plain_code_runs_again_once_nothing_is_fuzzy() -> None:
    made = machine()
    made.blur("Cell", 0, 2)
    made.events["forget"](1, 1)
    assert made.still_fuzzy()
    made.events["forget"](0, 1)
    assert not made.still_fuzzy()


def test_slots_below_a_large_number_cost_no_large_mask() -> None:
    """`written & span(0, tokens)`: the mask of 100,000 tokens is never built."""
    assert "(1 << hi) - 1 if" in load_below().source
    made = load_below()
    made.grow("Block", 1)
    made.state["written"][0] = 0b1011
    made.events["keep"](0, 10**9)
    assert made.state["written"] == [0b1011]
    made.events["keep"](0, 2)
    assert made.state["written"] == [0b11]


def load_below() -> Machine:
    return Machine(load(Path(__file__).parent / "specs" / "below.py"))
