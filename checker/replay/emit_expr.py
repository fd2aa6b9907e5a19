"""Python source for one expression of the lowered form, over the containers of `layout`.

A read that is sure to be evaluated is kept in a temporary and used again until something may have changed it. The
first use is written as a mark and becomes `(T1 := read)` in the end only if there was a second.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import assert_never

from kvsan.checker.replay.layout import default, encode, shape
from kvsan.spec.lang import ir
from kvsan.spec.lang.walk import every


@dataclass(frozen=True)
class RowOf:
    """The dict that holds one row; it is never replaced, only its entries are."""

    variable: str
    first: ir.Expr


Key = ir.Read | RowOf


def reads_of(key: Key) -> frozenset[str]:
    """The variables whose change makes a kept value stale."""
    if isinstance(key, RowOf):
        return frozenset(e.variable for e in every(key.first) if isinstance(e, ir.Read))
    return frozenset(e.variable for e in every(key) if isinstance(e, ir.Read))


@dataclass
class Temporaries:
    """Kept reads. kept: expression to temporary, where it is valid now."""

    kept: dict[Key, int] = field(default_factory=dict)
    code: list[str] = field(default_factory=list)
    uses: list[int] = field(default_factory=list)
    enabled: bool = True

    def use(self, key: Key) -> str:
        """The temporary that holds a read now, or ''."""
        number = self.kept.get(key) if self.enabled else None
        if number is None:
            return ""
        self.uses[number] += 1
        return f"T{number}"

    def keep(self, key: Key, code: str) -> str:
        """The code of a read, marked as a possible temporary."""
        if not self.enabled:
            return code
        number = len(self.code)
        self.code.append(code)
        self.uses.append(0)
        self.kept[key] = number
        return f"\0{number}\0"

    def forget(self, variables: set[str]) -> None:
        """Drop what a change of these variables makes stale."""
        self.kept = {k: n for k, n in self.kept.items() if not reads_of(k) & variables}

    def resolve(self, text: str) -> str:
        """The text with every mark replaced."""

        def replace(found: re.Match[str]) -> str:
            number = int(found[1])
            code = self.resolve(self.code[number])
            return f"(T{number} := {code})" if self.uses[number] else code

        return re.sub("\0(\\d+)\0", replace, text)

    @contextmanager
    def only_inside(self) -> Iterator[None]:
        """What is kept inside is not sure to be evaluated, so it is forgotten after."""
        before = dict(self.kept)
        yield
        self.kept = {k: n for k, n in before.items() if k in self.kept and self.kept[k] == n}


def local(name: str) -> str:
    """A local name of the specification as a Python name; capitals belong to the emitter."""
    return f"u_{name}" if name[:1].isupper() or name.startswith("u_") else name


@dataclass
class ExprWriter:
    variables: Mapping[str, ir.Variable]
    temporaries: Temporaries = field(default_factory=Temporaries)
    scratch: int = 0

    def fresh(self) -> str:
        self.scratch += 1
        return f"W{self.scratch}"

    def expr(self, expr: ir.Expr) -> str:
        """Source of an expression: an atom or parenthesized."""
        match expr:
            case ir.Name(name):
                return local(name)
            case ir.Const(value):
                return str(value) if isinstance(value, bool) else str(encode(value)) if value is not None else "-1"
            case ir.Empty():
                return "0"
            case ir.Read():
                return self.read(expr)
            case ir.Not(ir.Compare("==", a, b)):
                return f"({self.expr(a)} != {self.expr(b)})"
            case ir.Not(ir.IsNone(operand)):
                return f"({self.expr(operand)} >= 0)"
            case ir.Not(operand):
                return f"(not {self.expr(operand)})"
            case ir.And(items) | ir.Or(items):
                return self._junction(items, " and " if isinstance(expr, ir.And) else " or ")
            case ir.Compare(op, a, b):
                return self._compare(op, a, b)
            case ir.IsNone(operand):
                return f"({self.expr(operand)} < 0)"
            case ir.Arith(op, a, b, type_):
                return self._set(op, a, b) if isinstance(type_, ir.SetType) else self._number(op, a, b)
            case ir.Only(member):
                return f"(1 << {self.expr(member)})"
            case ir.Cond(test, then, other):
                return self._cond(test, then, other)
            case ir.Some(operand):
                return self.expr(operand)
            case ir.Quantifier():
                return self._quantifier(expr)
            case ir.LetIn(name, value, body):
                bound = f"({local(name)} := {self.expr(value)})"
                return f"(({bound} or 1) and {self.expr(body)})"  # the left side is never false
            case ir.CallExpr():
                raise AssertionError("calls are inlined before emission")
            case _:
                assert_never(expr)

    # --- state --------------------------------------------------------------------------------------------------------

    def row(self, variable: str, first: ir.Expr) -> str:
        """Source of the dict that holds a row."""
        key = RowOf(variable, first)
        return self.temporaries.use(key) or self.temporaries.keep(key, f"V_{variable}[{self.expr(first)}]")

    def key(self, index: tuple[ir.Expr, ...]) -> str:
        parts = [self.expr(i) for i in index]
        return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"

    def read(self, read: ir.Read) -> str:
        if held := self.temporaries.use(read):
            return held
        variable = self.variables[read.variable]
        fallback = default(variable.value)
        match shape(variable):
            case "cell":
                code = f"V_{read.variable}[0]"
            case "list":
                code = f"V_{read.variable}[{self.key(read.index)}]"
            case "rows":
                code = f"{self.row(read.variable, read.index[0])}.get({self.key(read.index[1:])}, {fallback})"
            case _:
                code = f"V_{read.variable}.get({self.key(read.index)}, {fallback})"
        return self.temporaries.keep(read, code)

    # --- operators ----------------------------------------------------------------------------------------------------

    def _junction(self, items: tuple[ir.Expr, ...], joint: str) -> str:
        parts = [self.expr(items[0])]
        with self.temporaries.only_inside():
            parts += [self.expr(i) for i in items[1:]]
        return f"({joint.join(parts)})"

    def _cond(self, test: ir.Expr, then: ir.Expr, other: ir.Expr) -> str:
        decided = self.expr(test)
        with self.temporaries.only_inside():
            first = self.expr(then)
        with self.temporaries.only_inside():
            second = self.expr(other)
        return f"({first} if {decided} else {second})"

    def _compare(self, op: str, a: ir.Expr, b: ir.Expr) -> str:
        left, right = self.expr(a), self.expr(b)
        if op == "in":
            if isinstance(a, ir.Name | ir.Const) and not isinstance(a.type, ir.OptionType):
                return f"({right} >> {left} & 1)"
            name = self.fresh()
            return f"(({name} := {left}) >= 0 and {right} >> {name} & 1)"
        if op == "subset":
            return f"(not {left} & ~{right})"
        return f"({left} {op} {right})"

    def _atom(self, code: str) -> tuple[str, str]:
        """(first use, later uses) of a value used twice."""
        if re.fullmatch(r"-?\w+", code):
            return code, code
        if found := re.fullmatch("\0(\\d+)\0", code):
            self.temporaries.uses[int(found[1])] += 1
            return code, f"T{found[1]}"
        name = self.fresh()
        return f"({name} := {code})", name

    def _number(self, op: str, a: ir.Expr, b: ir.Expr) -> str:
        left, right = self.expr(a), self.expr(b)
        if op in ("+", "-", "*"):
            return f"({left} {op} {right})"
        if op in ("//", "%"):
            if isinstance(b, ir.Const) and b.value:
                return f"({left} {op} {right})"
            first, again = self._atom(right)
            return f"({left} {op} {again} if {first} else 0)"
        (left, left_again), (right, right_again) = self._atom(left), self._atom(right)
        match op:
            case "min":
                return f"({left_again} if {left} < {right} else {right_again})"
            case "max":
                return f"({left_again} if {left} > {right} else {right_again})"
            case "excess":
                return f"({left_again} - {right_again} if {left} > {right} else 0)"
            case _:
                raise AssertionError(op)

    def _set(self, op: str, a: ir.Expr, b: ir.Expr) -> str:
        for one, other in ((a, b), (b, a)):
            if op == "&" and isinstance(other, ir.Arith) and other.op == "span" and other.left == ir.Const(0, ir.NAT):
                return self._below(one, other.right)
        left, right = self.expr(a), self.expr(b)
        match op:
            case "|" | "&":
                return f"({left} {op} {right})"
            case "-":
                return f"({left} & ~{right})"
            case "span" if left == "0":
                return f"((1 << {right}) - 1)"
            case "span":
                (left, left_again), (right, right_again) = self._atom(left), self._atom(right)
                return f"((1 << {right_again}) - (1 << {left_again}) if {left} < {right} else 0)"
            case _:
                raise AssertionError(op)

    def _below(self, group: ir.Expr, high: ir.Expr) -> str:
        """`group & span(0, high)`: a branch may have 100,000 tokens, and a block has few slots."""
        (left, again), (top, top_again) = self._atom(self.expr(group)), self._atom(self.expr(high))
        masked = f"{again} & (1 << {top_again}) - 1"
        return f"({masked} if {left} >> {top} else {again})"

    def _quantifier(self, expr: ir.Quantifier) -> str:
        enabled, self.temporaries.enabled = self.temporaries.enabled, False  # a generator has its own scope
        domain = self.domain(expr.domain)
        body = self.expr(expr.body)
        self.temporaries.enabled = enabled
        function = "ALL" if expr.kind == "all" else "EXISTS"
        return f"{function}({body} for {local(expr.name)} in {domain})"

    def domain(self, domain: ir.Domain) -> str:
        """Source of a snapshot of a loop's range."""
        if isinstance(domain, ir.Members):
            return f"range(N[{domain.sort!r}])"
        if shape(self.variables[domain.variable]) == "rows":
            return f"SORTED({self.row(domain.variable, domain.first)})"
        first = self.fresh()
        return (
            f"[K[1] for {first} in [{self.expr(domain.first)}] for K in SORTED(V_{domain.variable}) if K[0] == {first}]"
        )
