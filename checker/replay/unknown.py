"""Three-valued evaluation: what a condition is worth where the past of some of its members is unknown.

A counter of a member with an unknown past is a lower bound, a set may have more members, a default says nothing; any
other value is what the log showed and exact. A condition is True or False only where that decides it, else None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeAlias, assert_never

from kvsan.checker.replay.layout import default
from kvsan.spec.lang import ir


class AtLeast(NamedTuple):
    """A natural of which a lower bound is known."""

    bound: int


class Contains(NamedTuple):
    """A set of which some members are known, as a mask."""

    mask: int


class _Unknown(NamedTuple):
    """A value of which nothing is known."""


UNKNOWN = _Unknown()
Value: TypeAlias = int | AtLeast | Contains | _Unknown  # an int is exact
Environment: TypeAlias = Mapping[str, Value]

# what the evaluator needs of a machine: the concrete value at a variable's indexes, the OR of the indexed members'
# bits, the known keys of a row, and the size of a sort
Reader: TypeAlias = Callable[[str, tuple[int, ...]], tuple[int, int]]
RowReader: TypeAlias = Callable[[str, int], tuple[list[int], int]]
Sizes: TypeAlias = Mapping[str, int]


class Known(NamedTuple):
    """What is known of the state."""

    read: Reader
    row: RowReader
    sizes: Sizes


def judge(expr: ir.Expr, env: Environment, known: Known) -> bool | None:
    """True, False, or None where what is known does not decide."""
    value = evaluate(expr, env, known)
    return bool(value) if isinstance(value, int) else None


def evaluate(expr: ir.Expr, env: Environment, known: Known) -> Value:
    """The value of an expression, exact (an int; an option's None is -1) or as far as it is known."""
    match expr:
        case ir.Name(name):
            return env[name]
        case ir.Const(constant):
            return -1 if constant is None else constant
        case ir.Empty():
            return 0
        case ir.Read():
            return _read(expr, env, known)
        case ir.Not(operand):
            value = evaluate(operand, env, known)
            return not value if isinstance(value, int) else UNKNOWN
        case ir.And(items):
            return _all((evaluate(i, env, known) for i in items), False)
        case ir.Or(items):
            return _all((evaluate(i, env, known) for i in items), True)
        case ir.Compare(op, left, right):
            return _compare(op, evaluate(left, env, known), evaluate(right, env, known))
        case ir.IsNone(operand):
            value = evaluate(operand, env, known)
            return value == -1 if isinstance(value, int) else False if isinstance(value, AtLeast) else UNKNOWN
        case ir.Arith(op, left, right, type_):
            a, b = evaluate(left, env, known), evaluate(right, env, known)
            return _sets(op, a, b) if isinstance(type_, ir.SetType) else _numbers(op, a, b)
        case ir.Only(member):
            value = evaluate(member, env, known)
            return 1 << value if isinstance(value, int) and value >= 0 else UNKNOWN
        case ir.Cond(test, then, other):
            return _cond(evaluate(test, env, known), then, other, env, known)
        case ir.Some(operand):
            return evaluate(operand, env, known)
        case ir.Quantifier():
            return _quantifier(expr, env, known)
        case ir.LetIn(name, bound, body):
            return evaluate(body, {**env, name: evaluate(bound, env, known)}, known)
        case ir.CallExpr():
            raise AssertionError("calls are inlined before replay")
        case _:
            assert_never(expr)


def loosen(value: int, type_: ir.Type) -> Value:
    """What a stored value of a member with an unknown past is worth."""
    match type_:
        case ir.NatType():
            return AtLeast(value)
        case ir.SetType():
            return Contains(value)
        case ir.OptionType():
            return value if value >= 0 else UNKNOWN
        case _:
            return value if value else UNKNOWN


def firm(value: Value, type_: ir.Type) -> int:
    """What may be stored of a value for a member with an unknown past, so that `loosen` gives no more than is sure."""
    match value:
        case int():
            return value
        case AtLeast(bound) if isinstance(type_, ir.NatType):
            return bound
        case Contains(mask) if isinstance(type_, ir.SetType):
            return mask
        case _:
            return default(type_)


def meet(old: int, new: int, type_: ir.Type) -> int:
    """What is sure of a value that may be the old or the new one."""
    match type_:
        case ir.NatType():
            return min(old, new)
        case ir.SetType():
            return old & new
        case _:
            return old if old == new else default(type_)


def _read(expr: ir.Read, env: Environment, known: Known) -> Value:
    index = [evaluate(i, env, known) for i in expr.index]
    exact = [i for i in index if isinstance(i, int)]
    if len(exact) < len(index) or any(i < 0 for i in exact):
        return UNKNOWN
    value, bits = known.read(expr.variable, tuple(exact))
    if bits & 2:
        return UNKNOWN
    return loosen(value, expr.type) if bits else value


def _all(values: Iterable[Value], decisive: bool) -> Value:
    """`and` (decided by a False) or `or` (decided by a True) over values, in order."""
    result: Value = not decisive
    for value in values:
        if not isinstance(value, int):
            result = UNKNOWN
        elif bool(value) == decisive:
            return decisive
    return result


def _cond(test: Value, then: ir.Expr, other: ir.Expr, env: Environment, known: Known) -> Value:
    if isinstance(test, int):
        return evaluate(then if test else other, env, known)
    a, b = evaluate(then, env, known), evaluate(other, env, known)
    return a if a == b and isinstance(a, int) else UNKNOWN


def _quantifier(expr: ir.Quantifier, env: Environment, known: Known) -> Value:
    unsure = False
    if isinstance(expr.domain, ir.Members):
        keys = list(range(known.sizes[expr.domain.sort]))
    else:
        first = evaluate(expr.domain.first, env, known)
        if not isinstance(first, int):
            return UNKNOWN
        keys, bits = known.row(expr.domain.variable, first)
        unsure = bits != 0
    decisive = expr.kind == "any"
    result = _all((evaluate(expr.body, {**env, expr.name: k}, known) for k in keys), decisive)
    return UNKNOWN if unsure and result == (not decisive) else result


# --- operators --------------------------------------------------------------------------------------------------------


def _compare(op: str, a: Value, b: Value) -> Value:
    if isinstance(a, int) and isinstance(b, int):
        return _exact(op, a, b)
    match op, a, b:
        case ("!=", _, _):
            same = _compare("==", a, b)
            return not same if isinstance(same, int) else UNKNOWN
        case ("==", AtLeast(n), int(m)) | ("==", int(m), AtLeast(n)):
            return False if m < n else UNKNOWN
        case ("==", Contains(s), int(t)) | ("==", int(t), Contains(s)):
            return False if s & ~t else UNKNOWN
        case (">" | ">=", AtLeast(n), int(m)):
            return True if n > m or (op == ">=" and n == m) else UNKNOWN
        case ("<" | "<=", AtLeast(n), int(m)):
            return False if n > m or (op == "<" and n == m) else UNKNOWN
        case ("<" | "<=" | ">" | ">=", int(), AtLeast()):
            return _compare({"<": ">", "<=": ">=", ">": "<", ">=": "<="}[op], b, a)
        case ("in", int(x), Contains(s)):
            return True if x >= 0 and s >> x & 1 else UNKNOWN
        case ("subset", int(s), Contains(t)):
            return True if not s & ~t else UNKNOWN
        case ("subset", Contains(s), int(t)):
            return False if s & ~t else UNKNOWN
        case _:
            return UNKNOWN


def _exact(op: str, a: int, b: int) -> bool:
    match op:
        case "==":
            return a == b
        case "!=":
            return a != b
        case "<":
            return a < b
        case "<=":
            return a <= b
        case ">":
            return a > b
        case ">=":
            return a >= b
        case "in":
            return a >= 0 and bool(b >> a & 1)
        case "subset":
            return not a & ~b
        case _:
            raise AssertionError(op)


def _numbers(op: str, a: Value, b: Value) -> Value:
    if isinstance(a, int) and isinstance(b, int):
        return number(op, a, b)
    low = [v if isinstance(v, int) else v.bound if isinstance(v, AtLeast) else 0 for v in (a, b)]
    match op:
        case "+" | "*" | "max":
            return AtLeast(number(op, *low))
        case "min":
            for exact, other in ((a, low[1]), (b, low[0])):
                if isinstance(exact, int) and exact <= other:
                    return exact
            return AtLeast(min(low))
        case "-" | "excess" if isinstance(b, int):
            return AtLeast(max(0, low[0] - b))
        case "-" | "excess" if isinstance(a, int) and a <= low[1]:
            return 0
        case "//" if isinstance(b, int) and b > 0:
            return AtLeast(low[0] // b)
        case _:
            return AtLeast(0)


def number(op: str, a: int, b: int) -> int:
    """Exact arithmetic on naturals; an undefined division gives 0 (plain Python raises, the log goes on)."""
    match op:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "//":
            return a // b if b else 0
        case "%":
            return a % b if b else 0
        case "min":
            return min(a, b)
        case "max":
            return max(a, b)
        case "excess":
            return max(a - b, 0)
        case _:
            raise AssertionError(op)


def _sets(op: str, a: Value, b: Value) -> Value:
    if isinstance(a, int) and isinstance(b, int):
        if op == "span":
            return (1 << b) - (1 << a) if b > a else 0
        return a | b if op == "|" else a & b if op == "&" else a & ~b
    if op == "span":
        return Contains(0)
    low = [v if isinstance(v, int) else v.mask if isinstance(v, Contains) else 0 for v in (a, b)]
    match op:
        case "|":
            return Contains(low[0] | low[1])
        case "&":
            for exact, other in ((a, low[1]), (b, low[0])):
                if isinstance(exact, int) and not exact & ~other:
                    return exact
            return Contains(low[0] & low[1])
        case "-" if isinstance(b, int):
            return Contains(low[0] & ~b)
        case _:
            return 0 if isinstance(a, int) and not a & ~low[1] else Contains(0)
