"""Check that no subtraction of naturals can go below zero: a test that makes it safe must dominate it.

What tests have shown is kept as facts `a >= b` and `a > b` about expressions, forgotten when a variable in them is
stored to. A local name and the expression it was bound to share their facts until then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kvsan.spec.lang import ir
from kvsan.spec.lang.diagnostics import Report
from kvsan.spec.lang.effects import reset_by
from kvsan.spec.lang.walk import children, every, expressions


class Fact(NamedTuple):
    """left op right, op one of `>=`, `>` and `is` (a local name and what it was bound to)."""

    op: str
    left: ir.Expr
    right: ir.Expr


Facts = frozenset[Fact]
NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
ONE = ir.Const(1, ir.NAT)


def check_subtraction(
    steps: Mapping[str, ir.Step], variables: Mapping[str, ir.Variable], texts: Mapping[str, list[str]], report: Report
) -> None:
    """Report every `a - b` on naturals that no test makes safe. texts: source lines per file, for the remedy."""
    checker = _Checker(steps, variables, texts, report)
    for step in steps.values():
        facts = checker.block(step.body, frozenset())
        if step.result is not None:
            checker.expr(step.result, facts)


def shown_by(expr: ir.Expr, truth: bool) -> Facts:
    """What an expression shows where it has this truth value."""
    match expr:
        case ir.Not(operand):
            return shown_by(operand, not truth)
        case ir.And(items) if truth:
            return frozenset().union(*(shown_by(i, True) for i in items))
        case ir.Or(items) if not truth:
            return frozenset().union(*(shown_by(i, False) for i in items))
        case ir.Compare(op, a, b) if op in NEGATED and isinstance(a.type, ir.NatType):
            return _comparison(op if truth else NEGATED[op], a, b)
        case _:
            return frozenset()


def _comparison(op: str, a: ir.Expr, b: ir.Expr) -> Facts:
    match op:
        case ">" | ">=":
            return frozenset((Fact(op, a, b),))
        case "<" | "<=":
            return frozenset((Fact(">" if op == "<" else ">=", b, a),))
        case "==":
            return frozenset((Fact(">=", a, b), Fact(">=", b, a)))
        case _:
            zero = [x for x, y in ((a, b), (b, a)) if isinstance(y, ir.Const) and y.value == 0]
            return frozenset(Fact(">=", x, ONE) for x in zero)


def _same(expr: ir.Expr, facts: Facts) -> set[ir.Expr]:
    found = {expr}
    for fact in facts:
        if fact.op == "is" and expr in (fact.left, fact.right):
            found |= {fact.left, fact.right}
    return found


def is_safe(a: ir.Expr, b: ir.Expr, facts: Facts) -> bool:
    """Whether a >= b follows from the facts, or from the form of a and b."""
    lefts, rights = _same(a, facts), _same(b, facts)
    if lefts & rights:
        return True
    if any(f.op != "is" and f.left in lefts and f.right in rights for f in facts):
        return True
    match a, b:
        case ir.Arith("max", x, y), _ if b in (x, y):
            return True
        case _, ir.Arith("min", x, y) if a in (x, y):
            return True
        case ir.Arith("+", x, y), _ if x in rights or y in rights:
            return True
        case _:
            pass
    if not (isinstance(b, ir.Const) and isinstance(b.value, int)):
        return False
    need = b.value
    bounds = [
        f.right.value + (f.op == ">")
        for f in facts
        if _bounds(f, lefts) and isinstance(f.right, ir.Const) and f.right.value is not None
    ]
    if isinstance(a, ir.Const) and a.value is not None:
        bounds.append(a.value)
    if isinstance(a, ir.Arith) and a.op in ("+", "max"):
        bounds += [x.value for x in (a.left, a.right) if isinstance(x, ir.Const) and x.value is not None]
    return need == 0 or any(bound >= need for bound in bounds)


def _bounds(fact: Fact, lefts: set[ir.Expr]) -> bool:
    return fact.op != "is" and fact.left in lefts


class _Checker:
    def __init__(
        self,
        steps: Mapping[str, ir.Step],
        variables: Mapping[str, ir.Variable],
        texts: Mapping[str, list[str]],
        report: Report,
    ) -> None:
        self.steps, self.variables, self.texts, self.report = steps, variables, texts, report
        self.written: dict[str, frozenset[str]] = {}

    def writes(self, block: tuple[ir.Stmt, ...]) -> frozenset[str]:
        found: set[str] = set()
        for statement in block:
            match statement:
                case ir.Store(variable):
                    found.add(variable)
                case ir.Reset(sort):
                    found |= {v.name for v in reset_by(sort, self.variables)}
                case ir.If(_, then, orelse):
                    found |= self.writes(then) | self.writes(orelse)
                case ir.For(body=body):
                    found |= self.writes(body)
                case ir.CallStmt(name):
                    if name not in self.written:
                        self.written[name] = self.writes(self.steps[name].body)
                    found |= self.written[name]
                case _:
                    pass
        return frozenset(found)

    def block(self, block: tuple[ir.Stmt, ...], facts: Facts) -> Facts:
        for statement in block:
            facts = self.statement(statement, facts)
        return facts

    def statement(self, statement: ir.Stmt, facts: Facts) -> Facts:
        for expr in expressions(statement):
            self.expr(expr, facts)
        match statement:
            case ir.Let(name, value):
                return facts | {Fact("is", ir.Name(name, value.type), value)}
            case ir.Require(condition):
                return facts | shown_by(condition, True)
            case ir.If(test, then, orelse):
                first = self.block(then, facts | shown_by(test, True))
                second = self.block(orelse, facts | shown_by(test, False))
                return first & second
            case ir.For(body=body):
                facts = _without(facts, self.writes(body))
                self.block(body, facts)
                return facts
            case _:
                return _without(facts, self.writes((statement,)))

    def expr(self, expr: ir.Expr, facts: Facts) -> None:
        match expr:
            case ir.And(items) | ir.Or(items):
                for item in items:
                    self.expr(item, facts)
                    facts |= shown_by(item, isinstance(expr, ir.And))
            case ir.Cond(test, then, other):
                self.expr(test, facts)
                self.expr(then, facts | shown_by(test, True))
                self.expr(other, facts | shown_by(test, False))
            case _:
                for part in children(expr):
                    self.expr(part, facts)
                if isinstance(expr, ir.Arith) and expr.op == "-" and expr.type == ir.NAT:
                    self.subtraction(expr, facts)

    def subtraction(self, expr: ir.Arith, facts: Facts) -> None:
        if is_safe(expr.left, expr.right, facts):
            return
        a, b = self.text(expr.left), self.text(expr.right)
        self.report.add(
            "below-zero",
            f"`{a} - {b}` may go below zero",
            expr.span,
            f"a test before it that shows {a} >= {b}",
            f"write excess({a}, {b}), or guard it with `{a} >= {b}`",
        )

    def text(self, expr: ir.Expr) -> str:
        span = expr.span
        lines = self.texts.get(span.file, [])
        if 0 < span.line <= len(lines) and span.line == span.end_line:
            return lines[span.line - 1][span.column : span.end_column]
        return "it"


def _without(facts: Facts, variables: frozenset[str]) -> Facts:
    if not variables:
        return facts
    return frozenset(f for f in facts if not _reads(f.left, variables) and not _reads(f.right, variables))


def _reads(expr: ir.Expr, variables: frozenset[str]) -> bool:
    return any(
        (isinstance(e, ir.Read) and e.variable in variables)
        or (isinstance(e, ir.CallExpr))  # a helper may read anything
        for e in every(expr)
    )
