"""What a check found, as data. Rendering lives in `checker/report`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal  # an event is shown as the log has it

Verdict = Literal["HOLDS", "VIOLATED", "UNKNOWN"]
Status = Literal["checked", "not_exercised", "not_checkable"]


Segments = tuple[tuple[str, int], ...]
"""The files of a log, each with the lines before it."""


def place(segments: Segments, line: int) -> tuple[str, int]:
    """The file of a line of the log, and the line's number in it."""
    file, before = next(((f, n) for f, n in reversed(segments) if n < line), segments[0])
    return file, line - before


@dataclass(frozen=True)
class Because:
    """An earlier fact that clashes with a violation."""

    line: int
    text: str


@dataclass(frozen=True)
class Violation:
    """A rule, broken by the event at `line` (1-based, through all segments). Lints have the same shape.

    block / branch: as the log names them, None where the rule is not about one. suppressed: the reason, if any.
    earlier: the line of the access that a race is with.
    """

    rule: str
    line: int
    seq: int | None
    event: dict[str, Any]
    message: str
    block: str | None = None
    branch: str | None = None
    because: tuple[Because, ...] = ()
    missing: str | None = None
    source: str = ""
    replay: str | None = None
    suppressed: str | None = None
    earlier: int | None = None


@dataclass(frozen=True)
class RuleCoverage:
    """How often a rule was judged; `unknown`: how often the log could not say; `needs`: the event kinds it lacks."""

    checked: int
    status: Status
    unknown: int = 0
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """The verdict on one log.

    verdict: HOLDS (no checkable rule is violated), VIOLATED, or UNKNOWN (gap, break, nothing checked, a required rule
    unchecked). exit_code: 0 HOLDS, 1 VIOLATED, 2 broken input, 3 UNKNOWN. reasons: why UNKNOWN, or why exit code 2.
    segments: the log's files, each with the lines before it; empty where none could be read. unused: the suppressions
    that covered nothing, as written. interrupted: the check was stopped, and what it had found by then stands.
    """

    verdict: Verdict
    exit_code: int
    log: dict[str, Any]
    name: str
    events: int
    last_line: int
    violations: tuple[Violation, ...]
    lints: tuple[Violation, ...]
    assumptions: tuple[str, ...]
    coverage: dict[str, RuleCoverage]
    reasons: tuple[str, ...] = ()
    problem: object | None = None
    suppressed: tuple[Violation, ...] = field(default=())
    segments: Segments = ()
    unused: tuple[str, ...] = ()
    interrupted: bool = False
