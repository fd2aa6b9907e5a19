"""Python source for one event of the lowered specification.

An event function updates the state and judges its obligations in straight-line code. Two versions exist: the plain
one, and a careful one that runs while some member is *fuzzy* (its past is unknown, or a violation tainted it). The
careful version finds, for each obligation, the members it depends on: none fuzzy, it judges as usual; one tainted, it
stays silent; one with an unknown past, it judges in three values (`unknown`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from kvsan.checker.replay.emit_expr import ExprWriter, Key, local
from kvsan.checker.replay.layout import default, shape
from kvsan.spec.lang import ir
from kvsan.spec.lang.effects import reset_by
from kvsan.spec.lang.walk import all_expressions, all_statements, children, every, rebuild

INDENT = "    "


@dataclass
class Shared:
    """What the functions of one machine share. blocks: for each hit counter, the obligations it counts."""

    variables: Mapping[str, ir.Variable]
    slots: Mapping[str, int]  # the fuzzy slot of each variable that no sort indexes
    blocks: list[list[int]] = field(default_factory=list)
    terms: list[ir.Expr] = field(default_factory=list)  # what the careful code evaluates in three values


@dataclass
class FunctionWriter:
    """Writes one version of one event. first: the machine's number of the event's first obligation."""

    shared: Shared
    event: ir.Step
    effects: tuple[ir.Stmt, ...]
    first: int
    silenced: frozenset[int]
    careful: bool
    lines: list[str] = field(default_factory=list)
    writer: ExprWriter = field(init=False)
    fuzzy_names: set[str] = field(default_factory=set)
    marks: int = 0

    def __post_init__(self) -> None:
        self.writer = ExprWriter(self.shared.variables)
        self.writer.temporaries.enabled = not self.careful

    def source(self) -> str:
        """The whole function."""
        name = local(self.event.name)
        arguments = ", ".join(local(p.name) for p in self.event.params)
        suffix = "__careful" if self.careful else ""
        self.lines = [f"def E_{name}{suffix}({arguments}):"]
        body = _without_dead_lets(self.effects, self.silenced)
        if self.careful:
            self._find_fuzzy_names(body)
        else:
            self.lines += [f"{INDENT}if ANY[0]:", f"{INDENT * 2}return CAREFUL[{self.event.name!r}]({arguments})"]
        self._block(body, 1, "")
        if len(self.lines) == 1:
            self.lines.append(f"{INDENT}pass")
        return self.writer.temporaries.resolve("\n".join(self.lines)) + "\n"

    def _put(self, depth: int, text: str) -> None:
        self.lines.append(INDENT * depth + text)

    # --- statements ---------------------------------------------------------------------------------------------------

    def _block(self, block: tuple[ir.Stmt, ...], depth: int, path: str) -> None:
        """path: the careful code's name for the bits of the conditions that led here, '' where none is fuzzy."""
        start = len(self.lines)
        judged = [s.number for s in block if isinstance(s, ir.Obey) and s.number not in self.silenced]
        if judged and not self.careful:
            self._put(depth, f"H[{len(self.shared.blocks)}] += 1")
            self.shared.blocks.append([self.first + n for n in judged])
        for statement in block:
            self._statement(statement, depth, path)
        if len(self.lines) == start and depth > 1:
            self._put(depth, "pass")

    def _statement(self, statement: ir.Stmt, depth: int, path: str) -> None:
        match statement:
            case ir.Let(name, value):
                self._put(depth, f"{local(name)} = {self.writer.expr(value)}")
                if self.careful and name in self.fuzzy_names:
                    self._mark_local(name, value, depth, path)
            case ir.Store():
                if self.careful:
                    self._store_carefully(statement, depth, path)
                else:
                    self._store(statement, depth)
            case ir.If():
                self._if(statement, depth, path)
            case ir.For():
                self._for(statement, depth, path)
            case ir.Obey():
                if statement.number not in self.silenced:
                    self._obey(statement, depth, path)
            case ir.Reset():
                self._reset(statement, depth)
            case ir.Require() | ir.CallStmt():
                raise AssertionError("an event has no guard, and calls are inlined")
            case _:
                assert_never(statement)

    def _store(self, store: ir.Store, depth: int) -> None:
        variable = self.shared.variables[store.variable]
        w = self.writer
        value = w.expr(store.value)
        name, key = f"V_{store.variable}", ""
        match shape(variable):
            case "cell":
                self._put(depth, f"{name}[0] = {value}")
            case "list":
                self._put(depth, f"{name}[{w.key(store.index)}] = {value}")
            case "rows":
                name, key = w.row(store.variable, store.index[0]), w.key(store.index[1:])
            case _:
                key = w.key(store.index)
        if key:
            self._put_entry(name, key, value, store.value, default(variable.value), depth)
        w.temporaries.forget({store.variable})

    def _put_entry(self, name: str, key: str, value: str, expr: ir.Expr, fallback: int, depth: int) -> None:
        """A dict never holds a default."""
        if value in (str(fallback), str(bool(fallback))):
            self._put(depth, f"{name}.pop({key}, None)")
        elif _never_default(expr):
            self._put(depth, f"{name}[{key}] = {value}")
        else:
            held = self.writer.fresh()
            self._put(depth, f"{held} = {value}")
            self._put(depth, f"if {held} == {fallback}:")
            self._put(depth + 1, f"{name}.pop({key}, None)")
            self._put(depth, "else:")
            self._put(depth + 1, f"{name}[{key}] = {held}")

    def _if(self, statement: ir.If, depth: int, path: str) -> None:
        inner = self._mark_path(statement, depth, path) if self.careful else ""
        kept = self.writer.temporaries
        test, sure, if_true, if_false = self._test(statement.test)
        then, orelse = statement.then, statement.orelse
        unsure = inner if inner != path else ""
        both = bool(then and orelse) or bool(unsure)
        self._put(depth, f"if {test}:" if then or both else f"if not ({test}):")
        kept.kept = dict(if_true if then or both else if_false)
        self._arm(then if both else then or orelse, orelse, depth + 1, inner, unsure)
        after_then, after_else = kept.kept, if_false if then or both else if_true
        if both:
            self._put(depth, "else:")
            kept.kept = dict(if_false)
            self._arm(orelse, then, depth + 1, inner, unsure)
            after_else = kept.kept
        kept.kept = {k: n for k, n in sure.items() if after_then.get(k) == n and after_else.get(k) == n}

    def _arm(self, arm: tuple[ir.Stmt, ...], other: tuple[ir.Stmt, ...], depth: int, path: str, unsure: str) -> None:
        start = len(self.lines)
        if unsure:
            self._weaken(other, depth, unsure)
        if arm or len(self.lines) == start:
            self._block(arm, depth, path)

    def _test(self, test: ir.Expr) -> tuple[str, dict[Key, int], dict[Key, int], dict[Key, int]]:
        """The source of a test, and what is kept after it: surely, where true, where false."""
        kept = self.writer.temporaries
        match test:
            case ir.And(items) | ir.Or(items):
                parts = [self.writer.expr(items[0])]
                sure = dict(kept.kept)
                parts += [self.writer.expr(i) for i in items[1:]]
                everything = dict(kept.kept)
                if isinstance(test, ir.And):
                    return " and ".join(parts), sure, everything, sure
                return f"({' or '.join(parts)})", sure, sure, everything
            case _:
                code = self.writer.expr(test)
                return code, kept.kept, kept.kept, kept.kept

    def _for(self, loop: ir.For, depth: int, path: str) -> None:
        kept = self.writer.temporaries
        domain = self.writer.domain(loop.domain)
        kept.forget(_written(loop.body, self.shared.variables))
        before = dict(kept.kept)
        if self.careful and isinstance(loop.domain, ir.Row):
            path = self._mark_row(loop.domain, depth, path)
        self._put(depth, f"for {local(loop.name)} in {domain}:")
        self._block(loop.body, depth + 1, path)
        kept.kept = before

    def _obey(self, obey: ir.Obey, depth: int, path: str) -> None:
        k = self.first + obey.number
        shown = "".join(f"{self._plain(e)}, " for _, e in obey.names)
        fail = f"FAIL(({k}, ({shown})))"
        if self.careful:
            self._obey_carefully(obey, k, fail, depth, path)
            return
        if isinstance(obey.condition, ir.Const):
            if not obey.condition.value:
                self._put(depth, fail)
            return
        self._put(depth, f"if not {self.writer.expr(obey.condition)}:")
        self._put(depth + 1, fail)

    def _reset(self, reset: ir.Reset, depth: int) -> None:
        member = self.writer.expr(reset.entity)
        if not isinstance(reset.entity, ir.Name):
            self._put(depth, f"W0 = {member}")
            member = "W0"
        touched = reset_by(reset.sort, self.shared.variables)
        for variable in touched:
            if shape(variable) == "list":
                self._put(depth, f"V_{variable.name}[{member}] = {default(variable.value)}")
            else:
                self._put(depth, f"if V_{variable.name}[{member}]: V_{variable.name}[{member}].clear()")
        self.writer.temporaries.forget({v.name for v in touched})
        if self.careful:
            self._put(depth, f"F_{reset.sort}[{member}] = 0")

    # --- fuzziness ----------------------------------------------------------------------------------------------------

    def _plain(self, expr: ir.Expr) -> str:
        """Source that keeps and uses no temporaries: for places off the sure path."""
        kept = self.writer.temporaries
        enabled, kept.enabled = kept.enabled, False
        code = self.writer.expr(expr)
        kept.enabled = enabled
        return code

    def _find_fuzzy_names(self, body: tuple[ir.Stmt, ...]) -> None:
        changed = True
        while changed:
            changed = False
            for statement in all_statements(body):
                if not isinstance(statement, ir.Let) or statement.name in self.fuzzy_names:
                    continue
                if self._bits(statement.value) or self._under_fuzzy(body, statement):
                    self.fuzzy_names.add(statement.name)
                    changed = True

    def _under_fuzzy(self, block: tuple[ir.Stmt, ...], let: ir.Let, under: bool = False) -> bool:
        for statement in block:
            if statement is let:
                return under
            match statement:
                case ir.If(test, then, orelse):
                    inside = under or bool(self._bits(test))
                    if self._under_fuzzy(then, let, inside) or self._under_fuzzy(orelse, let, inside):
                        return True
                case ir.For(domain=domain, body=body):
                    if self._under_fuzzy(body, let, under or isinstance(domain, ir.Row)):
                        return True
                case _:
                    pass
        return False

    def _bits(self, expr: ir.Expr, own: tuple[str, ...] = ()) -> str:
        """Source of the OR of the bits that an expression depends on, '' where it depends on no member."""
        return " | ".join(dict.fromkeys(t for t in self._terms(expr, {}) if t not in own))

    def _terms(self, expr: ir.Expr, bound: Mapping[str, ir.Expr | None]) -> Iterator[str]:
        match expr:
            case ir.Name(name):
                if name in self.fuzzy_names:
                    yield f"Z_{name}"
            case ir.Read(variable, index):
                for part in index:
                    yield from self._terms(part, bound)
                declared = self.shared.variables[variable]
                if not declared.const:
                    yield from self._index_terms(declared, index, bound)
            case ir.LetIn(name, value, body):
                yield from self._terms(value, bound)
                yield from self._terms(body, {**bound, name: _substitute(value, bound)})
            case ir.Quantifier(domain=domain, body=body):
                if isinstance(domain, ir.Row):
                    yield from self._terms(domain.first, bound)
                    yield from self._index_terms(self.shared.variables[domain.variable], (domain.first,), bound)
                yield from self._terms(body, {**bound, expr.name: None})
            case _:
                for part in children(expr):
                    yield from self._terms(part, bound)

    def _index_terms(
        self, variable: ir.Variable, index: tuple[ir.Expr, ...], bound: Mapping[str, ir.Expr | None]
    ) -> Iterator[str]:
        found = False
        for key, part in zip(variable.keys, index, strict=False):
            if isinstance(key, ir.SortType):
                found = True
                whole = _substitute(part, bound)
                open_name = any(isinstance(e, ir.Name) and e.name in bound for e in every(whole))
                yield f"ORALL(F_{key.name})" if open_name else f"F_{key.name}[{self._plain(whole)}]"
        if not found and variable.name in self.shared.slots:
            yield f"F[{self.shared.slots[variable.name]}]"

    def _fresh_mark(self, letter: str) -> str:
        self.marks += 1
        return f"{letter}{self.marks}"

    def _call(self, expr: ir.Expr, function: str = "") -> str:
        """A call of the three-valued evaluator: what the expression is worth."""
        self.shared.terms.append(expr)
        names = dict.fromkeys(e.name for e in every(expr) if isinstance(e, ir.Name))
        inner = {e.name for e in every(expr) if isinstance(e, ir.Quantifier | ir.LetIn)}
        pairs = [f"{n!r}: {f'A_{n}' if n in self.fuzzy_names else local(n)}" for n in names if n not in inner]
        return f"{function}(TERMS[{len(self.shared.terms) - 1}]({{{', '.join(pairs)}}}))"

    def _mark_local(self, name: str, value: ir.Expr, depth: int, path: str) -> None:
        """Z_name: the bits it depends on; A_name: what its value is worth."""
        own = self._bits(value)
        self._put(depth, f"Z_{name} = {' | '.join(b for b in (path, own) if b) or 0}")
        worth = "UNKNOWN" if path and not own else self._call(value)
        if path and own:
            worth = f"(UNKNOWN if {path} else {worth})"
        self._put(depth, f"A_{name} = {worth} if Z_{name} == 1 else UNKNOWN if Z_{name} else {local(name)}")

    def _mark_path(self, statement: ir.If, depth: int, path: str) -> str:
        own = self._bits(statement.test)
        if not own:
            return path
        name = self._fresh_mark("P")
        self._put(depth, f"{name} = {own}")
        self._put(depth, f"if {name} == 1 and {self._call(statement.test, 'JUDGE')} is not None: {name} = 0")
        if path:
            self._put(depth, f"{name} |= {path}")
        outside = [t for t in dict.fromkeys(self._targets(statement)) if t]
        if outside:
            self._put(depth, f"if {name}:")
            for target in outside:
                self._put(depth + 1, target.replace("BITS", name))
        return name

    def _targets(self, statement: ir.If) -> Iterator[str]:
        """Marks for what either arm would have stored: where the test is unsure, so is whether it was stored."""
        bound = {s.name for s in all_statements((statement,)) if isinstance(s, ir.Let | ir.For)}
        for inner in all_statements((statement,)):
            if isinstance(inner, ir.Store):
                variable = self.shared.variables[inner.variable]
                if not any(isinstance(e, ir.Name) and e.name in bound for i in inner.index for e in every(i)):
                    yield self._spread(variable, inner.index)

    def _spread(self, variable: ir.Variable, index: tuple[ir.Expr, ...]) -> str:
        """Source that gives BITS to the member that a store names first."""
        for key, part in zip(variable.keys, index, strict=False):
            if isinstance(key, ir.SortType):
                code = self._plain(part)
                return f"if {code} >= 0: F_{key.name}[{code}] |= BITS"
        slot = self.shared.slots.get(variable.name)
        return "" if slot is None else f"F[{slot}] |= BITS"

    def _store_carefully(self, store: ir.Store, depth: int, path: str) -> None:
        """What is not sure to be stored, or not exact, is stored as far as it is sure."""
        variable = self.shared.variables[store.variable]
        path = self._mark_index(store, depth, path)
        bits = " | ".join(b for b in (path, self._bits(store.value)) if b)
        if not bits:
            self._store(store, depth)
            return
        own = tuple(
            f"F_{k.name}[{self._plain(i)}]"
            for k, i in zip(variable.keys, store.index, strict=True)
            if isinstance(k, ir.SortType)
        )
        name = self._fresh_mark("P")
        self._put(depth, f"{name} = {bits}")
        self._put(depth, f"if {name} & 1:")
        self._put(depth + 1, f"W0 = {self._call(store.value)}")
        self._put(depth + 1, f"PUT({store.variable!r}, {self._index(store)}, W0, {path or 0} & 1)")
        foreign = " | ".join(b for b in (path, self._bits(store.value, own)) if b)
        self._put(depth + 1, f"if isinstance(W0, int): {name} = {path or 0}")
        self._put(depth, "else:")
        self._store(store, depth + 1)
        spread = self._spread(variable, store.index)
        if spread and foreign:
            self._put(depth, f"if {name}: {name} &= {foreign}")
            self._put(depth, f"if {name}:")
            self._put(depth + 1, spread.replace("BITS", name))

    def _mark_index(self, store: ir.Store, depth: int, path: str) -> str:
        """Where the index itself is not exact, it is unsure that this entry is stored."""
        for part in store.index:
            own = self._bits(part)
            if own:
                name = self._fresh_mark("P")
                self._put(depth, f"{name} = {own}")
                worth = self._call(part)
                self._put(depth, f"if {name} == 1 and isinstance({worth}, int): {name} = 0")
                if path:
                    self._put(depth, f"{name} |= {path}")
                path = name
        return path

    def _index(self, store: ir.Store) -> str:
        """Source of the indexes, each as far as it is known."""
        return "(" + "".join(f"{self._call(i) if self._bits(i) else self._plain(i)}, " for i in store.index) + ")"

    def _weaken(self, other: tuple[ir.Stmt, ...], depth: int, path: str) -> None:
        """In one arm of an unsure test: what the other arm might have stored is sure no more."""
        bound = {s.name for s in all_statements(other) if isinstance(s, ir.Let | ir.For)}
        earlier: set[str] = set()
        lines: list[str] = []
        for store in all_statements(other):
            if not isinstance(store, ir.Store):
                continue
            value = list(every(store.value))
            known = not any(isinstance(e, ir.Name) and e.name in bound for e in value)
            known = known and not any(isinstance(e, ir.Read) and e.variable in earlier for e in value)
            if not any(isinstance(e, ir.Name) and e.name in bound for i in store.index for e in every(i)):
                worth = self._call(store.value) if known else "UNKNOWN"
                lines.append(f"PUT({store.variable!r}, {self._index(store)}, {worth}, 1)")
            earlier.add(store.variable)
        if lines:
            self._put(depth, f"if {path} & 1:")
            for line in dict.fromkeys(lines):
                self._put(depth + 1, line)

    def _mark_row(self, domain: ir.Row, depth: int, path: str) -> str:
        """Entries that are there are sure; that no others are, is not, but what is done for each is no less right."""
        bits = " | ".join(dict.fromkeys(self._index_terms(self.shared.variables[domain.variable], (domain.first,), {})))
        if not bits:
            return path
        name = self._fresh_mark("P")
        self._put(depth, f"{name} = ({bits}) & 2{f' | {path}' if path else ''}")
        return name

    def _obey_carefully(self, obey: ir.Obey, k: int, fail: str, depth: int, path: str) -> None:
        bits = " | ".join(b for b in (path, self._bits(obey.condition)) if b)
        inner = depth
        if bits:
            self._put(depth, f"Z = {bits}")
            self._put(depth, "if not Z:")
            inner = depth + 1
        self._put(inner, f"C[{k}] += 1")
        test = self._plain(obey.condition)
        self._put(inner, f"if not {test}: {fail}")
        if bits:
            self._put(depth, "elif Z == 1:")
            verdict = self._call(obey.condition, "JUDGE")
            self._put(depth + 1, f"Z = None if {path} else {verdict}" if path else f"Z = {verdict}")
            self._put(depth + 1, f"if Z is None: U[{k}] += 1")
            self._put(depth + 1, "else:")
            self._put(depth + 2, f"C[{k}] += 1")
            self._put(depth + 2, f"if not Z: {fail}")


def _substitute(expr: ir.Expr, bound: Mapping[str, ir.Expr | None]) -> ir.Expr:
    """The expression with bound names replaced by their values where these are known outside."""
    if isinstance(expr, ir.Name):
        value = bound.get(expr.name)
        return expr if value is None else value
    return rebuild(expr, lambda e: _substitute(e, bound))


def _never_default(expr: ir.Expr) -> bool:
    """Whether a value is sure not to be its variable's default."""
    match expr:
        case ir.Name(type=ir.SortType()) | ir.Some():
            return True
        case ir.Const(value=value):
            return bool(value)
        case ir.Arith("+", _, ir.Const(int(n))) | ir.Arith("+", ir.Const(int(n)), _):
            return n > 0
        case ir.Only():
            return True
        case _:
            return False


def _written(block: tuple[ir.Stmt, ...], variables: Mapping[str, ir.Variable]) -> set[str]:
    found: set[str] = set()
    for statement in all_statements(block):
        if isinstance(statement, ir.Store):
            found.add(statement.variable)
        elif isinstance(statement, ir.Reset):
            found |= {v.name for v in reset_by(statement.sort, variables)}
    return found


def _without_dead_lets(block: tuple[ir.Stmt, ...], silenced: frozenset[int]) -> tuple[ir.Stmt, ...]:
    """Drop silenced obligations and the local names that nothing uses any more."""
    while True:
        block = _drop(block, lambda s: isinstance(s, ir.Obey) and s.number in silenced)
        used = {e.name for e in all_expressions(block) if isinstance(e, ir.Name)}
        for statement in all_statements(block):
            if isinstance(statement, ir.Obey):
                used |= {e.name for _, shown in statement.names for e in every(shown) if isinstance(e, ir.Name)}
        dead = {s.name for s in all_statements(block) if isinstance(s, ir.Let)} - used
        if not dead:
            return block
        block = _drop_lets(block, dead)


def _drop_lets(block: tuple[ir.Stmt, ...], names: set[str]) -> tuple[ir.Stmt, ...]:
    return _drop(block, lambda s: isinstance(s, ir.Let) and s.name in names)


def _drop(block: tuple[ir.Stmt, ...], unwanted: Callable[[ir.Stmt], bool]) -> tuple[ir.Stmt, ...]:
    out: list[ir.Stmt] = []
    for statement in block:
        if unwanted(statement):
            continue
        match statement:
            case ir.If(then=then, orelse=orelse):
                arms = _drop(then, unwanted), _drop(orelse, unwanted)
                if any(arms):
                    out.append(replace(statement, then=arms[0], orelse=arms[1]))
            case ir.For(body=body):
                inner = _drop(body, unwanted)
                if inner:
                    out.append(replace(statement, body=inner))
            case _:
                out.append(statement)
    return tuple(out)
