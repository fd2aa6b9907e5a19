"""A search that a limit or the keyboard ends says so, and tells what it covered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from kvsan.checker.command import explore as command
from kvsan.checker.command.explore import Live, Request, run
from kvsan.checker.explore.search import Progress

pytest.importorskip("llvmlite", reason="the compiled search needs the extra `explore`")

MACHINE = str(Path(__file__).parent / "designs" / "tail_machine.py")
THREE = ("branches=3", "blocks=5")
STATES, DEPTH = 3728, 18  # of the whole scope, from the reference


def told(capsys: pytest.CaptureFixture[str], code: int, request: Request) -> dict[str, object]:
    assert run(request) == code
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("limit", "stopped"),
    [
        ({"limit_states": 1000}, "the limit of states"),
        ({"limit_memory": "16K"}, "the limit of memory"),
        ({"limit_depth": 5}, "depth 5"),
    ],
    ids=["states", "memory", "depth"],
)
def test_a_limit_is_unknown_and_tells_what_was_covered(
    limit: dict[str, object], stopped: str, capsys: pytest.CaptureFixture[str]
) -> None:
    request = Request(MACHINE, THREE, symmetry="none", json=True, quiet=True, **limit)  # type: ignore[arg-type]
    found = told(capsys, 3, request)
    assert (found["verdict"], found["stopped"]) == ("UNKNOWN", stopped)
    assert 0 < int(str(found["states"])) < STATES
    assert 0 < int(str(found["depth"])) < DEPTH


def test_an_interrupt_gives_the_partial_report(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(self: Live, figures: Progress) -> None:
        if figures.depth == 9:
            raise KeyboardInterrupt

    monkeypatch.setattr(Live, "tell", interrupt)
    found = told(capsys, 130, Request(MACHINE, THREE, symmetry="none", json=True))
    assert (found["verdict"], found["stopped"]) == ("UNKNOWN", "interrupted")
    assert found["depth"] == 9 and 0 < int(str(found["states"])) < STATES
    assert run(Request(MACHINE, THREE, symmetry="none")) == 130
    assert "\nUNKNOWN: interrupted; nothing is violated in the " in capsys.readouterr().out


def test_a_terminal_sees_states_queue_depth_and_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    class Line:
        def update(self, text: str) -> None:
            shown.append(text)

        def stop(self) -> None:
            shown.append("stopped")

    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr(command, "live_line", lambda text: Line())
    monkeypatch.setattr(command, "PATIENCE", -1.0)
    with Live("tail_copy", quiet=False) as live:
        live.show("tail_copy is compiled")
        live.tell(Progress(1200, 5000, 300, 7, 0.5))
    assert shown == [
        "tail_copy is compiled",
        "exploring tail_copy: 5,000 states generated, 1,200 distinct, 300 on queue, depth 7, 2,400 distinct a second",
        "stopped",
    ]


def test_no_terminal_sees_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: False)
    monkeypatch.setattr(command, "PATIENCE", -1.0)
    with Live("tail_copy", quiet=False) as live:
        live.show("tail_copy is compiled")
        live.tell(Progress(1, 1, 1, 1, 1.0))
        assert live.status is None


def test_two_runs_tell_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    request = Request(MACHINE, THREE, json=True, quiet=True)
    first, second = (told(capsys, 0, request) for _ in range(2))
    for found in (first, second):
        del found["seconds"], found["bytes_per_state"]
    assert first == second
