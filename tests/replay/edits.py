"""One change of a log, of the kinds that a wrong engine or a wrong recorder would show."""

from __future__ import annotations

import random
from collections.abc import Callable

from reference import Line

Edit = Callable[[Line, list[Line], random.Random], list[Line]]


def drop(event: Line, log: list[Line], dice: random.Random) -> list[Line]:
    return []


def repeat(event: Line, log: list[Line], dice: random.Random) -> list[Line]:
    return [event, event]


def another_block(event: Line, log: list[Line], dice: random.Random) -> list[Line]:
    field = dice.choice([f for f in ("block", "src", "dst") if f in event])
    return [{**event, field: dice.randrange(log[0]["blocks"])}]


def another_branch(event: Line, log: list[Line], dice: random.Random) -> list[Line]:
    names = sorted({e["branch"] for e in log if "branch" in e})
    return [{**event, "branch": dice.choice(names)}]


def other_slots(event: Line, log: list[Line], dice: random.Random) -> list[Line]:
    lo = dice.randrange(log[0]["block_size"])
    return [{**event, "slots": [lo, dice.randint(lo + 1, log[0]["block_size"])]}]


def other_tokens(event: Line, log: list[Line], dice: random.Random) -> list[Line]:
    first, last = event["tokens"]
    by = dice.choice([-1, 1, log[0]["block_size"]])
    return [{**event, "tokens": [max(0, first + by), max(0, first + by) + last - first]}]


def another_hash(event: Line, log: list[Line], dice: random.Random) -> list[Line]:
    return [{**event, "hash": dice.choice(sorted({e["hash"] for e in log if "hash" in e}))}]


def another_count(event: Line, log: list[Line], dice: random.Random) -> list[Line]:
    field = "count" if "count" in event else "free"
    return [{**event, field: event[field] + dice.choice([-1, 1])}]


def another_position(event: Line, log: list[Line], dice: random.Random) -> list[Line]:
    return [{**event, "pos": dice.randrange(4)}]


EDITS: dict[str, tuple[Edit, ...]] = {
    "alloc": (drop, repeat, another_block),
    "free": (drop, repeat, another_block),
    "map": (drop, another_block, another_branch, another_position),
    "unmap": (drop, another_block),
    "fork": (drop,),
    "finish": (drop, another_branch),
    "cancel": (drop,),
    "preempt": (drop,),
    "grow": (drop,),
    "copy": (drop, another_block, another_branch, other_slots),
    "write": (another_block, another_branch, other_slots, other_tokens),
    "pin": (drop, repeat, another_block),
    "unpin": (drop, repeat, another_block),
    "seal": (drop, another_block, another_hash, other_slots),
    "hit": (drop, another_block, another_hash),
    "ref": (another_count, another_block),
    "pool": (another_count,),
    "table": (another_branch,),
}


def applies(edit: Edit, event: Line) -> bool:
    """Whether the event has what the edit changes."""
    needs = {another_branch: "branch", other_tokens: "tokens"}
    return needs.get(edit, "ev") in event


def edited(log: list[Line], dice: random.Random) -> tuple[str, list[Line]]:
    """What was done to which event, and the log with it. Kinds are drawn first, so that rare ones get their share."""
    kind = dice.choice(sorted({e["ev"] for e in log} & EDITS.keys()))
    at = dice.choice([i for i, e in enumerate(log) if e["ev"] == kind])
    edit = dice.choice([edit for edit in EDITS[kind] if applies(edit, log[at])])
    name = f"{edit.__name__} of {kind} on line {at + 1}"
    return name, [*log[:at], *edit(log[at], log, dice), *log[at + 1 :]]
