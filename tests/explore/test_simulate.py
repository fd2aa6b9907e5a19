"""Random walks need no compiler, are the same for one seed, and walks of a right design are logs that hold."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from kvsan.checker.explore.design import find, scoped
from kvsan.checker.explore.explore import Prepared, prepare
from kvsan.checker.explore.log import log_of, written
from kvsan.checker.explore.simulate import Walks, simulate
from kvsan.checker.replay.check import check
from kvsan.traces.read import open_logs


@cache
def prepared(mutant: str) -> Prepared:
    design = find("tail_copy")
    return prepare(design, scoped(design, scope="two_branches", mutant=mutant), "none")


def walked(mutant: str, walks: int, seed: int) -> Walks:
    return simulate(prepared(mutant), walks, 20, seed)


def test_one_seed_gives_one_walk_and_seeds_differ() -> None:
    def texts(seed: int) -> tuple[str, ...]:
        return tuple(s.text for s in walked("", 1, seed).last)

    assert texts(7) == texts(7)
    assert len({texts(seed) for seed in range(6)}) > 1


def test_a_walk_of_the_right_design_is_a_log_that_holds(tmp_path: Path) -> None:
    design = find("tail_copy")
    chosen = scoped(design, scope="two_branches")
    done = simulate(prepare(design, chosen, "none"), 1, 20, 3)
    assert done.found is None
    log = tmp_path / "walk.jsonl"
    log.write_text(written(log_of(design, chosen, done.start, done.last)))
    assert check(open_logs((str(log),))[0]).violations == ()


def test_walks_of_a_mutant_find_its_fault() -> None:
    done = walked("append_without_copy", 50, 0)
    assert done.found is not None
    assert done.found.rule == "exclusive_write"


IDLE_COUNTER = '''"""Steps are counted, and nobody looks."""

from kvsan.spec.lang.surface import Map, action, initial, require
from kvsan.spec.ownership.state import Branch, Ownership, Tokens

SETTINGS = {"branches": 1, "blocks": 1, "block_size": 1, "positions": 2}


class Idle(Ownership):
    """on: it runs. steps: how often."""

    steps: Map[Branch, Tokens]
    on: bool


@initial
def begin(s: Idle) -> None:
    """It runs."""
    s.on = True


@action
def tick(s: Idle, r: Branch) -> None:
    """One more step."""
    require(s.on)

    s.steps[r] = s.steps[r] + 1
'''


def test_a_walk_leaves_its_domain_where_nobody_depends_on_that(tmp_path: Path) -> None:
    path = tmp_path / "idle.py"
    path.write_text(IDLE_COUNTER)
    design = find(str(path))
    made = prepare(design, scoped(design), "none")
    assert "steps" not in made.model.working.fields  # a search has no place for it
    done = simulate(made, 1, 5, 0)
    assert done.found is not None
    assert (done.found.rule, len(done.found.steps)) == ("defined", 3)
