"""Events in words: the fields that a line had, and a short sentence for errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any  # a field's value is shown as it stands

import msgspec
from kvsan.traces import events as ev

EVIDENCE = ("seq", "t", "note")

SUBJECTS = ("branch", "parent", "holder")
"""Fields that say who did it: they are told first."""

LISTED = 16
"""Entries of a list that are written out."""


def event_fields(event: ev.Event) -> dict[str, Any]:
    """The event as the log has it, absent fields left out."""
    fields: dict[str, Any] = msgspec.to_builtins(event)
    return fields


def event_text(event: ev.Event | dict[str, Any]) -> str:
    """`write branch=r2 block=7 slots=[3,4) stream=compute`."""
    fields = event if isinstance(event, dict) else event_fields(event)
    parts = [str(fields["ev"])]
    first = {name: fields[name] for name in SUBJECTS if name in fields}
    for name, value in {**first, **fields}.items():
        if name == "ev" or name in EVIDENCE:
            continue
        if name in ("slots", "tokens") and isinstance(value, list | tuple):
            parts.append(f"{name}=[{value[0]},{value[1]})")
        elif isinstance(value, list | tuple):
            parts.append(f"{name}={listed(value)}")
        else:
            parts.append(f"{name}={short(value)}")
    return " ".join(parts)


def listed(values: Sequence[Any]) -> str:
    """`[3,4,5]`; of a long list its beginning."""
    more = [f"... {len(values) - LISTED} more"] if len(values) > LISTED else []
    return "[" + ",".join([*map(short, values[:LISTED]), *more]) + "]"


def short(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(short, value)) + "]"
    text = str(value)
    return text if len(text) <= 60 else text[:57] + "..."
