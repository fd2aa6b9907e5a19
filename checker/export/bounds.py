"""How large a value can be: what needs no check to lie in its range.

A member and a choice count as their numbers, a set as its mask, and None not at all.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kvsan.spec.lang import ir
from kvsan.spec.lang.symbolic import Sizes, size_of


def top_of(type_: ir.Type, sizes: Sizes) -> int | None:
    """The largest number that stands for a value of a type, None aside; None where there is no bound."""
    match type_:
        case ir.OptionType(inner):
            return top_of(inner, sizes)
        case ir.SetType(element):
            return None if element is None else (1 << size_of(element, sizes)) - 1
        case ir.NatType(None) | ir.NoneType() | ir.BadType():
            return None
        case _:
            return size_of(type_, sizes) - 1


@dataclass
class Bounds:
    """names: the most that a local name can be; None where that is not known."""

    sizes: Sizes
    names: dict[str, int | None] = field(default_factory=dict)

    def bind(self, name: str, value: ir.Expr) -> None:
        """A name gets a value; it may have had another one on another path."""
        top = self.top(value)
        self.names[name] = _most(self.names[name], top) if name in self.names else top

    def within(self, index: ir.Expr, size: int) -> bool:
        """Whether an index is sure to be one of so many, where it is defined."""
        top = self.top(index)
        return top is not None and top < size

    def top(self, expr: ir.Expr) -> int | None:
        """The most that the number of a defined value can be, where that is known."""
        match expr:
            case ir.Name(name, type_):
                known = self.names.get(name)
                return top_of(type_, self.sizes) if known is None else known
            case ir.Const(value):
                return 0 if value is None else int(value)
            case ir.Empty():
                return 0
            case ir.Read(type=type_):
                return top_of(type_, self.sizes)
            case ir.Some(operand):  # undefined: it is out of every range
                return self.top(operand)
            case ir.Cond(_, then, other):
                return _most(self.top(then), self.top(other))
            case ir.Arith(op, left, right):
                return self._arith_top(op, self.top(left), self.top(right), right)
            case ir.Only(member):
                top = self.top(member)
                return None if top is None else (2 << top) - 1
            case ir.LetIn(body=body):
                return self.top(body)
            case _:
                return 1  # a condition

    @staticmethod
    def _arith_top(op: str, a: int | None, b: int | None, right: ir.Expr) -> int | None:
        match op:
            case "-" | "excess":
                return a
            case "min":
                return b if a is None else a if b is None else min(a, b)
            case "//":
                return a // right.value if a is not None and isinstance(right, ir.Const) and right.value else a
            case "%":
                return right.value - 1 if isinstance(right, ir.Const) and right.value else a
            case "&":
                return b if a is None else a if b is None else min(a, b)
            case _ if a is None or b is None:
                return None
            case "+":
                return a + b
            case "*":
                return a * b
            case "max":
                return max(a, b)
            case "|":
                return (1 << max(a, b).bit_length()) - 1
            case "span":
                return (1 << b) - 1
            case _:
                raise AssertionError(op)


def _most(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else max(a, b)
