"""Whether the members of a sort are exchangeable: a proof from the source, or the line that breaks it.

The types already refuse an order on members, arithmetic with them, and members named by number outside initial steps.
What is left to break the symmetry: a variable whose default is a member, a constant that sets one apart, and a loop
over members whose turns depend on each other. A turn may write entries that its own member indexes, or add to what
others share.

Initial steps may do all of that. What is reached from a renamed start is what is reached from the start, renamed; so
one state of each orbit that is reached stands for the others, whether the start has symmetry or not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kvsan.spec.lang import ir
from kvsan.spec.lang.diagnostics import Span
from kvsan.spec.lang.effects import reset_by
from kvsan.spec.lang.walk import all_statements, every, expressions


@dataclass(frozen=True)
class Break:
    """The place that breaks the symmetry, and why."""

    span: Span
    reason: str


@dataclass(frozen=True)
class Scalarset:
    """breaks: empty where the sort is proved a scalarset. constants: `Const` variables that it indexes or that hold
    its members; a scope whose values there differ from member to member must not exchange those."""

    sort: str
    breaks: tuple[Break, ...]
    constants: tuple[str, ...]

    @property
    def proved(self) -> bool:
        return not self.breaks


class _Read(NamedTuple):
    """What a turn reads; a whole row has its first index alone."""

    variable: str
    at: tuple[ir.Expr, ...]
    span: Span


def scalarset(spec: ir.Spec, sort: str) -> Scalarset:
    """The analysis of one sort of a specification."""
    steps = [s for s in spec.steps.values() if s.kind != "initial"]
    return exchangeable(sort, spec.variables, steps)


def exchangeable(sort: str, variables: Mapping[str, ir.Variable], steps: Collection[ir.Step]) -> Scalarset:
    """The analysis of one sort for these steps over these variables, a part of a specification or all of it.

    steps: all that change or judge a state, but for its start. A constant may have been replaced by its value.
    """
    breaks: list[Break] = []
    for variable in variables.values():
        if not variable.const and variable.value == ir.SortType(sort):
            reason = (
                f"`{variable.name}` starts as the first {sort}, which sets that member apart; make it `{sort} | None`"
            )
            breaks.append(Break(variable.span, reason))
    for step in steps:
        breaks += _literals(step, sort)
        for statement in all_statements(step.effects):
            if isinstance(statement, ir.For) and statement.name_type == ir.SortType(sort):
                breaks += _turns(statement, variables)
    constants = [v.name for v in variables.values() if v.const and any(_names(t, sort) for t in (*v.keys, v.value))]
    return Scalarset(sort, tuple(dict.fromkeys(breaks)), tuple(constants))


def _names(type_: ir.Type | None, sort: str) -> bool:
    """Whether values of the type are, or hold, members of the sort."""
    match type_:
        case ir.SortType(name):
            return name == sort
        case ir.OptionType(inner):
            return _names(inner, sort)
        case ir.SetType(element):
            return _names(element, sort)
        case _:
            return False


def _literals(step: ir.Step, sort: str) -> Iterator[Break]:
    standing = (e for s in all_statements(step.effects) for e in expressions(s))
    for expr in (*step.guard, *(() if step.value is None else (step.value,)), *standing):
        for part in every(expr):
            if isinstance(part, ir.Const) and part.value is not None and _names(part.type, sort):
                yield Break(part.span, f"this is always one and the same {sort}, which sets that member apart")


def _turns(loop: ir.For, variables: Mapping[str, ir.Variable]) -> Iterator[Break]:
    """Breaks where the result of a loop may depend on the order of its turns."""
    statements = list(all_statements(loop.body))
    stores = [s for s in statements if isinstance(s, ir.Store)]
    resets = [(s, {v.name for v in reset_by(s.sort, variables)}) for s in statements if isinstance(s, ir.Reset)]
    cleared = {name for _, names in resets for name in names}
    places = _places(loop.name, stores, cleared)
    shared = {name for name, at in places.items() if not at}
    for reset, names in resets:
        if not _own((reset.entity,), loop.name) or names & shared:
            shown = ", ".join(n for n in variables if n in names)
            yield Break(
                reset.span, f"a turn of the loop over {loop.name_type} resets entries that all turns share: {shown}"
            )
    guarded = {id(s.then[0]) for s in statements if isinstance(s, ir.If) and _guards_subtraction(s)}
    kinds: dict[str, str] = {}
    for store in stores:
        if store.variable in shared:
            kind = "- where there is one" if id(store) in guarded else _accumulates(store)
            if kind and kinds.setdefault(store.variable, kind) == kind:
                continue
            yield Break(
                store.span,
                f"a turn of the loop over {loop.name_type} sets `{store.variable}`, which all turns share,"
                " to a value that depends on the order of the turns",
            )
    for variable, index, span in _loose_reads(loop.body, shared):
        if variable in places and not places[variable] & _own(index, loop.name):
            yield Break(span, f"a turn of the loop over {loop.name_type} reads `{variable}`, which other turns change")


def _places(member: str, stores: list[ir.Store], cleared: set[str]) -> dict[str, frozenset[int]]:
    """Each variable that the loop changes, and the places in its index where every change names the turn's own member.

    So no other turn changes an entry with this member there; none: turns share entries.
    """
    places = {name: frozenset((0,)) for name in cleared}
    for store in stores:
        own = _own(store.index, member)
        places[store.variable] = places.get(store.variable, own) & own
    return places


def _own(index: tuple[ir.Expr, ...], member: str) -> frozenset[int]:
    """The places of an index that are this turn's member itself."""
    return frozenset(n for n, i in enumerate(index) if isinstance(i, ir.Name) and i.name == member)


def _accumulates(store: ir.Store) -> str:
    """How a store commutes with itself, '' where it does not: `v = v op e`, or a constant.

    Stores of different kinds to one variable do not commute. That no other turn changes what e reads, `_loose_reads`
    sees to.
    """
    match store.value:
        case ir.Const(constant):
            return f"= {constant}"
        case ir.Empty():
            return "= empty"
        case ir.Arith(op, ir.Read(variable, index), _) if (variable, index) == (store.variable, store.index):
            return op if op in ("+", "|", "&", "excess", "-", "max", "min") else ""
        case _:
            return ""


def _loose_reads(block: tuple[ir.Stmt, ...], shared: set[str]) -> Iterator[_Read]:
    """All reads, but for those that an accumulation makes of itself, and of the test that keeps it above zero."""
    for statement in block:
        match statement:
            case ir.Store(variable, index, ir.Arith(_, ir.Read(), other)) if variable in shared:
                yield from _reads_in((*index, other))
            case ir.If(test, then, orelse):
                if not _guards_subtraction(statement):
                    yield from _reads_in((test,))
                yield from _loose_reads(then, shared)
                yield from _loose_reads(orelse, shared)
            case ir.For(domain=domain, body=body):
                yield from _row(domain, statement.span)
                yield from _reads_in(expressions(statement))
                yield from _loose_reads(body, shared)
            case _:
                yield from _reads_in(expressions(statement))


def _guards_subtraction(choice: ir.If) -> bool:
    """`if v > 0: v -= 1`: taking one away where there is one; the turns commute."""
    match choice:
        case ir.If(
            ir.Compare(">", ir.Read() as tested, ir.Const(0)),
            (ir.Store(variable, index, ir.Arith("-", ir.Read() as old, ir.Const(1))),),
            (),
        ):
            return tested == old and (tested.variable, tested.index) == (variable, index)
        case _:
            return False


def _reads_in(parts: tuple[ir.Expr, ...]) -> Iterator[_Read]:
    for part in parts:
        for expr in every(part):
            if isinstance(expr, ir.Read):
                yield _Read(expr.variable, expr.index, expr.span)
            elif isinstance(expr, ir.Quantifier):
                yield from _row(expr.domain, expr.span)


def _row(domain: ir.Domain, span: Span) -> Iterator[_Read]:
    if isinstance(domain, ir.Row):
        yield _Read(domain.variable, (domain.first,), span)
