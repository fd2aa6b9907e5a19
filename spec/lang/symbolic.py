"""The functional form: what a step does, as expressions over the state before it.

Sequential assignment is resolved here: a read after stores becomes a choice between the stored values and the old one,
by comparing indexes, so two parameters that name one member (r == c) are right by construction. Loops and quantifiers
are unrolled for given sizes. A sort without a size is open: a quantifier over it stays, and a loop over it makes one
store for all its members at once (`opened`). A range without a limit has none. Expressions share their parts (a graph,
not a tree): compare and memoize them by identity.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from kvsan.spec.lang import ir
from kvsan.spec.lang.effects import reset_by
from kvsan.spec.lang.fold import fold
from kvsan.spec.lang.simplify import choose, conj, disj, equal, negate
from kvsan.spec.lang.walk import all_expressions, all_statements, rebuild


@dataclass(frozen=True)
class Sizes:
    """sorts: members per sort; one that is missing is open. limits: value per range parameter; missing: no limit."""

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
    """One conditional store: under `path` the entries that match `index` (None: any) become `value`. Later ones win.

    each: names in it that stand for every member of an open sort; each of them is one of the indexes.
    """

    path: ir.Expr
    index: tuple[ir.Expr | None, ...]
    value: ir.Expr
    each: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Functional:
    """One step. defined: in order, (path, condition) pairs; the step is undefined where a path holds and its
    condition does not. updates: per variable, the stores that make its next value. In obligations and in `defined`,
    names that are no parameters stand for every member of an open sort."""

    name: str
    params: tuple[ir.Param, ...]
    guard: tuple[Guarded, ...]
    obligations: tuple[Obligation, ...]
    updates: Mapping[str, tuple[Update, ...]]
    defined: tuple[tuple[ir.Expr, ir.Expr], ...]


Pair = tuple[ir.Expr, ir.Expr]  # a value and where it is defined
Before = Mapping[str, Mapping[tuple[int, ...], int | frozenset[int] | None]]  # entries that differ from their default


@dataclass
class _Run:
    variables: Mapping[str, ir.Variable]
    sizes: Sizes
    names: dict[str, ir.Expr]
    updates: dict[str, tuple[Update, ...]] = field(default_factory=dict)
    obligations: list[Obligation] = field(default_factory=list)
    defined: list[tuple[ir.Expr, ir.Expr]] = field(default_factory=list)
    mark: str = "*"  # ends the names of open members: those of a step and of a predicate about it differ
    before: Before | None = None  # the state before, where that is known


def functional(
    step: ir.Step, variables: Mapping[str, ir.Variable], sizes: Sizes, before: Before | None = None
) -> Functional:
    """The functional form of a lowered step (event, action or initial) for these sizes.

    before: the one state that it is wanted for, if there is only one. What that decides is then left out: a loop over
    all blocks that stops at some of them leaves a choice for each, inside those of the later ones, where it is not.
    """
    run = _Run(variables, sizes, {p.name: ir.Name(p.name, p.type) for p in step.params}, before=before)
    guard = tuple(Guarded(*_expr(g, run)) for g in step.guard)
    _block(step.effects, ir.TRUE, run)
    return Functional(step.name, step.params, guard, tuple(run.obligations), run.updates, tuple(run.defined))


def predicate(
    step: ir.Step, variables: Mapping[str, ir.Variable], sizes: Sizes, after: Functional | None = None
) -> Guarded:
    """An invariant or witness as one condition for these sizes; after: of the state that this step leaves.

    Its own parameters are then named with a dash behind, apart from those of the step.
    """
    assert step.value is not None, f"{step.name} is no expression"
    run = _Run(variables, sizes, {p.name: ir.Name(f"{p.name}'", p.type) for p in step.params}, mark="'")
    if after is not None:
        run.updates = dict(after.updates)
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
    if is_open(loop.name_type, run.sizes):
        opened(loop, path, run)
        return
    turns, defined = _turns(loop.domain, loop.name_type, run)
    _sure(run, path, defined)
    for key, present in turns:
        if present != ir.FALSE:
            run.names[loop.name] = key
            _block(loop.body, conj(path, present), run)


class Entangled(Exception):
    """A loop over an open sort whose turns depend on each other: there is no one store for all of them."""


def is_open(type_: ir.Type, sizes: Sizes) -> bool:
    """Whether a type is a sort of no given size."""
    return isinstance(type_, ir.SortType) and type_.name not in sizes.sorts


def opened(loop: ir.For, path: ir.Expr, run: _Run) -> None:
    """A loop over an open sort, all turns at once: its name becomes one of the names that an update is for each of.

    Right only where no turn sees what another one stored: each variable that the body stores is stored and read at the
    turn's own member. Raises Entangled elsewhere.
    """
    disentangled(loop)
    member = ir.Name(f"{loop.name}{run.mark}", loop.name_type)
    present, defined = _presence(loop.domain, member, run)
    _sure(run, path, defined)
    before = {name: len(updates) for name, updates in run.updates.items()}
    run.names[loop.name] = member
    _block(loop.body, conj(path, present), run)
    for name, updates in run.updates.items():
        old = before.get(name, 0)
        added = (replace(u, each=u.each | {member.name}) for u in updates[old:])
        run.updates[name] = (*updates[:old], *added)


def disentangled(loop: ir.For) -> None:
    """Raises Entangled where a variable is stored or read elsewhere than at the turn's member."""
    stored = {s.variable: s.index for s in all_statements(loop.body) if isinstance(s, ir.Store)}
    resets = any(isinstance(s, ir.Reset) for s in all_statements(loop.body))
    at = {v: [k for k, i in enumerate(x) if _is_name(i, loop.name)][:1] for v, x in stored.items()}
    used = [(s.variable, s.index) for s in all_statements(loop.body) if isinstance(s, ir.Store)]
    used += [(e.variable, e.index) for e in all_expressions(loop.body) if isinstance(e, ir.Read)]
    rows = [s.domain for s in all_statements(loop.body) if isinstance(s, ir.For) and isinstance(s.domain, ir.Row)]
    used += [(r.variable, (r.first, ir.TRUE)) for r in rows]  # every entry of the row
    for variable, index in used:
        if variable in at and not (at[variable] and _is_name(index[at[variable][0]], loop.name)):
            raise Entangled(f"{loop.span.file}:{loop.span.line}: turns share `{variable}`")
    if resets or any(isinstance(e, ir.Quantifier) for e in all_expressions(loop.body)):
        raise Entangled(f"{loop.span.file}:{loop.span.line}: turns see more than their own member")


def _is_name(expr: ir.Expr, name: str) -> bool:
    return isinstance(expr, ir.Name) and expr.name == name


def _presence(domain: ir.Domain, member: ir.Expr, run: _Run) -> Pair:
    """Whether a member is in a domain, and where that is defined."""
    if isinstance(domain, ir.Members):
        return ir.TRUE, ir.TRUE
    variable = run.variables[domain.variable]
    first, defined = _expr(domain.first, run)
    value = _resolve(variable, (first, member), run)
    within = conj(defined, in_range(first, variable.keys[0], run.sizes))
    return negate(_is_default(value, default_value(variable.value))), within


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
        case ir.NatType(str(parameter), inclusive) if parameter in sizes.limits:
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
        case ir.SortType(name) if isinstance(value, ir.Const) and name in sizes.sorts:  # a literal of an initial step
            return ir.Const(value.value is not None and value.value < sizes.sorts[name], ir.BOOL)
        case ir.NatType(str(parameter)):
            if parameter not in sizes.limits:
                return ir.TRUE
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
    value = _read(variable, index, run.before)
    for update in run.updates.get(variable.name, ()):
        if update.each:
            update = _for(update, index)
        same = [equal(i, u) for i, u in zip(index, update.index, strict=True) if u is not None]
        if ir.FALSE not in (s for s in same if isinstance(s, ir.Const)):
            value = choose(conj(update.path, *same), update.value, value, variable.value)
    return value


def _read(variable: ir.Variable, index: tuple[ir.Expr, ...], before: Before | None) -> ir.Expr:
    """The value before the step, a literal where it is known."""
    at = tuple(i.value for i in index if isinstance(i, ir.Const) and i.value is not None)
    if before is None or len(at) < len(index):
        return ir.Read(variable.name, index, variable.value)
    entries = before.get(variable.name, {})
    value = entries.get(at)
    if at not in entries:
        return default_value(variable.value)
    return ir.Read(variable.name, index, variable.value) if isinstance(value, frozenset) else _literal(value, variable)


def _literal(value: int | None, variable: ir.Variable) -> ir.Expr:
    return ir.Const(bool(value) if variable.value == ir.BOOL else value, variable.value)


def _for(update: Update, index: tuple[ir.Expr, ...]) -> Update:
    """The update for the members at this index."""
    members = {u.name: i for u, i in zip(update.index, index, strict=True) if isinstance(u, ir.Name)}
    names = {n: members[n] for n in update.each}
    swap = Swap(names)
    at = tuple(None if i is None else swap(i) for i in update.index)
    return Update(swap(update.path), at, swap(update.value))


class Swap:
    """Other expressions for names; what an expression shares stays shared."""

    def __init__(self, names: Mapping[str, ir.Expr]) -> None:
        self.names = names
        self.done: dict[int, tuple[ir.Expr, ir.Expr]] = {}

    def __call__(self, expr: ir.Expr) -> ir.Expr:
        if isinstance(expr, ir.Name):
            return self.names.get(expr.name, expr)
        if id(expr) not in self.done:
            self.done[id(expr)] = (expr, rebuild(expr, self))
        return self.done[id(expr)][1]


def _expr(expr: ir.Expr, run: _Run) -> Pair:
    value, defined = _parts(expr, run)
    return (value, defined) if run.before is None else (fold(value), fold(defined))


def _parts(expr: ir.Expr, run: _Run) -> Pair:
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
    if is_open(expr.name_type, run.sizes):
        return _open_quantifier(expr, run)
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


def _open_quantifier(expr: ir.Quantifier, run: _Run) -> Pair:
    member = ir.Name(f"{expr.name}{run.mark}", expr.name_type)
    assert isinstance(expr.name_type, ir.SortType)
    present, defined = _presence(expr.domain, member, run)
    run.names[expr.name] = member
    value, within = _expr(expr.body, run)
    everywhere = ir.Members(expr.name_type.name)
    absent = negate(present)
    body = disj(absent, value) if expr.kind == "all" else conj(present, value)
    certain = disj(absent, within)
    sure = certain if certain == ir.TRUE else ir.Quantifier("all", member.name, expr.name_type, everywhere, certain)
    return ir.Quantifier(expr.kind, member.name, expr.name_type, everywhere, body, expr.span), conj(defined, sure)
