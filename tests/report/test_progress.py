"""The live line: on a terminal, after a moment, and never elsewhere."""

from __future__ import annotations

import io

import pytest
from kvsan.checker.command import progress
from kvsan.checker.command.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def told(monkeypatch: pytest.MonkeyPatch, stderr: io.StringIO, quiet: bool = False) -> str:
    monkeypatch.setattr("sys.stderr", stderr)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "PATIENCE", 0)
    with Progress("[red].jsonl", quiet) as line:
        line.tell(1200, 1234)
    return stderr.getvalue()


def test_a_terminal_gets_a_line_that_names_the_log_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "checking [red].jsonl, line 1,234: 1,200 events" in told(monkeypatch, Terminal())


def test_a_pipe_gets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(monkeypatch, io.StringIO()) == ""


def test_quiet_gets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(monkeypatch, Terminal(), quiet=True) == ""


def test_a_quick_check_shows_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with Progress("a.jsonl", quiet=False) as line:
        line.tell(1, 2)
    assert terminal.getvalue() == ""
