"""A start stands for every number of blocks only where one more is left like the last, and all else as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("z3")

from attempts import design
from kvsan.checker.prove.initial import varying
from kvsan.checker.prove.prove import Proof, prove
from kvsan.checker.prove.second import opinions
from kvsan.checker.prove.system import System, system, with_facts
from kvsan.checker.report.opinion import Second
from kvsan.checker.report.opinion import as_text as as_opinion
from kvsan.checker.report.proof import as_text

FEW = '''"""Blocks are taken and never come back."""

from kvsan.spec.designs.start import fill_pool
from kvsan.spec.lang.surface import Const, Set, action, initial, invariant, members, only, require
from kvsan.spec.ownership.blocks import alloc
from kvsan.spec.ownership.state import Block, Branch, Ownership, Tokens

SETTINGS = {"branches": 1, "blocks": 6, "block_size": 1, "positions": 1, "enough": 3}


class Few(Ownership):
    """apart: blocks that are not handed out."""

    enough: Const[Tokens]
    apart: Set[Block]


@initial
def all_free(s: Few) -> None:
    """Every block is free, and some are set apart."""
    fill_pool(s)
    for b in members(Block, s):
        APART


@action
def grab(s: Few, r: Branch, b: Block) -> None:
    """A branch takes a block."""
    require(not s.held[b] and b not in s.apart and s.enough > 0)

    alloc(s, b, r)


@invariant
def few_are_so(s: Few) -> bool:
    """Blocks are so.

    Source: ours.
    Catches: nothing.
    Except: nowhere.
    Deviates: nowhere.
    """
    return all(FACT for b in members(Block, s))
'''
APART, NOT_ALL = "s.apart = s.apart | only(b)", "if s.enough > 1:\n            s.apart = s.apart | only(b)"


def of(folder: Path, apart: str, fact: str) -> System:
    path = folder / "few.py"
    path.write_text(FEW.replace("APART", apart).replace("FACT", fact))
    return system(with_facts(str(path)))


def proof(folder: Path, apart: str, fact: str) -> Proof:
    return prove(of(folder, apart, fact), explore=False)


@pytest.mark.parametrize(
    ("apart", "fact", "verdict", "names"),
    [
        (APART, "b in s.apart or s.enough > 0", "HOLDS", set()),
        (NOT_ALL, "b in s.apart or s.enough < 2", "HOLDS", set()),
        # six are free with the six blocks of the scope, and seven where the proof begins
        (APART, "s.free[s.pool_of[b]] <= 5", "VIOLATED", {"free"}),
        (APART, "s.free[s.pool_of[b]] <= 6", "VIOLATED", {"free"}),
        (APART, "s.free[s.pool_of[b]] <= 7", "UNKNOWN", {"free"}),
        # what decides how many are set apart counts too: a twelfth block is not
        ("if s.free[s.pool_of[b]] < 12:\n            s.apart = s.apart | only(b)", "b in s.apart", "UNKNOWN", {"free"}),
    ],
)
def test_a_start_that_counts_blocks_stands_for_no_other_number(
    apart: str, fact: str, verdict: str, names: set[str], tmp_path: Path
) -> None:
    found = proof(tmp_path, apart, fact)
    assert (found.verdict, {name for name, _ in found.varying}) == (verdict, names)
    if verdict == "UNKNOWN":
        said = as_text(found, "")
        assert "and with more it leaves free otherwise\n" in said
        assert "UNKNOWN: not proved: the start for any number\n" in said


def test_a_fact_that_one_block_breaks_at_the_start_is_broken(tmp_path: Path) -> None:
    path, text = tmp_path / "few.py", FEW.replace("import Const", "import Const, auxiliary")
    text = text.replace("    for b in members(Block, s):\n        APART", "    s.apart = only(Block(0))")
    fact = text.replace("FACT", "s.enough > 0").replace("def few_are_so(s: Few)", "def is_not_apart(s: Few, b: Block)")
    fact = fact.replace("@invariant", "@auxiliary").replace(
        "return all(s.enough > 0 for b in members(Block, s))", "return b not in s.apart"
    )
    path.write_text(fact.replace("initial, invariant", "initial"))
    found = prove(system(with_facts(str(path))), explore=False)
    assert found.verdict == "VIOLATED"
    assert [(fact, step) for fact, step, _ in found.start] == [("is_not_apart", "all_free")]
    assert "is_not_apart is false at the start, after all_free, with 1 branches, 6 blocks\n" in as_text(found, "")


def test_an_invariant_of_the_abstraction_is_of_one_number_too(tmp_path: Path) -> None:
    made = of(tmp_path, "if s.free[s.pool_of[b]] < 12:\n            s.apart = s.apart | only(b)", "True or s.held[b]")
    found = tuple(opinions(made, ("alloc_from_free",)))
    assert [(o.status, o.varying) for o in found] == [("unknown", ("free",))]
    assert "with more, the start leaves free otherwise\n" in as_opinion(Second(made, found), "")


def test_the_start_of_the_reference_machine_varies_in_the_free_blocks_alone() -> None:
    made = system(design("tail_copy"))
    assert {v for v, _ in varying(made, made.variables)} == {"free"}


QUOTAS = '''"""Branches have quotas."""

from typing import Annotated

from kvsan.spec.lang.surface import Const, Map, Scope, Sort, State, UpTo, action, initial, invariant, members, require


class Branch(Sort):
    """A branch."""


Depth = Annotated[int, UpTo("depth")]


class Own(State):
    """quota: what each may use. used: what it does."""

    quota: Const[Map[Branch, Depth]]
    used: Map[Branch, Depth]


def scope(branches: int = 2) -> Scope:
    """The scope."""
    return Scope({"Branch": branches}, {"depth": DEPTH}, {"quota": QUOTA})


@initial
def begin(s: Own) -> None:
    """Nothing is used."""
    s.used[Branch(0)] = BEGUN


@action
def use(s: Own, r: Branch) -> None:
    """One more is used."""
    require(s.used[r] < s.quota[r])

    s.used[r] += 1


@invariant
def so_it_is(s: Own) -> bool:
    """So it is.

    Source: ours.
    Catches: nothing.
    Except: nowhere.
    Deviates: nowhere.
    """
    return all(FACT for r in members(Branch, s))
'''


@pytest.mark.parametrize(
    ("depth", "quota", "fact", "verdict", "names"),
    [
        ("2", "{(0,): 1, (1,): 2}", "s.used[r] <= s.quota[r]", "HOLDS", set()),
        ("2", "{(0,): 1, (1,): 2}", "s.quota[r] == 0", "VIOLATED", set()),  # what a start is given it has
        ("2", "{(r,): r % 3 for r in range(branches)}", "s.used[r] <= s.quota[r]", "UNKNOWN", {"quota"}),
        ("branches", "{(0,): 1, (1,): 2}", "s.used[r] <= s.quota[r]", "UNKNOWN", {"depth"}),
    ],
)
def test_a_scope_that_gives_more_members_other_sizes_stands_for_no_other_number(
    depth: str, quota: str, fact: str, verdict: str, names: set[str], tmp_path: Path
) -> None:
    path = tmp_path / "quotas.py"
    path.write_text(QUOTAS.replace("DEPTH", depth).replace("QUOTA", quota).replace("FACT", fact).replace("BEGUN", "0"))
    found = prove(system(with_facts(str(path))), explore=False)
    assert (found.verdict, {name for name, _ in found.varying}) == (verdict, names)


def test_a_start_that_counts_wrongly_is_broken(tmp_path: Path) -> None:
    text = QUOTAS.replace("DEPTH", "2").replace("QUOTA", "{(0,): 1}").replace("FACT", "True").replace("BEGUN", "1")
    text = text.replace("import Const,", "import Const, counted,").replace("    used:", "    total: Depth\n    used:")
    text = text.replace("s.used[r] += 1", "s.used[r] += 1\n    s.total += 1") + COUNTED
    path = tmp_path / "quotas.py"
    path.write_text(text)
    found = prove(system(with_facts(str(path))), explore=False)
    assert [(fact, step) for fact, step, _ in found.start] == [("total_counted", "begin")]


COUNTED = '''

@counted
def total_counted(s: Own, r: Branch) -> bool:
    """How many use something.

    Source: ours.
    Catches: nothing.
    Except: nowhere.
    Deviates: nowhere.
    """
    return s.used[r] > 0
'''
