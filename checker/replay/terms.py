"""Compile an expression for three-valued evaluation: one closure a node, bound to the containers of one machine.

A log that starts mid-run evaluates many of these, so what depends on the node alone is decided once.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias, assert_never  # Any: the containers, which `layout.shape` describes

from kvsan.checker.replay import layout
from kvsan.checker.replay.unknown import UNKNOWN, AtLeast, Contains, Value, compare, exact_sets, number, numbers, sets
from kvsan.spec.lang import ir

Environment: TypeAlias = dict[str, Value]
Term: TypeAlias = Callable[[Environment], Value]


class Known(NamedTuple):
    """What is known of the state: the containers, the bits of the members and of the variables that no sort indexes."""

    variables: Mapping[str, ir.Variable]
    state: Mapping[str, Any]
    fuzzy: Mapping[str, list[int]]
    slots: Mapping[str, int]
    sizes: Mapping[str, int]


def compile_term(expr: ir.Expr, known: Known) -> Term:
    """The value of an expression, exact (an int; an option's None is -1) or as far as it is known."""
    match expr:
        case ir.Name(name):
            return lambda env: env[name]
        case ir.Const(constant):
            value = -1 if constant is None else constant
            return lambda env: value
        case ir.Empty():
            return lambda env: 0
        case ir.Read():
            return _read(expr, known)
        case ir.Not(operand):
            return _not(compile_term(operand, known))
        case ir.And(items):
            return _junction([compile_term(i, known) for i in items], False)
        case ir.Or(items):
            return _junction([compile_term(i, known) for i in items], True)
        case ir.Compare(op, left, right):
            return _binary(EXACT[op], lambda a, b: compare(op, a, b), left, right, known)
        case ir.IsNone(operand):
            return _is_none(compile_term(operand, known))
        case ir.Arith(op, left, right, type_):
            if isinstance(type_, ir.SetType):
                return _binary(lambda a, b: exact_sets(op, a, b), lambda a, b: sets(op, a, b), left, right, known)
            return _binary(lambda a, b: number(op, a, b), lambda a, b: numbers(op, a, b), left, right, known)
        case ir.Only(member):
            return _only(compile_term(member, known))
        case ir.Cond(test, then, other):
            return _cond(compile_term(test, known), compile_term(then, known), compile_term(other, known))
        case ir.Some(operand):
            return compile_term(operand, known)
        case ir.Quantifier():
            return _quantifier(expr, known)
        case ir.LetIn(name, bound, body):
            return _let(name, compile_term(bound, known), compile_term(body, known))
        case ir.CallExpr():
            raise AssertionError("calls are inlined before replay")
        case _:
            assert_never(expr)


# --- state ------------------------------------------------------------------------------------------------------------


def _loosener(type_: ir.Type) -> Callable[[int], Value]:
    """`loosen` for one type."""
    match type_:
        case ir.NatType():
            return AtLeast
        case ir.SetType():
            return Contains
        case ir.OptionType():
            return lambda value: value if value >= 0 else UNKNOWN
        case _:
            return lambda value: value or UNKNOWN


def _read(expr: ir.Read, known: Known) -> Term:
    variable = known.variables[expr.variable]
    held = known.state[expr.variable]
    loosen = _loosener(variable.value)
    parts = [compile_term(i, known) for i in expr.index]
    bits = [_member_bits(k, known) if not variable.const else None for k in variable.keys]
    if variable.name in known.slots:
        return _read_slot(variable, held, parts, loosen, known)
    if len(parts) == 1 and layout.shape(variable) == "list":
        return _read_list(held, parts[0], bits[0], loosen)

    def read(env: Environment) -> Value:
        index = [part(env) for part in parts]
        exact = [i for i in index if isinstance(i, int) and i >= 0]
        if len(exact) < len(index):
            return UNKNOWN
        seen = 0
        for member, marks in zip(exact, bits, strict=True):
            if marks is not None:
                seen |= marks[member]
        if seen & 2:
            return UNKNOWN
        value = layout.get(variable, held, tuple(exact))
        return loosen(value) if seen else value

    return read


def _member_bits(key: ir.Type, known: Known) -> list[int] | None:
    return known.fuzzy[key.name] if isinstance(key, ir.SortType) else None


def _read_list(held: list[int], part: Term, bits: list[int] | None, loosen: Callable[[int], Value]) -> Term:
    def read(env: Environment) -> Value:
        index = part(env)
        if not isinstance(index, int) or index < 0:
            return UNKNOWN
        seen = 0 if bits is None else bits[index]
        if not seen:
            return held[index]
        return UNKNOWN if seen & 2 else loosen(held[index])

    return read


def _read_slot(
    variable: ir.Variable, held: Any, parts: list[Term], loosen: Callable[[int], Value], known: Known
) -> Term:
    slot, marks = known.slots[variable.name], known.fuzzy[""]

    def read(env: Environment) -> Value:
        index = [part(env) for part in parts]
        exact = [i for i in index if isinstance(i, int) and i >= 0]
        if len(exact) < len(index) or marks[slot] & 2:
            return UNKNOWN
        value = layout.get(variable, held, tuple(exact))
        return loosen(value) if marks[slot] else value

    return read


# --- operators --------------------------------------------------------------------------------------------------------


EXACT: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "in": lambda member, mask: member >= 0 and bool(mask >> member & 1),
    "subset": lambda small, large: not small & ~large,
}


def _binary(
    exact: Callable[[int, int], int],
    bounded: Callable[[Value, Value], Value],
    left: ir.Expr,
    right: ir.Expr,
    known: Known,
) -> Term:
    first, second = compile_term(left, known), compile_term(right, known)

    def binary(env: Environment) -> Value:
        a, b = first(env), second(env)
        return exact(a, b) if isinstance(a, int) and isinstance(b, int) else bounded(a, b)

    return binary


def _not(operand: Term) -> Term:
    def negate(env: Environment) -> Value:
        value = operand(env)
        return not value if isinstance(value, int) else UNKNOWN

    return negate


def _is_none(operand: Term) -> Term:
    def is_none(env: Environment) -> Value:
        value = operand(env)
        return value == -1 if isinstance(value, int) else False if isinstance(value, AtLeast) else UNKNOWN

    return is_none


def _only(member: Term) -> Term:
    def only(env: Environment) -> Value:
        value = member(env)
        return 1 << value if isinstance(value, int) and value >= 0 else UNKNOWN

    return only


def _junction(items: list[Term], decisive: bool) -> Term:
    """`and` (decided by a False) or `or` (decided by a True), in order."""

    def junction(env: Environment) -> Value:
        result: Value = not decisive
        for item in items:
            value = item(env)
            if not isinstance(value, int):
                result = UNKNOWN
            elif bool(value) == decisive:
                return decisive
        return result

    return junction


def _cond(test: Term, then: Term, other: Term) -> Term:
    def cond(env: Environment) -> Value:
        decided = test(env)
        if isinstance(decided, int):
            return then(env) if decided else other(env)
        a, b = then(env), other(env)
        return a if a == b and isinstance(a, int) else UNKNOWN

    return cond


def _let(name: str, bound: Term, body: Term) -> Term:
    return lambda env: body({**env, name: bound(env)})


def _quantifier(expr: ir.Quantifier, known: Known) -> Term:
    body, name, decisive = compile_term(expr.body, known), expr.name, expr.kind == "any"
    keys = _keys(expr.domain, known)

    def quantifier(env: Environment) -> Value:
        members, sure = keys(env)
        result: Value = not decisive if sure else UNKNOWN
        for member in members:
            value = body({**env, name: member})
            if not isinstance(value, int):
                result = UNKNOWN
            elif bool(value) == decisive:
                return decisive
        return result

    return quantifier


def _keys(domain: ir.Domain, known: Known) -> Callable[[Environment], tuple[list[int], bool]]:
    """The members of a domain that are known, and whether there can be no others."""
    if isinstance(domain, ir.Members):
        sort, sizes = domain.sort, known.sizes
        return lambda env: (list(range(sizes[sort])), True)
    variable, held = known.variables[domain.variable], known.state[domain.variable]
    first, marks = compile_term(domain.first, known), _member_bits(variable.keys[0], known)
    slot, rows = known.slots.get(variable.name), layout.shape(variable) == "rows"

    def keys(env: Environment) -> tuple[list[int], bool]:
        row = first(env)
        if not isinstance(row, int) or row < 0:
            return [], False
        found = sorted(held[row]) if rows else sorted(k[1] for k in held if k[0] == row)
        seen = marks[row] if marks is not None else known.fuzzy[""][slot] if slot is not None else 0
        return found, not seen

    return keys
