"""What `kvsan prove` refuses, and in which order."""

from __future__ import annotations

import sys
import time

import pytest
from kvsan.checker.cli import interrupt_again
from kvsan.checker.command.prove import Request, run
from kvsan.checker.command.usage import Refused


@pytest.fixture
def no_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where z3-solver is not installed."""
    for name in [n for n in sys.modules if n.startswith("kvsan.checker.prove.")]:
        if name != "kvsan.checker.prove.system":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "z3", None)


def test_without_a_solver_a_missing_file_is_what_is_said_first(no_solver: None) -> None:
    with pytest.raises(Refused, match=r"missing_file\.py"):
        run(Request("missing_file.py:X"))


@pytest.mark.parametrize("given", [{"scope": "wide"}, {"mutant": "free_twice"}])
def test_the_discipline_has_no_scopes_and_no_mutants(given: dict[str, str]) -> None:
    with pytest.raises(Refused, match=f"ownership has no --{next(iter(given))}"):
        run(Request("ownership", **given))  # type: ignore[arg-type]  # the two are words


def test_one_step_alone_is_not_the_design(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("z3")
    asked = Request("tail_copy", actions=("append_in_place",), budget=500.0, quiet=True)
    assert run(asked) == 0
    assert capsys.readouterr().out.endswith("HOLDS at append_in_place alone, for any number of blocks and branches\n")
    assert asked.replay == "kvsan prove tail_copy --action append_in_place --budget 500"


def test_without_a_solver_a_design_is_refused_with_what_to_install(no_solver: None) -> None:
    with pytest.raises(Refused, match=r"pip install 'kvsan\[prove\]'"):
        run(Request("tail_copy", quiet=True))


def test_an_interrupt_that_is_lost_where_an_object_goes_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone:
        def __del__(self) -> None:
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "unraisablehook", interrupt_again)
    with pytest.raises(KeyboardInterrupt):
        del [Gone()][0]
        for _ in range(1000):
            time.sleep(0.01)  # what comes is seen between two of them
