"""What a stretch of a step's body may name, and how types fit."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace

from kvsan.spec.lang import ir
from kvsan.spec.lang.diagnostics import Span
from kvsan.spec.lang.source import defined_name
from kvsan.spec.lang.world import Head, World

NOTHING = ir.Const(0, ir.BAD)  # what stands for an expression that was reported


@dataclass(frozen=True)
class Env:
    """names: locals in scope and their types. present: option-typed names known not to be None here."""

    world: World
    head: Head
    names: dict[str, ir.Type] = field(default_factory=dict)
    present: frozenset[str] = frozenset()

    def span(self, node: ast.AST) -> Span:
        return self.head.module.span(node)

    def error(self, code: str, message: str, node: ast.AST, expected: str = "", fix: str = "") -> None:
        self.world.report.add(code, message, self.span(node), expected, fix)

    def knowing(self, names: frozenset[str]) -> Env:
        """The same scope where these names are known not to be None; bindings stay shared."""
        return replace(self, present=self.present | names)

    def defined(self, name: str) -> str:
        """A name of the module as it is called where it is defined."""
        return defined_name(self.world.modules, self.head.module, name)

    def inner(self) -> Env:
        """A copy whose new bindings stay inside."""
        return replace(self, names=dict(self.names))


def fits(actual: ir.Type, wanted: ir.Type) -> bool:
    """Whether a value of one type may stand where another is wanted. A natural fits every range."""
    match actual, wanted:
        case (ir.BadType(), _) | (_, ir.BadType()):
            return True
        case ir.NoneType(), ir.OptionType() | ir.NoneType():
            return True
        case ir.OptionType(a), ir.OptionType(b):
            return fits(a, b)
        case _, ir.OptionType(b):
            return fits(actual, b)
        case ir.NatType(), ir.NatType():
            return True
        case ir.SetType(a), ir.SetType(b):
            return a is None or b is None or fits(a, b)
        case _:
            return actual == wanted


def comparable(left: ir.Type, right: ir.Type) -> bool:
    """Whether == between two types can ever be meant."""
    return fits(ir.bare(left), right) or fits(ir.bare(right), left)


def join(a: ir.Type, b: ir.Type) -> ir.Type | None:
    """The type of a value that is one or the other; None where there is none."""
    match a, b:
        case (ir.BadType(), _) | (_, ir.BadType()):
            return ir.BAD
        case (ir.NoneType(), other) | (other, ir.NoneType()):
            return other if isinstance(other, ir.OptionType | ir.NoneType) else ir.OptionType(other)
        case (ir.OptionType(), _) | (_, ir.OptionType()):
            inner = join(ir.bare(a), ir.bare(b))
            return inner and ir.OptionType(inner)
        case ir.NatType(), ir.NatType():
            return a if a == b else ir.NAT
        case ir.SetType(x), ir.SetType():
            return b if x is None else a if fits(a, b) else None
        case _:
            return a if a == b else None


def present_if(expr: ir.Expr, truth: bool) -> frozenset[str]:
    """The names that are not None where the expression has this truth value."""
    match expr:
        case ir.IsNone(ir.Name(name)) if not truth:
            return frozenset((name,))
        case ir.Not(operand):
            return present_if(operand, not truth)
        case ir.And(items) if truth:
            return frozenset().union(*(present_if(i, True) for i in items))
        case ir.Or(items) if not truth:
            return frozenset().union(*(present_if(i, False) for i in items))
        case _:
            return frozenset()
