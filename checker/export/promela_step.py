"""Statements in Promela: they run one after the other, as they stand in the lowered step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import assert_never

from kvsan.checker.export.bounds import top_of
from kvsan.checker.export.promela_expr import Expressions
from kvsan.spec.lang import ir
from kvsan.spec.lang.effects import changes_row, reset_by
from kvsan.spec.lang.symbolic import size_of

MARGIN = "  "


@dataclass
class Statements:
    """variables: of the whole specification. local: gives the hidden variable of a local name. lines: what was written,
    each with its depth."""

    text: Expressions
    variables: dict[str, ir.Variable]
    local: Callable[[str], str]
    depth: int = 2
    lines: list[str] = field(default_factory=list)

    def line(self, text: str) -> None:
        self.lines.append(MARGIN * self.depth + text)

    def block(self, block: tuple[ir.Stmt, ...]) -> None:
        for statement in block:
            self.statement(statement)

    def statement(self, statement: ir.Stmt) -> None:
        match statement:
            case ir.Let(name, value):
                self._let(name, value)
            case ir.Store():
                self._store(statement)
            case ir.If(test, then, orelse):
                self._if(self.text.text(test), then, orelse)
            case ir.For():
                self._for(statement)
            case ir.Obey(rule, condition):
                self.line(f"obey({rule}, {self.text.text(condition)});")
            case ir.Reset(sort, entity):
                self._reset(sort, entity)
            case ir.Require():
                pass  # the guard has it
            case ir.CallStmt():
                raise AssertionError("calls are inlined")
            case _:
                assert_never(statement)

    def _let(self, name: str, value: ir.Expr) -> None:
        written = self.text.text(value.operand if isinstance(value, ir.Some) else value)
        own = self.local(name)
        self.text.bounds.bind(name, value)
        self.text.names[name] = own
        self.line(f"{own} = {written};")
        if isinstance(value, ir.Some):
            self.line(f"assert({own} != None);")

    def _store(self, store: ir.Store) -> None:
        cell = self.text.cells[store.variable]
        entry = self.text.entry(cell, store.index)
        if isinstance(store.value, ir.Some):
            self.line(f"{entry} = {self.text.text(store.value.operand)};")
            self.line(f"assert({entry} != None);")
            return
        value, top = self.text.text(store.value), self.text.bounds.top(store.value)
        limit = top_of(cell.type, self.text.sizes)
        assert limit is not None
        ranged = ir.bare(cell.type)
        fits = top is not None and top <= limit and not _may_be_undefined(store.value)
        if not fits and isinstance(ranged, ir.NatType | ir.SetType | ir.SortType):
            self.line(f"assert({value} <= {limit}{f' || {value} == None' if ranged != cell.type else ''});")
        self.line(f"{entry} = {value};")

    def _if(self, test: str, then: tuple[ir.Stmt, ...], orelse: tuple[ir.Stmt, ...]) -> None:
        self.line("if")
        self._arm(test, then)
        self._arm("else", orelse)
        self.line("fi;")

    def _arm(self, test: str, body: tuple[ir.Stmt, ...]) -> None:
        self.line(f":: {test} ->" if body else f":: {test}")
        self.depth += 2
        self.block(body)
        self.depth -= 2

    def _for(self, loop: ir.For) -> None:
        """A row is read before the first turn, where a turn may change which keys it has: its keys as a mask."""
        key, size = self.local(loop.name), size_of(loop.name_type, self.text.sizes)
        self.text.names[loop.name], self.text.bounds.names[loop.name] = key, size - 1
        domain, present = loop.domain, ""
        if isinstance(domain, ir.Row):
            if not isinstance(domain.first, ir.Name | ir.Const):
                first = self.local(f"row_{loop.name}")
                self.line(f"{first} = {self.text.text(domain.first)};")
                self.text.names[first] = first
                self.text.bounds.bind(first, domain.first)
                domain = ir.Row(domain.variable, ir.Name(first, domain.first.type))
            present = self.text.present(domain, key)
            if changes_row(loop):
                keys = self.local(f"keys_{loop.name}")
                each = " | ".join(f"({self.text.present(domain, str(n))} << {n})" for n in range(size))
                self.line(f"{keys} = {each or 0};")
                present = f"(({keys} >> {key}) & 1)"
        self.line(f"for ({key} : 0 .. {size - 1}) {{")
        self.depth += 1
        if present:
            self._if(present, loop.body, ())
        else:
            self.block(loop.body)
        self.depth -= 1
        self.line("}")

    def _reset(self, sort: str, entity: ir.Expr) -> None:
        member = self.text.text(entity)
        if not isinstance(entity, ir.Name | ir.Const):
            own = self.local("member")
            self.line(f"{own} = {member};")
            member = own
        for variable in reset_by(sort, self.variables):
            cell = self.text.cells.get(variable.name)
            if cell is None:
                continue
            absent = default_text(cell.type)
            if len(cell.shape) == 1:
                self.line(f"{cell.name}[{member}] = {absent};")
                continue
            inner = 1
            for size in cell.shape[1:]:
                inner *= size
            key = self.local("rest")
            self.line(f"for ({key} : 0 .. {inner - 1}) {{")
            self.line(f"{MARGIN}{cell.name}[{member} * {inner} + {key}] = {absent};")
            self.line("}")


def default_text(type_: ir.Type) -> str:
    """The default of a type, as a number; None where it may be None."""
    return "None" if isinstance(type_, ir.OptionType) else "0"


def _may_be_undefined(value: ir.Expr) -> bool:
    """Whether a value is made by `some` or a division, which are out of every range where they are undefined."""
    match value:
        case ir.Some():
            return True
        case ir.Arith("//" | "%", _, right):
            return not (isinstance(right, ir.Const) and right.value)
        case ir.Cond(_, then, other):
            return _may_be_undefined(then) or _may_be_undefined(other)
        case ir.LetIn(_, bound, body):
            return _may_be_undefined(bound) or _may_be_undefined(body)
        case _:
            return False
