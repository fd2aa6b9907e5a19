"""The functional form: what a step does, as expressions over the state before it.

Sequential assignment is resolved here: a read after stores becomes a choice between the stored values and the old one,
by comparing indexes, so two parameters that name one member (r == c) are right by construction. Loops and quantifiers
are unrolled for given sizes. Expressions share their parts (a graph, not a tree): compare and memoize them by identity.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from kvsan.spec.lang import ir
from kvsan.spec.lang.effects import reset_by
from kvsan.spec.lang.simplify import choose, conj, disj, equal, negate


@dataclass(frozen=True)
class Sizes:
    """sorts: members per sort. limits: value per range parameter."""

    sorts: Mapping[str, int]
    limits: Mapping[str, int]


@dataclass(frozen=True)
class Guarded:
    """A condition and where it is defined."""

    condition: ir.Expr
    defined: ir.Expr


@dataclass(frozen=True)
class Obligation:
    """Under `path`, `holds` must be true; both over the state before the step. number: the obligation of the step."""

    rule: str
    number: int
    path: ir.Expr
    holds: ir.Expr
    defined: ir.Expr
    names: tuple[tuple[str, ir.Expr], ...]


@dataclass(frozen=True)
class Update:
    """One conditional store: under `path` the entries that match `index` (None: any) become `value`. Later ones win."""

    path: ir.Expr
    index: tuple[ir.Expr | None, ...]
    value: ir.Expr


@dataclass(frozen=True)
class Functional:
    """One step. defined: in order, (path, condition) pairs; the step is undefined where a path holds and its
    condition does not. updates: per variable, the stores that make its next value."""

    name: str
    params: tuple[ir.Param, ...]
    guard: tuple[Guarded, ...]
    obligations: tuple[Obligation, ...]
    updates: Mapping[str, tuple[Update, ...]]
    defined: tuple[tuple[ir.Expr, ir.Expr], ...]


Pair = tuple[ir.Expr, ir.Expr]  # a value and where it is defined


@dataclass
class _Run:
    variables: Mapping[str, ir.Variable]
    sizes: Sizes
    names: dict[str, ir.Expr]
    updates: dict[str, tuple[Update, ...]] = field(default_factory=dict)
    obligations: list[Obligation] = field(default_factory=list)
    defined: list[tuple[ir.Expr, ir.Expr]] = field(default_factory=list)


def functional(step: ir.Step, variables: Mapping[str, ir.Variable], sizes: Sizes) -> Functional:
    """The functional form of a lowered step (event, action or initial) for these sizes."""
    run = _Run(variables, sizes, {p.name: ir.Name(p.name, p.type) for p in step.params})
    guard = tuple(Guarded(*_expr(g, run)) for g in step.guard)
    _block(step.effects, ir.TRUE, run)
    return Functional(step.name, step.params, guard, tuple(run.obligations), run.updates, tuple(run.defined))


def predicate(step: ir.Step, variables: Mapping[str, ir.Variable], sizes: Sizes) -> Guarded:
    """An invariant or witness as one condition for these sizes."""
    assert step.value is not None, f"{step.name} is no expression"
    run = _Run(variables, sizes, {p.name: ir.Name(p.name, p.type) for p in step.params})
    return Guarded(*_expr(step.value, run))


# --- statements -------------------------------------------------------------------------------------------------------


def _block(block: tuple[ir.Stmt, ...], path: ir.Expr, run: _Run) -> None:
    for statement in block:
        _statement(statement, path, run)


def _sure(run: _Run, path: ir.Expr, *conditions: ir.Expr) -> None:
    condition = conj(*conditions)
    if condition != ir.TRUE:
        run.defined.append((path, condition))


def _statement(statement: ir.Stmt, path: ir.Expr, run: _Run) -> None:
    match statement:
        case ir.Let(name, value):
            run.names[name], defined = _expr(value, run)
            _sure(run, path, defined)
        case ir.Store():
            _store(statement, path, run)
        case ir.If(test, then, orelse):
            decided, defined = _expr(test, run)
            _sure(run, path, defined)
            _arms(decided, then, orelse, path, run)
        case ir.For():
            _loop(statement, path, run)
        case ir.Obey():
            holds, defined = _expr(statement.condition, run)
            names = tuple((n, _expr(e, run)[0]) for n, e in statement.names)
            run.obligations.append(Obligation(statement.rule, statement.number, path, holds, defined, names))
            _sure(run, path, defined)
        case ir.Reset(sort, entity):
            member, defined = _expr(entity, run)
            _sure(run, path, defined)
            for variable in reset_by(sort, run.variables):
                rest = (None,) * (len(variable.keys) - 1)
                _update(run, variable.name, Update(path, (member, *rest), default_value(variable.value)))
        case ir.Require():
            pass  # the guard has it
        case ir.CallStmt():
            raise AssertionError("calls are inlined")
        case _:
            assert_never(statement)


def default_value(type_: ir.Type) -> ir.Expr:
    """The default of a type as an expression."""
    return ir.Empty(type_) if isinstance(type_, ir.SetType) else ir.Const(ir.default(type_), type_)


def _update(run: _Run, name: str, update: Update) -> None:
    run.updates[name] = (*run.updates.get(name, ()), update)


def _store(store: ir.Store, path: ir.Expr, run: _Run) -> None:
    variable = run.variables[store.variable]
    value, defined = _expr(store.value, run)
    index, within = _index(store.index, variable, run)
    _sure(run, path, defined, within, in_range(value, variable.value, run.sizes))
    _update(run, variable.name, Update(path, index, value))


def _arms(test: ir.Expr, then: tuple[ir.Stmt, ...], orelse: tuple[ir.Stmt, ...], path: ir.Expr, run: _Run) -> None:
    """Each arm starts from the state before the `if`; what it stores carries its path."""
    if isinstance(test, ir.Const):
        _block(then if test.value else orelse, path, run)
        return
    before, names = dict(run.updates), dict(run.names)
    _block(then, conj(path, test), run)
    after_then, then_names = run.updates, run.names
    run.updates, run.names = dict(before), dict(names)
    _block(orelse, conj(path, negate(test)), run)
    merged = dict(after_then)
    for name, updates in run.updates.items():
        added = updates[len(before.get(name, ())) :]
        merged[name] = (*after_then.get(name, ()), *added)
    run.updates = merged
    for name in {*then_names, *run.names}:
        if name in then_names and name in run.names:
            value = then_names[name]
            run.names[name] = choose(test, value, run.names[name], value.type)
        elif name in then_names:
            run.names[name] = then_names[name]


def _loop(loop: ir.For, path: ir.Expr, run: _Run) -> None:
    turns, defined = _turns(loop.domain, loop.name_type, run)
    _sure(run, path, defined)
    for key, present in turns:
        if present != ir.FALSE:
            run.names[loop.name] = key
            _block(loop.body, conj(path, present), run)


def _turns(domain: ir.Domain, key_type: ir.Type, run: _Run) -> tuple[list[Pair], ir.Expr]:
    """Each possible key with the condition under which the loop visits it, and where the domain is defined."""
    keys = [ir.Const(n, key_type) for n in range(size_of(key_type, run.sizes))]
    if isinstance(domain, ir.Members):
        return [(k, ir.TRUE) for k in keys], ir.TRUE
    variable = run.variables[domain.variable]
    first, defined = _expr(domain.first, run)
    within = in_range(first, variable.keys[0], run.sizes)
    absent = default_value(variable.value)
    turns: list[Pair] = []
    for key in keys:
        value = _resolve(variable, (first, key), run)
        turns.append((key, negate(_is_default(value, absent))))
    return turns, conj(defined, within)


def _is_default(value: ir.Expr, absent: ir.Expr) -> ir.Expr:
    if isinstance(absent, ir.Const) and absent.value is None:
        return is_none(value)
    if absent.type == ir.BOOL:
        return negate(value)
    return equal(value, absent)


def is_none(value: ir.Expr) -> ir.Expr:
    """`value is None`, folded for constants."""
    return ir.Const(value.value is None, ir.BOOL) if isinstance(value, ir.Const) else ir.IsNone(value)


def size_of(type_: ir.Type, sizes: Sizes) -> int:
    """How many members an index type has."""
    match type_:
        case ir.SortType(name):
            return sizes.sorts[name]
        case ir.ChoiceType(names=names):
            return len(names)
        case ir.BoolType():
            return 2
        case ir.NatType(str(parameter), inclusive):
            return sizes.limits[parameter] + (1 if inclusive else 0)
        case _:
            raise AssertionError(f"{type_} is no index type")


# --- expressions ------------------------------------------------------------------------------------------------------


def in_range(value: ir.Expr, type_: ir.Type, sizes: Sizes) -> ir.Expr:
    """Where a value lies in the range that a type declares for these sizes."""
    match type_:
        case ir.OptionType(inner):
            if isinstance(value, ir.Const) and value.value is None:
                return ir.TRUE
            inside = in_range(value, inner, sizes)
            return inside if inside == ir.TRUE else disj(is_none(value), inside)
        case ir.NatType(str()):
            size = size_of(type_, sizes)
            if isinstance(value, ir.Const):
                return ir.Const(value.value is not None and value.value < size, ir.BOOL)
            return ir.Compare("<", value, ir.Const(size, ir.NAT))
        case ir.SetType(ir.NatType(str()) as element):
            whole = ir.Arith("span", ir.Const(0, ir.NAT), ir.Const(size_of(element, sizes), ir.NAT), type_)
            return ir.TRUE if isinstance(value, ir.Empty) else ir.Compare("subset", value, whole)
        case _:
            return ir.TRUE


def _index(parts: tuple[ir.Expr, ...], variable: ir.Variable, run: _Run) -> tuple[tuple[ir.Expr, ...], ir.Expr]:
    index: list[ir.Expr] = []
    conditions: list[ir.Expr] = []
    for part, key in zip(parts, variable.keys, strict=True):
        value, defined = _expr(part, run)
        index.append(value)
        conditions += [defined, in_range(value, key, run.sizes)]
    return tuple(index), conj(*conditions)


def _resolve(variable: ir.Variable, index: tuple[ir.Expr, ...], run: _Run) -> ir.Expr:
    """The value now: the last store whose path holds and whose index matches, else the value before the step."""
    value: ir.Expr = ir.Read(variable.name, index, variable.value)
    for update in run.updates.get(variable.name, ()):
        same = [equal(i, u) for i, u in zip(index, update.index, strict=True) if u is not None]
        if ir.FALSE not in (s for s in same if isinstance(s, ir.Const)):
            value = choose(conj(update.path, *same), update.value, value, variable.value)
    return value


def _expr(expr: ir.Expr, run: _Run) -> Pair:
    match expr:
        case ir.Name(name):
            return run.names[name], ir.TRUE
        case ir.Const() | ir.Empty():
            return expr, ir.TRUE
        case ir.Read(variable, parts):
            index, within = _index(parts, run.variables[variable], run)
            return _resolve(run.variables[variable], index, run), within
        case ir.Not(operand):
            value, defined = _expr(operand, run)
            return negate(value), defined
        case ir.And(items):
            return _junction([_expr(i, run) for i in items], True)
        case ir.Or(items):
            return _junction([_expr(i, run) for i in items], False)
        case ir.Compare(op, a, b):
            (left, d1), (right, d2) = _expr(a, run), _expr(b, run)
            value = equal(left, right) if op == "==" else ir.Compare(op, left, right, expr.span)
            return value, conj(d1, d2)
        case ir.IsNone(operand):
            value, defined = _expr(operand, run)
            return is_none(value), defined
        case ir.Arith(op, a, b):
            (left, d1), (right, d2) = _expr(a, run), _expr(b, run)
            nonzero = negate(equal(right, ir.Const(0, ir.NAT))) if op in ("//", "%") else ir.TRUE
            return replace(expr, left=left, right=right), conj(d1, d2, nonzero)
        case ir.Only(member):
            value, defined = _expr(member, run)
            return replace(expr, member=value), defined
        case ir.Cond(test, then, other, type_):
            (decided, d0), (first, d1), (second, d2) = _expr(test, run), _expr(then, run), _expr(other, run)
            return choose(decided, first, second, type_), conj(d0, choose(decided, d1, d2, ir.BOOL))
        case ir.Some(operand):
            value, defined = _expr(operand, run)
            return value, conj(defined, negate(is_none(value)))
        case ir.Quantifier():
            return _quantifier(expr, run)
        case ir.LetIn(name, bound, body):
            run.names[name], d1 = _expr(bound, run)
            value, d2 = _expr(body, run)
            return value, conj(d1, d2)
        case ir.CallExpr():
            raise AssertionError("calls are inlined")
        case _:
            assert_never(expr)


def _junction(parts: list[Pair], conjunction: bool) -> Pair:
    """`and` or `or` of parts; a part counts for definedness only where the ones before it did not decide."""
    value, defined = parts[-1]
    for before, before_defined in reversed(parts[:-1]):
        if conjunction:
            value, defined = conj(before, value), conj(before_defined, disj(negate(before), defined))
        else:
            value, defined = disj(before, value), conj(before_defined, disj(before, defined))
    return value, defined


def _quantifier(expr: ir.Quantifier, run: _Run) -> Pair:
    turns, defined = _turns(expr.domain, expr.name_type, run)
    parts: list[Pair] = []
    for key, present in turns:
        run.names[expr.name] = key
        value, within = _expr(expr.body, run)
        if expr.kind == "all":
            parts.append((disj(negate(present), value), disj(negate(present), within)))
        else:
            parts.append((conj(present, value), disj(negate(present), within)))
    if not parts:
        return (ir.TRUE if expr.kind == "all" else ir.FALSE), defined
    value, within = _junction(parts, expr.kind == "all")
    return value, conj(defined, within)
