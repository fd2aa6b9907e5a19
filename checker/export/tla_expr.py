"""Expressions in TLA+. A choice is a string, a bool a BOOLEAN, a set a set, and None a model value.

A text is a list of lines, whose columns matter: a bulleted list is broken into its bullets where it is too wide.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, assert_never

from kvsan.checker.export.bounds import Bounds
from kvsan.checker.export.names import Names
from kvsan.spec.lang import ir
from kvsan.spec.lang.symbolic import size_of

WIDTH = 100
ATOM, SUM, FACT, OPEN = range(4)
"""How tightly a text holds together: one word; arithmetic; a comparison; a list or what reaches as far as it can."""


class Text(NamedTuple):
    """The lines of an expression, and how tightly they hold together."""

    lines: list[str]
    hold: int = ATOM

    @property
    def one(self) -> str:
        """On one line; only for texts that are."""
        assert len(self.lines) == 1, self.lines
        return self.lines[0]


def one(text: str, hold: int = ATOM) -> Text:
    return Text([text], hold)


def after(head: str, lines: list[str], tail: str = "") -> list[str]:
    """Lines behind a head, their columns kept."""
    margin = " " * len(head)
    out = [head + lines[0], *(margin + line for line in lines[1:])]
    out[-1] += tail
    return out


def held(text: Text, most: int) -> list[str]:
    """The lines, in parentheses where they hold together too loosely."""
    return text.lines if text.hold <= most else after("(", text.lines, ")")


def fits(*parts: list[str]) -> bool:
    return all(len(p) == 1 for p in parts) and sum(len(p[0]) for p in parts) <= WIDTH


@dataclass
class Expressions:
    """domains: the set of each type of an index. members: the constants of each sort. bounds: how large values can be.
    taken: no name is used twice in one scope, which TLA+ forbids. now: the text of each variable's value at this point.
    helpers: operators that were used. names: the text of each local name."""

    variables: Mapping[str, ir.Variable]
    domains: Mapping[ir.Type, str]
    members: Mapping[str, list[str]]
    bounds: Bounds
    taken: Names
    now: dict[str, str]
    helpers: set[str]
    names: dict[str, str] = field(default_factory=dict)

    def line(self, expr: ir.Expr, most: int = ATOM) -> str:
        """On one line, however long."""
        return " ".join(line.strip() for line in held(self.text(expr, wide=True), most))

    def text(self, expr: ir.Expr, wide: bool = False) -> Text:
        """wide: on one line."""
        match expr:
            case ir.Name(name):
                return one(self.names[name])
            case ir.Const(value, type_):
                return one(self.literal(value, type_))
            case ir.Empty():
                return one("{}")
            case ir.Read(variable, index):
                return one(self.entry(self.now[variable], index))
            case ir.Not(operand):
                return self._not(operand, wide)
            case ir.And(items):
                return self._junction("/\\", items, wide)
            case ir.Or(items):
                return self._junction("\\/", items, wide)
            case ir.Compare(op, left, right):
                return self._infix(COMPARE[op], left, right, SUM, FACT, wide)
            case ir.IsNone(operand):
                return one(f"{self.line(operand)} = None", FACT)
            case ir.Arith():
                return self._arith(expr, wide)
            case ir.Only(member):
                return one(f"{{{self.line(member, OPEN)}}}")
            case ir.Cond(test, then, other):
                return self._cond(test, then, other, wide)
            case ir.Some(operand):
                self.helpers.add("Some")
                return one(f"Some({self.line(operand, OPEN)})")
            case ir.Quantifier():
                return self._quantifier(expr, wide)
            case ir.LetIn(name, value, body):
                return self._let(name, value, body, wide)
            case ir.CallExpr():
                raise AssertionError("calls are inlined")
            case _:
                assert_never(expr)

    def literal(self, value: int | None, type_: ir.Type) -> str:
        match type_:
            case _ if value is None:
                return "None"
            case ir.OptionType(inner):
                return self.literal(value, inner)
            case ir.BoolType():
                return "TRUE" if value else "FALSE"
            case ir.ChoiceType(names=names):
                return f'"{names[value]}"'
            case ir.SortType(name):  # a constant of the scope
                return self.members[name][value]
            case _:
                return str(value)

    def entry(self, function: str, index: tuple[ir.Expr, ...]) -> str:
        return function + "".join(f"[{self.line(i, OPEN)}]" for i in index)

    def stored(self, variable: ir.Variable, index: tuple[ir.Expr, ...]) -> str:
        """The place of a store. TLA+ does nothing where an index is no key: there is to be no value then."""
        parts = []
        for part, key in zip(index, variable.keys, strict=True):
            text = self.line(part, OPEN)
            if not self.bounds.within(part, size_of(key, self.bounds.sizes)):
                self.helpers.add("Within")
                text = f"Within({text}, {self.domains[key]})"
            parts.append(f"[{text}]")
        return "".join(parts)

    def _not(self, operand: ir.Expr, wide: bool) -> Text:
        match operand:
            case ir.Not(inner):
                return self.text(inner, wide)
            case ir.Const(value):
                return one(self.literal(not value, ir.BOOL))
            case ir.IsNone(inner):
                return one(f"{self.line(inner)} # None", FACT)
            case ir.Compare(op, left, right) if op in OPPOSITE:
                return self.text(ir.Compare(OPPOSITE[op], left, right), wide)
            case ir.Compare("in", left, right):
                return one(f"{self.line(left, SUM)} \\notin {self.line(right, SUM)}", FACT)
            case _:
                return Text(after("~", held(self.text(operand, wide), ATOM)), FACT)

    def _junction(self, sign: str, items: tuple[ir.Expr, ...], wide: bool) -> Text:
        flat = [held(self.text(i, True), FACT) for i in items]
        line = [f" {sign} ".join(" ".join(p) for p in flat)]
        if wide or fits(line):
            return Text(line, OPEN)
        bullets = [after(f"{sign} ", self.text(i).lines) for i in items]
        return Text([line for b in bullets for line in b], OPEN)

    def _infix(self, sign: str, left: ir.Expr, right: ir.Expr, parts: int, whole: int, wide: bool) -> Text:
        line = [f"{self.line(left, parts)} {sign} {self.line(right, parts)}"]
        if wide or fits(line):
            return Text(line, whole)
        sides = held(self.text(left), parts), held(self.text(right), parts)
        return Text([*sides[0], *after(f"{sign} ", sides[1])], whole)

    def _arith(self, expr: ir.Arith, wide: bool) -> Text:
        match expr.op:
            case "min" | "max" | "excess" as op:
                name = op.capitalize()
                self.helpers.add(name)
                return one(f"{name}({self.line(expr.left, OPEN)}, {self.line(expr.right, OPEN)})")
            case "span":
                high = self.line(expr.right)
                last = str(int(high) - 1) if high.isdigit() and high != "0" else f"{high} - 1"
                return one(f"({self.line(expr.left)} .. {last})")
            case op:
                sign = "\\" if op == "-" and isinstance(expr.type, ir.SetType) else ARITH[op]
                return self._infix(sign, expr.left, expr.right, ATOM, SUM, wide)

    def _cond(self, test: ir.Expr, then: ir.Expr, other: ir.Expr, wide: bool) -> Text:
        flat = f"IF {self.line(test, OPEN)} THEN {self.line(then, OPEN)} ELSE {self.line(other, OPEN)}"
        if self.line(then, OPEN) == self.line(other, OPEN):
            return self.text(then, wide)
        if wide or fits([flat]):
            return one(flat, OPEN)
        lines = after("IF ", self.text(test).lines)
        lines += after("THEN ", self.text(then).lines) + after("ELSE ", self.text(other).lines)
        return Text(lines, OPEN)

    def domain(self, domain: ir.Domain, key: ir.Type) -> str:
        if isinstance(domain, ir.Members):
            return self.domains[key]
        self.helpers.add("Row")
        row = self.entry(self.now[domain.variable], (domain.first,))
        return f"Row({row}, {self.default(self.variables[domain.variable].value)})"

    def present(self, domain: ir.Row, entry: str) -> str:
        """Whether an entry of a row is not the default."""
        type_ = self.variables[domain.variable].value
        return entry if type_ == ir.BOOL else f"{entry} # {self.default(type_)}"

    def default(self, type_: ir.Type) -> str:
        return "{}" if isinstance(type_, ir.SetType) else self.literal(ir.default(type_), type_)

    def bind(self, name: str) -> str:
        """A new name in this step for a local name."""
        wanted = name if any(c.isalpha() for c in name) else f"value{name}"
        self.names[name] = self.taken.new(wanted)
        return self.names[name]

    def _quantifier(self, expr: ir.Quantifier, wide: bool) -> Text:
        domain = self.domain(expr.domain, expr.name_type)
        sign = "\\A" if expr.kind == "all" else "\\E"
        head = f"{sign} {self.bind(expr.name)} \\in {domain} :"
        body = self.text(expr.body, wide)
        if wide or fits([head], body.lines):
            return one(f"{head} {body.one}", OPEN)
        return Text([head, *after("  ", body.lines)], OPEN)

    def _let(self, name: str, value: ir.Expr, body: ir.Expr, wide: bool) -> Text:
        bound = self.text(value, wide)
        self.bounds.bind(name, value)
        if bound.hold == ATOM and len(bound.lines) == 1:
            self.names[name] = bound.one
            return self.text(body, wide)
        head = after(f"LET {self.bind(name)} == ", bound.lines)
        rest = self.text(body, wide)
        if wide or fits(head, rest.lines):
            return one(f"{head[0]} IN {rest.one}", OPEN)
        return Text([*head, *after("IN  ", rest.lines)], OPEN)


COMPARE = {
    "==": "=",
    "!=": "#",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
    "in": "\\in",
    "subset": "\\subseteq",
}
OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
ARITH = {"+": "+", "-": "-", "*": "*", "//": "\\div", "%": "%", "|": "\\cup", "&": "\\cap"}
