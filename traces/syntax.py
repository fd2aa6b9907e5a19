"""A line as JSON: one flat object, or why it is none."""

import json
import re
from typing import Any

import msgspec
from kvsan.traces.fields import MAX_NAT
from kvsan.traces.problem import Fault

EXTENSION = "x_"
"""How the names of a recorder's own events and fields start."""

UNDECODABLE = (msgspec.MsgspecError, RecursionError, ValueError)
"""What decoding raises, whatever the line."""

ONE_OBJECT = "write one event a line, as one flat JSON object"
SHOWN_MAX = 40

JsonObject = dict[str, Any]  # Any: a line as it stands, before anything is known about it


def parse(data: bytes, is_open: bool) -> JsonObject | Fault:
    """The line as one JSON object, or why it is none."""
    if b"\0" in data:
        if not data.strip(b"\0\r\n "):
            return Fault(
                "", "the line is nothing but NUL bytes", "the file was not written to its end: cut it here", "cut"
            )
        return Fault(
            "", f"the line has a NUL byte in column {data.index(0) + 1}", "record the log again; it is damaged"
        )
    try:
        data.decode()
    except UnicodeDecodeError as error:
        what = f"byte {data[error.start]:#04x} in column {error.start + 1} is not UTF-8"
        return Fault("", what, "write the log as UTF-8", "cut" if is_open else "malformed")
    try:
        raw = msgspec.json.decode(data)
    except RecursionError:
        return Fault("", "the line is nested too deeply", ONE_OBJECT)
    except (msgspec.MsgspecError, ValueError) as error:
        return explain_syntax(str(error), is_open)
    if not isinstance(raw, dict):
        return Fault("", f"the line is {kind_of(raw)}, not an object", ONE_OBJECT)
    return explain_twice(data) or raw


def explain_syntax(message: str, is_open: bool) -> Fault:
    """A line that is not JSON."""
    if "truncated" in message and is_open:
        return Fault(
            "", "the file ends in the middle of this line", "the log was cut here: what precedes is all there is", "cut"
        )
    if "truncated" in message:
        return Fault(
            "", "the line ends in the middle of its event", "write each event on one line; was the log cut here?"
        )
    if "out of range" in message:
        return Fault("", "the line has a number that is out of range", "write whole numbers of at most 4300 digits")
    place = re.search(r"\(byte (\d+)\)", message)
    follows = "trailing characters" in message  # only here msgspec counts from 1
    column = f" in column {int(place[1]) + (not follows)}" if place else ""
    if follows:
        return Fault("", f"something follows the event{column}", ONE_OBJECT)
    reason = re.sub(r"^JSON is malformed: | \(byte \d+\)$", "", message)
    return Fault("", f"the line is not JSON{column}: {reason}", ONE_OBJECT)


def explain_twice(data: bytes) -> Fault | None:
    """The first name that the line gives twice: readers differ in which value they take."""
    names: list[str] = []

    def note(pairs: list[tuple[str, object]]) -> None:
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                names.append(name)
            seen.add(name)

    try:
        json.loads(data, object_pairs_hook=note)
    except (ValueError, RecursionError):
        return None
    if not names:
        return None
    return Fault(names[0], f"the line gives {names[0]} twice", "give each field once; several blocks go into one list")


def show(value: object) -> str:
    """A value as it stands in the line, cut to a readable length."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= SHOWN_MAX else text[: SHOWN_MAX - 1] + "…"


def kind_of(value: object) -> str:
    """JSON's word for a value."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int():
            return "a negative number" if value < 0 else "a whole number" if value <= MAX_NAT else "too large a number"
        case float():
            return "a number with a fraction"
        case str():
            return "a string"
        case list():
            return "a list"
    return "an object"
