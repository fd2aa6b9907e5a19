"""A way through a design as an ITF trace: Apalache's Informal Trace Format, ADR-015, read by its viewer and by itf-py.

Every integer is a `#bigint`, members and choices are strings (`"b0"`, `"IDLE"`), and nothing is null: a map whose
values are options is a partial function, without the entries that are None, and an option that stands alone is a set
of at most one. A tagged `None` would be no name in Python, where traces are often read. Variables that have their
default from the first state to the last are left out, and named in `#meta`; where all have, none is.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import product
from typing import Any  # JSON values

from kvsan.checker.explore.design import Scoped
from kvsan.checker.explore.replay import Step, show
from kvsan.spec.designs.settings import as_set
from kvsan.spec.lang import ir
from kvsan.spec.lang.interpret import Plain, Value, default
from kvsan.spec.lang.symbolic import size_of

FORMAT = "https://apalache.informal.systems/docs/adr/015adr-trace.html"
START = "start"


def itf(spec: ir.Spec, scoped: Scoped, start: Plain, steps: Sequence[Step], said: str) -> str:
    """The text of a trace. said: what it shows."""
    states = [start, *(s.after for s in steps)]
    moving = [v for v in spec.variables.values() if not v.const]
    kept = [v for v in moving if any(s.get(v.name) for s in states)] or moving
    meta = {
        "format": "ITF",
        "format-description": FORMAT,
        "source": spec.name,
        "description": said,
        "scope": as_set(scoped.settings),
        "always default": " ".join(v.name for v in moving if v not in kept),
    }
    names = [START, *(s.text for s in steps)]
    shown = [
        {"#meta": {"index": n, "action": name}, **{v.name: _variable(v, state, scoped) for v in kept}}
        for n, (name, state) in enumerate(zip(names, states, strict=True))
    ]
    parts = {"#meta": meta, "params": [], "vars": [v.name for v in kept]}
    head = "".join(f'"{name}": {json.dumps(part)},\n' for name, part in parts.items())
    return "{" + head + '"states": [\n' + ",\n".join(map(json.dumps, shown)) + "\n]}\n"  # a state a line


def _variable(v: ir.Variable, state: Plain, scoped: Scoped) -> Any:
    entries, absent = state.get(v.name, {}), default(v.value)
    if not v.keys:
        value = entries.get((), absent)
        return {"#set": [] if value is None else [_value(v.value, value)]} if absent is None else _value(v.value, value)
    pairs = []
    for index in product(*(range(size_of(k, scoped.sizes)) for k in v.keys)):
        value = entries.get(index, absent)
        if value is not None:
            keys = [_value(k, i) for k, i in zip(v.keys, index, strict=True)]
            pairs.append([keys[0] if len(keys) == 1 else {"#tup": keys}, _value(v.value, value)])
    return {"#map": pairs}


def _value(type_: ir.Type, value: Value) -> Any:
    match type_:
        case ir.OptionType(inner):
            return _value(inner, value)
        case ir.SetType(element):
            assert isinstance(value, frozenset)
            return {"#set": [_value(element or ir.NAT, m) for m in sorted(value)]}
        case ir.BoolType():
            return bool(value)
        case ir.SortType() | ir.ChoiceType():
            return show(type_, value)
        case _:
            assert value is not None
            return {"#bigint": str(value)}
