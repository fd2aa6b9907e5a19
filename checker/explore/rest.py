"""Variables that have their default whenever no step is under way: proved, and used.

A step is walked with what is known at each place: of every such variable, which entries may differ from the default
there, and what they are where that is known. The walk starts with none; a variable that may end with one is no such
variable, and all is walked again without it, until each step leaves all at rest that it found at rest. What a read
gives, or a loop over a row does, follows from what is known at its place, and is written so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from kvsan.checker.explore.known import Entry, Index, Known
from kvsan.spec.lang import ir
from kvsan.spec.lang.effects import reads, reset_by, writes
from kvsan.spec.lang.fold import fold
from kvsan.spec.lang.walk import all_statements, domain_with, every, rebuild

Block: TypeAlias = tuple[ir.Stmt, ...]


def at_rest(
    actions: tuple[ir.Step, ...],
    known: Mapping[str, int | None],
    begun: Iterable[str],
    variables: Mapping[str, ir.Variable],
) -> frozenset[str]:
    """The variables that every action leaves at rest.

    known: constants, the same at every index. begun: variables that have their default everywhere at the start.
    """
    resting = frozenset(begun) - set(known)
    moved, about = resting, {a.name: _about(a, variables) for a in actions}
    while moved:
        walked = [_walked(a, known, resting, variables) for a in actions if about[a.name] & moved]
        ends = [after.entries for step, after in walked if ir.FALSE not in step.guard]
        moved = frozenset(v for entries in ends for v, may in entries.items() if may != {})
        resting -= moved
    return resting


def _about(step: ir.Step, variables: Mapping[str, ir.Variable]) -> set[str]:
    """The variables that a step reads or changes."""
    return {a.variable for a in (*reads(step), *writes(step, variables))}


def settled(
    step: ir.Step, known: Mapping[str, int | None], resting: frozenset[str], variables: Mapping[str, ir.Variable]
) -> tuple[ir.Step, Known]:
    """The step, begun with these variables at rest, folded until nothing changes; and what is known at its end."""
    while True:
        folded, after = _walked(step, known, resting, variables)
        if folded == step:
            return folded, after
        step = folded


def _walked(
    step: ir.Step, known: Mapping[str, int | None], resting: frozenset[str], variables: Mapping[str, ir.Variable]
) -> tuple[ir.Step, Known]:
    walk = Walk(known, variables)
    before = Known({v: {} for v in variables if v in resting})
    guard = walk.guard(step.guard, before)
    value = None if step.value is None else walk.expr(step.value, before)
    effects, after = walk.block(step.effects, before.copy())
    return replace(step, guard=guard, effects=effects, value=value), after


@dataclass
class Walk:
    """known: variables with one value at every index, whatever happens. arms: of every `if` so far."""

    known: Mapping[str, int | None]
    variables: Mapping[str, ir.Variable]
    arms: int = 1

    # --- expressions --------------------------------------------------------------------------------------------------

    def guard(self, guard: tuple[ir.Expr, ...], at: Known) -> tuple[ir.Expr, ...]:
        out: list[ir.Expr] = []
        for condition in guard:
            holds = self.expr(condition, at)
            at.facts.shown(holds, True)
            out += [] if holds == ir.TRUE else [holds]
        return tuple(out)

    def expr(self, expr: ir.Expr, at: Known) -> ir.Expr:
        def part(e: ir.Expr) -> ir.Expr:
            return self.expr(e, at)

        match expr:
            case ir.Read(variable) if variable in self.known or at.entries.get(variable) == {}:
                return self._default(variable, expr)
            case ir.Read(variable) if at.entries.get(variable):
                return self._stored(replace(expr, index=tuple(map(part, expr.index))), at)
            case ir.Name(name, type_) if name in at.names and _is_of(at.names[name], type_):
                return at.names[name]
            case ir.Quantifier(domain=ir.Row(variable)) if self._empty(variable, at):
                return ir.Const(expr.kind == "all", ir.BOOL, expr.span)
            case ir.LetIn(name, value, body):
                bound = part(value)
                if isinstance(bound, ir.Const | ir.Empty):
                    at.names[name] = bound
                    return part(body)
                return replace(expr, value=bound, body=part(body))
            case _:
                return at.facts.of(fold(rebuild(expr, part)))

    def _default(self, variable: str, read: ir.Read) -> ir.Expr:
        type_ = self.variables[variable].value
        if isinstance(type_, ir.SetType):
            return ir.Empty(type_, read.span)
        return ir.Const(self.known.get(variable, ir.default(type_)), type_, read.span)

    def _empty(self, variable: str, at: Known) -> bool:
        if variable in self.known:
            return self.known[variable] == ir.default(self.variables[variable].value)
        return at.entries.get(variable) == {}

    def _stored(self, read: ir.Read, at: Known) -> ir.Expr:
        """What the step itself has stored there, where nothing else can have been."""
        entries, index = at.entries[read.variable], _index(read.index)
        entry = entries.get(index) if entries is not None and len(entries) == 1 and index is not None else None
        stored = entry.value if entry is not None and not entry.arm else None
        if isinstance(stored, ir.Const):
            return ir.Const(stored.value, read.type, read.span)
        return read if stored is None or stored.type != read.type else stored

    # --- statements ---------------------------------------------------------------------------------------------------

    def block(self, block: Block, at: Known) -> tuple[Block, Known]:
        out: list[ir.Stmt] = []
        for statement in block:
            some, at = self.statement(statement, at)
            out += some
        return tuple(out), at

    def statement(self, s: ir.Stmt, at: Known) -> tuple[Block, Known]:
        match s:
            case ir.If():
                return self._if(s, at)
            case ir.For():
                return self._for(s, at)
            case ir.Let(name):
                value = self.expr(s.value, at.untested())
                if _is_plain(value):
                    at.names[name] = value
                else:
                    at.facts.bind(name, value)
                return (replace(s, value=value),), at
            case ir.Store():
                return self._store(s, at)
            case ir.Obey():
                decided = self.expr(s.condition, at.untested())
                return (() if decided == ir.TRUE else (replace(s, condition=decided),)), at
            case ir.Reset():
                return self._reset(s, at)
            case ir.Require():
                return (), at  # the guard has it
            case ir.CallStmt():
                raise AssertionError("calls are inlined")

    def _if(self, s: ir.If, at: Known) -> tuple[Block, Known]:
        test = self.expr(s.test, at)
        if isinstance(test, ir.Const):
            return self.block(s.then if test.value else s.orelse, at)
        at_then, at_else = at.copy(), at
        self._present(test, at_then, at_else)
        at_then.facts.shown(test, True)
        at_else.facts.shown(test, False)
        arms = self.arms, self.arms + 1
        self.arms += 2
        then, after_then = self.block(s.then, at_then)
        orelse, after_else = self.block(s.orelse, at_else)
        kept = (replace(s, test=test, then=then, orelse=orelse),) if then or orelse else ()
        return kept, after_then.join(after_else, arms)

    def _present(self, test: ir.Expr, at_then: Known, at_else: Known) -> None:
        """Where the test is whether the only entry of a variable that may differ from its default does."""
        for read in every(test):
            entries = at_then.entries.get(read.variable) if isinstance(read, ir.Read) else None
            if isinstance(read, ir.Read) and entries and len(entries) == 1 and test == _present(read):
                entry = entries.get(_index(read.index) or ())
                if entry is not None:
                    at_then.assume(entry.arm, True)
                    if isinstance(entry.value, ir.Const):  # not the default: a store of that leaves no entry
                        at_else.assume(entry.arm, False)
                    at_else.entries[read.variable] = {}

    def _store(self, s: ir.Store, at: Known) -> tuple[Block, Known]:
        index, value = tuple(self.expr(i, at) for i in s.index), self.expr(s.value, at)
        kept = (replace(s, index=index, value=value),)
        at.facts.forget({s.variable})
        entries = at.entries.get(s.variable)
        if entries is None:
            return kept, at
        rests = _is_default(value, self.variables[s.variable])
        if rests and not entries:
            return (), at
        place = _index(index)
        if place is None:
            at.entries[s.variable] = {i: replace(e, value=None) for i, e in entries.items()} if rests else None
            return kept, at
        now = {i: e if e.value == value else replace(e, value=None) for i, e in entries.items()}
        if rests:
            now.pop(place, None)
        else:
            now[place] = Entry(value if _is_lasting(value) else None)
        at.entries[s.variable] = now
        return kept, at

    def _reset(self, s: ir.Reset, at: Known) -> tuple[Block, Known]:
        entity = self.expr(s.entity, at)
        place = _index((entity,))
        at.facts.forget({v.name for v in reset_by(s.sort, self.variables)})
        for variable in reset_by(s.sort, self.variables):
            entries = at.entries.get(variable.name)
            if entries is not None:
                others = {i: e for i, e in entries.items() if place is None or i[:1] != place}
                at.entries[variable.name] = {i: replace(e, value=None) for i, e in others.items()}
        return (replace(s, entity=entity),), at

    # --- loops --------------------------------------------------------------------------------------------------------

    def _for(self, s: ir.For, at: Known) -> tuple[Block, Known]:
        domain = domain_with(s.domain, lambda e: self.expr(e, at))
        if isinstance(domain, ir.Row):
            if self._empty(domain.variable, at):
                return (), at
            only = self._only(domain, at)
            if only is not None:
                return self._once(s, domain, only, at)
        bound = {s.name} | {b.name for b in all_statements(s.body) if isinstance(b, ir.Let | ir.For)}
        while True:
            body, after = self.block(s.body, at.copy())
            more = at.join(after)
            more.leave(bound)
            if more == at:
                return ((replace(s, domain=domain, body=body),) if body else ()), at
            at = more

    def _only(self, row: ir.Row, at: Known) -> str | int | None:
        """The one member that the row may have, where the step itself has put it there."""
        entries = at.entries.get(row.variable)
        if entries is None or len(entries) != 1:
            return None
        ((*first, second),) = entries
        return second if tuple(first) == _index((row.first,)) else None

    def _once(self, s: ir.For, row: ir.Row, member: str | int, at: Known) -> tuple[Block, Known]:
        """The body for this member, under a test where the row may be without it."""
        variable = self.variables[row.variable]
        named = ir.Name(member, s.name_type) if isinstance(member, str) else ir.Const(member, s.name_type)
        entry = ir.Read(row.variable, (row.first, named), variable.value, s.span)
        at.names[s.name] = named
        return self._if(ir.If(_present(entry), s.body, (), s.span), at)


def _index(index: tuple[ir.Expr, ...]) -> Index | None:
    """An index of names and literals; None for any other."""
    out: list[str | int] = []
    for part in index:
        match part:
            case ir.Name(name) | ir.Some(ir.Name(name)):
                out.append(name)
            case ir.Const(int(value)):
                out.append(value)
            case _:
                return None
    return tuple(out)


def _present(entry: ir.Expr) -> ir.Expr:
    """The test that an entry differs from its default."""
    match entry.type:
        case ir.BoolType():
            return entry
        case ir.OptionType():
            return fold(ir.Not(fold(ir.IsNone(entry))))
        case ir.SetType():
            return fold(ir.Compare("!=", entry, ir.Empty(entry.type)))
        case _:
            return fold(ir.Compare("!=", entry, ir.Const(0, entry.type)))


def _is_plain(expr: ir.Expr) -> bool:
    """It means the same wherever the names in it do."""
    return isinstance(expr, ir.Const | ir.Empty | ir.Name)


def _is_of(expr: ir.Expr, type_: ir.Type) -> bool:
    """It may stand where an expression of this type stands: an option is no member, though one may be given for it."""
    return (
        isinstance(expr, ir.Const | ir.Empty)
        or expr.type == type_
        or (isinstance(expr.type, ir.NatType) and isinstance(type_, ir.NatType))
    )


def _is_lasting(expr: ir.Expr) -> bool:
    return _is_plain(expr) or (isinstance(expr, ir.Only) and _is_plain(expr.member))


def _is_default(value: ir.Expr, variable: ir.Variable) -> bool:
    return isinstance(value, ir.Empty) or (isinstance(value, ir.Const) and value.value == ir.default(variable.value))
