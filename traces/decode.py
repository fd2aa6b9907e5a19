"""Blocks of lines to events: one call for a block where every line is plain, else line by line.

`decode_lines` of msgspec takes any JSON values between any white space. A block is plain, and its line numbers exact,
when it holds as many events as lines and every line starts with `{`: no event has an object inside, so each of these
braces begins one event, and no line can hold two.

msgspec takes the last value of a field that a line gives twice, in silence, and would so lose a block id. Encoding the
events again tells: the length agrees with a line in the Recorder's form, the count of colons with any other.

Fields whose names start with `x_` are unknown to the records; a line with one is decoded by hand, without them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from kvsan.traces.events import Event
from kvsan.traces.explain import explain
from kvsan.traces.fields import MAX_NAT
from kvsan.traces.head import names_header, parse_header
from kvsan.traces.header import Trace
from kvsan.traces.lines import Block
from kvsan.traces.problem import Fault
from kvsan.traces.syntax import EXTENSION, UNDECODABLE, explain_twice

OPEN_BRACE = ord("{")

decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)
"""Strict: no coercion, no unknown field."""

encoder = msgspec.json.Encoder()

NOTHINGS = (b":null", b": null", b":[]", b": []")


@dataclass(frozen=True)
class Extension:
    """A line of an event whose name starts with `x_`: it takes a number, and means nothing to us."""

    seq: int | None


Line = Event | Extension | Trace
"""What a line may hold. A header past the first line is one that a segment repeats."""


@dataclass(frozen=True)
class Decoded:
    """What a block held up to its first fault: events and the lines they stand in; and that fault with its line."""

    lines: Sequence[int]
    events: Sequence[Line]
    fault: tuple[int, Fault] | None = None


def decode_block(block: Block) -> Decoded:
    """The events of a block, in order, up to the first malformed line."""
    data, count = block.data, block.count
    if data[0] == OPEN_BRACE and data.count(b"\n{") == count - 1:
        try:
            events = decoder.decode_lines(data)
        except UNDECODABLE:
            events = []
        if len(events) == count and gives_each_once(data, encoder.encode_lines(events)):
            return Decoded(range(block.first, block.first + count), events)
    return decode_each(block)


def gives_each_once(data: bytes, encoded: bytes) -> bool:
    """Whether no event of `data` gives a field twice; `encoded` are the decoded events. False says nothing."""
    return len(data) == len(encoded) or colons(data) == colons(encoded)


def colons(data: bytes) -> int:
    """How many fields `data` gives a value other than null and [], plus something that encoding keeps."""
    return data.count(b":") - sum(data.count(nothing) for nothing in NOTHINGS)


def decode_each(block: Block) -> Decoded:
    """As `decode_block`, line by line: blank lines, extension fields, and the exact place of a fault."""
    lines: list[int] = []
    events: list[Line] = []
    for line, data in enumerate(block.data.split(b"\n"), block.first):
        if not data.strip():
            continue
        outcome = decode_line(data, is_open=block.last_is_open and line == block.first + block.count - 1)
        if isinstance(outcome, Fault):
            return Decoded(lines, events, (line, outcome))
        lines.append(line)
        events.append(outcome)
    return Decoded(lines, events)


def decode_line(data: bytes, is_open: bool = False) -> Line | Fault:
    """What one line holds, or what is wrong with it. `is_open`: the file ends here, without a newline."""
    try:
        if b'"x_' in data:
            return decode_extended(data)
        event = decoder.decode(data)
    except UNDECODABLE:
        return decode_header(data, is_open) if names_header(data) else explain(data, is_open)
    if colons(data) == colons(encoder.encode(event)):
        return event
    return explain_twice(data) or event


def decode_header(data: bytes, is_open: bool) -> Trace | Fault:
    """A header that is repeated."""
    outcome = parse_header(data, is_open)
    return outcome if isinstance(outcome, Fault) else outcome[0]


def decode_extended(data: bytes) -> Event | Extension | Fault:
    """A line that names extensions: they are left out."""
    raw = msgspec.json.decode(data)
    if not isinstance(raw, dict):
        raise msgspec.ValidationError("not an object")
    twice = explain_twice(data)
    if twice:
        return twice
    kind = raw.get("ev")
    if isinstance(kind, str) and kind.startswith(EXTENSION):
        return Extension(extension_seq(raw.get("seq")))
    known = {name: value for name, value in raw.items() if not name.startswith(EXTENSION)}
    event: Event = msgspec.convert(known, Event)
    return event


def extension_seq(value: object) -> int | None:
    seq = msgspec.convert(value, int | None)
    if seq is not None and not 0 <= seq <= MAX_NAT:
        raise msgspec.ValidationError("seq is out of range")
    return seq
