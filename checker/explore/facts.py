"""What the tests passed so far have shown of expressions, until something that they read is stored to."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice

from kvsan.spec.lang import ir
from kvsan.spec.lang.walk import every, rebuild

KNOWN = ir.Name | ir.Read | ir.IsNone | ir.Compare
"""The expressions of which something is remembered."""
SAME = {"==": True, "<=": True, ">=": True, "!=": False, "<": False, ">": False}
"""How a value compares with itself."""
MOST = 24
"""Parts of an expression that is remembered."""


@dataclass(frozen=True)
class Meaning:
    """An expression over what its local names stand for, and the variables that it reads."""

    expr: ir.Expr
    reads: frozenset[str]


@dataclass
class Facts:
    """values: the literals that expressions are, with what these read. meanings: of local names. Both without what was
    stored to since."""

    values: dict[ir.Expr, tuple[ir.Const, frozenset[str]]] = field(default_factory=dict)
    meanings: dict[str, Meaning] = field(default_factory=dict)

    def copy(self) -> Facts:
        return Facts(dict(self.values), dict(self.meanings))

    def join(self, other: Facts) -> Facts:
        """What both know."""
        return Facts(
            {e: v for e, v in self.values.items() if other.values.get(e) == v},
            {n: m for n, m in self.meanings.items() if other.meanings.get(n) == m},
        )

    def forget(self, variables: set[str]) -> None:
        """These are stored to."""
        self.values = {e: v for e, v in self.values.items() if not v[1] & variables}
        self.meanings = {n: m for n, m in self.meanings.items() if not m.reads & variables}

    def bind(self, name: str, value: ir.Expr) -> None:
        """A local name is bound."""
        meaning = self._meaning(value)
        if meaning is not None:
            self.meanings[name] = meaning

    def shown(self, test: ir.Expr, truth: bool) -> None:
        """A test came out like this."""
        match test, truth:
            case (ir.And(items), True) | (ir.Or(items), False):
                for item in items:
                    self.shown(item, truth)
            case ir.Not(operand), _:
                self.shown(operand, not truth)
            case (ir.Compare("==", left, ir.Const(value)), True) | (ir.Compare("!=", left, ir.Const(value)), False):
                self._is(left, ir.Const(value, left.type))
                self._is(test, ir.Const(truth, ir.BOOL))
            case ir.IsNone(operand), True:
                self._is(operand, ir.Const(None, operand.type))
                self._is(test, ir.TRUE)
            case _:
                self._is(test, ir.Const(truth, ir.BOOL))

    def _is(self, expr: ir.Expr, value: ir.Const) -> None:
        meaning = self._meaning(expr)
        if meaning is not None and isinstance(meaning.expr, KNOWN):
            self.values[meaning.expr] = value, meaning.reads

    def of(self, expr: ir.Expr) -> ir.Expr:
        """The literal that an expression is, or itself."""
        if not isinstance(expr, KNOWN) or not (self.values or self.meanings):
            return expr
        meaning = self._meaning(expr)
        match meaning:
            case None:
                return expr
            case Meaning(ir.Compare(op, ir.Read() as left, right)) if left == right and op in SAME:
                return ir.Const(SAME[op], ir.BOOL, expr.span)
            case _:
                return self.values[meaning.expr][0] if meaning.expr in self.values else expr

    def _meaning(self, expr: ir.Expr) -> Meaning | None:
        """What an expression means; None where it is too large, or binds names."""
        meaning = self._over(expr)
        parts = list(islice(every(meaning), MOST + 1))
        if len(parts) > MOST or any(isinstance(e, ir.LetIn | ir.Quantifier) for e in parts):
            return None
        return Meaning(meaning, frozenset(e.variable for e in parts if isinstance(e, ir.Read)))

    def _over(self, expr: ir.Expr) -> ir.Expr:
        if isinstance(expr, ir.Name):
            return self.meanings[expr.name].expr if expr.name in self.meanings else expr
        return rebuild(expr, self._over)
