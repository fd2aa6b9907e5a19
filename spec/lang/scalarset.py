"""Whether the members of a sort are exchangeable: a proof from the source, or the line that breaks it.

The types already refuse an order on members, arithmetic with them, and members named by number outside initial steps.
What is left to break the symmetry: a variable whose default is a member, and a loop over members whose turns depend on
each other. A turn may write entries that its own member indexes, or add to what others share.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

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


def scalarset(spec: ir.Spec, sort: str) -> Scalarset:
    """The analysis of one sort of a specification."""
    type_ = ir.SortType(sort)
    breaks: list[Break] = []
    constants: list[str] = []
    for variable in spec.variables.values():
        if variable.const and type_ in (*variable.keys, variable.value):
            constants.append(variable.name)
        elif variable.value == type_:
            reason = (
                f"`{variable.name}` starts as the first {sort}, which sets that member apart; make it `{sort} | None`"
            )
            breaks.append(Break(variable.span, reason))
    for step in spec.steps.values():
        if step.kind != "initial":
            breaks += _literals(step, type_)
        for statement in all_statements(step.effects):
            if isinstance(statement, ir.For) and statement.name_type == type_:
                breaks += _turns(statement, spec)
    return Scalarset(sort, tuple(dict.fromkeys(breaks)), tuple(constants))


def _literals(step: ir.Step, type_: ir.SortType) -> Iterator[Break]:
    for statement in all_statements(step.effects):
        for expr in expressions(statement):
            for part in every(expr):
                if isinstance(part, ir.Const) and part.type == type_:
                    yield Break(part.span, f"names one {type_.name} by its number")


def _turns(loop: ir.For, spec: ir.Spec) -> Iterator[Break]:
    """Breaks where the result of a loop may depend on the order of its turns."""
    own = frozenset((loop.name,))
    shared = {s.variable for s in all_statements(loop.body) if isinstance(s, ir.Store) and not _is_own(s.index, own)}
    kinds: dict[str, str] = {}
    for statement in all_statements(loop.body):
        if isinstance(statement, ir.Reset) and not _is_own((statement.entity,), own):
            names = ", ".join(v.name for v in reset_by(statement.sort, spec.variables))
            yield Break(
                statement.span, f"a turn of the loop over {loop.name_type} resets entries that all turns share: {names}"
            )
        elif isinstance(statement, ir.Store) and statement.variable in shared:
            kind = _accumulates(statement, shared)
            if kind and kinds.setdefault(statement.variable, kind) == kind:
                continue
            yield Break(
                statement.span,
                f"a turn of the loop over {loop.name_type} sets `{statement.variable}`, which all turns share,"
                " to a value that depends on the order of the turns",
            )
    written = {s.variable for s in all_statements(loop.body) if isinstance(s, ir.Store)}
    for read in _loose_reads(loop.body, shared):
        if read.variable in shared or (read.variable in written and not _is_own(read.index, own)):
            yield Break(
                read.span,
                f"a turn of the loop over {loop.name_type} reads `{read.variable}`, which other turns change",
            )


def _is_own(index: tuple[ir.Expr, ...], own: frozenset[str]) -> bool:
    """Whether no other turn names this entry: one index is the loop's member itself."""
    return any(isinstance(i, ir.Name) and i.name in own for i in index)


def _accumulates(store: ir.Store, shared: set[str]) -> str:
    """How a store commutes with itself, '' where it does not: `v = v op e` with e untouched by the loop, or a constant.

    Stores of different kinds to one variable do not commute.
    """
    match store.value:
        case ir.Const(constant):
            return f"= {constant}"
        case ir.Empty():
            return "= empty"
        case ir.Arith(op, ir.Read(variable, index), other) if (variable, index) == (store.variable, store.index):
            return op if op in ("+", "|", "&", "excess", "-", "max", "min") and not _reads(other, shared) else ""
        case _:
            return ""


def _reads(expr: ir.Expr, variables: set[str]) -> bool:
    return any(isinstance(e, ir.Read) and e.variable in variables for e in every(expr))


def _loose_reads(block: tuple[ir.Stmt, ...], shared: set[str]) -> Iterator[ir.Read]:
    """All reads, but for those that an accumulation makes of itself, and of the test that keeps it above zero."""
    for statement in block:
        match statement:
            case ir.Store(variable, index, ir.Arith(_, ir.Read(), other)) if variable in shared:
                yield from _reads_in((*index, other))
            case ir.If(test, then, orelse):
                if not _guards_subtraction(test, then, orelse):
                    yield from _reads_in((test,))
                yield from _loose_reads(then, shared)
                yield from _loose_reads(orelse, shared)
            case ir.For(body=body):
                yield from _reads_in(expressions(statement))
                yield from _loose_reads(body, shared)
            case _:
                yield from _reads_in(expressions(statement))


def _guards_subtraction(test: ir.Expr, then: tuple[ir.Stmt, ...], orelse: tuple[ir.Stmt, ...]) -> bool:
    """`if v > 0: v -= 1`: taking one away where there is one; the turns commute."""
    match test, then, orelse:
        case (
            ir.Compare(">", ir.Read() as tested, ir.Const(0)),
            (ir.Store(variable, index, ir.Arith("-", ir.Read() as old, ir.Const(1))),),
            (),
        ):
            return tested == old and (tested.variable, tested.index) == (variable, index)
        case _:
            return False


def _reads_in(parts: tuple[ir.Expr, ...]) -> Iterator[ir.Read]:
    for part in parts:
        for expr in every(part):
            if isinstance(expr, ir.Read):
                yield expr
