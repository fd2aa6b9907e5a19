"""A counterexample is a log: `kvsan check` on it reports the same rule at the same event."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kvsan.checker.command.explore import Request, run
from kvsan.checker.replay.check import check
from kvsan.spec.designs.catalog import DESIGNS
from kvsan.traces.read import open_logs

SECOND_POOL = Path(__file__).parent / "designs" / "second_pool.py"

pytest.importorskip("llvmlite", reason="the compiled search needs the extra `explore`")


def test_the_saved_counterexample_breaks_the_same_rule_in_the_checker(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "cex.jsonl"
    wanted = Request(
        "tail_copy", scope="two_branches", mutant="append_without_copy", symmetry="none", save=log, quiet=True
    )
    assert run(wanted) == 1
    assert "violated exclusive_write" in capsys.readouterr().out
    outcome = check(open_logs((str(log),))[0])
    assert [(v.rule, v.line) for v in outcome.violations] == [("exclusive_write", 10)]
    assert '"note":"finish_write(r0)"' in log.read_text().splitlines()[9]


def test_a_transfer_that_the_host_performs_itself_is_in_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "walk.jsonl"
    assert run(Request(str(SECOND_POOL), save=log, simulate=1, depth=3, quiet=True)) == 3
    assert "1 walk, 3 steps" in capsys.readouterr().out
    moves = [line for line in map(json.loads, log.read_text().splitlines()) if "holder" in line]
    out = [{n: v for n, v in line.items() if n != "note"} for line in moves[:2]]
    assert out[0] == {"ev": "read", "holder": "holder0", "block": 1}
    assert out[1] == {"ev": "write", "holder": "holder0", "block": 0, "slots": [0, 1], "pool": "cpu"}
    outcome = check(open_logs((str(log),))[0])
    assert (outcome.verdict, len(moves)) == ("HOLDS", 4)


TWO_STARTS = '''"""A block may be held already: only then is it wrong to take it."""

from kvsan.spec.designs.start import fill_pool
from kvsan.spec.lang.surface import action, initial, require
from kvsan.spec.ownership.blocks import alloc
from kvsan.spec.ownership.state import Block, Branch, Ownership

SETTINGS = {"branches": 1, "blocks": 2, "block_size": 1, "positions": 1}


class TwoStarts(Ownership):
    """The ledger."""

    tried: Block | None


@initial
def all_free(s: TwoStarts) -> None:
    """Every block is free, and the first is never taken."""
    fill_pool(s)
    s.tried = Block(0)


@initial
def one_held(s: TwoStarts) -> None:
    """The first block is held."""
    fill_pool(s)
    alloc(s, Block(0), Branch(0))


@action
def grab(s: TwoStarts, r: Branch, b: Block) -> None:
    """A branch takes a block."""
    require(s.tried is None)

    alloc(s, b, r)
    s.tried = b
'''


def test_a_log_begins_at_the_start_that_its_way_has(tmp_path: Path) -> None:
    design, log = tmp_path / "two.py", tmp_path / "cex.jsonl"
    design.write_text(TWO_STARTS)
    assert run(Request(str(design), save=log, quiet=True)) == 1
    assert [v.rule for v in check(open_logs((str(log),))[0]).violations] == ["alloc_from_free"]
    assert [json.loads(line)["ev"] for line in log.read_text().splitlines()] == ["trace", "alloc", "alloc"]


RULES = [m for m in DESIGNS["tail_copy"].mutants if m.rule not in ("needless_copy",)]


@pytest.mark.slow
@pytest.mark.parametrize("mutant", RULES, ids=lambda m: m.name)
def test_every_mutant_breaks_its_rule_in_the_checker_too(tmp_path: Path, mutant: object) -> None:
    log = tmp_path / "cex.jsonl"
    name, scope, rule = mutant.name, mutant.scope, mutant.rule  # type: ignore[attr-defined]  # a Mutant of the catalog
    assert run(Request("tail_copy", scope=scope, mutant=name, symmetry="none", save=log, quiet=True)) == 1
    outcome = check(open_logs((str(log),))[0])
    assert rule in [v.rule for v in outcome.violations]
