"""A way through a design as a log: the ownership events that its steps perform, in the trace format.

The design runs as ordinary Python, and every ownership event that is called from outside the ledger becomes a line. So
the log shares nothing with the search that found the way.
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any, get_type_hints  # the run-time half of the language handles values of every declared type

from kvsan.checker.explore.design import Scoped
from kvsan.checker.explore.replay import Step
from kvsan.spec.designs.catalog import DESIGNS
from kvsan.spec.lang.surface import (
    CONST,
    REGISTRY,
    Choice,
    Map,
    NotEnabled,
    Performed,
    Scope,
    Sort,
    State,
    Undefined,
    performed,
)


class NoLog(Exception):
    """The way cannot be written as a log: the message says why."""


def log_of(design: str, scoped: Scoped, steps: Sequence[Step]) -> list[dict[str, Any]]:
    """The lines: a header, the events of the start, and those of each step; an event's `note` is its step.

    Raises NoLog.
    """
    if design not in DESIGNS:
        raise NoLog(f"{design} is no design of ours: only these run as logs so far")
    ours = DESIGNS[design]
    module = importlib.import_module(ours.module)
    state = getattr(module, ours.state)(_scope(getattr(module, ours.state), scoped))
    actions = {f.__name__: f for f in REGISTRY[ours.module]}
    start = next(f for f in actions.values() if f.__dict__["spec_kind"] == "initial")
    lines = _performed(start, state, (), "start")
    for step in steps:
        action = actions[step.action]
        hints = get_type_hints(action, include_extras=True)
        values = [_given(hints[name], value) for name, value in step.values.items()]
        lines += _performed(action, state, values, step.text)
    header = {
        "ev": "trace", "schema": "kvsan/1", "engine": f"design:{design}", "version": "1",
        "discipline": ours.discipline, "block_size": scoped.settings["block_size"],
        "blocks": scoped.settings["blocks"], "started": "empty",
    }  # fmt: skip
    return [header, *lines]


def written(lines: Sequence[dict[str, Any]]) -> str:
    """The text of a log."""
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)


def _scope(model: type[State], scoped: Scoped) -> Scope:
    """The scope with its constants as members and choices, a map's by its indexes."""
    bare = Scope(dict(scoped.sizes.sorts), dict(scoped.sizes.limits))
    shape, constants = model(bare), dict[str, Any]()
    for name, hint in get_type_hints(model, include_extras=True).items():
        if CONST not in getattr(hint, "__metadata__", ()) or not scoped.constants.get(name):
            continue
        variable = getattr(shape, name)
        if isinstance(variable, Map):
            members = [k.members or () for k in variable.keys]
            constants[name] = {
                tuple(m[i] for m, i in zip(members, index, strict=True)): value
                for index, value in scoped.constants[name].items()
            }
        else:
            value = scoped.constants[name][()]
            chosen = isinstance(variable, Choice) and isinstance(value, int)
            constants[name] = type(variable).members()[value] if chosen else value
    return Scope(bare.sorts, bare.limits, constants)


def _given(hint: Any, value: int | None) -> Any:
    if value is not None and isinstance(hint, type) and issubclass(hint, Sort):
        return hint(value)
    if value is not None and isinstance(hint, type) and issubclass(hint, Choice):
        return hint.members()[value]
    return value


# --- which events are performed ---------------------------------------------------------------------------------------


def _performed(step: Callable[..., object], state: State, values: Sequence[object], note: str) -> list[dict[str, Any]]:
    try:
        done = performed(step, state, *values)
    except (NotEnabled, Undefined) as error:
        raise NoLog(f"{note} does not run as plain Python: {type(error).__name__} {error}") from error
    lines, within, ledger = list[dict[str, Any]](), sys.maxsize, _ledger()
    for event in done:
        if not isinstance(event, Performed) or event.depth > within:
            continue
        within = sys.maxsize
        if event.event in ledger:
            within = event.depth
            arguments = dict(zip(ledger[event.event], event.arguments, strict=True))
            lines.append({**_line(event.event, arguments), "note": note})
    return lines


def _ledger() -> dict[str, list[str]]:
    """The ownership events, with their parameters. Known once a design has been imported."""
    return {
        f.__name__: list(inspect.signature(f).parameters)[1:]
        for module, functions in REGISTRY.items()
        if module.startswith("kvsan.spec.ownership.")
        for f in functions
        if f.__dict__["spec_kind"] in ("event", "settling")
    }


# --- how an event is written ------------------------------------------------------------------------------------------

FIELDS: dict[str, dict[str, str]] = {
    "alloc": {"block": "b", "branch": "r"},
    "free": {"block": "b"},
    "alloc_failed": {"branch": "r"},
    "pin": {"block": "b", "holder": "h", "mode": "mode", "kind": "kind"},
    "unpin": {"block": "b", "holder": "h", "mode": "mode", "kind": "kind"},
    "admit": {"branch": "r", "tokens": "tokens"},
    "grow": {"branch": "r", "tokens": "tokens"},
    "reserve": {"branch": "r", "blocks": "blocks"},
    "fork": {"branch": "c", "parent": "r", "upto": "upto"},
    "map": {"branch": "r", "pos": "p", "block": "b"},
    "unmap": {"branch": "r", "pos": "p", "block": "b"},
    "window": {"branch": "r", "from": "start"},
    "finish": {"branch": "r"},
    "preempt": {"branch": "r"},
    "propose": {"branch": "r", "tokens": "tokens"},
    "accept": {"branch": "r", "tokens": "tokens"},
    "write": {"branch": "r", "block": "b", "slots": "lo hi", "tokens": "first last"},
    "read": {"branch": "r", "upto": "upto"},
    "copy": {"branch": "r", "src": "src", "dst": "dst", "slots": "lo hi"},
    "invalidate": {"block": "b", "slots": "lo hi"},
    "seal": {"block": "b", "hash": "h", "branch": "r", "slots": "lo hi"},
    "hit": {"block": "b", "hash": "h", "branch": "r", "slots": "lo hi"},
    "evict": {"block": "b", "hash": "h"},
    "quiescent": {},
}
"""Each event's fields, with the parameters that give them."""


def _line(event: str, arguments: dict[str, Any]) -> dict[str, Any]:
    if event not in FIELDS:
        raise NoLog(f"the event {event} is not written to logs yet")
    line: dict[str, Any] = {"ev": event}
    for field, names in FIELDS[event].items():
        values = [_value(arguments[n]) for n in names.split()]
        if None not in values:
            line[field] = values if len(values) > 1 else values[0]
    return line


def _value(value: Any) -> Any:
    match value:
        case Sort(index):
            kind = type(value).__name__
            return index if kind == "Block" else f"{'r' if kind == 'Branch' else kind.lower()}{index}"
        case Choice(name):
            return name.lower()
        case _:
            return value
