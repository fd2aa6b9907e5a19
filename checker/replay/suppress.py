"""Suppressions: violations and lints that somebody has looked at and lives with, each with the reason.

One suppression a line; blank lines and lines that start with `#` are skipped:

    RULE [engine=GLOB] [version=GLOB] [file=GLOB] [line=N|N-M] [block=GLOB] [branch=GLOB] -- REASON

for example

    exclusive_write engine=vllm version=0.3.* branch=beam-* -- fixed upstream in vllm#1556, we pin 0.3.3 until spring
    pins_balanced   file=nightly/*.jsonl block="7 of pool cpu" -- the nightly run is killed before its transfers end

A finding is covered when the rule is equal and every given glob matches: `engine` and `version` the log's header,
`file` the log's file as named or its last part, `line` the line as the report counts, `block` and `branch` as the
report names them. Values with spaces are quoted. The rule is a name, never a glob: who hides everything has not looked.

What we refused: suppressing in the log itself (`x_ignore`), because the log is the evidence; and suppressing without a
reason, because nobody can tell later whether it still holds.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path, PurePath

from kvsan.traces.header import Trace

from .outcome import Violation

GLOBS = ("engine", "version", "file", "block", "branch")
KEYS = (*GLOBS, "line")
SHAPE = "RULE [KEY=GLOB ...] -- REASON"


class SuppressionError(ValueError):
    """A line of a suppression file that cannot be read; the message names the place and the remedy."""

    def __init__(self, place: str, what: str, remedy: str) -> None:
        super().__init__(f"bad suppression: {what}\n  at        {place}\n  fix       {remedy}")


@dataclass(frozen=True)
class Suppression:
    """One line of a suppression file. `where`: key and glob, in the order written. `lines`: first and last."""

    rule: str
    reason: str
    where: tuple[tuple[str, str], ...] = ()
    lines: tuple[int, int] | None = None
    place: str = ""

    def covers(self, finding: Violation, header: Trace | None, file: str) -> bool:
        """Whether the finding, in that file of a log with that header, is meant."""
        if finding.rule != self.rule:
            return False
        if self.lines is not None and not self.lines[0] <= finding.line <= self.lines[1]:
            return False
        return all(fits(key, glob, finding, header, file) for key, glob in self.where)

    def __str__(self) -> str:
        parts = [self.rule, *(f"{key}={shlex.quote(glob)}" for key, glob in self.where)]
        if self.lines is not None:
            first, last = self.lines
            parts.append(f"line={first}" if first == last else f"line={first}-{last}")
        return " ".join(parts)


def fits(key: str, glob: str, finding: Violation, header: Trace | None, file: str) -> bool:
    """Whether one glob matches. A finding that is not about a block matches no block glob, not even `*`."""
    match key:
        case "block":
            return finding.block is not None and fnmatchcase(finding.block, glob)
        case "branch":
            return finding.branch is not None and fnmatchcase(finding.branch, glob)
        case "file":
            return fnmatchcase(file, glob) or fnmatchcase(PurePath(file).name, glob)
        case "engine":
            return header is not None and fnmatchcase(header.engine, glob)
        case _:
            return header is not None and fnmatchcase(header.version, glob)


def read_suppressions(path: str | Path, rules: Iterable[str]) -> list[Suppression]:
    """The suppressions of a file. rules: the names that exist. Raises SuppressionError."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no UTF-8 text"
        raise SuppressionError(str(path), f"the file cannot be read: {reason}", "check the name of the file") from error
    known = sorted(rules)
    lines = enumerate(text.splitlines(), 1)
    return [
        parse(line, f"{path}:{number}", known) for number, line in lines if line.strip() and line.lstrip()[0] != "#"
    ]


def parse(line: str, place: str, rules: Sequence[str]) -> Suppression:
    """One line. Raises SuppressionError."""
    head, separator, reason = f" {line} ".partition(" -- ")
    if not separator or not reason.strip():
        raise SuppressionError(place, "it gives no reason", f"end the line with ` -- ` and why: {SHAPE}")
    try:
        words = shlex.split(head)
    except ValueError as error:
        raise SuppressionError(place, "a quotation mark is not closed", 'write block="7 of pool cpu"') from error
    if not words:
        raise SuppressionError(place, "it names no rule", f"start the line with one: {SHAPE}")
    rule, *pairs = words
    if rule not in rules:
        raise SuppressionError(place, f"there is no rule {rule!r}", nearest(rule, rules, "`kvsan rules` lists them"))
    where: list[tuple[str, str]] = []
    lines: tuple[int, int] | None = None
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or key not in KEYS:
            raise SuppressionError(place, f"{pair!r} is no KEY=GLOB", nearest(key, KEYS, f"keys: {', '.join(KEYS)}"))
        if key == "line":
            lines = span(value, place)
        else:
            where.append((key, value))
    return Suppression(rule, reason.strip(), tuple(where), lines, place)


def span(text: str, place: str) -> tuple[int, int]:
    """`42` or `40-45`. Raises SuppressionError."""
    first, dash, last = text.partition("-")
    if not (first.isdecimal() and (last.isdecimal() if dash else True)):
        raise SuppressionError(place, f"line={text} is no line", "write line=42 or line=40-45")
    pair = (int(first), int(last if dash else first))
    if pair[0] > pair[1]:
        raise SuppressionError(place, f"line={text} ends before it begins", f"write line={last}-{first}")
    return pair


def nearest(word: str, known: Sequence[str], otherwise: str) -> str:
    """A remedy: the known word that is closest, if any is close."""
    near = get_close_matches(word, known, 1)
    return f"did you mean {near[0]}?" if near else otherwise
