"""With a symmetry, one state of each orbit is kept: brute force over all renamings of a small scope says how many."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest
from kvsan.checker.explore.design import find, scoped
from kvsan.checker.explore.emit import Model
from kvsan.checker.explore.explore import prepare
from kvsan.checker.explore.module import build
from kvsan.checker.explore.packed import unpack
from kvsan.checker.explore.search import Search, search
from kvsan.spec.lang.interpret import Plain
from renaming import renamed

pytest.importorskip("llvmlite", reason="the compiled search needs the extra `explore`")

MACHINE = str(Path(__file__).parent / "designs" / "tail_machine.py")
TWO = {"branches": "2", "blocks": "4"}
slow = pytest.mark.slow


def searched(source: str, changes: dict[str, str], symmetry: str) -> Search:
    design = find(source)
    made = prepare(design, scoped(design, changes), symmetry)
    assert made.symmetry == symmetry, made.symmetry_note
    return search(made.model, made.generated, build(made.generated.source), [s.state for s in made.begun])


def states(found: Search) -> list[Plain]:
    words = found.model.layout.words
    return [unpack(found.states[n * words : (n + 1) * words], found.model.layout) for n in range(found.count)]


def orbit(state: Plain, model: Model, branches: bool) -> frozenset[frozenset[object]]:
    sizes = model.sizes.sorts
    ways = permutations(range(sizes["Branch"])) if branches else [tuple(range(sizes["Branch"]))]
    blocks = list(permutations(range(sizes["Block"])))
    return frozenset(renamed(state, model.variables, {"Branch": r, "Block": b}) for r in ways for b in blocks)


@pytest.mark.parametrize(
    ("design", "changes", "symmetry"),
    [
        (MACHINE, TWO, "full"),
        pytest.param(MACHINE, TWO, "blocks", marks=slow),
        pytest.param("tail_copy", TWO, "full", marks=slow),
        pytest.param("paged_cow", {"blocks": "3", "positions": "1"}, "full", marks=slow),
        pytest.param("prefix_append_only", {"blocks": "3"}, "full", marks=slow),
    ],
)
def test_the_states_kept_are_one_of_each_orbit_that_is_reached(
    design: str, changes: dict[str, str], symmetry: str
) -> None:
    plain, kept = searched(design, changes, "none"), searched(design, changes, symmetry)
    whole = {orbit(s, plain.model, symmetry == "full") for s in states(plain)}
    assert kept.count == len(whole)
    assert {orbit(s, kept.model, symmetry == "full") for s in states(kept)} == whole
