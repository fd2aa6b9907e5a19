"""Search a design by running it as ordinary Python: slow, literal, and sharing nothing with the compiler.

The oracle of the explorer. It sees every variable of the state, so its counts say that the ledger keeps no history that
the design does not need; `leaving_out` names variables that it is to forget.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, get_type_hints  # the run-time half handles values of every declared type

from kvsan.spec.designs.catalog import Design
from kvsan.spec.designs.settings import Settings, sizing
from kvsan.spec.lang.surface import CONST, REGISTRY, Choice, Map, NotEnabled, Scope, Sort, State, judged

Snapshot = tuple[Any, ...]


@dataclass
class Found:
    """One search. violations: per rule the shortest list of steps that breaks it. performed: how often per action."""

    states: int = 0
    transitions: int = 0
    depth: int = 0
    violations: dict[str, list[str]] = field(default_factory=dict)
    performed: Counter[str] = field(default_factory=Counter)
    witnesses: dict[str, int] = field(default_factory=dict)


class Model:
    """A design under some settings, with its state and its enabled steps."""

    def __init__(self, design: Design, settings: Settings, leaving_out: frozenset[str] = frozenset()) -> None:
        self.module: ModuleType = importlib.import_module(design.module)
        self.state = getattr(self.module, design.state)(plain_scope(design, settings))
        hints = get_type_hints(type(self.state), include_extras=True)
        kept = [n for n, hint in hints.items() if CONST not in getattr(hint, "__metadata__", ())]
        self.maps = [n for n in kept if isinstance(getattr(self.state, n), Map)]
        self.scalars = [n for n in kept if n not in self.maps]
        self.seen_maps = [i for i, n in enumerate(self.maps) if n not in leaving_out]
        steps = {f.__name__: f for f in REGISTRY[design.module]}
        self.initial = self._of_kind(steps, "initial")
        self.invariants = self._of_kind(steps, "invariant")
        self.witnesses = self._of_kind(steps, "witness")
        scope: Scope = self.state.scope
        self.moves = [(action, args) for action in self._of_kind(steps, "action") for args in arguments(action, scope)]

    @staticmethod
    def _of_kind(steps: dict[str, Any], kind: str) -> list[Any]:
        return [f for f in steps.values() if f.spec_kind == kind]

    def save(self) -> Snapshot:
        return (*(frozenset(getattr(self.state, n).cells.items()) for n in self.maps), *self.rest())

    def rest(self) -> list[Any]:
        return [getattr(self.state, n) for n in self.scalars]

    def restore(self, snapshot: Snapshot) -> None:
        for name, cells in zip(self.maps, snapshot, strict=False):
            getattr(self.state, name).cells = dict(cells)
        for name, value in zip(self.scalars, snapshot[len(self.maps) :], strict=True):
            setattr(self.state, name, value)

    def key(self, snapshot: Snapshot) -> Snapshot:
        return (*(snapshot[i] for i in self.seen_maps), *snapshot[len(self.maps) :])


def plain_scope(design: Design, settings: Settings) -> Scope:
    """The settings as the run-time half of the language takes them: a constant per index."""
    sizes = sizing(settings, design.discipline)
    module = importlib.import_module(design.module)
    model: type[State] = getattr(module, design.state)
    bare = Scope(sizes.sorts, sizes.limits)
    shape = model(bare)
    constants: dict[str, Any] = {}
    for name, hint in get_type_hints(model, include_extras=True).items():
        if CONST in getattr(hint, "__metadata__", ()) and name in sizes.constants:
            value: Any = sizes.constants[name]
            variable = getattr(shape, name)
            if isinstance(value, str):
                value = type(variable)(value)
            if isinstance(variable, Map):
                value = dict.fromkeys(itertools.product(*(k.members or () for k in variable.keys)), value)
            constants[name] = value
    return Scope(sizes.sorts, sizes.limits, constants)


def arguments(action: Any, scope: Scope) -> Iterator[tuple[Any, ...]]:
    """Every choice of parameters of a step."""
    hints = get_type_hints(action, include_extras=True)
    domains = []
    for name in list(inspect.signature(action).parameters)[1:]:
        hint = hints[name]
        marks = getattr(hint, "__metadata__", ())
        if isinstance(hint, type) and issubclass(hint, Sort):
            domains.append([hint(i) for i in range(scope.sorts[hint.__name__])])
        elif isinstance(hint, type) and issubclass(hint, Choice):
            domains.append(list(hint.members()))
        elif marks:
            mark = marks[0]
            domains.append(list(range(scope.limits[mark.parameter] + (type(mark).__name__ == "UpTo"))))
        else:
            domains.append([False, True])
    return itertools.product(*domains)


def search(
    design: Design,
    settings: Settings,
    lints: bool = False,
    leaving_out: frozenset[str] = frozenset(),
    stop_at: str = "",
    invariants: bool = True,
) -> Found:
    """Breadth first; a step that violates is reported and not expanded. stop_at: end when this rule is broken."""
    model, found = Model(design, settings, leaving_out), Found()
    for step in model.initial:
        assert all(j.holds for j in judged(step, model.state) if j.rule.kind != "lint"), (
            "the initial state breaks a rule"
        )
    start = model.save()
    reached: dict[Snapshot, tuple[Snapshot | None, str, int]] = {model.key(start): (None, "", 0)}
    queue: deque[Snapshot] = deque([start])
    while queue:
        snapshot = queue.popleft()
        here = model.key(snapshot)
        depth = reached[here][2]
        found.states += 1
        found.depth = max(found.depth, depth)
        model.restore(snapshot)
        for invariant in model.invariants if invariants else ():
            if not invariant(model.state):
                found.violations.setdefault(invariant.__name__, path(reached, here))
        for witness in model.witnesses:
            if witness.__name__ not in found.witnesses and witness(model.state):
                found.witnesses[witness.__name__] = depth
        for action, args in model.moves:
            try:
                judgements = judged(action, model.state, *args)
            except NotEnabled:
                continue
            found.transitions += 1
            found.performed[action.__name__] += 1
            label = f"{action.__name__}({', '.join(map(short, args))})"
            broken = [j.rule for j in judgements if not j.holds and (lints or j.rule.kind != "lint")]
            for rule in broken:
                found.violations.setdefault(rule.name, [*path(reached, here), label])
            if not any(rule.kind != "lint" for rule in broken):
                after = model.save()
                key = model.key(after)
                if key not in reached:
                    reached[key] = (here, label, depth + 1)
                    queue.append(after)
            model.restore(snapshot)
            if stop_at in found.violations:
                return found
    return found


def short(value: Any) -> str:
    """A member as a step names it: r0, b1."""
    prefix = {"Branch": "r", "Block": "b"}.get(type(value).__name__, type(value).__name__[:1].lower())
    return f"{prefix}{value.index}" if isinstance(value, Sort) else str(value)


def path(reached: dict[Snapshot, tuple[Snapshot | None, str, int]], key: Snapshot) -> list[str]:
    """The steps that first led to a state."""
    steps: list[str] = []
    at: Snapshot | None = key
    while at is not None:
        at, label, _ = reached[at]
        steps.append(label)
    return steps[-2::-1]
