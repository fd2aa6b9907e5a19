"""Statements in TLA+: the values that variables have one after the other become definitions of a LET.

A definition is evaluated only where it is used, so the arms of an `if` are written side by side, and a value that is
undefined on the other path does no harm.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from kvsan.checker.export.pointwise import is_pointwise
from kvsan.checker.export.tla_expr import ATOM, FACT, OPEN, Expressions, Text, after, fits, held
from kvsan.checker.export.tla_let import NONE, Check, Definition, let, record, shown, tidy, verdict
from kvsan.spec.lang import ir
from kvsan.spec.lang.effects import reset_by
from kvsan.spec.lang.walk import all_statements


@dataclass
class Statements:
    """A block: what it defines, and what it checks, in order. path: what led here."""

    text: Expressions
    variables: Mapping[str, ir.Variable]
    kept: frozenset[str]
    defined: list[Definition] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    path: tuple[str, ...] = ()

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
                self._if(test, then, orelse)
            case ir.For():
                self._for(statement)
            case ir.Obey(rule, condition):
                self._check(self.text.text(ir.Not(condition)).lines, f'"{rule}"')
            case ir.Reset(sort, entity):
                self._reset(sort, self.text.line(entity, OPEN))
            case ir.Require():
                pass  # the guard has it
            case ir.CallStmt():
                raise AssertionError("calls are inlined")
            case _:
                assert_never(statement)

    def _check(self, failed: list[str], rule: str) -> None:
        """On this path, something is broken where it failed."""
        lines = [f"/\\ {p}" for p in self.path]
        if not lines:
            lines = failed
        elif failed != ["TRUE"]:
            lines += after("/\\ ", failed)
        self.checks.append(Check(lines, rule))

    def _define(self, name: str, text: Text) -> str:
        self.defined.append(Definition(name, text.lines, text.hold))
        return name

    def _let(self, name: str, value: ir.Expr) -> None:
        text = self.text.text(value)
        self.text.bounds.bind(name, value)
        if isinstance(value, ir.Name | ir.Const | ir.Empty):
            self.text.names[name] = text.one
        else:
            self._define(self.text.bind(name), text)

    def _next(self, variable: str) -> str:
        """A name for the next value of a variable."""
        n = 1
        while f"{variable}_{n}" in self.text.taken.taken:
            n += 1
        return self.text.taken.new(f"{variable}_{n}")

    def _store(self, store: ir.Store) -> None:
        before = self.text.now[store.variable]
        entry = self.text.entry(before, store.index)
        value = self.text.text(store.value)
        if store.index:
            own = rf"(?<![.\w]){re.escape(entry)}"
            value = Text([re.sub(own, "@", line) for line in value.lines], value.hold)
            place = self.text.stored(self.variables[store.variable], store.index)
            value = Text(after(f"[{before} EXCEPT !{place} = ", value.lines, "]"))
        name = self._next(store.variable)
        self.text.now[store.variable] = self._define(name, value)

    def _reset(self, sort: str, member: str) -> None:
        for variable in reset_by(sort, self.variables):
            if variable.name in self.kept:
                before = self.text.now[variable.name]
                row = constant_row(self.text, variable.keys[1:], self.text.default(variable.value))
                name = self._next(variable.name)
                self.text.now[variable.name] = self._define(name, Text([f"[{before} EXCEPT ![{member}] = {row}]"]))

    # --- choices ------------------------------------------------------------------------------------------------------

    def _if(self, test: ir.Expr, then: tuple[ir.Stmt, ...], orelse: tuple[ir.Stmt, ...]) -> None:
        text = self.text.text(test)
        if len(text.lines) > 1 or len(text.one) > 40:
            text = Text([self._define(self.text.taken.new("test"), text)])
        decided = text.one
        before, names, path = dict(self.text.now), dict(self.text.names), self.path
        self.path = (*path, " ".join(held(text, FACT)))
        self.block(then)
        first, first_names = self.text.now, self.text.names
        self.text.now, self.text.names = dict(before), dict(names)
        self.path = (*path, "~" + " ".join(held(text, ATOM)))
        self.block(orelse)
        self.path = path
        for variable, a in first.items():
            b = self.text.now[variable]
            if a != b:
                name = self._next(variable)
                self.defined.append(Definition(name, [decided], OPEN, a, b))
                self.text.now[variable] = name
        for local, a in first_names.items():
            known = self.text.names.setdefault(local, a)
            if known != a:
                name = self.text.bind(local)
                self.defined.append(Definition(name, [decided], OPEN, a, known))

    # --- loops --------------------------------------------------------------------------------------------------------

    def _for(self, loop: ir.For) -> None:
        if is_pointwise(loop):
            before, key = dict(self.text.now), self.text.bind(loop.name)
            after_ = [self._pointwise(loop, s, before, key) for s in loop.body if isinstance(s, ir.Store)]
            self.text.now.update(after_)
        else:
            self._fold(loop, self.text.domain(loop.domain, loop.name_type))

    def _pointwise(self, loop: ir.For, store: ir.Store, before: dict[str, str], key: str) -> tuple[str, str]:
        """One store of each turn to an entry of its own: all entries at once, over the values before the loop."""
        variable, old, text = self.variables[store.variable], before[store.variable], replace(self.text, now=before)
        at = next(n for n, i in enumerate(store.index) if isinstance(i, ir.Name) and i.name == loop.name)
        entry = old + text.entry("", store.index[:at]) + f"[{key}]"
        outer, inner = self._sides(variable, store.index, at)
        value = text.line(store.value, OPEN)
        changed = f"[{entry} EXCEPT !{inner} = {value}]" if inner else value
        body = [changed]
        if isinstance(loop.domain, ir.Row):
            row = text.entry(before[loop.domain.variable], (loop.domain.first,))
            absent = text.default(self.variables[loop.domain.variable].value)
            if inner or f"{row}[{key}]" != entry or value != absent:  # else what is the default already stays so
                present = text.present(loop.domain, f"{row}[{key}]")
                body = [f"IF {present}", f"THEN {changed}", f"ELSE {entry}"]
        head = f"[{key} \\in {text.domains[variable.keys[at]]} |-> "
        whole, end = (f"[{old} EXCEPT !{outer} = ", "]]") if outer else ("", "]")
        flat = whole + head + " ".join(body) + end
        made = [flat]
        if not fits(made):
            made = [head.rstrip(), *after("  ", body, end)]
            made = [whole.rstrip(), *after("  ", made)] if outer else made
        return store.variable, self._define(self._next(store.variable), Text(made))

    def _sides(self, variable: ir.Variable, index: tuple[ir.Expr, ...], at: int) -> tuple[str, str]:
        """The place of a store before and after one of its indexes."""
        before, after_ = replace(variable, keys=variable.keys[:at]), replace(variable, keys=variable.keys[at + 1 :])
        return self.text.stored(before, index[:at]), self.text.stored(after_, index[at + 1 :])

    def _fold(self, loop: ir.For, keys: str) -> None:
        """One turn after the other. What the turns change is one value, or a record of values."""
        changed = [v for v in self.variables if v in self.kept and v in _stored(loop.body, self.variables)]
        judged = any(isinstance(s, ir.Obey) for s in all_statements(loop.body))
        turn, name = self.text.taken.new(f"turn_{loop.name}"), self.text.taken.new(f"after_{loop.name}")
        fields = [*changed, *(["broken"] if judged else [])]
        alone = len(fields) == 1
        so_far = self.text.taken.new("so_far")
        inside = replace(self.text, now=dict(self.text.now), names=dict(self.text.names))
        inside.now.update({v: so_far if alone else f"{so_far}.{v}" for v in changed})
        key = inside.bind(loop.name)
        body = Statements(inside, self.variables, self.kept)
        body.block(loop.body)
        ends = [Definition(v, [inside.now[v]]) for v in changed]
        if judged:
            broken = so_far if alone else f"{so_far}.broken"
            checks = [Check([f"{broken} # {NONE}"], broken), *body.checks]
            ends.append(Definition("broken", verdict(checks), OPEN))
        lines = tidy(body.defined, ends)
        made = let(lines, shown(ends[0]) if alone else record(ends))
        self.defined.append(Definition(turn, made, OPEN, parameters=f"({so_far}, {key})"))
        starts = [Definition(v, [NONE if v == "broken" else self.text.now[v]]) for v in fields]
        start = starts[0].lines if alone else record(starts)
        ordered = "FoldUp" if isinstance(loop.name_type, ir.NatType) else "Fold"
        self.text.helpers.add(ordered)
        self._define(name, Text(after(f"{ordered}({turn}, ", start, f", {keys})")))
        self.text.now.update({v: name if alone else f"{name}.{v}" for v in changed})
        if judged:
            result = name if alone else f"{name}.broken"
            self._check([f"{result} # {NONE}"], result)


def constant_row(text: Expressions, keys: tuple[ir.Type, ...], value: str) -> str:
    """A map of these keys with one value everywhere."""
    names = text.taken.inner()
    heads = [f"[{names.new('k')} \\in {text.domains[key]} |-> " for key in keys]
    return "".join(heads) + value + "]" * len(keys)


def _stored(block: tuple[ir.Stmt, ...], variables: Mapping[str, ir.Variable]) -> set[str]:
    out: set[str] = set()
    for s in all_statements(block):
        if isinstance(s, ir.Store):
            out.add(s.variable)
        elif isinstance(s, ir.Reset):
            out |= {v.name for v in reset_by(s.sort, variables)}
    return out
