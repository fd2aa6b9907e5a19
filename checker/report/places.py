"""The file and line that a log's line stands for: a log may be several files, its segments."""

from __future__ import annotations

from kvsan.checker.replay import outcome as data
from kvsan.checker.replay.outcome import Outcome


def place(outcome: Outcome, line: int) -> tuple[str, int]:
    """The file, and the line's number in it, from 1."""
    return data.place(outcome.segments or ((outcome.name, 0),), line)


def shown_place(outcome: Outcome, line: int) -> str:
    """`beam.jsonl:42`, as editors link it."""
    return "{}:{}".format(*place(outcome, line))


def files(outcome: Outcome) -> tuple[str, ...]:
    """The log's files."""
    return tuple(file for file, _ in outcome.segments) or (outcome.name,)
