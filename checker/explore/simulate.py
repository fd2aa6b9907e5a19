"""Random walks through a design, by the interpreter: nothing is compiled, nothing is proved.

What is enabled and what is judged is that of a search; each step is performed whole, so that one which leaves its
domain is found where no verdict depends on that, too.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from kvsan.checker.explore.explore import Finding, Prepared
from kvsan.checker.explore.replay import Performer, Step, perform
from kvsan.spec.lang.interpret import Outcome, Plain, holds, run
from kvsan.spec.lang.symbolic import Functional, Guarded, functional, predicate


@dataclass(frozen=True)
class Walks:
    """walks, steps: how many there were. found: the first failure. last: the steps of the last walk, from `start`."""

    walks: int
    steps: int
    found: Finding | None
    last: tuple[Step, ...]
    start: Plain = field(repr=False)


@dataclass
class _Walker:
    prepared: Prepared
    chance: random.Random
    forms: dict[str, Functional] = field(default_factory=dict)
    facts: list[tuple[str, str, Guarded]] = field(default_factory=list)
    judged: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        model = self.prepared.model
        self.whole = Performer(self.prepared.design.spec, self.prepared.scoped)
        self.facts = [
            (s.name, s.doc.strip().splitlines()[0], predicate(s, model.variables, model.sizes))
            for s in model.invariants
        ]
        self.forms = {a.name: functional(a, model.variables, model.sizes) for a in model.actions}
        self.judged = {o.rule for form in self.forms.values() for o in form.obligations} - model.lints

    def move(self, state: Plain) -> tuple[int, Outcome] | None:
        """An enabled step, each as likely as any other; None where there is none."""
        model = self.prepared.model
        codes = list(range(model.bases[-1]))
        self.chance.shuffle(codes)
        for code in codes:
            action, values = model.decode(code)
            given = {p.name: v for p, v in zip(action.params, values, strict=True)}
            if run(self.forms[action.name], model.variables, state, given).enabled:
                return code, run(self.whole.form(action.name), model.variables, state, given)
        return None

    def broken(self, outcome: Outcome) -> tuple[str, str, str]:
        """The rule that a step broke, its kind and what to say; '' where none."""
        if not outcome.defined:
            return "defined", "undefined", "the step leaves its domain"
        for verdict in outcome.verdicts:
            if not verdict.holds and verdict.rule in self.judged:
                return verdict.rule, "rule", ""
        return self.wrong(outcome.after)

    def wrong(self, state: Plain) -> tuple[str, str, str]:
        """The invariant that a state breaks, its kind and what to say; '' where none."""
        for name, doc, fact in self.facts:
            if not holds(fact, self.prepared.model.variables, state):
                return name, "invariant", doc
        return "", "", ""


def simulate(prepared: Prepared, walks: int, depth: int, seed: int) -> Walks:
    """Walk from a start, again and again, until something fails. The same seed gives the same walks."""
    walker, taken, codes = _Walker(prepared, random.Random(seed)), 0, list[int]()
    start = prepared.begun[0].state
    for walk in range(1, walks + 1):
        start = walker.chance.choice(prepared.begun).state
        state, codes = start, []
        rule, kind, message = walker.wrong(start)
        if rule:
            return Walks(walk, taken, Finding(rule, kind, message, (), start), (), start)
        while len(codes) < depth and (moved := walker.move(state)) is not None:
            code, outcome = moved
            codes.append(code)
            taken += 1
            state = outcome.after
            rule, kind, message = walker.broken(outcome)
            if rule:
                steps = _steps(prepared, start, codes)
                said = [b.message for b in steps[-1].breaches if b.rule == rule]
                return Walks(walk, taken, Finding(rule, kind, said[0] if said else message, steps, start), steps, start)
    return Walks(walks, taken, None, _steps(prepared, start, codes), start)


def _steps(prepared: Prepared, start: Plain, codes: list[int]) -> tuple[Step, ...]:
    return perform(prepared.design.spec, prepared.scoped, prepared.model, start, codes)
