"""Liveness under weak fairness: right designs end what they begin, where the pool is large enough."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kvsan.checker.command.explore import Request, run
from kvsan.checker.explore.design import BadDesign, find, scoped
from kvsan.checker.explore.guards import guards
from kvsan.checker.explore.liveness import Turn, _Graph, liveness

pytest.importorskip("llvmlite", reason="the compiled search needs the extra `explore`")
pytest.importorskip("networkx", reason="liveness needs the extra `graph`")

TWO = {"branches": "2", "blocks": "4"}


def test_every_append_that_has_begun_ends() -> None:
    design = find("tail_copy")
    found = liveness(design, scoped(design, TWO))
    assert (found.verdict, found.waiting) == ("HOLDS", None)
    assert all(0 < n < found.states for n in found.pending.values())


@pytest.mark.parametrize(
    "unfair",
    [
        "publish_copy",
        pytest.param("finish_copy", marks=[pytest.mark.slow]),
        pytest.param("finish_write", marks=[pytest.mark.slow]),
    ],
)
def test_it_rests_on_each_fair_action(unfair: str) -> None:
    """A device that never finishes, or a host that never publishes, leaves a branch waiting."""
    design = find("tail_copy")
    lazy = replace(design, fair=tuple(a for a in design.fair if a != unfair))
    found = liveness(lazy, scoped(design, TWO))
    assert found.verdict == "VIOLATED"
    assert found.waiting is not None and found.suffices is None
    last = found.waiting.steps[-1].action
    assert last in {"finish_copy": ("start_copy",), "publish_copy": ("finish_copy",)}.get(
        unfair, ("append_in_place", "publish_copy")
    )


def test_a_design_that_names_nothing_pending_is_refused() -> None:
    design = find("tail_copy")
    with pytest.raises(BadDesign, match="PENDING"):
        liveness(replace(design, pending=""), scoped(design, TWO))
    with pytest.raises(BadDesign, match="no action jump"):
        liveness(replace(design, fair=("jump",)), scoped(design, TWO))


def slow(*values: object) -> object:
    return pytest.param(*values, marks=[pytest.mark.slow])


@pytest.mark.parametrize(
    ("name", "scope", "changes"),
    [
        ("prefix_append_only", "", {"branches": "1", "blocks": "2"}),
        slow("prefix_cow", "", {"branches": "1", "blocks": "2"}),
        slow("prefix_cow", "", {}),
        slow("prefix_cow", "two_slot_tail", {}),
        slow("prefix_cow", "two_slot_tail", {"connector": "true"}),
        slow("speculative", "three_blocks", {"blocks": "2", "positions": "2", "capacity": "2"}),
        slow("transfers", "several_handles", {}),
        slow("transfers", "two_tiers", {}),
        # what a scheduler has promised a step is there, however small the pool
        slow("speculative", "one_block", {"positions": "2", "capacity": "2"}),
    ],
)
def test_what_a_request_has_begun_ends(name: str, scope: str, changes: dict[str, str]) -> None:
    design = find(name)
    found = liveness(design, scoped(design, changes, scope=scope))
    assert (found.verdict, found.waiting) == ("HOLDS", None)
    assert all(0 < n < found.states for n in found.pending.values())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("guard", "changes", "begun"),
    [
        # a step that is built waits while another request is refused again and again
        ("not s.refused", {}, "schedule_prefill"),
        # one whose load is complete waits while others come and go
        ("s.loaded == 0", {"connector": "true"}, "finish_load"),
    ],
)
def test_without_the_guards_that_say_so_those_who_come_hold_up_those_who_are_there(
    monkeypatch: pytest.MonkeyPatch, guard: str, changes: dict[str, str], begun: str
) -> None:
    monkeypatch.setattr("kvsan.checker.explore.liveness.LARGER_POOLS", 0)  # no pool is large enough
    design = find("prefix_cow")
    admit, every = design.spec.steps["admit_request"], guards(design.spec)
    kept = tuple(c for g, c in zip(every, admit.guard, strict=False) if g.text != guard)
    assert len(kept) == len(admit.guard) - 1
    eager = replace(design.spec, steps={**design.spec.steps, admit.name: replace(admit, guard=kept)})
    found = liveness(replace(design, spec=eager), scoped(design, changes, scope="two_slot_tail"))
    assert (found.verdict, found.suffices) == ("VIOLATED", None)
    assert found.waiting is not None and found.waiting.steps[-1].action == begun


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "scope", "changes", "suffices"),
    [
        ("prefix_append_only", "", {"prompt": "2", "blocks": "1"}, 3),  # two blocks for who appends, one for the other
        ("speculative", "one_block", {"positions": "2", "capacity": "2", "discipline": "append_only"}, 2),
        ("transfers", "one_block", {"branches": "2"}, 3),  # one for each, and one that a transfer still holds
    ],
)
def test_without_promises_a_small_pool_lets_a_request_wait(
    name: str, scope: str, changes: dict[str, str], suffices: int
) -> None:
    design = find(name)
    found = liveness(design, scoped(design, changes, scope=scope))
    assert (found.verdict, found.suffices) == ("VIOLATED", suffices)
    assert found.waiting is not None and "take_block" in found.waiting.sometimes


A: Turn = ("finish", 0)
B: Turn = ("finish", 1)


@pytest.mark.parametrize(
    ("enabled", "steps", "fair"),
    [
        ([{A}, {A}], [[(1, None)], [(0, None)]], False),  # it could, without a pause, and is never taken
        ([{A}, set()], [[(1, None)], [(0, None)]], True),  # it pauses
        ([{A}, {A}], [[(1, A)], [(0, None)]], True),
        ([{A}, {A}], [[(1, None), (2, A)], [(0, None)]], False),  # taken, it leads out
        ([{A, B}, {A, B}], [[(1, A)], [(0, None)]], False),  # each branch's own turn counts
    ],
)
def test_a_run_is_fair_if_what_could_always_be_taken_is_taken(
    enabled: list[set[Turn]], steps: list[list[tuple[int, Turn | None]]], fair: bool
) -> None:
    graph = _Graph.__new__(_Graph)
    graph.enabled, graph.onward = [frozenset(e) for e in enabled], steps
    assert graph._is_fair(frozenset({0, 1})) == fair


@pytest.mark.slow
def test_a_pool_that_is_too_small_is_named_with_the_one_that_suffices(capsys: pytest.CaptureFixture[str]) -> None:
    small = Request("paged_cow", ("blocks=2", "schedule=HOST_WAIT"), liveness=True)
    assert run(small) == 1
    said = capsys.readouterr().out
    assert "4 blocks are the fewest" in said
    assert "take_block: enabled in some of them only" in said
    assert run(Request("paged_cow", ("blocks=4", "schedule=HOST_WAIT"), liveness=True)) == 0
