"""What is taken to be at rest between steps is so: brute force over every state of a small scope says the same."""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path

import pytest
from kvsan.checker.explore.rest import at_rest, settled
from kvsan.spec.lang import ir
from kvsan.spec.lang.interpret import Plain, Value, run
from kvsan.spec.lang.load import load
from kvsan.spec.lang.symbolic import Sizes, functional

SPEC = '''
from __future__ import annotations

from typing import Annotated

from kvsan.spec.lang import Below, Map, Set, Sort, State, action, empty, initial, invariant, members
from kvsan.spec.lang import only, require, reset, row

class Block(Sort):
    """A block."""

class Branch(Sort):
    """A branch."""

Turn = Annotated[int, Below("turns")]

class Model(State):
    """flag and kept stay; the others may be at rest."""
    flag: Map[Branch, bool]
    kept: Map[Branch, Block, bool]
    mark: Map[Block, bool]
    pair: Map[Branch, Block, bool]
    group: Map[Block, Set[Branch]]
    turn: Map[Block, Turn]

@initial
def nothing(s: Model) -> None:
    """All default."""

@action
def change(s: Model, r: Branch, b: Block) -> None:
    """What stays may be anything."""
    s.flag[r] = not s.flag[r]
    s.kept[r, b] = not s.kept[r, b]
    s.mark[b], s.pair[r, b], s.group[b], s.turn[b] = False, False, empty(), 0

@action
def act(s: Model, r: Branch, q: Branch, b: Block, c: Block) -> None:
    """The case."""
    require(r == q or r != q or b == c or b != c)

{body}

@invariant
def read(s: Model) -> bool:
    """Everything matters."""
    return all(not s.mark[b] and s.group[b] == empty() and not s.pair[r, b] and s.turn[b] == 0
               for b in members(Block, s) for r in members(Branch, s))
'''
SIZES = Sizes({"Block": 2, "Branch": 2}, {"turns": 3})
FREE = ("flag", "kept")
RESTING = [
    "s.mark[b] = True\ns.mark[c] = False\nif s.mark[b]:\n    s.flag[r] = True\n    s.mark[b] = False",
    "s.mark[b] = True\ns.mark[b] = False",
    "s.mark[b] = True\nreset(s, b)",
    "if s.flag[r]:\n    s.mark[b] = True\n    s.mark[b] = False",
    "if s.flag[r]:\n    s.mark[b] = True\nelse:\n    s.mark[b] = True\ns.mark[b] = False",
    "if s.mark[b]:\n    s.mark[c] = True",
    "for k in row(s.kept, r):\n    s.mark[k] = True\n    s.mark[k] = False",
    "for k in row(s.pair, r):\n    s.mark[k] = True",
    "s.pair[r, b] = True\nfor k in row(s.pair, r):\n    s.pair[r, k] = False",
    "if s.flag[q]:\n    s.pair[r, b] = True\n    s.mark[b] = True\n    s.group[b] = s.group[b] | only(r)\n"
    "for k in row(s.pair, r):\n    s.pair[r, k] = False\n    s.mark[k] = False\n    s.group[k] = s.group[k] - only(r)",
    "if s.flag[r]:\n    s.mark[b] = True\n    if s.flag[r]:\n        s.mark[b] = False",
    "if s.flag[r]:\n    was = s.flag[r]\n    if not was:\n        s.mark[b] = True",
]
UNPROVED = [
    "for k in row(s.kept, r):\n    s.pair[r, k] = True\nfor m in row(s.pair, r):\n    s.pair[r, m] = False",
    "if s.flag[r]:\n    s.pair[r, b] = True\n    s.mark[b] = True\nif s.flag[q]:\n    s.mark[b] = False\n"
    "for k in row(s.pair, r):\n    s.pair[r, k] = False\n    if s.mark[k]:\n        s.kept[r, k] = True\n"
    "    s.mark[k] = False",
    "for k in row(s.kept, r):\n    if s.flag[q]:\n        s.pair[r, b] = True\n        s.mark[b] = True\n"
    "    s.flag[q] = False\nfor m in row(s.pair, r):\n    s.pair[r, m] = False\n    s.mark[m] = False",
]
MOVING = [
    "if s.flag[r]:\n    s.turn[b] = 1\nelse:\n    s.turn[b] = 2\n"
    "if s.turn[b] == 2:\n    s.mark[b] = True\ns.turn[b] = 0",
    "if s.flag[r]:\n    s.group[b] = only(r)\nelse:\n    s.group[b] = only(q)\ns.group[b] = s.group[b] - only(r)",
    "if s.flag[r]:\n    s.pair[r, b] = s.flag[q]\n    s.mark[b] = True\n"
    "for k in row(s.pair, r):\n    s.pair[r, k] = False\n    s.mark[k] = False",
    "for k in row(s.kept, r):\n    if s.kept[q, k]:\n        s.mark[k] = True\n    else:\n        s.mark[k] = False",
    "if s.flag[r]:\n    k = b\nelse:\n    k = c\ns.mark[b] = True\ns.mark[k] = False",
    "s.mark[b] = True\ns.mark[c] = False",
    "s.mark[b] = True\nreset(s, c)",
    "if s.flag[r]:\n    s.mark[b] = True\nif s.flag[q]:\n    s.mark[b] = False",
    "if s.flag[r]:\n    s.mark[b] = True\nelse:\n    s.mark[b] = False",
    "s.mark[b] = True\nif s.mark[c]:\n    s.mark[b] = False",
    "for k in row(s.kept, r):\n    s.mark[k] = True\ns.mark[b] = False",
    "s.pair[r, b] = True\nfor k in row(s.pair, q):\n    s.pair[q, k] = False",
    "s.pair[r, b], s.pair[r, c] = True, True\nfor k in row(s.pair, r):\n    if k == b:\n        s.pair[r, k] = False",
    "if s.flag[q]:\n    s.pair[r, b] = True\ns.mark[b] = True\n"
    "for k in row(s.pair, r):\n    s.pair[r, k] = False\n    s.mark[k] = False",
    "s.group[b] = s.group[b] | only(r)\ns.group[b] = s.group[b] | only(q)\ns.group[b] = s.group[b] - only(r)",
    "if s.flag[r]:\n    s.flag[r] = False\n    if not s.flag[r]:\n        s.mark[b] = True",
    "was = s.kept[r, b]\ns.kept[r, c] = True\nif s.kept[r, b] and not was:\n    s.mark[b] = True",
    "for k in row(s.kept, r):\n    if s.mark[k]:\n        s.mark[b] = False\n    else:\n        s.mark[b] = True",
]


def loaded(tmp_path: Path, body: str) -> ir.Spec:
    path = tmp_path / "model.py"
    path.write_text(SPEC.format(body="\n".join("    " + line for line in body.splitlines())), encoding="utf-8")
    return load(path)


def beginnings() -> list[Plain]:
    """Every state in which what may be at rest is."""
    flags = [{(r,): True for r in range(2) if bits >> r & 1} for bits in range(4)]
    pairs = list(product(range(2), range(2)))
    kept = [{at: True for n, at in enumerate(pairs) if bits >> n & 1} for bits in (0, 1, 6, 11, 15)]
    return [{n: dict(e) for n, e in (("flag", f), ("kept", k)) if e} for f in flags for k in kept]


def outcomes(spec: ir.Spec, step: ir.Step) -> list[Plain]:
    form = functional(step, spec.variables, SIZES)
    values: list[dict[str, Value]] = [
        {p.name: x for p, x in zip(step.params, chosen, strict=True)}
        for chosen in product(range(2), repeat=len(step.params))
    ]
    return [run(form, spec.variables, s, v).after for s in beginnings() for v in values]


def check(spec: ir.Spec) -> tuple[set[str], set[str]]:
    """Compare one case with brute force. Returns what a step leaves otherwise than at rest, in truth and as shown."""
    before = spec.steps["act"]
    left = {name for after in outcomes(spec, before) for name in after} - set(FREE)
    resting = at_rest(spec.of_kind("action"), {}, spec.variables, spec.variables)
    assert not left & resting
    after, _ = settled(before, {}, resting, spec.variables)
    assert outcomes(spec, after) == outcomes(spec, before)
    return left, set(spec.variables) - resting - set(FREE)


@pytest.mark.parametrize("body", RESTING)
def test_what_every_way_through_a_step_leaves_at_rest_is_shown_to_be(tmp_path: Path, body: str) -> None:
    assert check(loaded(tmp_path, body)) == (set(), set())


@pytest.mark.parametrize("body", MOVING)
def test_what_one_way_leaves_otherwise_is_never_taken_to_be_at_rest(tmp_path: Path, body: str) -> None:
    left, shown = check(loaded(tmp_path, body))
    assert left == shown != set()


@pytest.mark.parametrize("body", UNPROVED)
def test_what_cannot_be_shown_is_kept(tmp_path: Path, body: str) -> None:
    left, shown = check(loaded(tmp_path, body))
    assert left == set() != shown


class Bodies:
    """Random bodies of the case."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.loops = 0

    def block(self, depth: int, blocks: tuple[str, ...]) -> str:
        return "\n".join(self.statement(depth, blocks) for _ in range(self.chance.randint(1, 3)))

    def statement(self, depth: int, blocks: tuple[str, ...]) -> str:
        pick = self.chance.choice
        r, b = pick("rq"), pick(blocks)
        kind = pick(["store"] * 4 + ["if", "loop"] * (depth > 0))
        if kind == "store":
            truth = pick(("True", "False"))
            return pick(
                (f"s.mark[{b}] = {truth}", f"s.pair[{r}, {b}] = {truth}", f"s.flag[{r}] = {truth}", f"reset(s, {b})",
                 f"s.group[{b}] = s.group[{b}] {pick('|-')} only({r})", f"s.group[{b}] = empty()")
            )  # fmt: skip
        if kind == "if":
            test = pick((f"s.flag[{r}]", f"s.mark[{b}]", f"s.pair[{r}, {b}]", f"not s.kept[{r}, {b}]", f"{b} == c"))
            other = f"\nelse:\n{indent(self.block(depth - 1, blocks))}" if pick((True, False)) else ""
            return f"if {test}:\n{indent(self.block(depth - 1, blocks))}{other}"
        self.loops += 1
        name = f"k{self.loops}"
        variable = pick(("kept", "pair"))
        return f"for {name} in row(s.{variable}, {r}):\n{indent(self.block(depth - 1, (*blocks, name, name)))}"


def indent(text: str) -> str:
    return "\n".join("    " + line for line in text.splitlines())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_random_steps_agree_with_brute_force(tmp_path: Path, seed: int) -> None:
    bodies = Bodies(seed)
    for _ in range(40):
        body = bodies.block(2, ("b", "c"))
        left, shown = check(loaded(tmp_path, body))
        assert left <= shown, body
