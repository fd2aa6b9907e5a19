"""Statements as lines of compiled Python: stores into the words `o` of the state being made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

from kvsan.checker.explore.emit_expr import Emitter, Value, homes, shift_of
from kvsan.checker.explore.layout import WIDEST_SET, WORD, Field
from kvsan.spec.lang import ir
from kvsan.spec.lang.diagnostics import Span
from kvsan.spec.lang.effects import reset_by
from kvsan.spec.lang.symbolic import size_of
from kvsan.spec.lang.walk import all_statements


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
        emit = self.emit
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
        ranged = ir.bare(field.type)
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
        if self._whole_row(loop):
            return
        emit, out = self.emit, self.emit.out
        size = size_of(loop.name_type, emit.sizes)
        key = out.fresh("k")
        first = emit.first_of(loop.domain, loop.span)
        keys = self._keys(loop, first, size) if first is not None and self._changes(loop) else ""
        emit.stains(self._words(loop.body))
        with out.block(f"for {key} in range({size})"):
            if first is not None:
                out.line(f"if not ({keys.replace('#', key) or emit.present(loop.domain, first, key)}):")
                out.line("    continue")
            emit.values[loop.name] = Value(key, size - 1)
            self.block(loop.body)

    def _keys(self, loop: ir.For, first: Value, size: int) -> str:
        """Write down which keys a row has: in a mask, or in an array where they are many. Returns the test of key #."""
        emit, out = self.emit, self.emit.out
        keys, key = out.fresh("m"), out.fresh("k")
        mask = size <= WIDEST_SET
        out.line(f"{keys} = 0" if mask else f"{keys} = words({size})")
        with out.block(f"for {key} in range({size})"):
            present = emit.present(loop.domain, first, key)
            if mask:
                out.line(f"if {present}:")
                out.line(f"    {keys} |= 1 << {key}")
            else:
                out.line(f"{keys}[{key}] = 1 if {present} else 0")
        return f"({keys} >> #) & 1" if mask else f"{keys}[#]"

    def _words(self, block: tuple[ir.Stmt, ...]) -> set[int]:
        """The words that a block may change."""
        names: set[str] = set()
        for statement in all_statements(block):
            if isinstance(statement, ir.Store):
                names.add(statement.variable)
            elif isinstance(statement, ir.Reset):
                names |= {v.name for v in reset_by(statement.sort, self.emit.variables)}
        return {word for n in names if n in self.emit.layout.fields for word in homes(self.emit.layout.fields[n])}

    # --- loops that clear or copy a whole row, as operations on its bits ----------------------------------------------

    def _whole_row(self, loop: ir.For) -> bool:
        """Write `for k in row(s.v, i): s.v[j, k] = ...` without a loop, where the value is its default or s.v[i, k]."""
        match loop:
            case ir.For(domain=ir.Row(name, first), body=(ir.Store(variable, (to, ir.Name(key))) as store,)):
                field = self.emit.layout.fields[name]
                if variable != name or key != loop.name or len(field.shape) != 2 or not field.together(1):
                    return False
                if field.bits * field.shape[1] >= WORD - 1:
                    return False
            case _:
                return False
        match store.value:
            case ir.Const() | ir.Empty() if _is_default(store.value, field) and to == first:
                self._clear_row(field, first, loop.span)
            case ir.Read(read, (origin, ir.Name(same))) if (read, origin, same) == (name, first, key):
                self._copy_row(field, first, to, loop.span)
            case ir.Const(True) if field.type == ir.BOOL:
                self._copy_row(field, first, to, loop.span)
            case _:
                return False
        return True

    def _row(self, field: Field, row: Value) -> tuple[str, str]:
        """The word of a row, to be stored into, and the shift of its first bit."""
        inner = field.entries // field.shape[0]
        if field.even:
            return self.emit.computed(field, row.text, field.even // inner, field.bits * inner)
        return str(field.chunks[0].word), shift_of(row.text, 0, field.chunks[0].offset, field.bits * inner)

    def _row_of(self, field: Field, index: ir.Expr, span: Span) -> tuple[str, str]:
        emit = self.emit
        return self._row(field, emit.below(emit.expr(index), field.shape[0], "a row is out of range", span))

    def _clear_row(self, field: Field, index: ir.Expr, span: Span) -> None:
        word, shift = self._row_of(field, index, span)
        self.emit.stains(homes(field))
        self.emit.blend(word, (1 << field.bits * field.shape[1]) - 1, shift, "0")

    def _copy_row(self, field: Field, origin: ir.Expr, to: ir.Expr, span: Span) -> None:
        """Entries of the origin that are not the default replace those of the target."""
        emit, home, width = self.emit, field.chunks[0].word, field.bits * field.shape[1]
        source, before = self._row_of(field, origin, span)
        target, after = self._row_of(field, to, span)
        row = emit.keep(Value(f"({emit.word(home, source)} >> {before}) & {(1 << width) - 1}"), "g").text
        lowest = sum(1 << n * field.bits for n in range(field.shape[1]))
        spread = " | ".join(f"{row} >> {n}" if n else row for n in range(field.bits))
        held = emit.keep(Value(f"(({spread}) & {lowest}) * {(1 << field.bits) - 1}"), "g").text
        shift = emit.keep(Value(after), "z").text
        emit.stains(homes(field))
        word = emit.words.word(emit.prefix, target)
        emit.out.line(f"{word} = {word} & ~({held} << {shift}) | {row} << {shift}")

    def _changes(self, loop: ir.For) -> bool:
        """Whether a turn may change which keys the row has for a later turn."""
        assert isinstance(loop.domain, ir.Row)
        own = ir.Name(loop.name, loop.name_type)
        for statement in all_statements(loop.body):
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
            if field.bits and inner * field.bits < WORD - 1 and field.together(1):
                word, shift = self._row(field, member)
                emit.stains(homes(field))
                emit.blend(word, (1 << inner * field.bits) - 1, shift, "0")
            else:
                key = emit.out.fresh("k")
                emit.stains(homes(field))
                with emit.out.block(f"for {key} in range({inner})"):
                    emit.put(field, Value(f"({member.text} * {inner} + {key})"), "0")


def _is_default(value: ir.Const | ir.Empty, field: Field) -> bool:
    return isinstance(value, ir.Empty) or value.value == ir.default(field.type)
