"""The published JSON Schema of a line, made from the records: `python -m kvsan.traces.schema > traces/schema.json`.

It says what one line may be. What it cannot say is left to the reader: ids within the header's pools, `lo < hi`, slots
within a block, the order of `seq`, a field given twice, and that a whole number is not written as `3.0`.
"""

import json
from importlib.resources import files
from typing import Any

import msgspec
from kvsan.traces.events import EVENT_TYPES, Common
from kvsan.traces.fields import MAX_NAT
from kvsan.traces.header import Trace

Schema = dict[str, Any]  # Any: JSON

IDENTITY = "urn:kvsan:trace:1"
OWN: Schema = {"^x_": {}}
"""Fields of a recorder's own are allowed everywhere at the top of a line."""

EXTENSION: Schema = {
    "title": "Extension",
    "description": "An event of a recorder's own: kept in the log, and ignored.",
    "type": "object",
    "properties": {
        "ev": {"type": "string", "pattern": "^x_"},
        "seq": {"anyOf": [{"type": "integer", "minimum": 0, "maximum": MAX_NAT}, {"type": "null"}]},
    },
    "required": ["ev"],
}


def given(name: str) -> Schema:
    """The field is there, and not null, which is the same as leaving it out."""
    return {"required": [name], "properties": {name: {"not": {"type": "null"}}}}


def absent(*names: str) -> Schema:
    return {"properties": {name: {"type": "null"} for name in names}}


ONE_BLOCK: Schema = {"properties": {"block": {"not": {"type": "array", "minItems": 2}}}}
PLACED: Schema = {"anyOf": [absent("tokens"), ONE_BLOCK]}

CHOICES: dict[str, list[Schema]] = {
    "Write": [
        {"allOf": [given("branch"), absent("holder"), PLACED]},
        {"allOf": [given("holder"), absent("branch"), PLACED]},
    ],
    "Read": [
        {"allOf": [given("branch"), absent("holder", "block", "slots")]},
        {"allOf": [given("holder"), given("block"), absent("branch", "upto")]},
    ],
    "Sync": [
        {"allOf": [given("stream"), absent("event", "device")]},
        {"allOf": [given("event"), absent("stream", "device")]},
        {"allOf": [given("device"), absent("stream", "event"), {"properties": {"device": {"const": True}}}]},
    ],
}
"""Which fields go together, as `judge` has it."""

COMPLETE: Schema = {"anyOf": [{"enum": list(EVENT_TYPES)}, {"type": "string", "pattern": "^x_"}]}


def line_schema() -> Schema:
    """The schema of one line: the header, an event, or an event of the recorder's own."""
    kinds = [Trace, *EVENT_TYPES.values()]
    _, parts = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    for name in (kind.__name__ for kind in kinds):
        parts[name]["patternProperties"] = OWN
        if name in CHOICES:
            parts[name]["oneOf"] = CHOICES[name]
    header = parts["Trace"]["properties"]
    header["complete"]["anyOf"][0]["items"] = COMPLETE
    header["pools"]["anyOf"][0]["propertyNames"] = {"not": {"const": "gpu"}}
    names = [kind.__name__ for kind in kinds]
    common = {name: parts["Quiescent"]["properties"][name] for name in Common.__struct_fields__}
    for kind in EVENT_TYPES.values():
        parts[kind.__name__]["properties"] |= {name: {"$ref": f"#/$defs/{name}"} for name in common}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": IDENTITY,
        "title": "One line of a kvsan log, version 1",
        "description": "The first line is a Trace, the header; every other line is an event.",
        "anyOf": [{"$ref": f"#/$defs/{name}"} for name in [*names, "Extension"]],
        "$defs": common | parts | {"Extension": EXTENSION},
    }


def published() -> Schema:
    """The schema as it is shipped."""
    schema: Schema = json.loads(files("kvsan.traces").joinpath("schema.json").read_text("utf-8"))
    return schema


def text() -> str:
    """The file's exact text: a property a line."""
    return laid_out(line_schema(), 4) + "\n"


def laid_out(value: object, depth: int, indent: str = "") -> str:
    """JSON in which objects are spread over lines down to a depth."""
    if not isinstance(value, dict) or not value or depth == 0:
        return json.dumps(value, ensure_ascii=False)
    inner = indent + "  "
    rows = [f"{inner}{json.dumps(name)}: {laid_out(part, depth - 1, inner)}" for name, part in value.items()]
    return "{\n" + ",\n".join(rows) + f"\n{indent}}}"


if __name__ == "__main__":
    print(text(), end="")
