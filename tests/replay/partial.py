"""What a log loses when a recorder starts late, drops events, or does not record some kinds at all."""

from __future__ import annotations

from reference import Line


def cut(log: list[Line], first: int) -> list[Line]:
    """The log of a recorder that was switched on after `first` events."""
    return [{**log[0], "started": "mid_run"}, *log[1 + first :]]


def with_gap(log: list[Line], first: int, last: int) -> list[Line]:
    """The log without events [first, last); the sequence numbers show that they are missing."""
    numbered = [{**event, "seq": i} for i, event in enumerate(log[1:])]
    return [log[0], *numbered[:first], *numbered[last:]]


def without_kinds(log: list[Line], kinds: set[str]) -> list[Line]:
    """The log of a recorder that says it leaves these kinds out, and does."""
    kept = [event for event in log[1:] if event["ev"] not in kinds]
    return [{**log[0], "complete": sorted({event["ev"] for event in log[1:]} - kinds)}, *kept]
