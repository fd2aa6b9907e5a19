"""What fails at a step of a small design: its own rule is not taken for granted, and its start is told exactly."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("z3")

from kvsan.checker.prove.induction import Result
from kvsan.checker.prove.prove import prove
from kvsan.checker.prove.system import System, system, with_facts
from kvsan.spec.lang import ir
from kvsan.spec.lang.interpret import Plain, holds
from kvsan.spec.lang.symbolic import predicate
from kvsan.spec.lang.walk import every

HASTY = '''"""A branch that has given something up takes a block for one that has not, whether it is free or not."""

from kvsan.spec.lang.surface import Map, Set, action, initial, only, require
from kvsan.spec.ownership.blocks import alloc
from kvsan.spec.ownership.state import Block, Branch, Ownership, Slot

SETTINGS = {"branches": 2, "blocks": 2, "block_size": 2, "positions": 1}


class Hasty(Ownership):
    """gone: who has given up. parts: some slots of each block."""

    gone: Map[Branch, bool]
    parts: Map[Block, Set[Slot]]


@initial
def nobody(s: Hasty) -> None:
    """Nothing has happened."""
    s.gone[Branch(0)] = False


@action
def give_up(s: Hasty, r: Branch, b: Block) -> None:
    """A branch gives up."""
    s.gone[r] = True
    s.parts[b] = only(1)


@action
def grab(s: Hasty, r: Branch, c: Branch, b: Block) -> None:
    """A block is taken."""
    require(s.gone[r] and not s.gone[c] and s.parts[b] == only(1))

    alloc(s, b, c)
'''


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> tuple[System, Result]:
    path = tmp_path_factory.mktemp("small") / "hasty.py"
    path.write_text(HASTY)
    made = system(with_facts(str(path)))
    (found,) = prove(made, explore=False).failed
    return made, found


def test_the_rule_of_a_step_is_not_taken_for_granted_there(failed: tuple[System, Result]) -> None:
    _, found = failed
    assert (found.rule, found.action) == ("alloc_from_free", "grab")


def test_what_matters_is_told_and_what_stays_the_same_is_not_told_twice(failed: tuple[System, Result]) -> None:
    found = failed[1].example
    assert found is not None
    before = {"gone[r0]": "true", "gone[r1]": "false", "parts[b0]": "{1}", "held[b0]": "true"}
    assert (dict(found.before), found.action) == (before, "grab(r0, r1, b0)")
    assert "held[b0]" not in dict(found.after) and "gone[r0]" not in dict(found.after)


@pytest.mark.parametrize(
    ("gone", "parts", "is_start"), [({0}, {1}, True), ({1}, {1}, True), ({0, 1}, {1}, False), (set(), {1}, False),
                                    ({0}, {0}, False), ({0}, {0, 1}, False), ({0}, set(), False)],
)  # fmt: skip
def test_the_explorer_looks_for_a_start_with_these_entries(
    gone: set[int], parts: set[int], is_start: bool, failed: tuple[System, Result]
) -> None:
    made, found = failed
    assert found.example is not None
    looked_for = ir.Step("start", "invariant", "", (), (), None, "", value=found.example.start)
    state: Plain = {
        "gone": {(r,): True for r in gone},
        "parts": {(0,): frozenset(parts)} if parts else {},
        "held": {(0,): True},
    }
    condition = predicate(looked_for, made.variables, made.scoped.sizes)
    assert holds(condition, made.variables, {**made.scoped.constants, **state}) is is_start


LOOKS = '''"""A branch looks at the block that it has."""

from kvsan.spec.lang.surface import Map, action, initial, invariant, members, require, some
from kvsan.spec.ownership.state import Block, Branch, Ownership

SETTINGS = {"branches": 2, "blocks": 2, "block_size": 2, "positions": 1}


class Looks(Ownership):
    """mine: the block of each branch. dirty: which blocks are. saw: who has seen a dirty one."""

    mine: Map[Branch, Block | None]
    dirty: Map[Block, bool]
    saw: Map[Branch, bool]


@initial
def one_is_dirty(s: Looks) -> None:
    """One block is dirty, and nobody has it."""
    s.dirty[Block(0)] = True


@action
def take_clean(s: Looks, r: Branch, b: Block) -> None:
    """A branch takes a clean block."""
    require(not s.dirty[b])

    s.mine[r] = b


@action
def look(s: Looks, r: Branch) -> None:
    """A branch looks."""
    require(s.mine[r] is not None)

    s.saw[r] = s.dirty[some(s.mine[r])]


@invariant
def nobody_saw(s: Looks) -> bool:
    """Nobody has seen a dirty block.

    Source: ours.
    Catches: nothing.
    Except: nowhere.
    Deviates: nowhere.
    """
    return all(not s.saw[r] for r in members(Branch, s))
'''


def test_what_ties_a_member_to_the_step_is_told_and_looked_for(tmp_path: Path) -> None:
    path = tmp_path / "looks.py"
    path.write_text(LOOKS)
    (found,) = prove(system(with_facts(str(path))), explore=False).failed
    assert found.example is not None
    assert dict(found.example.before) == {"mine[r0]": "b0", "dirty[b0]": "true"}
    read = {e.variable for e in every(found.example.start) if isinstance(e, ir.Read)}
    assert read == {"mine", "dirty"}
