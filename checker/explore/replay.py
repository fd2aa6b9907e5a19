"""A way through a design, performed by the interpreter on whole states: what each step changes, and what it breaks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from kvsan.checker.explore.design import Scoped
from kvsan.checker.explore.emit import Model
from kvsan.spec.lang import ir
from kvsan.spec.lang.interpret import Plain, Value, default, run, value
from kvsan.spec.lang.symbolic import Functional, Obligation, functional


@dataclass(frozen=True)
class Change:
    """One entry that a step changed, as it is shown."""

    entry: str
    before: str
    after: str


@dataclass(frozen=True)
class Breach:
    """An obligation that a step broke."""

    rule: str
    message: str


@dataclass(frozen=True)
class Step:
    """One step of a way. text: `fork(r0, r1)`."""

    action: str
    values: dict[str, int | None]
    text: str
    changes: tuple[Change, ...]
    breaches: tuple[Breach, ...]
    after: Plain = field(repr=False)


@dataclass
class Performer:
    """Performs actions of the whole specification, sliced by nothing."""

    spec: ir.Spec
    scoped: Scoped
    forms: dict[str, Functional] = field(default_factory=dict)

    def form(self, action: str) -> Functional:
        if action not in self.forms:
            self.forms[action] = functional(self.spec.steps[action], self.spec.variables, self.scoped.sizes)
        return self.forms[action]

    def step(self, action: str, values: dict[str, int | None], before: Plain) -> Step:
        """Perform one step."""
        form, variables = self.form(action), self.spec.variables
        outcome = run(form, variables, before, values)
        failed = {v.number for v in outcome.verdicts if not v.holds}
        breaches = tuple(
            Breach(o.rule, self._message(action, o, before, values))
            for o in form.obligations
            if o.number in failed and self._broken(o, before, values)
        )
        arguments = ", ".join(show(p.type, values[p.name]) for p in form.params)
        return Step(
            action, values, f"{action}({arguments})", self._changes(before, outcome.after), breaches, outcome.after
        )

    def _broken(self, obligation: Obligation, before: Plain, values: dict[str, int | None]) -> bool:
        """Whether it is this turn of a loop that failed: all turns have one number."""
        reached = value(obligation.path, self.spec.variables, before, values)
        return bool(reached) and not value(obligation.holds, self.spec.variables, before, values)

    def _message(self, action: str, obligation: Obligation, before: Plain, values: dict[str, int | None]) -> str:
        obey = next(o for o in _obligations(self.spec.steps[action]) if o.number == obligation.number)
        shown = {
            name: show(expr.type, value(expr, self.spec.variables, before, values)) for name, expr in obligation.names
        }
        return re.sub(r"\{(\w+)\}", lambda m: shown.get(m[1], m[0]), obey.message)

    def _changes(self, before: Plain, after: Plain) -> tuple[Change, ...]:
        out = []
        for v in self.spec.variables.values():
            old, new = before.get(v.name, {}), after.get(v.name, {})
            if v.const or old == new:
                continue
            for index in sorted({*old, *new}):
                was, now = old.get(index, default(v.value)), new.get(index, default(v.value))
                if was != now:
                    out.append(Change(_entry(v, index), show(v.value, was), show(v.value, now)))
        return tuple(out)


def perform(spec: ir.Spec, scoped: Scoped, model: Model, start: Plain, codes: Sequence[int]) -> tuple[Step, ...]:
    """The steps of these codes, one after the other."""
    performer, state, out = Performer(spec, scoped), start, list[Step]()
    for code in codes:
        action, values = model.decode(code)
        named = {p.name: x for p, x in zip(action.params, values, strict=True)}
        out.append(performer.step(action.name, named, state))
        state = out[-1].after
    return tuple(out)


def _obligations(step: ir.Step) -> list[ir.Obey]:
    from kvsan.spec.lang.walk import all_statements

    return [s for s in all_statements(step.effects) if isinstance(s, ir.Obey)]


def _entry(v: ir.Variable, index: tuple[int, ...]) -> str:
    shown = ", ".join(show(k, i) for k, i in zip(v.keys, index, strict=True))
    return f"{v.name}[{shown}]" if index else v.name


LETTERS = {"Branch": "r", "Block": "b", "Holder": "h"}


def show(type_: ir.Type, given: Value) -> str:
    """A value as it is shown."""
    match type_:
        case _ if given is None:
            return "None"
        case ir.OptionType(inner):
            return show(inner, given)
        case ir.SetType(element):
            assert isinstance(given, frozenset)
            return "{" + ", ".join(show(element or ir.NAT, m) for m in sorted(given)) + "}"
        case ir.SortType(name):
            return f"{LETTERS.get(name, name.lower())}{given}"
        case ir.ChoiceType(names=names):
            assert isinstance(given, int)
            return names[given]
        case ir.BoolType():
            return "true" if given else "false"
        case _:
            return str(given)
