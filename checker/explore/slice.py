"""Leave out of a design what no verdict depends on, so that only states that differ in earnest differ.

Obligations that are not asked for go. Constants of the scope, and what is at rest between steps (`rest`), become
literals, and branches that cannot run go. Then every variable that no guard, obligation, invariant or witness depends
on, through stores too, goes with the stores to it. What goes is not judged for its domain either: an index out of
range, or a `some` of None, is found where a verdict depends on it, and elsewhere only by walks, which perform whole
steps (`simulate`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from kvsan.checker.explore.rest import at_rest, settled
from kvsan.spec.lang import ir
from kvsan.spec.lang.walk import every, expressions


@dataclass(frozen=True)
class Parts:
    """The steps that a search runs: what may change a state, and what is asked of each. counted: facts that say what
    a variable counts, which matter where the variable does."""

    actions: tuple[ir.Step, ...]
    invariants: tuple[ir.Step, ...]
    witnesses: tuple[ir.Step, ...]
    counted: tuple[ir.Step, ...] = ()

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
    parts = _each(parts, lambda s: _asked(s, rules))
    resting = at_rest(parts.actions, known, idle, variables)
    parts = _each(parts, lambda s: settled(s, known, resting, variables)[0])
    parts = replace(parts, actions=tuple(a for a in parts.actions if ir.FALSE not in a.guard))
    needed = _needed(parts)
    parts = _each(parts, lambda s: replace(s, effects=_trim(s.effects, needed, _used(s, needed))))
    return parts, tuple(v for v in variables.values() if v.name in needed)


def _each(parts: Parts, change: Callable[[ir.Step], ir.Step]) -> Parts:
    return Parts(
        *(tuple(map(change, steps)) for steps in (parts.actions, parts.invariants, parts.witnesses, parts.counted))
    )


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


# --- what matters -----------------------------------------------------------------------------------------------------


def _needed(parts: Parts) -> frozenset[str]:
    """The variables that guards, obligations, invariants and witnesses depend on."""
    needed: set[str] = set()
    for step in parts.all():
        for expr in (*step.guard, *(() if step.value is None else (step.value,))):
            needed |= _variables(expr)
    return _closed(needed, parts.actions)


def sources(step: ir.Step, names: Iterable[str]) -> frozenset[str]:
    """The variables on which these depend after a step that breaks no rule, through its stores and what decides
    them."""
    free = _asked(step, frozenset())
    return _closed({*names, *(v for expr in free.guard for v in _variables(expr))}, (free,))


def _closed(needed: set[str], actions: Iterable[ir.Step]) -> frozenset[str]:
    while True:
        more = set(needed)
        for action in actions:
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
