"""Statements in TLA+: the values that variables have one after the other become definitions of a LET.

A definition is evaluated only where it is used, so the arms of an `if` are written side by side, and a value that is
undefined on the other path does no harm.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from kvsan.checker.export.tla_expr import ATOM, FACT, OPEN, WIDTH, Expressions, Text, after, fits, held
from kvsan.spec.lang import ir
from kvsan.spec.lang.effects import reset_by
from kvsan.spec.lang.walk import all_statements, every, expressions

NONE = '"none"'


@dataclass
class Definition:
    """`name == lines`. then, other: for a choice between two values, their texts; lines is its test."""

    name: str
    lines: list[str]
    hold: int = ATOM
    then: str = ""
    other: str = ""
    parameters: str = ""


@dataclass(frozen=True)
class Check:
    """An obligation, or those of a loop. failed: whether it is broken. rule: what is broken then."""

    failed: list[str]
    rule: str


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
                failed = self.text.text(ir.Not(condition))
                path = [f"/\\ {p}" for p in self.path]
                lines = [*path, *after("/\\ ", failed.lines)] if path else failed.lines
                self.checks.append(Check(lines, f'"{rule}"'))
            case ir.Reset(sort, entity):
                self._reset(sort, self.text.line(entity, OPEN))
            case ir.Require():
                pass  # the guard has it
            case ir.CallStmt():
                raise AssertionError("calls are inlined")
            case _:
                assert_never(statement)

    def _define(self, name: str, text: Text) -> str:
        self.defined.append(Definition(name, text.lines, text.hold))
        return name

    def _let(self, name: str, value: ir.Expr) -> None:
        text = self.text.text(value)
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
            value = Text(after(f"[{before} EXCEPT !{entry[len(before) :]} = ", value.lines, "]"))
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
            before = dict(self.text.now)
            after_ = [self._pointwise(loop, s, before) for s in loop.body if isinstance(s, ir.Store)]
            self.text.now.update(after_)
        else:
            self._fold(loop, self.text.domain(loop.domain, loop.name_type))

    def _pointwise(self, loop: ir.For, store: ir.Store, before: dict[str, str]) -> tuple[str, str]:
        """One store of each turn to an entry of its own: all entries at once, over the values before the loop."""
        variable, old, text = self.variables[store.variable], before[store.variable], replace(self.text, now=before)
        at = next(n for n, i in enumerate(store.index) if isinstance(i, ir.Name) and i.name == loop.name)
        outer, key = text.entry("", store.index[:at]), text.bind(loop.name)
        inner, value = text.entry("", store.index[at + 1 :]), text.line(store.value, OPEN)
        entry = f"{old}{outer}[{key}]"
        changed = f"[{entry} EXCEPT !{inner} = {value}]" if inner else value
        body = [changed]
        if isinstance(loop.domain, ir.Row):
            row = text.entry(before[loop.domain.variable], (loop.domain.first,))
            absent = text.default(self.variables[loop.domain.variable].value)
            if inner or f"{row}[{key}]" != entry or value != absent:  # else what is the default already stays so
                present = text.present(loop.domain, f"{row}[{key}]")
                body = [f"IF {present}", f"THEN {changed}", f"ELSE {entry}"]
        head = f"[{key} \\in {text.domains[variable.keys[at]]} |-> "
        flat = [" ".join(body)]
        lines = after(head, flat if fits([head], flat) else body, "]")
        made = after(f"[{old} EXCEPT !{outer} = ", lines, "]") if outer else lines
        return store.variable, self._define(self._next(store.variable), Text(made))

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
        made = let(lines, _lines(ends[0], 0) if alone else record(ends))
        self.defined.append(Definition(turn, made, OPEN, parameters=f"({so_far}, {key})"))
        starts = [Definition(v, [NONE if v == "broken" else self.text.now[v]]) for v in fields]
        start = starts[0].lines if alone else record(starts)
        ordered = "FoldUp" if isinstance(loop.name_type, ir.NatType) else "Fold"
        self.text.helpers.add(ordered)
        self._define(name, Text(after(f"{ordered}({turn}, ", start, f", {keys})")))
        self.text.now.update({v: name if alone else f"{name}.{v}" for v in changed})
        if judged:
            result = name if alone else f"{name}.broken"
            path = [f"/\\ {p}" for p in self.path]
            failed = f"{result} # {NONE}"
            self.checks.append(Check([*path, f"/\\ {failed}"] if path else [failed], result))


def constant_row(text: Expressions, keys: tuple[ir.Type, ...], value: str) -> str:
    """A map of these keys with one value everywhere."""
    names = text.taken.inner()
    heads = [f"[{names.new('k')} \\in {text.domains[key]} |-> " for key in keys]
    return "".join(heads) + value + "]" * len(keys)


def is_pointwise(loop: ir.For) -> bool:
    """Whether each turn only sets entries of its own, and reads no others that a turn changes."""
    own, seen = loop.name, dict[str, tuple[ir.Expr, ...]]()
    for s in loop.body:
        if not isinstance(s, ir.Store) or s.variable in seen:
            return False
        if [isinstance(i, ir.Name) and i.name == own for i in s.index].count(True) != 1:
            return False
        if any(
            isinstance(e, ir.Name) and e.name == own for i in s.index if not isinstance(i, ir.Name) for e in every(i)
        ):
            return False
        seen[s.variable] = s.index
    for n, s in enumerate(loop.body):
        later = {t.variable for t in loop.body[n:] if isinstance(t, ir.Store)}
        for part in (p for e in expressions(s) for p in every(e)):
            if isinstance(part, ir.Quantifier):
                return False
            if not isinstance(part, ir.Read) or part.variable not in seen:
                continue
            if part.variable not in later or not _own_entry(part.index, seen[part.variable], own):
                return False
    return True


def _own_entry(index: tuple[ir.Expr, ...], stored: tuple[ir.Expr, ...], own: str) -> bool:
    """Whether an entry is one that no other turn changes: the loop's member stands where the store has it."""
    at = next(n for n, i in enumerate(stored) if isinstance(i, ir.Name) and i.name == own)
    here = index[at]
    return isinstance(here, ir.Name) and here.name == own


def _stored(block: tuple[ir.Stmt, ...], variables: Mapping[str, ir.Variable]) -> set[str]:
    out: set[str] = set()
    for s in all_statements(block):
        if isinstance(s, ir.Store):
            out.add(s.variable)
        elif isinstance(s, ir.Reset):
            out |= {v.name for v in reset_by(s.sort, variables)}
    return out


# --- texts ------------------------------------------------------------------------------------------------------------


def record(fields: list[Definition]) -> list[str]:
    flat = "[" + ", ".join(f"{f.name} |-> {' '.join(_lines(f, WIDTH))}" for f in fields) + "]"
    if all(len(_lines(f, WIDTH)) == 1 for f in fields) and fits([flat]):
        return [flat]
    lines: list[str] = []
    for n, field_ in enumerate(fields):
        head = f"{' ' if n else '['}{field_.name} |-> "
        lines += after(head, _lines(field_, len(head)), "]" if n == len(fields) - 1 else ",")
    return lines


def bullets(fields: list[Definition]) -> list[str]:
    """The next value of each variable."""
    heads = [f"/\\ {f.name}' = " for f in fields]
    return [line for h, f in zip(heads, fields, strict=True) for line in after(h, _lines(f, len(h)))]


def verdict(checks: list[Check]) -> list[str]:
    """The first rule that is broken, or "none"."""
    if [c.failed for c in checks] == [[f"{c.rule} # {NONE}"] for c in checks[:1]]:
        return [checks[0].rule]
    lines: list[str] = []
    for n, check in enumerate(checks):
        lines += after("ELSE IF " if n else "IF ", check.failed)
        lines.append(f"THEN {check.rule}")
    return [*lines, f"ELSE {NONE}"] if lines else [NONE]


def let(defined: list[Definition], body: list[str]) -> list[str]:
    """`LET ... IN body`."""
    lines: list[str] = []
    for d in defined:
        lines += _definition(d, "    " if lines else "LET ")
    return [*lines, *after("IN  ", body)] if lines else body


def _definition(d: Definition, margin: str) -> list[str]:
    head = f"{margin}{d.name}{d.parameters} == "
    lines = _lines(d, len(head))
    if len(lines) > 1 and (d.parameters or len(head) > 30):
        return [head.rstrip(), *after(" " * 6, lines)]
    return after(head, lines)


def _lines(d: Definition, margin: int) -> list[str]:
    """The text of a definition behind a margin."""
    if not d.then:
        return d.lines
    flat = f"IF {d.lines[0]} THEN {d.then} ELSE {d.other}"
    short = margin + len(flat) <= WIDTH
    return [flat] if short else [f"IF {d.lines[0]}", f"THEN {d.then}", f"ELSE {d.other}"]


def tidy(defined: list[Definition], ends: list[Definition]) -> list[Definition]:
    """The definitions that are used. One that is used once, as a whole, stands where it is used; ends: changed so."""
    kept: list[Definition] = []
    used = Counter(w for e in ends for w in _words(e))
    for d in reversed(defined):
        if used[d.name] == 0:
            continue
        used.update(_words(d))
        if used[d.name] > 1 or d.parameters or not any(_take(u, d) for u in (*kept, *ends)):
            kept.insert(0, d)
    return kept


def _words(d: Definition) -> list[str]:
    """The names in a text, without those of fields."""
    return [w for text in (*d.lines, d.then, d.other) for w in re.findall(r"(?<![.\w])\w+", text)]


def _take(user: Definition, d: Definition) -> bool:
    """Put a definition in the place of its name, where that is all of a value, or of an arm on one line."""
    if user.lines == [d.name] and not user.then:
        user.lines, user.hold, user.then, user.other = d.lines, d.hold, d.then, d.other
        return True
    if d.hold != ATOM or len(d.lines) > 1 or d.then:
        return False
    if user.then == d.name:
        user.then = d.lines[0]
        return True
    if user.other == d.name:
        user.other = d.lines[0]
        return True
    return False
