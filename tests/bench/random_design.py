"""A design generated at random: no structure that a search could have been tuned for."""

from __future__ import annotations

import random

HEAD = '''"""A machine of no meaning."""

from typing import Annotated

from kvsan.spec.lang import Map, Scope, Sort, State, UpTo, action, initial, require


class Block(Sort):
    """One of some things."""


class Branch(Sort):
    """One of some others."""


Small = Annotated[int, UpTo("most")]


class Machine(State):
    """Some small numbers."""

'''


def design(seed: int, actions: int = 12) -> str:
    """The text of a design: numbers per branch and per block, and steps that compare and set some of them."""
    dice = random.Random(seed)
    of_branch, of_block = ["x0", "x1"], ["y0", "y1"]
    lines = [HEAD.rstrip("\n"), ""]
    lines += [f"    {name}: Map[Branch, Small]" for name in of_branch]
    lines += [f"    {name}: Map[Block, Small]" for name in of_block]
    lines += [
        "", "", "def scope(branches: int = 3, blocks: int = 3, most: int = 2) -> Scope:", '    """Sizes."""',
        '    return Scope({"Branch": branches, "Block": blocks}, {"most": most}, {})',
        "", "", "@initial", "def nothing(s: Machine) -> None:", '    """All are 0."""',
    ]  # fmt: skip
    places = [f"s.{n}[{i}]" for n in of_branch for i in ("q", "r")] + [f"s.{n}[b]" for n in of_block]
    for n in range(actions):
        a, b, c, d, e = (dice.choice(places) for _ in range(5))
        test = dice.choice(["<=", "!=", "=="])
        body = [f"    require({a} {test} {b} and {c} == {dice.randrange(3)})", ""]
        body.append(f"    {d} = ({e} + {dice.randrange(1, 3)}) % 3")
        if dice.random() < 0.5:
            body.append(f"    if {dice.choice(places)} == {dice.randrange(3)}:")
            body.append(f"        {dice.choice(places)} = {dice.randrange(3)}")
        kinds = {"q": "Branch", "r": "Branch", "b": "Block"}
        given = "".join(f", {p}: {kinds[p]}" for p in kinds if f"[{p}]" in "\n".join(body))
        lines += ["", "", "@action", f"def step{n}(s: Machine{given}) -> None:", '    """A step."""', *body]
    return "\n".join(lines) + "\n"
