"""The search by the interpreter finds what the compiled one finds."""

from __future__ import annotations

from pathlib import Path

import pytest
from kvsan.checker.command.explore import Request, run
from kvsan.checker.explore import explore as exploring
from kvsan.checker.explore.design import find, scoped
from kvsan.checker.explore.explore import Exploration, explore, explore_plainly, prepare
from kvsan.checker.explore.module import NoCompiler
from kvsan.checker.explore.search import Limits

MACHINE = str(Path(__file__).parent / "designs" / "tail_machine.py")
TWO = {"branches": "2", "blocks": "4"}


def told(found: Exploration) -> tuple[object, ...]:
    counts = found.states, found.transitions, found.depth, found.levels, found.ends, found.fan
    ways = [(f.rule, [s.action for s in f.steps], f.message) for f in (*found.violations, *found.lints)]
    return found.verdict, found.stopped, counts, found.actions, found.judged, found.witnesses, ways


CASES = [(MACHINE, TWO, "", False), (MACHINE, TWO, "shared_append", False), (MACHINE, TWO, "early_publish", False)]
ADVISED = str(Path(__file__).parent / "designs" / "advised.py")
CASES += [(ADVISED, {}, "", True), (ADVISED, {}, "", False), (ADVISED, {"branches": "1"}, "", True)]
SLOW = [("tail_copy", TWO, m, True) for m in ("", "copy_although_sole_owner", "append_without_copy", "free_twice")]


@pytest.mark.parametrize(
    ("design", "changes", "mutant", "lints"), [*CASES, *(pytest.param(*c, marks=[pytest.mark.slow]) for c in SLOW)]
)
def test_both_searches_tell_the_same(design: str, changes: dict[str, str], mutant: str, lints: bool) -> None:
    pytest.importorskip("llvmlite", reason="the compiled search needs the extra `explore`")
    chosen = find(design)
    prepared = prepare(chosen, scoped(chosen, changes, mutant=mutant), "none", lints)
    assert told(explore_plainly(prepared)) == told(explore(prepared))


def test_a_limit_of_states_ends_it() -> None:
    design = find(MACHINE)
    found = explore_plainly(prepare(design, scoped(design, TWO), "none"), Limits(states=20))
    assert (found.verdict, found.stopped) == ("UNKNOWN", "the limit of states")


def test_a_limit_of_depth_ends_both_at_one_place() -> None:
    pytest.importorskip("llvmlite", reason="the compiled search needs the extra `explore`")
    design = find(ADVISED)
    prepared = prepare(design, scoped(design), "none")
    for depth in (0, 1):
        found = explore_plainly(prepared, Limits(depth=depth))
        assert found.stopped == f"depth {depth}"
        assert told(found) == told(explore(prepared, Limits(depth=depth)))


def test_without_a_compiler_the_interpreter_searches_and_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_: str) -> None:
        raise NoCompiler("llvmlite and numpy are not installed")

    monkeypatch.setattr(exploring, "build", missing)
    assert run(Request(MACHINE, ("branches=2", "blocks=4"), quiet=True)) == 0
    said = capsys.readouterr()
    assert "llvmlite and numpy are not installed" in said.err
    assert "100 in" in said.out
