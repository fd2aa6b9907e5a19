"""Whether a failed step is a bug or a missing fact: the explorer looks for it in a small scope."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from kvsan.checker.explore.explore import explore, prepare
from kvsan.checker.explore.module import NoCompiler
from kvsan.checker.explore.replay import Step
from kvsan.checker.explore.search import Limits
from kvsan.checker.prove.system import Scoped, System
from kvsan.spec.lang import ir
from kvsan.spec.lang.simplify import conj, negate
from kvsan.spec.lang.symbolic import Sizes, Swap, size_of

STATES = 300_000


@dataclass(frozen=True)
class Reached:
    """What the explorer says of a scope. broken: the rules and facts that it finds broken, each with its steps.
    stopped: why it ended early; `no compiler` where it did not begin. ways: the same steps with their values."""

    settings: dict[str, int | bool | str]
    states: int
    depth: int
    stopped: str
    broken: dict[str, tuple[str, ...]]
    ways: dict[str, tuple[Step, ...]] = field(default_factory=dict)

    def actions_to(self, rule: str) -> tuple[str, ...]:
        """The actions of the steps with which a rule is found broken; none where it is not."""
        return tuple(step.partition("(")[0] for step in self.broken.get(rule, ()))


def reach(system: System, names: Sequence[str], scoped: Scoped) -> Reached:
    """Explore a scope, with these facts as invariants. Raises BadDesign."""
    spec = system.design.spec
    kept = dict(spec.steps)  # a search does not look at facts for a proof
    for name in names:
        if name in spec.steps and spec.steps[name].kind == "auxiliary":
            kept[name] = as_invariant(spec.steps[name], scoped.sizes)
    design = replace(system.design, spec=replace(spec, steps=kept))
    prepared = prepare(design, scoped)
    try:
        found = explore(prepared, Limits(STATES, 2 << 30, 1 << 30))
    except NoCompiler:
        return Reached(scoped.settings, 0, 0, "no compiler", {})
    broken = {v.rule: tuple(s.text for s in v.steps) for v in found.violations}
    ways = {v.rule: v.steps for v in found.violations}
    return Reached(scoped.settings, found.states, found.depth, found.stopped, broken, ways)


def steps_to(system: System, start: ir.Expr, scoped: Scoped) -> tuple[str, ...] | None:
    """The shortest way to a state where the condition holds; None where a scope has none. Raises BadDesign.

    No rule is judged on the way: of a wrong design, a step before may have broken one.
    """
    spec = system.design.spec
    kept = {n: s for n, s in spec.steps.items() if s.kind not in ("auxiliary", "invariant", "counted")}
    never = ir.Step("never", "invariant", "", (), (), None, "", value=negate(start))
    design = replace(system.design, spec=replace(spec, steps={**kept, "never": never}))
    found = explore(prepare(design, scoped, without=list(spec.rules)), Limits(STATES, 2 << 30, 1 << 30))
    ways = (v.steps for v in found.violations if v.rule == "never")
    return next((tuple(s.text for s in steps) for steps in ways), None)


def as_invariant(fact: ir.Step, sizes: Sizes) -> ir.Step:
    """A fact with its parameters written out."""
    assert fact.value is not None
    sized = [p for p in fact.params if not isinstance(p.type, ir.SortType)]
    parts = []
    for values in product(*(range(size_of(p.type, sizes)) for p in sized)):
        swap = Swap({p.name: ir.Const(v, p.type) for p, v in zip(sized, values, strict=True)})
        parts.append(swap(fact.value))
    value = conj(*parts)
    for p in fact.params:
        if isinstance(p.type, ir.SortType):
            value = ir.Quantifier("all", p.name, p.type, ir.Members(p.type.name), value, fact.span)
    return replace(fact, kind="invariant", params=(), value=value)
