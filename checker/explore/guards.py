"""Mutants made by dropping each `require` in turn: is it needed, and does a rule notice when it is gone?

All of them are one text: a variable `dropped`, which no step changes, says which guard is off, and each condition
becomes `dropped == k or condition`. So a scope is compiled once and searched once per guard, and two searches have
states of one form: a guard is redundant in a scope where the same states are reached, be it by more transitions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any  # numpy arrays

from kvsan.checker.explore.design import BadDesign, Design, Scoped
from kvsan.checker.explore.emit import generate
from kvsan.checker.explore.explore import Finding, Prepared, confirmed, finding_of
from kvsan.checker.explore.model import Start, model, starts
from kvsan.checker.explore.module import Module, build
from kvsan.checker.explore.path import codes_to
from kvsan.checker.explore.recount import count, variable_of
from kvsan.checker.explore.replay import Step, perform
from kvsan.checker.explore.search import STOPPING, UNLIMITED, Failure, Limits, Search, search
from kvsan.checker.explore.symmetry import symmetry as strongest
from kvsan.spec.lang import ir
from kvsan.spec.lang.diagnostics import Span, place
from kvsan.spec.lang.interpret import Plain, holds
from kvsan.spec.lang.symbolic import Sizes, predicate, size_of

DROPPED = "dropped"
"""The variable; 0 drops nothing."""


class Broken(BadDesign):
    """The design fails with all its guards."""


@dataclass(frozen=True)
class Guard:
    """One `require` of an action; number counts from 1 through the whole design. choice: what it says of itself where
    no rule needs it."""

    number: int
    action: str
    text: str
    span: Span
    choice: str = ""

    @property
    def place(self) -> str:
        return place(self.span)


@dataclass(frozen=True)
class Drop:
    """What a scope shows of a design without one guard.

    result: `caught` by a rule, `redundant` (the same states), `unnoticed` (it changes what is reached, and no rule
    fails), or `unknown` (a limit was reached). more_transitions: of a redundant guard, steps between states that are
    reached anyway. first: for `unnoticed`, a shortest way to a state that the design does not have. fact: one beside
    the design that this state contradicts.
    """

    guard: Guard
    result: str
    finding: Finding | None
    states: int
    transitions: int
    more_states: int
    more_transitions: int
    first: tuple[Step, ...]
    fact: str = ""


def guards(spec: ir.Spec) -> tuple[Guard, ...]:
    """Every `require` of the actions, in source order."""
    found = [
        (action.name, statement)
        for action in spec.of_kind("action")
        for statement in action.body
        if isinstance(statement, ir.Require)
    ]
    return tuple(
        Guard(n, name, _text(r.condition.span), r.condition.span, r.choice) for n, (name, r) in enumerate(found, 1)
    )


def _text(span: Span) -> str:
    """The source of a condition, on one line."""
    lines = Path(span.file).read_text(encoding="utf-8").splitlines()[span.line - 1 : span.end_line]
    lines[-1] = lines[-1].encode()[: span.end_column].decode()
    lines[0] = lines[0].encode()[span.column :].decode()
    return " ".join(" ".join(lines).split())


def drops(
    design: Design,
    scoped: Scoped,
    symmetry: str = "full",
    only: Collection[int] | None = None,
    lints: bool = False,
    limits: Limits = UNLIMITED,
    tell: Callable[[Guard], None] = lambda _: None,
    facts: Sequence[ir.Step] = (),
) -> Iterator[Drop]:
    """Each guard of a design off in turn (only: the numbers of those wanted; lints: judge those too; facts: what is
    known to hold between its steps).

    Raises Broken, BadDesign, NoCompiler.
    """
    every = guards(design.spec)
    prepared = switched(design, scoped, symmetry, len(every), lints)
    module = build(prepared.generated.source)
    right = _search(prepared, module, 0, limits)
    broken = [prepared.generated.judges[f.judge] for f in right.failures]
    rule = next((j.rule for j in broken if j.kind in STOPPING), "")
    if rule:
        raise Broken(f"{design.name} itself breaks {rule} in this scope: what a guard is there for does not show")
    for guard in every:
        if only is None or guard.number in only:
            tell(guard)
            yield _drop(prepared, module, right, guard, limits, facts)


def switched(
    design: Design, scoped: Scoped, symmetry: str, count: int, lints: bool = False, counting: bool = False
) -> Prepared:
    """The design with a switch for each guard, ready to be searched from a start that says which one is off.

    counting: with counters in the guards.
    """
    kind = ir.NatType(DROPPED, inclusive=True)
    spec, number = design.spec, 0
    steps = dict(spec.steps)
    for action in spec.of_kind("action"):
        guard = []
        for condition in action.guard:
            number += 1
            off = ir.Compare("==", ir.Read(DROPPED, (), kind), ir.Const(number, ir.NAT))
            guard.append(ir.Or((off, condition), condition.span))
        steps[action.name] = replace(action, guard=tuple(guard))
    variables = {**spec.variables, DROPPED: ir.Variable(DROPPED, (), kind, False, False, False)}
    switched = replace(spec, steps=steps, variables=variables)
    limits = {**scoped.sizes.limits, DROPPED: count}
    sized = replace(scoped, sizes=Sizes(scoped.sizes.sorts, limits))
    begun = starts(spec, sized)
    made = model(switched, sized, [*begun, *_without(begun, 1)], lints)
    used = strongest(made, symmetry)
    return Prepared(design, sized, begun, made, generate(made, used.text, counting), used.name, used.note)


def _without(begun: Collection[Start], number: int) -> tuple[Start, ...]:
    return tuple(replace(s, state={**s.state, DROPPED: {(): number}} if number else s.state) for s in begun)


def _search(prepared: Prepared, module: Module, number: int, limits: Limits) -> Search:
    begun = [s.state for s in _without(prepared.begun, number)]
    return search(prepared.model, prepared.generated, module, begun, limits)


def _drop(
    prepared: Prepared, module: Module, right: Search, guard: Guard, limits: Limits, facts: Sequence[ir.Step]
) -> Drop:
    found = _search(prepared, module, guard.number, limits)
    off = _off(prepared, guard)
    finding = _finding(off, right, found)
    if finding is not None:
        return Drop(guard, "caught", finding, found.count, found.transitions, 0, 0, ())
    more, edges = found.count - right.count, found.transitions - right.transitions
    if found.stopped or right.stopped:
        return Drop(guard, "unknown", None, found.count, found.transitions, 0, 0, ())
    new = _new(prepared, right, found)
    result = "redundant" if new is None else "unnoticed"
    first = () if new is None else _way(off, found, new)
    fact = next((f.name for f in facts if first and _contradicts(off, f, first[-1].after)), "")
    return Drop(guard, result, None, found.count, found.transitions, more, edges, first, fact)


def _contradicts(prepared: Prepared, fact: ir.Step, state: Plain) -> bool:
    """The fact is false in this state, for some values of its parameters."""
    sizes, variables = prepared.scoped.sizes, prepared.design.spec.variables
    assert fact.value is not None
    whole = {**prepared.scoped.constants, **state}
    if fact.kind == "counted":
        return count(fact, variables, sizes, whole) != state.get(variable_of(fact), {})
    for values in product(*(range(size_of(p.type, sizes)) for p in fact.params)):
        body = fact.value
        for param, value in zip(fact.params, values, strict=True):
            body = ir.LetIn(param.name, ir.Const(value, param.type), body, ir.BOOL)
        closed = replace(fact, params=(), value=body)
        if holds(predicate(closed, variables, sizes), variables, whole) is False:
            return True
    return False


def _finding(off: Prepared, right: Search, found: Search) -> Finding | None:
    """What fails first; a lint only where nothing else does, and where the design itself never fails it."""
    judges, usual = off.generated.judges, {f.judge for f in right.failures}
    hard = [f for f in found.failures if judges[f.judge].kind in STOPPING]
    soft = [f for f in found.failures if judges[f.judge].kind == "lint" and f.judge not in usual]
    told = (finding_of(off, found, f, judges[f.judge]) for f in (*hard, *soft))
    return next((f for f in told if confirmed(f)), None)


def _off(prepared: Prepared, guard: Guard) -> Prepared:
    """The design without the guard, for whole states: what the interpreter performs."""
    spec, design = prepared.design.spec, prepared.design
    first = next(g.number for g in guards(spec) if g.action == guard.action)
    action = spec.steps[guard.action]
    kept = tuple(c for n, c in enumerate(action.guard, first) if n != guard.number)
    steps = {**spec.steps, action.name: replace(action, guard=kept)}
    return replace(
        prepared,
        design=replace(design, spec=replace(spec, steps=steps)),
        begun=_without(prepared.begun, guard.number),
    )


def _new(prepared: Prepared, right: Search, found: Search) -> int | None:
    """The number of the first state that the design itself does not have."""
    known = {row.tobytes() for row in _rows(prepared, right)}
    rows = (row.tobytes() for row in _rows(prepared, found))
    return next((n for n, row in enumerate(rows) if row not in known), None)


def _rows(prepared: Prepared, found: Search) -> Any:
    """The states of a search, a row each, without the switch."""
    layout = prepared.model.layout
    rows = found.states[: found.count * layout.words].reshape(found.count, layout.words).copy()
    field = layout.fields[DROPPED]
    chunk = field.chunks[0]
    mask = ((1 << field.bits) - 1) << chunk.offset
    rows[:, chunk.word] &= ~mask if mask < 1 << 63 else ~(mask - (1 << 64))
    return rows


def _way(off: Prepared, found: Search, at: int) -> tuple[Step, ...]:
    begun = [s.state for s in off.begun]
    start, codes = codes_to(found, Failure(-1, at, -1, 0), begun)
    return perform(off.design.spec, off.scoped, off.model, begun[start], codes)
