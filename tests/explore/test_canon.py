"""With a symmetry, one state of each orbit is kept: brute force over all renamings of a small scope says how many."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest
from kvsan.checker.explore.design import find, scoped
from kvsan.checker.explore.explore import prepare
from kvsan.checker.explore.module import build
from kvsan.checker.explore.packed import unpack
from kvsan.checker.explore.search import Search, search
from kvsan.spec.lang import ir
from kvsan.spec.lang.interpret import Plain, Value

pytest.importorskip("llvmlite", reason="the compiled search needs the extra `explore`")

MACHINE = str(Path(__file__).parent / "designs" / "tail_machine.py")
TWO = {"branches": "2", "blocks": "4"}


def searched(symmetry: str) -> Search:
    design = find(MACHINE)
    made = prepare(design, scoped(design, TWO), symmetry)
    assert made.symmetry == symmetry, made.symmetry_note
    return search(made.model, made.generated, build(made.generated.source), [s.state for s in made.begun])


def states(found: Search) -> list[Plain]:
    words = found.model.layout.words
    return [unpack(found.states[n * words : (n + 1) * words], found.model.layout) for n in range(found.count)]


def renamed(state: Plain, variables: dict[str, ir.Variable], names: dict[str, tuple[int, ...]]) -> frozenset[object]:
    """The state with the members of each sort in `names` renamed."""

    def member(type_: ir.Type, value: Value) -> Value:
        bare = type_.inner if isinstance(type_, ir.OptionType) else type_
        return names[bare.name][value] if isinstance(bare, ir.SortType) and isinstance(value, int) else value

    return frozenset(
        (v, tuple(member(k, i) for k, i in zip(variables[v].keys, at, strict=True)), member(variables[v].value, value))
        for v, entries in state.items()
        for at, value in entries.items()
    )


def orbit(state: Plain, variables: dict[str, ir.Variable], branches: bool) -> frozenset[frozenset[object]]:
    ways = permutations(range(2)) if branches else [(0, 1)]
    return frozenset(renamed(state, variables, {"Branch": r, "Block": b}) for r in ways for b in permutations(range(4)))


@pytest.mark.parametrize("symmetry", [pytest.param("blocks", marks=pytest.mark.slow), "full"])
def test_the_states_kept_are_one_of_each_orbit_that_is_reached(symmetry: str) -> None:
    plain, kept = searched("none"), searched(symmetry)
    variables = dict(plain.model.variables)
    whole = {orbit(s, variables, symmetry == "full") for s in states(plain)}
    assert kept.count == len(whole)
    assert {orbit(s, variables, symmetry == "full") for s in states(kept)} == whole
