"""What is wrong with a specification, as data; `render` turns it into text with the source line and a caret."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, order=True)
class Span:
    """A stretch of source. Lines count from 1, columns from 0; the end is exclusive."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int


def place(span: Span) -> str:
    """`file:line`; a file below the working folder from there."""
    path = Path(span.file)
    here = Path.cwd()
    return f"{path.relative_to(here) if path.is_relative_to(here) else path}:{span.line}"


NOWHERE = Span("", 0, 0, 0, 0)


@dataclass(frozen=True)
class Diagnostic:
    """One mistake.

    code: a stable name such as `unknown-variable`. expected: what would have been right here. fix: how to write it
    instead. Either may be empty.
    """

    code: str
    message: str
    span: Span
    expected: str = ""
    fix: str = ""


class SpecError(Exception):
    """A specification with mistakes: all of them, in source order."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        unique = dict.fromkeys(sorted(diagnostics, key=lambda d: (d.span, d.code, d.message)))
        self.diagnostics = tuple(unique)
        super().__init__("\n\n".join(render(d) for d in self.diagnostics))


@dataclass
class Report:
    """Collects the diagnostics of all passes."""

    diagnostics: list[Diagnostic] = field(default_factory=list)

    def add(self, code: str, message: str, span: Span, expected: str = "", fix: str = "") -> None:
        self.diagnostics.append(Diagnostic(code, message, span, expected, fix))

    def raise_if_any(self) -> None:
        """Raises SpecError when a pass found something."""
        if self.diagnostics:
            raise SpecError(self.diagnostics)

    def raise_if_first(self) -> None:
        """Raises SpecError where a mistake was found that later passes would only repeat in other words."""
        if any(d.code in FIRST for d in self.diagnostics):
            raise SpecError(self.diagnostics)


FIRST = frozenset({"duplicate-name", "no-state", "two-states", "no-decorator", "unknown-decorator"})
"""Mistakes about which definitions there are: what calls a missing one, or the wrong one of two, is not to blame."""


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word most like a misspelt one, or ''."""
    found = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return found[0] if found else ""


def _line(span: Span) -> str:
    try:
        return Path(span.file).read_text(encoding="utf-8").splitlines()[span.line - 1]
    except (OSError, IndexError, UnicodeDecodeError):
        return ""


def render(diagnostic: Diagnostic, name: str | None = None) -> str:
    """The diagnostic as text: what, where (file:line:column from 1), the line with a caret, what was expected, the fix.

    name: how to write the file, where its path is not wanted.
    """
    span, line = diagnostic.span, _line(diagnostic.span)
    gutter = " " * len(str(span.line))
    parts = [
        f"error[{diagnostic.code}]: {diagnostic.message}",
        f"{gutter}--> {name or span.file}:{span.line}:{span.column + 1}",
    ]
    if line:
        stop = span.end_column if span.end_line == span.line else len(line)
        carets = " " * span.column + "^" * max(1, stop - span.column)
        parts += [f"{gutter} |", f"{span.line} | {line}", f"{gutter} | {carets}"]
    if diagnostic.expected:
        parts.append(f"{gutter} = expected: {diagnostic.expected}")
    if diagnostic.fix:
        parts.append(f"{gutter} = instead:  {diagnostic.fix}")
    return "\n".join(parts)
