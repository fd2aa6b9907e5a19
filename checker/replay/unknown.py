"""Three-valued evaluation: what a condition is worth where the past of some of its members is unknown.

A counter of a member with an unknown past is a lower bound, a set may have more members, a default says nothing; any
other value is what the log showed and exact. A condition is True or False only where that decides it, else None.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

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


def as_bool(value: Value) -> bool | None:
    """True, False, or None where what is known does not decide."""
    return bool(value) if isinstance(value, int) else None


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


# --- operators --------------------------------------------------------------------------------------------------------


def compare(op: str, a: Value, b: Value) -> Value:
    """== != < <= > >= `in` `subset` where not both sides are exact, as far as the bounds decide."""
    match op, a, b:
        case ("!=", _, _):
            same = compare("==", a, b)
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
            return compare({"<": ">", "<=": ">=", ">": "<", ">=": "<="}[op], b, a)
        case ("in", int(x), Contains(s)):
            return True if x >= 0 and s >> x & 1 else UNKNOWN
        case ("subset", int(s), Contains(t)):
            return True if not s & ~t else UNKNOWN
        case ("subset", Contains(s), int(t)):
            return False if s & ~t else UNKNOWN
        case _:
            return UNKNOWN


def numbers(op: str, a: Value, b: Value) -> Value:
    """Arithmetic on naturals where not both are exact, as far as the bounds decide."""
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


def exact_sets(op: str, a: int, b: int) -> int:
    """The operators on masks, and the mask of the naturals a .. b-1."""
    if op == "span":
        return (1 << b) - (1 << a) if b > a else 0
    return a | b if op == "|" else a & b if op == "&" else a & ~b


def sets(op: str, a: Value, b: Value) -> Value:
    """| & - and `span` where not both sides are exact, as far as the masks decide."""
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
