"""Blocks of lines to events: one call for a block where every line is plain, else line by line.

`decode_lines` of msgspec takes any JSON values between any white space. A block is plain, and its line numbers exact,
when it holds as many events as lines and every line starts with `{`: no event has an object inside, so each of these
braces begins one event, and no line can hold two. Fields whose names start with `x_` are unknown to the records; a
line with one is decoded by hand, without them.
"""

from dataclasses import dataclass

import msgspec
from kvsan.traces.events import Event
from kvsan.traces.explain import explain
from kvsan.traces.lines import Block
from kvsan.traces.problem import Fault

OPEN_BRACE = ord("{")
EXTENSION = "x_"

decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)
"""Strict: no coercion, no unknown field."""


@dataclass(frozen=True)
class Extension:
    """A line of an event whose name starts with `x_`: it takes a number, and means nothing to us."""

    seq: int | None


@dataclass(frozen=True)
class Decoded:
    """What a block held: (line, event) up to the first fault, and that fault with its line."""

    items: list[tuple[int, Event | Extension]]
    fault: tuple[int, Fault] | None = None


def decode_block(block: Block) -> Decoded:
    """The events of a block, in order, up to the first malformed line."""
    data, count = block.data, block.count
    if data[0] == OPEN_BRACE and data.count(b"\n{") == count - 1:
        try:
            events = decoder.decode_lines(data)
        except (msgspec.MsgspecError, RecursionError, ValueError):
            events = []
        if len(events) == count:
            return Decoded(list(zip(range(block.first, block.first + count), events, strict=True)))
    return decode_each(block)


def decode_each(block: Block) -> Decoded:
    """As `decode_block`, line by line: blank lines, extension fields, and the exact place of a fault."""
    items: list[tuple[int, Event | Extension]] = []
    lines = block.data.split(b"\n")
    for line, data in enumerate(lines, block.first):
        if not data.strip():
            continue
        is_open = block.last_is_open and line == block.first + len(lines) - 1
        outcome = decode_line(data, is_open)
        if isinstance(outcome, Fault):
            return Decoded(items, (line, outcome))
        items.append((line, outcome))
    return Decoded(items)


def decode_line(data: bytes, is_open: bool = False) -> Event | Extension | Fault:
    """One line's event, or what is wrong with it. `is_open`: the file ends here, without a newline."""
    try:
        if b'"x_' not in data:
            return decoder.decode(data)
        return decode_extended(data)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return explain(data, is_open)


def decode_extended(data: bytes) -> Event | Extension:
    """A line that names extensions: they are left out."""
    raw = msgspec.json.decode(data)
    if not isinstance(raw, dict):
        raise msgspec.ValidationError("not an object")
    known = {name: value for name, value in raw.items() if not name.startswith(EXTENSION)}
    kind = raw.get("ev")
    if isinstance(kind, str) and kind.startswith(EXTENSION):
        return Extension(msgspec.convert(raw.get("seq"), int | None))
    event: Event = msgspec.convert(known, Event)
    return event
