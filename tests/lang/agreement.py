"""Run one step in the three evaluators: plain Python, the functional form, the emitted replay code.

A state is drawn from a seed: any well-typed one, reachable or not.
"""

from __future__ import annotations

import importlib.util
import random
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from kvsan.checker.replay import layout
from kvsan.checker.replay.emit import Machine
from kvsan.spec.lang import interpret, ir, surface
from kvsan.spec.lang.symbolic import Functional, Sizes, functional, size_of


def run_module(path: Path) -> ModuleType:
    """A test specification, imported as ordinary Python."""
    name = f"spec_{path.stem}"
    found = importlib.util.spec_from_file_location(name, path)
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module
    found.loader.exec_module(module)
    return module


@dataclass
class World:
    """A specification with its Python modules and one choice of sizes."""

    spec: ir.Spec
    modules: list[ModuleType]
    sizes: Sizes
    machines: dict[tuple[Any, ...], Machine] = field(default_factory=dict)
    forms: dict[str, Functional] = field(default_factory=dict)

    def python(self, name: str) -> Any:
        return next(getattr(m, name) for m in self.modules if hasattr(m, name))

    # --- values -------------------------------------------------------------------------------------------------------

    def to_python(self, value: interpret.Value, type_: ir.Type) -> Any:
        match type_:
            case ir.OptionType(inner):
                return None if value is None else self.to_python(value, inner)
            case ir.SortType(name):
                return self.python(name)(value)
            case ir.ChoiceType(name, names):
                return self.python(name)(names[int(value)])  # type: ignore[arg-type]  # a choice is a number
            case ir.SetType(element):
                assert isinstance(value, frozenset) and element is not None
                return surface.Set(frozenset(self.to_python(v, element) for v in value))
            case ir.BoolType():
                return bool(value)
            case _:
                return value

    def to_plain(self, value: Any) -> interpret.Value:
        match value:
            case surface.Sort():
                return value.index
            case surface.Choice():
                return value.names.index(value.name)
            case surface.Set():
                members = [self.to_plain(v) for v in value.members]
                return frozenset(m for m in members if isinstance(m, int))
            case _:
                return value  # type: ignore[no-any-return]  # a bool, a natural or None

    # --- drawing ------------------------------------------------------------------------------------------------------

    def draw(self, type_: ir.Type, dice: random.Random, top: int = 3) -> interpret.Value:
        match type_:
            case ir.OptionType(inner):
                return None if dice.random() < 0.3 else self.draw(inner, dice)
            case ir.SetType(element):
                assert element is not None
                return frozenset(k for k in range(size_of(element, self.sizes)) if dice.random() < 0.5)
            case ir.NatType(parameter, _):
                return dice.randrange(min(top, size_of(type_, self.sizes)) if parameter else top)
            case _:
                return dice.randrange(size_of(type_, self.sizes))

    def draw_state(self, dice: random.Random) -> interpret.Plain:
        state: interpret.Plain = {}
        for variable in self.spec.variables.values():
            density = dice.choice((0.0, 0.3, 0.8))
            entries: dict[tuple[int, ...], interpret.Value] = {}
            for index in self.indexes(variable.keys):
                if dice.random() < density or not index:
                    value = self.draw(variable.value, dice)
                    if value != interpret.default(variable.value):
                        entries[index] = value
            if entries:
                state[variable.name] = entries
        return state

    def indexes(self, keys: tuple[ir.Type, ...]) -> list[tuple[int, ...]]:
        found: list[tuple[int, ...]] = [()]
        for key in keys:
            found = [(*i, k) for i in found for k in range(size_of(key, self.sizes))]
        return found

    # --- the three ----------------------------------------------------------------------------------------------------

    def python_state(self, state: interpret.Plain) -> surface.State:
        scope = surface.Scope(dict(self.sizes.sorts), dict(self.sizes.limits))
        made: surface.State = self.python(self.spec.state)(scope)
        for name, entries in state.items():
            variable = self.spec.variables[name]
            for index, value in entries.items():
                real = self.to_python(value, variable.value)
                if variable.keys:
                    keys = tuple(self.to_python(i, k) for i, k in zip(index, variable.keys, strict=True))
                    made.__dict__[name][keys] = real
                else:
                    made.__dict__[name] = real
        return made

    def plain_state(self, made: surface.State) -> interpret.Plain:
        state: interpret.Plain = {}
        for name, variable in self.spec.variables.items():
            held = made.__dict__[name]
            cells = held.cells if variable.keys else {(): held}
            entries: dict[tuple[int, ...], interpret.Value] = {}
            for index, value in cells.items():
                plain = self.to_plain(value)
                if plain != interpret.default(variable.value):
                    entries[tuple(int(self.to_plain(i)) for i in index)] = plain  # type: ignore[arg-type]  # indexes are numbers
            if entries:
                state[name] = entries
        return state

    def by_python(self, step: ir.Step, state: interpret.Plain, values: dict[str, interpret.Value]) -> Any:
        """(obligations in order, state after), or `disabled`, or `undefined`."""
        made = self.python_state(state)
        arguments = [self.to_python(values[p.name], p.type) for p in step.params]
        try:
            judgements = surface.judged(self.python(step.name), made, *arguments)
        except surface.NotEnabled:
            return "disabled"
        except (surface.Undefined, ZeroDivisionError):
            return "undefined"
        return [(j.rule.name, j.holds) for j in judgements], self.plain_state(made)

    def by_functional(self, step: ir.Step, state: interpret.Plain, values: dict[str, interpret.Value]) -> Any:
        if step.name not in self.forms:
            self.forms[step.name] = functional(step, self.spec.variables, self.sizes)
        outcome = interpret.run(self.forms[step.name], self.spec.variables, state, values)
        if not outcome.defined:
            return "undefined"
        if not outcome.enabled:
            return "disabled"
        return [(v.rule, v.holds) for v in outcome.verdicts], {n: e for n, e in outcome.after.items() if e}

    def machine(self, state: interpret.Plain) -> Machine:
        """A replay machine in this state; Const scalars are folded into its code."""
        constants: dict[str, int | str | None] = {}
        for variable in self.spec.variables.values():
            if variable.const and not variable.keys:
                value = state.get(variable.name, {}).get((), ir.default(variable.value))
                assert not isinstance(value, frozenset)
                constants[variable.name] = value
        key = tuple(constants.values())
        if key not in self.machines:
            self.machines[key] = Machine(self.spec, constants)
        machine = self.machines[key]
        machine.failures.clear()
        self.load(machine, state)
        return machine

    def load(self, machine: Machine, state: interpret.Plain) -> None:
        for sort, size in self.sizes.sorts.items():
            machine.grow(sort, size)
        for name, held in machine.state.items():
            variable = self.spec.variables[name]
            for index in self.indexes(variable.keys):
                value = state.get(name, {}).get(index, interpret.default(variable.value))
                layout.put(variable, held, index, encode(value))

    def by_replay(self, machine: Machine, step: ir.Step, values: dict[str, interpret.Value]) -> Any:
        """(failed obligations in order, how often each rule was judged, state after)."""
        before = machine.checked
        machine.events[step.name](*[encode(values[p.name]) for p in step.params])
        failed = [machine.obligations[k].rule for k, _ in machine.failures]
        judged: Counter[str] = Counter()
        for o, was, now in zip(machine.obligations, before, machine.checked, strict=True):
            judged[o.rule] += now - was
        return failed, +judged, self.replay_state(machine)

    def replay_state(self, machine: Machine) -> interpret.Plain:
        state: interpret.Plain = {}
        for name, held in machine.state.items():
            variable = self.spec.variables[name]
            entries: dict[tuple[int, ...], interpret.Value] = {}
            for index in self.indexes(variable.keys):
                value = decode(layout.get(variable, held, index), variable.value)
                if value != interpret.default(variable.value):
                    entries[index] = value
            if entries:
                state[name] = entries
        return state


def encode(value: interpret.Value) -> int:
    """A plain value as replay holds it."""
    return sum(1 << m for m in value) if isinstance(value, frozenset) else layout.encode(value)


def decode(value: int, type_: ir.Type) -> interpret.Value:
    """What replay holds as a plain value."""
    match type_:
        case ir.OptionType(inner):
            return None if value < 0 else decode(value, inner)
        case ir.SetType():
            return frozenset(k for k in range(value.bit_length()) if value >> k & 1)
        case ir.BoolType():
            return bool(value)
        case _:
            return value
