"""Why a line is malformed: found again by hand, slowly, so that the fast path need not know."""

import re
from difflib import get_close_matches
from typing import Any, get_args

import msgspec
from kvsan.traces.events import EVENT_TYPES, Common, Event
from kvsan.traces.header import GroupInfo, PoolInfo, Trace
from kvsan.traces.problem import Fault
from kvsan.traces.syntax import EXTENSION, ONE_OBJECT, JsonObject, kind_of, parse, show


def explain(data: bytes, is_open: bool = False) -> Fault:
    """What is wrong with a line that is no event. `is_open`: the file ends here, without a newline."""
    raw = parse(data, is_open)
    return raw if isinstance(raw, Fault) else explain_event(raw)


def explain_header(data: bytes, is_open: bool = False) -> Fault:
    """What is wrong with a first line that is no header."""
    raw = parse(data, is_open)
    if isinstance(raw, Fault):
        return raw
    if raw.get("ev") != "trace":
        example = '{"ev":"trace","schema":"kvsan/1","engine":…,"version":…,"discipline":…,"block_size":…,"blocks":…}'
        return Fault("ev", "the first line is no header", f"begin the log with {example}")
    schema = raw.get("schema", "kvsan/1")
    if schema != "kvsan/1":
        return Fault("schema", f"the log is of format {show(schema)}", 'this version reads "kvsan/1"')
    return explain_fields(raw, "the header", Trace)


def explain_event(raw: JsonObject) -> Fault:
    """An object that is no event."""
    kinds = list(EVENT_TYPES)
    if "ev" not in raw:
        near = get_close_matches("ev", raw, 1, 0.5)
        hint = f"; did you mean ev where it says {near[0]}?" if near else ""
        return Fault("ev", "the line lacks ev", f'add "ev" with the kind of event{hint}')
    kind = raw["ev"]
    if not isinstance(kind, str):
        return Fault("ev", f"ev is {show(kind)}, {kind_of(kind)}", "ev is the kind of event, a string")
    if kind == "trace":
        return Fault(
            "ev", "a second header inside the log", "put each log into its own file; segments repeat it on line 1"
        )
    if kind.startswith(EXTENSION):
        return Fault("seq", f"seq is {show(raw.get('seq'))}", "seq is a whole number from 0")
    if kind not in EVENT_TYPES:
        near = get_close_matches(kind.lower(), kinds, 1, 0.6)
        hint = f"did you mean {near[0]}? " if near else ""
        return Fault("ev", f"there is no event {show(kind)}", f"{hint}Events of your own have names that start with x_")
    return explain_fields(raw, kind, EVENT_TYPES[kind])


def explain_fields(raw: JsonObject, kind: str, record: type[Event] | type[Trace]) -> Fault:
    """An object whose fields do not suit its kind."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(record)}
    known = {name: value for name, value in raw.items() if not name.startswith(EXTENSION)}
    for name in known:
        if name != "ev" and name not in fields:
            return unknown_field(name, kind, sorted(fields, key=lambda field: field in Common.__struct_fields__))
    missing = [name for name, field in fields.items() if field.required and name not in raw]
    if missing:
        adds = "; ".join(f"{name}: {describe(fields[name].type)}" for name in missing)
        return Fault(missing[0], f"{kind} lacks {', '.join(missing)}", f"add {adds}")
    try:
        msgspec.convert(known, record)
    except msgspec.ValidationError as error:
        return wrong_value(str(error), known, fields)
    return Fault("", f"the line does not read as {kind}", ONE_OBJECT)


def unknown_field(name: str, kind: str, names: list[str]) -> Fault:
    near = get_close_matches(name, names, 1, 0.6)
    hint = f"did you mean {near[0]}?" if near else f"its fields are {', '.join(names)}."
    own = "Fields of your own have names that start with x_"
    return Fault(name, f"{kind} has no field {show(name)}", f"{hint} {own}")


def wrong_value(message: str, known: JsonObject, fields: dict[str, msgspec.structs.FieldInfo]) -> Fault:
    """A field whose value has the wrong type or is out of range; `message` is msgspec's."""
    found = re.search(r" - at `(?:key in )?\$\.?(.*)`$", message)
    expected = message[: found.start()] if found else message
    path = name_keys(found[1] if found else "", known)
    field = re.split(r"[.\[]", path)[0]
    needed = re.sub(r", got `?\w+`?$", "", expected).removeprefix("Expected ").replace("`", "")
    remedy = describe(fields[field].type) if field in fields else needed
    value = value_at(known, path)
    return Fault(path, f"{path} {misfit(value, needed)}", f"{field} is {remedy}")


def misfit(value: object, needed: str) -> str:
    """How a value misses what msgspec says is needed."""
    name = needed.split(" ")[-1]
    if needed.startswith("Object missing"):
        return f"lacks {name}"
    if needed.startswith("Object contains"):
        return f'has no field "{name}"'
    if needed.startswith(("array of length", "int >=")):
        return f"is {show(value)}, not {needed.replace('array', 'a list').replace('int', 'a number')}"
    return f"is {show(value)}" + ("" if value is None else f", {kind_of(value)}")


def name_keys(path: str, known: JsonObject) -> str:
    """The path with the key of the header's pool or group at fault, which msgspec leaves out as `[...]`."""
    field = path.partition("[...]")[0]
    infos: dict[str, type[PoolInfo] | type[GroupInfo]] = {"pools": PoolInfo, "groups": GroupInfo}
    if field not in infos or "[...]" not in path:
        return path
    for key, value in known[field].items():
        try:
            msgspec.convert(value, infos[field])
        except msgspec.ValidationError:
            return path.replace("[...]", f".{key}")
    return path


def value_at(known: JsonObject, path: str) -> object:
    """The value at a path such as `copies[2][3]` or `pools.cpu.blocks`."""
    value: Any = known
    for step in re.findall(r"[^.\[\]]+", path):
        value = value[int(step)] if isinstance(value, list) else value.get(step) if isinstance(value, dict) else None
    return value


def describe(kind: Any) -> str:
    """What a field's type says of itself: Any, since a type annotation has no type of its own."""
    for part in (kind, *get_args(kind)):
        for note in getattr(part, "__metadata__", ()):
            if isinstance(note, msgspec.Meta) and note.description:
                return note.description
    return "described in the format's table"
