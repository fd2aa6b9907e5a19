"""The live line: how far a check has come, on a terminal's standard error and nowhere else."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.status import Status

PATIENCE = 0.3
"""Seconds before a line appears: a quick check shows none, and does not pay for the library that draws it."""


class Progress:
    """A context manager around one log; `tell` is what `check` calls. Silent where standard error is no terminal."""

    def __init__(self, name: str, quiet: bool) -> None:
        self.name = name
        self.silent = quiet or not sys.stderr.isatty()
        self.start = time.monotonic()
        self.status: Status | None = None

    def tell(self, events: int, line: int) -> None:
        """So many events have been replayed, up to that line."""
        if self.silent:
            return
        elapsed = time.monotonic() - self.start
        if self.status is None and elapsed < PATIENCE:
            return
        text = f"checking {self.name}, line {line:,}: {events:,} events, {events / elapsed:,.0f} a second"
        if self.status is None:
            self.status = live_line(text)
        self.status.update(escaped(text))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.status is not None:
            self.status.stop()


def live_line(text: str) -> Status:
    """The line, begun."""
    from rich.console import Console

    status = Console(stderr=True, highlight=False).status(escaped(text))
    status.start()
    return status


def escaped(text: str) -> str:
    """The text without markup: a file may be named `[red]`."""
    from rich.markup import escape

    return escape(text)
