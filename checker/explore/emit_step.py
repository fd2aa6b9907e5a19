"""Statements as lines of compiled Python: stores into the words `o0`, `o1`, ... of the state being made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

from kvsan.checker.explore.emit_expr import Emitter, Value, constant
from kvsan.checker.explore.layout import Field, values_of
from kvsan.spec.lang import ir
from kvsan.spec.lang.effects import reset_by
from kvsan.spec.lang.symbolic import size_of


@dataclass
class StepEmitter:
    """number: the number of an obligation among all of the specification, None where it is not judged here."""

    emit: Emitter
    number: Callable[[ir.Obey], int | None]
    lints: frozenset[str]

    def block(self, block: tuple[ir.Stmt, ...]) -> None:
        for statement in block:
            self.statement(statement)

    def statement(self, statement: ir.Stmt) -> None:
        emit, out = self.emit, self.emit.out
        match statement:
            case ir.Let(name, value):
                self._let(name, emit.expr(value))
            case ir.Store():
                self._store(statement)
            case ir.If(test, then, orelse):
                self._if(emit.expr(test), then, orelse)
            case ir.For():
                self._for(statement)
            case ir.Obey():
                self._obey(statement)
            case ir.Reset(sort, entity):
                self._reset(sort, emit.expr(entity))
            case ir.Require():
                pass  # the guard has it
            case ir.CallStmt():
                raise AssertionError("calls are inlined")
            case _:
                assert_never(statement)
        del out

    def _let(self, name: str, value: Value) -> None:
        """A local name may be bound in both arms of an `if`, so it is a variable of the generated code too."""
        self.emit.out.line(f"l_{name} = {value.text}")
        known = self.emit.values.get(name)
        top = value.top
        if known is not None and known.text == f"l_{name}":
            top = None if known.top is None or top is None else max(top, known.top)
        self.emit.values[name] = Value(f"l_{name}", top)

    def _store(self, store: ir.Store) -> None:
        emit = self.emit
        field = emit.layout.fields[store.variable]
        value = emit.expr(store.value)
        at = emit.place(field, store.index, store.span)
        value = self._fitting(value, field, store)
        emit.put(field, at, emit.packed(value, field.type))

    def _fitting(self, value: Value, field: Field, store: ir.Store) -> Value:
        """The value, shown to be one that the variable can have."""
        emit = self.emit
        top = field.values - (2 if field.optional else 1)
        ranged = field.type.inner if isinstance(field.type, ir.OptionType) else field.type
        if not isinstance(ranged, ir.NatType | ir.SetType) or (value.top is not None and value.top <= top):
            return value
        name = emit.out.fresh("v")
        emit.out.line(f"{name} = {value.text}")
        emit.fail(f"{name} > {top}", f"`{field.name}` gets a value out of its range", store.span, f"{name} = 0")
        return Value(name, top)

    def _if(self, test: Value, then: tuple[ir.Stmt, ...], orelse: tuple[ir.Stmt, ...]) -> None:
        out = self.emit.out
        with out.block(f"if {test.text}"):
            self.block(then)
        if orelse:
            with out.block("else"):
                self.block(orelse)

    def _for(self, loop: ir.For) -> None:
        """A row is read before the first turn: its keys as a mask."""
        emit, out = self.emit, self.emit.out
        size = size_of(loop.name_type, emit.sizes)
        key = out.fresh("k")
        first = emit.first_of(loop.domain, loop.span)
        keys = ""
        if first is not None and self._changes(loop):
            keys = out.fresh("m")
            out.line(f"{keys} = 0")
            with out.block(f"for {key} in range({size})"):
                present = emit.present(loop.domain, first, key)
                out.line(f"if {present}:")
                out.line(f"    {keys} |= 1 << {key}")
        with out.block(f"for {key} in range({size})"):
            if first is not None:
                out.line(f"if not ({f'({keys} >> {key}) & 1' if keys else emit.present(loop.domain, first, key)}):")
                out.line("    continue")
            emit.values[loop.name] = Value(key, size - 1)
            self.block(loop.body)

    def _changes(self, loop: ir.For) -> bool:
        """Whether a turn may change which keys the row has for a later turn."""
        assert isinstance(loop.domain, ir.Row)
        own = ir.Name(loop.name, loop.name_type)
        for statement in _all(loop.body):
            match statement:
                case ir.Store(variable, (first, second, *_)) if variable == loop.domain.variable:
                    if (first, second) != (loop.domain.first, own):
                        return True
                case ir.Reset():
                    return True
                case _:
                    pass
        return False

    def _obey(self, obey: ir.Obey) -> None:
        number = self.number(obey)
        if number is None:
            return
        out = self.emit.out
        holds = self.emit.expr(obey.condition).text
        out.line(f"judged[{number}] += 1")
        with out.block(f"if not {holds}"):
            out.line(f"mark(fail_at, fail_code, {number}, at, code)")
            if obey.rule not in self.lints:
                out.line("broken = True")

    def _reset(self, sort: str, member: Value) -> None:
        emit = self.emit
        member = emit.keep(member, "r")
        for variable in reset_by(sort, emit.variables):
            field = emit.layout.fields.get(variable.name)
            if field is None:
                continue
            inner = field.entries // field.shape[0]
            if inner * field.bits < 63 and len(field.chunks) == 1:
                chunk = field.chunks[0]
                word, mask = f"{emit.prefix}{chunk.word}", (1 << inner * field.bits) - 1
                emit.out.line(f"{word} &= ~({mask} << ({member.text} * {inner * field.bits} + {chunk.offset}))")
            else:
                key = emit.out.fresh("k")
                with emit.out.block(f"for {key} in range({inner})"):
                    emit.put(field, Value(f"({member.text} * {inner} + {key})"), "0")


def _all(block: tuple[ir.Stmt, ...]) -> list[ir.Stmt]:
    from kvsan.spec.lang.walk import all_statements

    return list(all_statements(block))


__all__ = ["StepEmitter", "constant", "values_of"]
