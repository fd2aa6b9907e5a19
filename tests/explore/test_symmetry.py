"""A symmetry is used only where every step commutes with renaming; else the line that breaks it is named."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from kvsan.checker.explore import canon
from kvsan.checker.explore.design import find, scoped
from kvsan.checker.explore.emit import Model
from kvsan.checker.explore.model import model, starts
from kvsan.checker.explore.symmetry import symmetry
from kvsan.spec.lang import ir
from kvsan.spec.lang.interpret import Plain, holds, run
from kvsan.spec.lang.scalarset import scalarset
from kvsan.spec.lang.symbolic import functional, predicate
from renaming import Names, moved, renamed

HERE = Path(__file__).parent
LOWEST = str(HERE / "designs" / "lowest_free.py")
WALK = 12


def made(design: str, scope: str = "", mutant: str = "") -> tuple[Model, list[Plain]]:
    found = find(design)
    chosen = scoped(found, scope=scope, mutant=mutant)
    begun = starts(found.spec, chosen)
    return model(found.spec, chosen, begun, lints=True), [s.state for s in begun]


def shuffled(model: Model, chance: random.Random) -> Names:
    return {s: tuple(chance.sample(range(n), n)) for s, n in model.sizes.sorts.items() if s in ("Block", "Branch")}


class Steps:
    """Every successor of a state by the sliced steps, with what it breaks; and what is true of a state."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.actions = [(a, functional(a, model.variables, model.sizes)) for a in model.actions]
        self.facts = [predicate(s, model.variables, model.sizes) for s in (*model.invariants, *model.witnesses)]

    def after(self, state: Plain) -> list[tuple[Plain, tuple[object, ...]]]:
        out = []
        for code in range(self.model.bases[-1]):
            action, values = self.model.decode(code)
            form = next(f for a, f in self.actions if a is action)
            done = run(
                form, self.model.variables, state, {p.name: v for p, v in zip(action.params, values, strict=True)}
            )
            if done.enabled:
                broken = tuple(v.number for v in done.verdicts if not v.holds)
                out.append((done.after if done.defined else {}, (action.name, done.defined, broken)))
        return out

    def true(self, state: Plain) -> list[bool | None]:
        return [holds(f, self.model.variables, state) for f in self.facts]

    def commute(self, state: Plain, names: Names) -> bool:
        variables = self.model.variables
        here = {(renamed(s, variables, names), what) for s, what in self.after(state)}
        there = self.after(moved(state, variables, names))
        same = self.true(state) == self.true(moved(state, variables, names))
        return same and here == {(renamed(s, variables, {}), what) for s, what in there}


def commute(design: str, scope: str = "", mutant: str = "") -> bool:
    """Whether the steps commute with renaming along a random walk."""
    model, begun = made(design, scope, mutant)
    steps, chance, state = Steps(model), random.Random(1), begun[0]
    for _ in range(WALK):
        if not steps.commute(state, shuffled(model, chance)):
            return False
        following = [s for s, (_, defined, broken) in steps.after(state) if defined and not broken]
        state = chance.choice(following) if following else begun[0]
    return True


@pytest.mark.parametrize(
    ("design", "scope", "mutant"),
    [
        ("tail_copy", "two_branches", ""),
        (str(HERE / "designs" / "tail_machine.py"), "", ""),
        pytest.param("tail_copy", "two_branches", "free_twice", marks=pytest.mark.slow),
        pytest.param("paged_cow", "three_blocks", "", marks=pytest.mark.slow),
        pytest.param("prefix_append_only", "three_blocks", "", marks=pytest.mark.slow),
    ],
)
def test_every_step_of_our_designs_commutes_with_renaming_and_that_is_proved(
    design: str, scope: str, mutant: str
) -> None:
    used = symmetry(made(design, scope, mutant)[0], "full")
    assert used.name == "full", used.note
    assert commute(design, scope, mutant)


def test_a_step_that_takes_the_lowest_member_does_not_commute_and_its_line_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(HERE.parents[1])
    assert not commute(LOWEST)
    used = symmetry(made(LOWEST)[0], "full")
    assert used.name == "none"
    lines = (HERE / "designs" / "lowest_free.py").read_text().splitlines()
    line = lines.index("        if s.waiting[r]:") + 1
    assert used.note.startswith(f"Block: tests/explore/designs/lowest_free.py:{line}: a turn of the loop over Block")


def test_what_no_verdict_depends_on_breaks_nothing() -> None:
    """`first` depends on the order of the turns, and nothing but `first` on it; without `take` nothing else does."""
    whole = made(LOWEST)[0]
    spec = find(LOWEST).spec
    assert any("`first`" in b.reason for b in scalarset(spec, "Block").breaks)
    assert symmetry(replace(whole, actions=tuple(a for a in whole.actions if a.name != "take")), "full").name == "full"


def test_a_constant_that_differs_from_member_to_member_breaks_it_where_it_is_read() -> None:
    spec = find("tail_copy").spec
    chosen = scoped(find("tail_copy"), scope="two_branches")
    uneven = replace(chosen, known={n: v for n, v in chosen.known.items() if n not in ("block_size", "pool_of")})
    used = symmetry(model(spec, uneven, starts(spec, chosen)), "full")
    assert (used.name, used.note) == ("blocks", "Branch: the constant block_size differs from member to member")


def test_a_counted_fact_that_names_one_block_breaks_it_too() -> None:
    whole = made("tail_copy", "two_branches")[0]
    (fact,) = (f for f in whole.counted if f.name == "owners_counted")
    first = ir.Compare("==", ir.Name("b", ir.SortType("Block")), ir.Const(0, ir.SortType("Block")))
    used = symmetry(replace(whole, counted=(replace(fact, value=first),)), "full")
    assert (used.name, "this is always one and the same Block" in used.note) == ("none", True)


def test_as_many_branches_as_have_few_orders_are_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = made("tail_copy", "two_branches")[0]
    monkeypatch.setattr(canon, "MOST_BRANCHES", 2)
    assert symmetry(whole, "full").name == "full"
    monkeypatch.setattr(canon, "MOST_BRANCHES", 1)
    used = symmetry(whole, "full")
    assert (used.name, used.note) == ("blocks", "2 members of Branch have too many orders; at most 1")
