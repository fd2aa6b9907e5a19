"""Expressions as lines of compiled Python over the words of one state.

Each expression becomes statements that compute its parts and one text for its value, with an upper bound where one is
known. Values: None is -1, a set is a mask, a bool a bool, all else naturals. What leaves its domain sets `bad` to the
number of its place and goes on with 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, assert_never

from kvsan.checker.explore.anywhere import anywhere
from kvsan.checker.explore.layout import WORD, Field, Layout, values_of
from kvsan.checker.explore.words import Words
from kvsan.checker.explore.writer import Writer
from kvsan.spec.lang import ir
from kvsan.spec.lang.diagnostics import Span
from kvsan.spec.lang.symbolic import Sizes, size_of


class Value(NamedTuple):
    """text: an expression without side effects. top: the largest value it can have, where that is known."""

    text: str
    top: int | None = None


@dataclass
class Places:
    """The places where something may leave its domain, numbered from `first` on."""

    first: int
    spans: list[tuple[str, Span]] = field(default_factory=list)

    def number(self, what: str, span: Span) -> int:
        if (what, span) not in self.spans:
            self.spans.append((what, span))
        return self.first + self.spans.index((what, span))


@dataclass
class Emitter:
    """prefix: the words written, `o`, or `w` where nothing is. values: local names and what stands for them.

    dirty: words of `o` that may differ from those of `w`; of an even field, only its first one is told. known: texts
    that a name already holds, and inside which blocks: the compiler would see it too, but each line costs it time.
    """

    out: Writer
    layout: Layout
    variables: Mapping[str, ir.Variable]
    constants: Mapping[str, int | None]
    sizes: Sizes
    places: Places
    prefix: str = "w"
    values: dict[str, Value] = field(default_factory=dict)
    dirty: set[int] = field(default_factory=set)
    known: dict[str, tuple[Value, tuple[int, ...]]] = field(default_factory=dict)

    # --- parts --------------------------------------------------------------------------------------------------------

    def keep(self, value: Value, stem: str = "t") -> Value:
        """The value in a name of its own."""
        if value.text.isidentifier() or value.text.isdigit():
            return value
        return self.once(value.text, stem, value.top, lambda name: self.out.line(f"{name} = {value.text}"))

    def once(self, text: str, stem: str, top: int | None, make: Callable[[str], None]) -> Value:
        """The name that holds a text; `make` writes the lines for a new one."""
        held = self.known.get(text)
        if held is not None and held[1] == tuple(self.out.inside[: len(held[1])]):
            return held[0]
        value = Value(self.out.fresh(stem), top)
        make(value.text)
        self.known[text] = value, tuple(self.out.inside)
        return value

    def stains(self, words: Collection[int]) -> None:
        """These words are about to change: what was read from them is old."""
        for word in words:
            if word in self.dirty:
                old = re.compile(rf"\bo\[?{word}\b")
                self.known = {text: held for text, held in self.known.items() if not old.search(text)}
            self.dirty.add(word)

    @property
    def words(self) -> Words:
        return Words.of(self.layout)

    def word(self, number: int, at: str = "") -> str:
        """A word, to be read. at: which one of an even field that begins with that word, as a text that begins with its
        number: `stains` looks for that."""
        return self.words.word(self.prefix if number in self.dirty else "w", at or number)

    def fail(self, condition: str, what: str, span: Span, *mend: str) -> None:
        """Where the condition holds, the step is undefined; `mend` lines let the rest go on."""
        with self.out.block(f"if {condition}"):
            self.out.line(f"bad = {self.places.number(what, span)}")
            for line in mend:
                self.out.line(line)

    def below(self, value: Value, size: int, what: str, span: Span) -> Value:
        """The value, shown to be below size."""
        if value.top is not None and value.top < size:
            return value

        def make(name: str) -> None:
            self.out.line(f"{name} = {value.text}")
            self.fail(f"{name} >= {size}", what, span, f"{name} = 0")

        return self.once(f"below {size} {value.text}", "i", size - 1, make)

    def place(self, field_: Field, index: tuple[ir.Expr, ...], span: Span) -> Value:
        """The number of an entry."""
        parts = [
            self.below(self.expr(part), size, f"an index of `{field_.name}` is out of range", span)
            for part, size in zip(index, field_.shape, strict=True)
        ]
        return self.linear(field_, parts)

    def linear(self, field_: Field, parts: list[Value]) -> Value:
        text = ""
        for part, size in zip(parts, field_.shape, strict=True):
            if text and part.text.isdigit() and text.isdigit():
                text = str(int(text) * size + int(part.text))
            else:
                text = f"({text} * {size} + {part.text})" if text else part.text
        return Value(text or "0", field_.entries - 1)

    # --- entries ------------------------------------------------------------------------------------------------------

    def get(self, field_: Field, at: Value) -> Value:
        """What an entry holds."""
        if field_.bits == 0:
            return Value("False" if field_.type == ir.BOOL else "-1" if field_.optional else "0", 0)
        mask, top = (1 << field_.bits) - 1, field_.values - 1
        raw = self._raw(field_, at)
        if field_.type == ir.BOOL:
            return self.keep(Value(f"(({raw}) & 1) != 0", 1))
        if field_.optional:
            return self.keep(Value(f"(({raw}) & {mask}) - 1", top - 1))
        return self.keep(Value(f"({raw}) & {mask}", top))

    def _raw(self, field_: Field, at: Value) -> str:
        if not at.text.isdigit() and field_.even:
            word, shift = self.computed(field_, at.text, field_.even, field_.bits)
            return f"{self.word(field_.chunks[0].word, word)} >> {shift}"
        chunks = field_.chunks
        if at.text.isdigit():
            number = int(at.text)
            chunk = next(c for c in chunks if c.first <= number < c.first + c.count)
            home = _home(field_, chunk.word)
            word = self.word(home, f"{home} + {chunk.word - home}" if field_.even else "")
            return f"{word} >> {chunk.offset + (number - chunk.first) * field_.bits}"
        entry = self.keep(at, "e").text
        word = self.word(chunks[-1].word)
        shift = shift_of(entry, chunks[-1].first, chunks[-1].offset, field_.bits)
        for chunk in reversed(chunks[:-1]):
            inside = f"{entry} < {chunk.first + chunk.count}"
            word = f"({self.word(chunk.word)} if {inside} else {word})"
            shift = f"({shift_of(entry, chunk.first, chunk.offset, field_.bits)} if {inside} else {shift})"
        return f"{word} >> {shift}"

    def computed(self, field_: Field, number: str, each: int, bits: int) -> tuple[str, str]:
        """Of an even field, the word and the shift of what has this number: entries or rows, so many in each word, of
        so many bits."""
        first, number = field_.chunks[0], self.keep(Value(number), "e").text
        nth = self.keep(Value(f"({number} // {each})"), "j").text
        shift = shift_of(f"({number} - {nth} * {each})", 0, first.offset, bits)
        return f"{first.word} + {nth}", self.keep(Value(shift), "z").text

    def put(self, field_: Field, at: Value, value: str) -> None:
        """Store a value as it is packed (an option counted from 1)."""
        if field_.bits == 0:
            return
        entry = self.keep(at, "e").text
        stored = self.keep(Value(value), "v").text
        mask, number = (1 << field_.bits) - 1, int(entry) if entry.isdigit() else -1
        chunks = [c for c in field_.chunks if number < 0 or c.first <= number < c.first + c.count]
        if field_.even and number < 0:
            word, shift = self.computed(field_, entry, field_.even, field_.bits)
            self.stains(homes(field_))
            self.blend(word, mask, shift, stored)
            return
        self.stains({_home(field_, c.word) for c in chunks})
        for n, chunk in enumerate(chunks):
            shift = shift_of(entry, chunk.first, chunk.offset, field_.bits)
            if len(chunks) == 1:
                self.blend(str(chunk.word), mask, shift, stored)
            else:
                head = "if" if n == 0 else "elif"
                test = f"{head} {entry} < {chunk.first + chunk.count}" if n < len(chunks) - 1 else "else"
                with self.out.block(test):
                    self.blend(str(chunk.word), mask, shift, stored)

    def blend(self, number: str, mask: int, shift: str, stored: str) -> None:
        """Replace the bits of a mask, at a shift, by a value."""
        word = self.words.word(self.prefix, number)
        if shift.isdigit():
            hole = str(signed(~(mask << int(shift))))
        else:
            shift = self.keep(Value(shift), "z").text
            hole = f"~({mask} << {shift})"
        self.out.line(f"{word} = {word} & {hole}" + ("" if stored == "0" else f" | {stored} << {shift}"))

    def packed(self, value: Value, type_: ir.Type) -> str:
        """A value as `put` takes it."""
        match type_:
            case ir.BoolType():
                return {"True": "1", "False": "0"}.get(value.text, f"(1 if {value.text} else 0)")
            case ir.OptionType():
                return "0" if value.text == "-1" else f"({value.text} + 1)"
            case _:
                return value.text

    # --- expressions --------------------------------------------------------------------------------------------------

    def expr(self, expr: ir.Expr) -> Value:
        """The value of an expression; the lines it needs are written."""
        match expr:
            case ir.Name(name):
                return self.values[name]
            case ir.Const(value):
                return constant(value)
            case ir.Empty():
                return Value("0", 0)
            case ir.Read(variable, index, _, span):
                if variable in self.constants and not index:
                    return constant(self.constants[variable])
                field_ = self.layout.fields[variable]
                return self.get(field_, self.place(field_, index, span))
            case ir.Not(operand):
                return Value(f"(not {self.expr(operand).text})", 1)
            case ir.And(items):
                return self._junction(items, True)
            case ir.Or(items):
                return self._junction(items, False)
            case ir.Compare(op, left, right):
                return self._compare(op, self.expr(left), self.expr(right))
            case ir.IsNone(operand):
                return Value(f"({self.expr(operand).text} < 0)", 1)
            case ir.Arith(op, left, right, type_, span):
                a, b = self.expr(left), self.expr(right)
                return self._sets(op, a, b, type_) if isinstance(type_, ir.SetType) else self._numbers(op, a, b, span)
            case ir.Only(member):
                return Value(f"(1 << {self.expr(member).text})")
            case ir.Cond(test, then, other):
                return self._cond(test, then, other)
            case ir.Some(operand, _, span):
                return self._some(self.expr(operand), span)
            case ir.Quantifier():
                return self._quantifier(expr)
            case ir.LetIn(name, bound, body):
                self.values[name] = self.keep(self.expr(bound), "l")
                return self.expr(body)
            case ir.CallExpr():
                raise AssertionError("calls are inlined")
            case _:
                assert_never(expr)

    def _junction(self, items: tuple[ir.Expr, ...], conjunction: bool) -> Value:
        name = self.out.fresh("c")
        depth = self.out.indent
        for n, item in enumerate(items):
            value = self.expr(item).text
            self.out.line(f"{name} = {value}")
            if n < len(items) - 1:
                self.out.line(f"if {name}:" if conjunction else f"if not {name}:")
                self.out.enter()
        self.out.leave(depth)
        return Value(name, 1)

    def _compare(self, op: str, a: Value, b: Value) -> Value:
        match op:
            case "in":
                return Value(f"((({b.text}) >> {a.text}) & 1 != 0)", 1)
            case "subset":
                return Value(f"({a.text} & ~{b.text} == 0)", 1)
            case _:
                return Value(f"({a.text} {op} {b.text})", 1)

    def _numbers(self, op: str, a: Value, b: Value, span: Span) -> Value:
        both = a.top is not None and b.top is not None
        match op:
            case "+":
                return Value(f"({a.text} + {b.text})", a.top + b.top if both else None)  # type: ignore[operator]  # both
            case "*":
                return Value(f"({a.text} * {b.text})", a.top * b.top if both else None)  # type: ignore[operator]  # both
            case "-":
                return Value(f"({a.text} - {b.text})", a.top)
            case "excess":
                return Value(f"max({a.text} - {b.text}, 0)", a.top)
            case "min":
                return Value(
                    f"min({a.text}, {b.text})", min(x for x in (a.top, b.top) if x is not None) if both else None
                )
            case "max":
                return Value(f"max({a.text}, {b.text})", max(a.top, b.top) if both else None)  # type: ignore[type-var]
            case "//" | "%":
                return self._division(op, a, b, span)
            case _:
                raise AssertionError(op)

    def _division(self, op: str, a: Value, b: Value, span: Span) -> Value:
        if b.text.isdigit() and int(b.text) > 0:
            divisor = int(b.text)
        else:
            divisor = 0
            name = self.out.fresh("d")
            self.out.line(f"{name} = {b.text}")
            self.fail(f"{name} == 0", "a division by zero", span, f"{name} = 1")
            b = Value(name, b.top)
        if divisor and divisor & (divisor - 1) == 0:  # naturals: a shift or a mask, which needs no correction of signs
            text = f"({a.text} >> {divisor.bit_length() - 1})" if op == "//" else f"({a.text} & {divisor - 1})"
        else:
            text = f"({a.text} {op} {b.text})"
        if op == "//":
            return Value(text, None if a.top is None else a.top // max(divisor, 1))
        return Value(text, divisor - 1 if divisor else a.top)

    def _sets(self, op: str, a: Value, b: Value, type_: ir.SetType) -> Value:
        top = None if type_.element is None or type_.element == ir.NAT else values_of(type_, self.sizes) - 1
        match op:
            case "|":
                return Value(f"({a.text} | {b.text})", top)
            case "&":
                return Value(f"({a.text} & {b.text})", top)
            case "-":
                return Value(f"({a.text} & ~{b.text})", top)
            case "span":
                low, high = f"(1 << {a.text}) - 1", f"(1 << {b.text}) - 1"
                return Value(f"(({high}) & ~({low}))", None if b.top is None else (1 << b.top) - 1)
            case _:
                raise AssertionError(op)

    def _cond(self, test: ir.Expr, then: ir.Expr, other: ir.Expr) -> Value:
        decided = self.expr(test)
        name = self.out.fresh("c")
        with self.out.block(f"if {decided.text}"):
            first = self.expr(then)
            self.out.line(f"{name} = {first.text}")
        with self.out.block("else"):
            second = self.expr(other)
            self.out.line(f"{name} = {second.text}")
        known = first.top is not None and second.top is not None
        return Value(name, max(first.top or 0, second.top or 0) if known else None)

    def _some(self, option: Value, span: Span) -> Value:
        def make(name: str) -> None:
            self.out.line(f"{name} = {option.text}")
            self.fail(f"{name} < 0", "`some` of None", span, f"{name} = 0")

        return self.once(f"some {option.text}", "x", option.top, make)

    def _quantifier(self, expr: ir.Quantifier) -> Value:
        at_once = anywhere(expr, self)
        if at_once is not None:
            return Value(at_once, 1)
        name, key, every = self.out.fresh("q"), self.out.fresh("k"), expr.kind == "all"
        first = self.first_of(expr.domain, expr.span)
        self.out.line(f"{name} = {every}")
        with self.out.block(f"for {key} in range({size_of(expr.name_type, self.sizes)})"):
            self.values[expr.name] = Value(key, size_of(expr.name_type, self.sizes) - 1)
            if first is not None:
                self.out.line(f"if not ({self.present(expr.domain, first, key)}):")
                self.out.line("    continue")
            body = self.expr(expr.body).text
            with self.out.block(f"if not {body}" if every else f"if {body}"):
                self.out.line(f"{name} = {not every}")
                self.out.line("break")
        return Value(name, 1)

    # --- rows ---------------------------------------------------------------------------------------------------------

    def first_of(self, domain: ir.Domain, span: Span) -> Value | None:
        """The first index of a row, shown to be in range; None where the domain is a whole sort."""
        if isinstance(domain, ir.Members):
            return None
        size = self.layout.fields[domain.variable].shape[0]
        return self.keep(self.below(self.expr(domain.first), size, "a row is out of range", span), "f")

    def present(self, domain: ir.Domain, first: Value, key: str) -> str:
        """Whether the row has an entry there that is not the default."""
        assert isinstance(domain, ir.Row)
        field_ = self.layout.fields[domain.variable]
        at = self.linear(field_, [first, Value(key)])
        value = self.get(field_, at).text
        return value if field_.type == ir.BOOL else f"{value} >= 0" if field_.optional else f"{value} != 0"


def homes(field: Field) -> set[int]:
    """The words that a store into a field makes dirty."""
    return {_home(field, c.word) for c in field.chunks}


def _home(field: Field, word: int) -> int:
    return field.chunks[0].word if field.even else word


def constant(value: int | None) -> Value:
    """A literal."""
    if value is None:
        return Value("-1", -1)
    return Value(str(value), int(value))


def signed(bits: int) -> int:
    """The signed number with these low 64 bits."""
    bits &= (1 << WORD) - 1
    return bits - (1 << WORD) if bits >> (WORD - 1) else bits


def shift_of(entry: str, first: int, offset: int, bits: int) -> str:
    if entry.isdigit():
        return str(offset + (int(entry) - first) * bits)
    base = offset - first * bits
    scaled = entry if bits == 1 else f"{entry} * {bits}"
    return f"({scaled} + {base})" if base > 0 else f"({scaled} - {-base})" if base < 0 else f"({scaled})"
