"""Leave out of a design what no verdict depends on, so that only states that differ in earnest differ.

First to a fixpoint: constants of the scope, and variables that no action ever changes from their default, become
literals, and branches that cannot run go. Then obligations that are not asked for go. Then every variable that no
guard, obligation, invariant or witness depends on, through stores too, goes with the stores to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from kvsan.spec.lang import ir
from kvsan.spec.lang.simplify import simplified
from kvsan.spec.lang.walk import all_statements, domain_with, every, expressions, rebuild


@dataclass(frozen=True)
class Parts:
    """The steps that a search runs: what may change a state, and what is asked of each."""

    actions: tuple[ir.Step, ...]
    invariants: tuple[ir.Step, ...]
    witnesses: tuple[ir.Step, ...]

    def all(self) -> tuple[ir.Step, ...]:
        return (*self.actions, *self.invariants, *self.witnesses)


def sliced(
    parts: Parts,
    variables: Mapping[str, ir.Variable],
    known: Mapping[str, int | None],
    idle: frozenset[str],
    rules: frozenset[str],
) -> tuple[Parts, tuple[ir.Variable, ...]]:
    """The parts without what does not matter, and the variables left.

    known: constants, the same at every index. idle: variables that have their default everywhere at the start. rules:
    the rules and lints whose obligations are kept.
    """  # fmt: skip
    parts = _each(parts, lambda s: _fold(_asked(s, rules), known, variables))
    still = idle - set(known)
    while True:
        trial = _each(
            parts, partial(_fold, known={n: ir.default(variables[n].value) for n in still}, variables=variables)
        )
        changed = {n for n in still if any(_changes(s, n, variables) for a in trial.actions for s in _stores(a))}
        if not changed:
            break
        still -= changed
    parts = Parts(tuple(a for a in trial.actions if ir.FALSE not in a.guard), trial.invariants, trial.witnesses)
    needed = _needed(parts)
    parts = _each(parts, lambda s: replace(s, effects=_trim(s.effects, needed, _used(s, needed))))
    return parts, tuple(v for v in variables.values() if v.name in needed)


def _each(parts: Parts, change: Callable[[ir.Step], ir.Step]) -> Parts:
    return Parts(*(tuple(map(change, steps)) for steps in (parts.actions, parts.invariants, parts.witnesses)))


def _stores(step: ir.Step) -> Iterator[ir.Store]:
    return (s for s in all_statements(step.effects) if isinstance(s, ir.Store))


def _changes(store: ir.Store, name: str, variables: Mapping[str, ir.Variable]) -> bool:
    if store.variable != name:
        return False
    match store.value:
        case ir.Empty():
            return False
        case ir.Const(value):
            return value != ir.default(variables[name].value)
        case _:
            return True


# --- obligations that are asked for -----------------------------------------------------------------------------------


def _asked(step: ir.Step, rules: frozenset[str]) -> ir.Step:
    def block(statements: tuple[ir.Stmt, ...]) -> Iterator[ir.Stmt]:
        for s in statements:
            match s:
                case ir.Obey(rule) if rule not in rules:
                    continue
                case ir.If(then=then, orelse=orelse):
                    yield replace(s, then=tuple(block(then)), orelse=tuple(block(orelse)))
                case ir.For(body=body):
                    yield replace(s, body=tuple(block(body)))
                case _:
                    yield s

    return replace(step, effects=tuple(block(step.effects)))


# --- folding ----------------------------------------------------------------------------------------------------------


@dataclass
class _Fold:
    """known: variables with one value at every index. names: local names bound to a literal on every path."""

    known: Mapping[str, int | None]
    variables: Mapping[str, ir.Variable]
    names: dict[str, ir.Expr]

    def expr(self, expr: ir.Expr) -> ir.Expr:
        match expr:
            case ir.Read(variable) if variable in self.known:
                return self._default(variable, expr)
            case ir.Name(name) if name in self.names:
                return self.names[name]
            case ir.Quantifier(domain=ir.Row(variable)) if self._empty(variable):
                return ir.Const(expr.kind == "all", ir.BOOL, expr.span)
            case ir.LetIn(name, value, body):
                bound = self.expr(value)
                if isinstance(bound, ir.Const | ir.Empty):
                    self.names[name] = bound
                    return self.expr(body)
                return replace(expr, value=bound, body=self.expr(body))
            case _:
                return fold(rebuild(expr, self.expr))

    def _default(self, variable: str, expr: ir.Expr) -> ir.Expr:
        type_ = self.variables[variable].value
        value = self.known[variable]
        return ir.Empty(type_, expr.span) if isinstance(type_, ir.SetType) else ir.Const(value, type_, expr.span)

    def _empty(self, variable: str) -> bool:
        type_ = self.variables[variable].value
        return variable in self.known and self.known[variable] == ir.default(type_)

    def block(self, block: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        return tuple(s for statement in block for s in self.statement(statement))

    def statement(self, s: ir.Stmt) -> tuple[ir.Stmt, ...]:
        match s:
            case ir.If(test, then, orelse):
                decided = self.expr(test)
                if isinstance(decided, ir.Const):
                    return self.block(then if decided.value else orelse)
                arms = self.block(then), self.block(orelse)
                return (replace(s, test=decided, then=arms[0], orelse=arms[1]),) if any(arms) else ()
            case ir.For(domain=domain, body=body):
                if isinstance(domain, ir.Row) and self._empty(domain.variable):
                    return ()
                inside = self.block(body)
                return (replace(s, domain=domain_with(domain, self.expr), body=inside),) if inside else ()
            case ir.Let(value=value):
                return (replace(s, value=self.expr(value)),)
            case ir.Store(index=index, value=value):
                return (replace(s, index=tuple(map(self.expr, index)), value=self.expr(value)),)
            case ir.Obey(condition=condition):
                decided = self.expr(condition)
                return () if decided == ir.TRUE else (replace(s, condition=decided),)
            case ir.Reset(entity=entity):
                return (replace(s, entity=self.expr(entity)),)
            case ir.Require():
                return ()  # the guard has it
            case ir.CallStmt():
                raise AssertionError("calls are inlined")


def _fold(step: ir.Step, known: Mapping[str, int | None], variables: Mapping[str, ir.Variable]) -> ir.Step:
    """The step with these variables as literals, folded until nothing changes."""
    while True:
        folding = _Fold(known, variables, _literals(step))
        guard = tuple(g for g in map(folding.expr, step.guard) if g != ir.TRUE)
        value = None if step.value is None else folding.expr(step.value)
        folded = replace(step, guard=guard, effects=folding.block(step.effects), value=value)
        if folded == step:
            return folded
        step = folded


def _literals(step: ir.Step) -> dict[str, ir.Expr]:
    """Local names bound to one literal, wherever they are bound."""
    found: dict[str, set[ir.Expr]] = {}
    for s in all_statements(step.effects):
        if isinstance(s, ir.Let):
            found.setdefault(s.name, set()).add(s.value)
    return {
        name: next(iter(values))
        for name, values in found.items()
        if len(values) == 1 and all(isinstance(v, ir.Const | ir.Empty) for v in values)
    }


def fold(expr: ir.Expr) -> ir.Expr:
    """One node over folded parts."""
    match expr:
        case ir.Arith(op, a, b, type_) if isinstance(type_, ir.SetType):
            return _sets(expr, op, a, b)
        case ir.Arith(op, ir.Const(int(a)), ir.Const(int(b)), type_):
            return _numbers(expr, op, a, b)
        case ir.Arith("+", ir.Const(0), other) | ir.Arith("+" | "-" | "excess", other, ir.Const(0)):
            return other
        case ir.Arith("excess" | "*", ir.Const(0), _, type_) | ir.Arith("*", _, ir.Const(0), type_):
            return ir.Const(0, type_, expr.span)
        case ir.Arith("//", other, ir.Const(1)):
            return other
        case ir.Compare("==" | "!=" as op, ir.Empty(), ir.Empty()):
            return ir.Const(op == "==", ir.BOOL, expr.span)
        case ir.Compare("==" | "!=" as op, ir.Const(a), ir.Const(b)):
            return ir.Const((a == b) == (op == "=="), ir.BOOL, expr.span)
        case ir.Compare("subset", ir.Empty(), _):
            return ir.TRUE
        case ir.Compare("in", _, ir.Empty()):
            return ir.FALSE
        case ir.Compare(">", ir.Const(0), _):
            return ir.FALSE
        case ir.Compare("<=", ir.Const(0), _):
            return ir.TRUE
        case ir.Some(ir.Const(int(value)), type_):
            return ir.Const(value, type_, expr.span)
        case ir.IsNone(ir.Const(value)):
            return ir.Const(value is None, ir.BOOL, expr.span)
        case _:
            return simplified(expr)


def _numbers(expr: ir.Arith, op: str, a: int, b: int) -> ir.Expr:
    match op:
        case "+":
            value = a + b
        case "*":
            value = a * b
        case "min":
            value = min(a, b)
        case "max":
            value = max(a, b)
        case "excess":
            value = max(a - b, 0)
        case "//" if b:
            value = a // b
        case "%" if b:
            value = a % b
        case "-" if a >= b:
            value = a - b
        case _:
            return expr
    return ir.Const(value, expr.type, expr.span)


def _sets(expr: ir.Arith, op: str, a: ir.Expr, b: ir.Expr) -> ir.Expr:
    match op, a, b:
        case "|", ir.Empty(), other:
            return other
        case "|" | "-", other, ir.Empty():
            return other
        case "&", ir.Empty(), _:
            return ir.Empty(expr.type, expr.span)
        case "&", _, ir.Empty():
            return ir.Empty(expr.type, expr.span)
        case "-", ir.Empty(), _:
            return ir.Empty(expr.type, expr.span)
        case "span", ir.Const(int(low)), ir.Const(int(high)) if high <= low:
            return ir.Empty(expr.type, expr.span)
        case _:
            return expr


# --- what matters -----------------------------------------------------------------------------------------------------


def _needed(parts: Parts) -> frozenset[str]:
    """The variables that guards, obligations, invariants and witnesses depend on."""
    needed: set[str] = set()
    for step in parts.all():
        for expr in (*step.guard, *(() if step.value is None else (step.value,))):
            needed |= _variables(expr)
    while True:
        more = set(needed)
        for action in parts.actions:
            for name in _used(action, frozenset(needed)):
                if name.startswith("."):
                    more.add(name[1:])
        if more == needed:
            return frozenset(needed)
        needed = more


def _variables(expr: ir.Expr) -> set[str]:
    out: set[str] = set()
    for part in every(expr):
        if isinstance(part, ir.Read):
            out.add(part.variable)
        elif isinstance(part, ir.Quantifier) and isinstance(part.domain, ir.Row):
            out.add(part.domain.variable)
    return out


def _mentions(expr: ir.Expr) -> set[str]:
    """Local names, and variables with a dot before them."""
    return {p.name for p in every(expr) if isinstance(p, ir.Name)} | {f".{v}" for v in _variables(expr)}


def _used(step: ir.Step, needed: frozenset[str]) -> frozenset[str]:
    """What the statements that matter mention, through the local names that they use."""
    used: set[str] = set()
    while True:
        before = len(used)
        _use(step.effects, needed, used)
        if len(used) == before:
            return frozenset(used)


def _use(block: tuple[ir.Stmt, ...], needed: frozenset[str], used: set[str]) -> bool:
    """Add what the block mentions where it matters. Returns whether any of it matters."""
    any_ = False
    for s in block:
        match s:
            case ir.If(then=then, orelse=orelse):
                inside = _use(then, needed, used)
                matters = _use(orelse, needed, used) or inside
            case ir.For(domain=domain, body=body):
                matters = _use(body, needed, used)
                if matters and isinstance(domain, ir.Row):
                    used.add(f".{domain.variable}")
            case _:
                matters = _matters(s, needed, used)
        if matters:
            any_ = True
            for expr in expressions(s):
                used |= _mentions(expr)
    return any_


def _matters(s: ir.Stmt, needed: frozenset[str], used: set[str] | frozenset[str]) -> bool:
    match s:
        case ir.Let(name):
            return name in used
        case ir.Store(variable):
            return variable in needed
        case ir.Obey() | ir.Reset():
            return True
        case _:
            return False


def _trim(block: tuple[ir.Stmt, ...], needed: frozenset[str], used: frozenset[str]) -> tuple[ir.Stmt, ...]:
    out: list[ir.Stmt] = []
    for s in block:
        match s:
            case ir.If(then=then, orelse=orelse):
                arms = _trim(then, needed, used), _trim(orelse, needed, used)
                if any(arms):
                    out.append(replace(s, then=arms[0], orelse=arms[1]))
            case ir.For(body=body):
                inside = _trim(body, needed, used)
                if inside:
                    out.append(replace(s, body=inside))
            case ir.Obey():
                out.append(replace(s, names=()))  # for messages, which are made from whole states
            case _:
                if _matters(s, needed, used):
                    out.append(s)
    return tuple(out)
