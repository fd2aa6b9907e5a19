"""A way through a design as a log: the ownership events that its steps perform, in the trace format.

The design runs as ordinary Python, and what its steps perform becomes lines (`lines`). So the log shares nothing with
the search that found the way.
"""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, get_type_hints  # the run-time half of the language handles values of every declared type

from kvsan.checker.explore.design import Design, Scoped, find
from kvsan.checker.explore.lines import SECOND_TIER, Line, NoLog, Writer
from kvsan.checker.explore.model import starts
from kvsan.checker.explore.replay import Step
from kvsan.spec.designs.settings import discipline_of
from kvsan.spec.lang.interpret import Plain
from kvsan.spec.lang.surface import (
    CONST,
    REGISTRY,
    Choice,
    Judgement,
    Map,
    NotEnabled,
    Performed,
    Scope,
    Sort,
    State,
    Undefined,
    performed,
)
from kvsan.spec.ownership.state import Ownership


@dataclass(frozen=True)
class Way:
    """lines: a header, the events of the start, and those of each step; an event's `note` is its step. broken: each
    rule that the design itself breaks on the way, with the number of its line."""

    lines: list[Line]
    broken: tuple[tuple[str, int], ...]


def log_of(design: Design, scoped: Scoped, begun: Plain, steps: Sequence[Step]) -> list[Line]:
    """The lines of a way from a start state. Raises NoLog."""
    first = next(s.step for s in starts(design.spec, scoped) if s.state == begun)
    return way(design, scoped, [(s.action, tuple(s.values.values()), s.text) for s in steps], first).lines


def way(
    design: Design | str, scoped: Scoped, steps: Iterable[tuple[str, Sequence[int | None], str]], first: str = ""
) -> Way:
    """Take steps from a start of a design, each an action, its arguments and what to call it. Raises NoLog.

    first: the initial step, where there are several.
    """
    ours = find(design) if isinstance(design, str) else design
    module = importlib.import_module(ours.module)
    made = getattr(module, ours.spec.state)
    if not issubclass(made, Ownership):
        raise NoLog(f"{ours.name} does not derive from Ownership, so it performs no events of the ledger")
    state = made(_scope(made, scoped))
    actions = {f.__name__: f for f in REGISTRY[ours.module]}
    initial = (f for f in actions.values() if f.__dict__["spec_kind"] == "initial")
    start = actions[first] if first else next(initial)
    writer = Writer(state, [_header(ours, scoped)])
    writer.write(_performed(start, state, (), "start"), "start")
    for name, arguments, text in steps:
        action = actions[name]
        hints = get_type_hints(action, include_extras=True)
        parameters = list(inspect.signature(action).parameters)[1:]
        values = [_given(hints[p], value) for p, value in zip(parameters, arguments, strict=True)]
        writer.write(_performed(action, state, values, text), text)
    return Way(writer.lines, tuple(writer.broken))


def _header(design: Design, scoped: Scoped) -> Line:
    tier = scoped.settings.get("tier_blocks", 0)
    pools = {SECOND_TIER: {"blocks": tier, "block_size": scoped.settings["block_size"]}} if tier else {}
    return {
        "ev": "trace", "schema": "kvsan/1", "engine": f"design:{design.name}", "version": "1",
        "discipline": discipline_of(scoped.settings, design.discipline), "block_size": scoped.settings["block_size"],
        "blocks": scoped.settings["blocks"], "started": "empty", **({"pools": pools} if pools else {}),
    }  # fmt: skip


def written(lines: Sequence[Line]) -> str:
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


def _performed(
    step: Callable[..., object], state: State, values: Sequence[object], note: str
) -> list[Performed | Judgement]:
    try:
        return performed(step, state, *values)
    except (NotEnabled, Undefined) as error:
        raise NoLog(f"{note} does not run as plain Python: {type(error).__name__} {error}") from error
