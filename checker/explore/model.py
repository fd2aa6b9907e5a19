"""From a design and a scope to what the search needs: start states, sliced steps, a layout."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from kvsan.checker.explore.design import BadDesign, Scoped
from kvsan.checker.explore.emit import Model
from kvsan.checker.explore.layout import TooWide, layout
from kvsan.checker.explore.recount import count, recounted, variable_of, working
from kvsan.checker.explore.slice import Parts, sliced
from kvsan.spec.designs.settings import as_set
from kvsan.spec.lang import ir
from kvsan.spec.lang.diagnostics import place
from kvsan.spec.lang.interpret import Plain, run
from kvsan.spec.lang.symbolic import functional
from kvsan.spec.lang.walk import all_statements


@dataclass(frozen=True)
class Start:
    """An initial step and the whole state that it makes."""

    step: str
    state: Plain


def starts(spec: ir.Spec, scoped: Scoped) -> tuple[Start, ...]:
    """The start states, of the initial steps whose guards hold. Raises BadDesign where there is none, or one is
    undefined or breaks a rule."""
    made, lints = [], {r.name for r in spec.rules.values() if r.kind == "lint"}
    for step in spec.of_kind("initial"):
        form = functional(step, spec.variables, scoped.sizes, scoped.constants)
        outcome = run(form, spec.variables, scoped.constants, {})
        if outcome.defined and not outcome.enabled:
            continue
        broken = [v for v in outcome.verdicts if not v.holds and v.rule not in lints]
        where = f"{place(step.span)}: the initial step `{step.name}`"
        if not outcome.defined:
            scope = as_set(scoped.settings)
            raise BadDesign(f"{where} goes past a size of the scope, or unwraps None: mend it, or the scope ({scope})")
        if broken:
            said = next(o.message for o in _obligations(step) if o.number == broken[0].number)
            raise BadDesign(f"{where} breaks {broken[0].rule} ({said}): let it begin with what its events may do")
        made.append(Start(step.name, outcome.after))
    if not made:
        raise BadDesign(f"no @initial step of {spec.name} may be taken in this scope: drop a `require` of one")
    return tuple(made)


def _obligations(step: ir.Step) -> list[ir.Obey]:
    return [s for s in all_statements(step.effects) if isinstance(s, ir.Obey)]


def model(
    spec: ir.Spec, scoped: Scoped, begun: Collection[Start], lints: bool = False, without: Collection[str] = ()
) -> Model:
    """The model of one scope. lints: judge those too. without: rules not to judge. Raises BadDesign."""
    asked = {r.name for r in spec.rules.values() if (lints or r.kind != "lint") and r.name not in without}
    changed = {n for start in begun for n in start.state}
    variables = {n: v for n, v in spec.variables.items() if not v.const}
    idle = frozenset(n for n in variables if n not in changed)
    parts = Parts(*(spec.of_kind(kind) for kind in ("action", "invariant", "witness", "counted")))
    parts, kept = sliced(parts, spec.variables, scoped.known, idle, frozenset(asked))
    try:
        counted = recounted(parts.counted, {v.name: v for v in kept}, scoped.sizes)
        again = [variable_of(f) for f in counted]
        placed = layout((v for v in kept if v.name not in again), scoped.sizes)
        whole = working(placed, (spec.variables[n] for n in again), scoped.sizes)
    except TooWide as error:
        raise BadDesign(f"a state cannot be packed: {error}") from error
    _counts_right(counted, spec.variables, scoped, begun)
    return Model(
        spec.name,
        parts.actions,
        parts.invariants,
        parts.witnesses,
        spec.variables,
        scoped.known,
        scoped.sizes,
        placed,
        frozenset(r.name for r in spec.rules.values() if r.kind == "lint"),
        counted,
        whole,
    )


def _counts_right(
    facts: Collection[ir.Step], variables: dict[str, ir.Variable], scoped: Scoped, begun: Collection[Start]
) -> None:
    for fact in facts:
        for start in begun:
            if count(fact, variables, scoped.sizes, start.state) != start.state.get(variable_of(fact), {}):
                raise BadDesign(f"the initial step `{start.step}` breaks {fact.name}")
