"""Where a report goes: a file, a terminal, or a pipe whose reader may leave early."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

from .usage import Refused


class Color(StrEnum):
    """When the text report is colored."""

    auto = "auto"
    always = "always"
    never = "never"


class Sink:
    """Takes text, in pieces. A reader that has gone is no error: what is written then is dropped.

    plain: the text is for people; else it is a document, UTF-8 wherever it goes. Raises Refused where the file cannot
    be opened, before any work is done, and where a report does not fit.
    """

    def __init__(self, output: Path | None, plain: bool, color: Color, logs: Sequence[str] = ()) -> None:
        self.plain, self.closed = plain, False
        self.file = None if output is None else open_output(output, logs)
        at_terminal = output is None and sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        self.colored = plain and (color == Color.always or (color == Color.auto and at_terminal))

    def write(self, text: str) -> None:
        if self.closed:
            return
        if self.colored:
            from kvsan.checker.report.paint import paint

            text = paint(text)
        encoding = (sys.stdout.encoding or "utf-8") if self.plain and self.file is None else "utf-8"
        try:
            sys.stdout.flush()
            target = sys.stdout.buffer if self.file is None else self.file
            target.write(text.encode(encoding, "backslashreplace"))
            target.flush()
        except BrokenPipeError:
            self.closed = True
            leave_quietly()
        except OSError as error:
            self.closed = True
            leave_quietly()
            raise Refused(
                f"the report cannot be written: {error.strerror}; make room, or write it elsewhere"
            ) from error

    def close(self) -> None:
        if self.file is not None:
            with suppress(OSError):  # what was written has been flushed, or was refused
                self.file.close()


def open_output(output: Path, logs: Sequence[str]) -> BinaryIO:
    """The file, emptied. Raises Refused, also where it is one of the logs."""
    if any(same_file(output, log) for log in logs):
        raise Refused(f"--output {output} is one of the logs: name another file")
    try:
        return output.open("wb")
    except OSError as error:
        raise Refused(
            f"--output {output} cannot be written: {error.strerror}; name a file in a folder of yours"
        ) from error


def same_file(output: Path, log: str) -> bool:
    try:
        return output.samefile(log)
    except (OSError, ValueError):
        return False


def leave_quietly() -> None:
    """The reader of standard output has gone: what Python still flushes when it exits must not fail."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        sys.stdout = None  # Python's own sign for a process without standard output
