"""A live line that says what is under way, for commands of several searches."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from .progress import escaped, live_line

if TYPE_CHECKING:
    from rich.status import Status


class Line:
    """A context manager; on a terminal's standard error and nowhere else."""

    def __init__(self, name: str, quiet: bool) -> None:
        self.name, self.silent = name, quiet or not sys.stderr.isatty()
        self.start = time.monotonic()
        self.status: Status | None = None

    def tell(self, what: str) -> None:
        """This is under way now."""
        if self.silent:
            return
        text = f"{self.name}: {what}, {time.monotonic() - self.start:.0f} s"
        if self.status is None:
            self.status = live_line(text)
        self.status.update(escaped(text))

    def __enter__(self) -> Line:
        return self

    def __exit__(self, *_: object) -> None:
        if self.status is not None:
            self.status.stop()
