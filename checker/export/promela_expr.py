"""Expressions in Promela. A member, a choice and a bool are numbers, a set is a mask, and None is 255.

Promela has no functions and no quantifiers: the body of a quantifier, and an expression bound to a name within another,
become macros, whose parameters are the names bound around them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import assert_never

from kvsan.checker.export.bounds import Bounds, top_of
from kvsan.checker.export.names import Names
from kvsan.checker.export.subject import CannotExport
from kvsan.spec.lang import ir
from kvsan.spec.lang.symbolic import Sizes, size_of
from kvsan.spec.lang.walk import every

NONE = 255
WIDEST = {8: "byte", 15: "short", 31: "int"}
"""The members of a set by the type that holds its mask."""


@dataclass(frozen=True)
class Cell:
    """A variable. shape: members per index; an entry stands at its place in row-major order."""

    name: str
    type: ir.Type
    keys: tuple[ir.Type, ...]
    shape: tuple[int, ...]


def declared(variable: ir.Variable, sizes: Sizes) -> str:
    """The Promela type of a variable's entries. Raises CannotExport."""
    top = top_of(variable.value, sizes)
    match variable.value:
        case ir.BoolType():
            return "bool"
        case ir.SetType():
            assert top is not None
            for width, name in WIDEST.items():
                if top < 1 << width:
                    return name
            raise CannotExport(f"`{variable.name}` holds sets of more than 31 members, which no integer of SPIN can")
        case _ if top is None:
            raise CannotExport(f"`{variable.name}` has no bound")
        case ir.OptionType() if top >= NONE:
            raise CannotExport(f"`{variable.name}` has more than {NONE} values beside None: make the scope smaller")
        case _:
            return "byte" if top < 256 else "int"


@dataclass
class Expressions:
    """cells: the variables by name. choices: the macro of each name of each choice. names: what a local name is
    called. bound: names bound within the expression being written."""

    cells: Mapping[str, Cell]
    choices: Mapping[tuple[str, int], str]
    sizes: Sizes
    taken: Names
    stem: str
    names: dict[str, str] = field(default_factory=dict)
    bounds: Bounds = field(init=False)
    bound: tuple[str, ...] = ()
    macros: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.bounds = Bounds(self.sizes)

    def text(self, expr: ir.Expr) -> str:
        """An expression, in parentheses unless it is one word."""
        match expr:
            case ir.Name(name):
                return self.names[name]
            case ir.Const(value, type_):
                return self.literal(value, type_)
            case ir.Empty():
                return "0"
            case ir.Read(variable, index):
                return self.entry(self.cells[variable], index)
            case ir.Not(operand):
                inner = self.text(operand)
                return f"!({inner})" if inner.startswith("!") else f"!{inner}"  # `!!` sends to a channel
            case ir.And(items):
                return "(" + " && ".join(map(self.text, items)) + ")"
            case ir.Or(items):
                return "(" + " || ".join(map(self.text, items)) + ")"
            case ir.Compare(op, left, right):
                return self._compare(op, self.text(left), self.text(right))
            case ir.IsNone(operand):
                return f"({self.text(operand)} == None)"
            case ir.Arith("-", left, right, ir.SetType()):
                return f"({self.text(left)} & ~{self.text(right)})"
            case ir.Arith("//" | "%" as op, left, right):
                a, b = self.text(left), self.text(right)
                divided = f"({a} {'/' if op == '//' else '%'} {b})"
                return divided if isinstance(right, ir.Const) and right.value else f"({b} != 0 -> {divided} : 9999)"
            case ir.Arith(op, left, right):
                return self._arith(op, self.text(left), self.text(right))
            case ir.Only(member):
                return f"(1 << {self.text(member)})"
            case ir.Cond(test, then, other):
                return f"({self.text(test)} -> {self.text(then)} : {self.text(other)})"
            case ir.Some(operand):
                return f"some({self.text(operand)})"
            case ir.Quantifier():
                return self._quantifier(expr)
            case ir.LetIn(name, value, body):
                return self._let(name, value, body)
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
            case ir.ChoiceType(name):
                return self.choices[name, value]
            case _:
                return str(int(value))

    @staticmethod
    def _compare(op: str, a: str, b: str) -> str:
        match op:
            case "in":
                return f"(({b} >> {a}) & 1)"
            case "subset":
                return f"(({a} & ~{b}) == 0)"
            case _:
                return f"({a} {op} {b})"

    @staticmethod
    def _arith(op: str, a: str, b: str) -> str:
        match op:
            case "min":
                return f"({a} < {b} -> {a} : {b})"
            case "max":
                return f"({a} > {b} -> {a} : {b})"
            case "excess":
                return f"({a} > {b} -> {a} - {b} : 0)"
            case "span":
                return f"(((1 << {b}) - 1) & ~((1 << {a}) - 1))"
            case _:
                return f"({a} {op} {b})"

    # --- entries ------------------------------------------------------------------------------------------------------

    def entry(self, cell: Cell, index: tuple[ir.Expr, ...]) -> str:
        """An entry, to be read or assigned."""
        parts = [self._within(i, size) for i, size in zip(index, cell.shape, strict=True)]
        return self.place(cell, parts)

    @staticmethod
    def place(cell: Cell, parts: list[str]) -> str:
        if not parts:
            return cell.name
        text = parts[0]
        for part, size in zip(parts[1:], cell.shape[1:], strict=True):
            if text.isdigit() and part.isdigit():
                text = str(int(text) * size + int(part))
            else:
                text = f"{text} * {size} + {part}" if " + " not in text else f"({text}) * {size} + {part}"
        return f"{cell.name}[{text}]"

    def _within(self, index: ir.Expr, size: int) -> str:
        """An index, which is out of every range where it is out of its own."""
        text = self.text(index)
        return text if self.bounds.within(index, size) else f"below({text}, {size})"

    # --- names bound within -------------------------------------------------------------------------------------------

    def _macro(self, stem: str, names: tuple[str, ...], text: str) -> str:
        name = self.taken.new(stem)
        parameters = ", ".join(names)
        self.macros.append(f"#define {name}{f'({parameters})' if names else ''}  {text}")
        return name

    def _needed(self, expr: ir.Expr) -> tuple[str, ...]:
        """The bound names that a text made from an expression mentions."""
        mentioned = {self.names[e.name] for e in every(expr) if isinstance(e, ir.Name) and e.name in self.names}
        words = {w for m in mentioned for w in m.replace("(", " ").replace(")", " ").replace(",", " ").split()}
        return tuple(b for b in self.bound if b in words)

    def _quantifier(self, expr: ir.Quantifier) -> str:
        size = size_of(expr.name_type, self.sizes)
        before, own = self.bound, self.taken.inner().new(expr.name)
        first = expr.domain.first if isinstance(expr.domain, ir.Row) else ir.TRUE
        self.names[expr.name], self.bounds.names[expr.name] = own, size - 1
        self.bound = (*before, own)
        needed = tuple(dict.fromkeys((*self._needed(first), *self._needed(expr.body), own)))
        body = self.text(expr.body)
        if isinstance(expr.domain, ir.Row):
            present = self.present(expr.domain, own)
            body = f"(!{present} || {body})" if expr.kind == "all" else f"({present} && {body})"
        self.bound = before
        outside = [n for n in needed if n != own]
        name = self._macro(f"{self.stem}_{expr.name}", (*outside, own), body)
        turns = [f"{name}({', '.join([*outside, str(n)])})" for n in range(size)]
        empty = "1" if expr.kind == "all" else "0"
        return "(" + (" && " if expr.kind == "all" else " || ").join(turns) + ")" if turns else empty

    def present(self, domain: ir.Row, key: str) -> str:
        """Whether a row has an entry at a key that is not the default."""
        cell = self.cells[domain.variable]
        entry = self.place(cell, [self._within(domain.first, cell.shape[0]), key])
        match cell.type:
            case ir.BoolType():
                return entry
            case ir.OptionType():
                return f"({entry} != None)"
            case _:
                return f"({entry} != 0)"

    def _let(self, name: str, value: ir.Expr, body: ir.Expr) -> str:
        self.bounds.bind(name, value)
        if isinstance(value, ir.Name | ir.Const):
            self.names[name] = self.text(value)
            return self.text(body)
        needed = self._needed(value)
        macro = self._macro(f"{self.stem}_{name}", needed, self.text(value))
        self.names[name] = f"{macro}({', '.join(needed)})" if needed else macro
        return self.text(body)
