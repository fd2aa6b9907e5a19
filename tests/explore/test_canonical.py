"""The representative of an orbit is in the orbit, and the same for every member: random states that name blocks and
branches in every way that a variable can."""

from __future__ import annotations

import random
from itertools import permutations

import pytest
from kvsan.checker.explore.canon import canonical
from kvsan.checker.explore.layout import Layout, layout
from kvsan.checker.explore.module import PUBLIC, Module, build
from kvsan.checker.explore.packed import decode, entries, pack, unpack
from kvsan.spec.lang import ir
from kvsan.spec.lang.interpret import Plain
from kvsan.spec.lang.symbolic import Sizes
from renaming import Names, moved, renamed

np = pytest.importorskip("numpy", reason="the compiled search needs the extra `explore`")
pytest.importorskip("llvmlite", reason="the compiled search needs the extra `explore`")

BLOCK, BRANCH, COLOR = ir.SortType("Block"), ir.SortType("Branch"), ir.SortType("Color")
SORTS = {"Block": 3, "Branch": 3}
KINDS: dict[str, tuple[tuple[ir.Type, ...], ir.Type]] = {
    "table": ((BRANCH, COLOR), ir.OptionType(BLOCK)),
    "spare": ((), ir.SetType(BLOCK)),
    "mine": ((BRANCH,), ir.SetType(BLOCK)),
    "parent": ((BRANCH,), ir.OptionType(BRANCH)),
    "writer": ((BLOCK,), ir.OptionType(BRANCH)),
    "readers": ((BLOCK,), ir.SetType(BRANCH)),
    "group": ((), ir.SetType(BRANCH)),
    "color": ((BLOCK,), COLOR),
    "last": ((), ir.OptionType(BLOCK)),
    "phase": ((BRANCH,), COLOR),
    "lengths": ((BRANCH, COLOR), COLOR),
    "turns": ((COLOR, BRANCH), COLOR),
    "sizes": ((BLOCK, COLOR), COLOR),
    "seen": ((BLOCK, BRANCH), ir.BOOL),
}
VARIABLES = {n: ir.Variable(n, keys, value, False, False, False) for n, (keys, value) in KINDS.items()}


@pytest.fixture(scope="module", params=["full", "blocks", "full, in an array"])
def sorting(request: pytest.FixtureRequest) -> tuple[Module, bool, Layout]:
    branches, array = request.param != "blocks", request.param == "full, in an array"
    sizes = Sizes({**SORTS, "Color": 13 if array else 3}, {})
    placed = layout(VARIABLES.values(), sizes)
    assert placed.spread == array
    text = canonical(placed, "Block", "Branch" if branches else None, dict(sizes.sorts))
    rest = "".join(f"\n\ndef {name}(n):\n    return n\n" for name in PUBLIC if name != "canonical")
    return build(f"WORDS = {placed.words}\n\n{text}{rest}"), branches, placed


def some_state(chance: random.Random, placed: Layout) -> Plain:
    """Few entries, or about half, differ from the default: members that are alike, and members that nothing names."""
    filled = chance.choice((0.02, 0.06, 0.15, 0.5))
    state: Plain = {}
    for name, field in placed.fields.items():
        values = [v for v in range(field.values) if v]
        found = {index: decode(field, chance.choice(values)) for _, index in entries(field) if chance.random() < filled}
        state |= {name: found} if found else {}
    return state


def shuffled(chance: random.Random, branches: bool) -> Names:
    sorts = ("Block", "Branch") if branches else ("Block",)
    return {s: tuple(chance.sample(range(SORTS[s]), SORTS[s])) for s in sorts}


def orbit(state: Plain, branches: bool) -> set[frozenset[object]]:
    blocks, orders = permutations(range(SORTS["Block"])), list(permutations(range(SORTS["Branch"])))
    ways = orders if branches else orders[:1]
    return {renamed(state, VARIABLES, {"Block": b, "Branch": r}) for b in blocks for r in ways}


def test_every_member_of_an_orbit_has_the_same_representative_in_it(sorting: tuple[Module, bool, Layout]) -> None:
    module, branches, placed = sorting
    chance, words = random.Random(1), placed.words
    assert words > 1
    for _ in range(100):
        state = some_state(chance, placed)
        alike = [state, *(moved(state, VARIABLES, shuffled(chance, branches)) for _ in range(5))]
        buf = np.array([w for s in alike for w in pack(s, placed)], np.int64)
        module.canonical(buf, 0, len(alike))
        (chosen,) = {tuple(row) for row in buf.reshape(-1, words).tolist()}
        assert renamed(unpack(chosen, placed), VARIABLES, {}) in orbit(state, branches)
