"""The careful version of an event's code: what it does while some member is fuzzy.

Where a member's past is unknown, its facts are bounds. A condition is evaluated in three values; where it is unsure,
so is everything under it, and both arms store no more than is sure whichever of them ran. What is stored from fuzzy
facts makes the member that it is stored for fuzzy too. A member that only an unknown reference would reach is let be:
in a log, what such a reference names has an unknown past itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kvsan.checker.replay.emit_expr import local
from kvsan.checker.replay.emit_step import FunctionWriter
from kvsan.spec.lang import ir
from kvsan.spec.lang.effects import reset_by
from kvsan.spec.lang.walk import all_statements, children, every, rebuild


@dataclass
class CarefulWriter(FunctionWriter):
    """Writes the careful version of one event. fuzzy_names: the local names that can depend on a fuzzy member.
    bound_once: those that one statement binds, which so are used in its arm alone."""

    fuzzy_names: set[str] = field(default_factory=set)
    bound_once: set[str] = field(default_factory=set)
    marks: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.writer.temporaries.enabled = False

    def _begin(self, body: tuple[ir.Stmt, ...], arguments: str) -> None:
        self._put(0, f"def E_{local(self.event.name)}__careful({arguments}):")
        self._find_fuzzy_names(body)

    def _find_fuzzy_names(self, body: tuple[ir.Stmt, ...]) -> None:
        times = Counter(s.name for s in all_statements(body) if isinstance(s, ir.Let))
        self.bound_once = {name for name, n in times.items() if n == 1}
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
                if key.name == "Pool" and isinstance(variable.value, ir.BoolType):
                    continue  # what is doubted of a pool are its counts
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

    def _let(self, let: ir.Let, depth: int, path: str) -> None:
        """Z_name: the bits it depends on; A_name: what its value is worth.

        Where it is unsure whether the name is bound at all, so is what it is worth, if another arm may have bound it;
        else it is used in this arm alone, whose stores and obligations know that they are unsure.
        """
        super()._let(let, depth, path)
        name = let.name
        if name not in self.fuzzy_names:
            return
        own = self._bits(let.value)
        self._put(depth, f"Z_{name} = {' | '.join(b for b in (path, own) if b) or 0}")
        worth = self._call(let.value) if own else local(name)
        if path and name not in self.bound_once:
            worth = f"(UNKNOWN if {path} else {worth})"
        self._put(depth, f"A_{name} = {worth} if Z_{name} == 1 else UNKNOWN if Z_{name} else {local(name)}")

    def _reset(self, reset: ir.Reset, depth: int) -> None:
        super()._reset(reset, depth)
        self._put(depth, f"F_{reset.sort}[{self._plain(reset.entity)}] = 0")

    def _count(self, judged: list[int], depth: int) -> None:
        """Each obligation counts itself."""

    def _path_inside(self, statement: ir.If, depth: int, path: str) -> str:
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
        for store, index in self._stores((statement,)):
            if index is not None:
                yield self._spread(self.shared.variables[store.variable], index)

    def _stores(self, block: tuple[ir.Stmt, ...]) -> Iterator[tuple[ir.Store, tuple[ir.Expr, ...] | None]]:
        """Every store below, and its index by what is known before the block; None where that does not say it."""
        inside: dict[str, ir.Expr | None] = {}
        changed: set[str] = set()

        def before(expr: ir.Expr) -> ir.Expr | None:
            whole = _substitute(expr, inside)
            return None if any(isinstance(e, ir.Name) and e.name in inside for e in every(whole)) else whole

        for statement in all_statements(block):
            match statement:
                case ir.Let(name, value):
                    reads = {e.variable for e in every(value) if isinstance(e, ir.Read)}
                    inside[name] = None if reads & changed else before(value)
                case ir.For(name):
                    inside[name] = None
                case ir.Reset(sort):
                    changed.update(v.name for v in reset_by(sort, self.shared.variables))
                case ir.Store(variable, index):
                    parts = [before(i) for i in index]
                    yield statement, None if None in parts else tuple(p for p in parts if p is not None)
                    changed.add(variable)
                case _:
                    pass

    def _spread(self, variable: ir.Variable, index: tuple[ir.Expr, ...]) -> str:
        """Source that gives BITS to the member that a store names first."""
        for key, part in zip(variable.keys, index, strict=False):
            if isinstance(key, ir.SortType):
                code = self._plain(part)
                return f"if {code} >= 0: F_{key.name}[{code}] |= BITS"
        slot = self.shared.slots.get(variable.name)
        return "" if slot is None else f"F[{slot}] |= BITS"

    def _store(self, store: ir.Store, depth: int, path: str) -> None:
        """What is not sure to be stored, or not exact, is stored as far as it is sure."""
        variable = self.shared.variables[store.variable]
        path = self._mark_index(store, depth, path)
        bits = " | ".join(b for b in (path, self._bits(store.value)) if b)
        if not bits:
            super()._store(store, depth, path)
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
        self._put(depth + 1, f"PUT({store.variable!r}, {self._index(store.index)}, W0, {path or 0} & 1)")
        foreign = " | ".join(b for b in (path, self._bits(store.value, own)) if b)
        self._put(depth + 1, f"if isinstance(W0, int): {name} = {path or 0}")
        self._put(depth, "else:")
        super()._store(store, depth + 1, path)
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

    def _index(self, index: tuple[ir.Expr, ...]) -> str:
        """Source of the indexes, each as far as it is known."""
        return "(" + "".join(f"{self._call(i) if self._bits(i) else self._plain(i)}, " for i in index) + ")"

    def _weaken(self, other: tuple[ir.Stmt, ...], depth: int, path: str) -> None:
        """In one arm of an unsure test: what the other arm might have stored is sure no more."""
        bound = {s.name for s in all_statements(other) if isinstance(s, ir.Let | ir.For)}
        earlier: set[str] = set()
        lines: list[str] = []
        for store, index in self._stores(other):
            value = list(every(store.value))
            known = not any(isinstance(e, ir.Name) and e.name in bound for e in value)
            known = known and not any(isinstance(e, ir.Read) and e.variable in earlier for e in value)
            if index is not None:
                worth = self._call(store.value) if known else "UNKNOWN"
                lines.append(f"PUT({store.variable!r}, {self._index(index)}, {worth}, 1)")
            earlier.add(store.variable)
        if lines:
            self._put(depth, f"if {path} & 1:")
            for line in dict.fromkeys(lines):
                self._put(depth + 1, line)

    def _path_of_turns(self, domain: ir.Domain, depth: int, path: str) -> str:
        """Entries that are there are sure; that no others are, is not, but what is done for each is no less right."""
        if isinstance(domain, ir.Members):
            return path
        bits = " | ".join(dict.fromkeys(self._index_terms(self.shared.variables[domain.variable], (domain.first,), {})))
        if not bits:
            return path
        name = self._fresh_mark("P")
        self._put(depth, f"{name} = ({bits}) & 2{f' | {path}' if path else ''}")
        return name

    def _judge(self, condition: ir.Expr, k: int, fail: str, depth: int, path: str) -> None:
        bits = " | ".join(b for b in (path, self._bits(condition)) if b)
        inner = depth
        if bits:
            self._put(depth, f"Z = {bits}")
            self._put(depth, "if not Z:")
            inner = depth + 1
        self._put(inner, f"C[{k}] += 1")
        test = self._plain(condition)
        self._put(inner, f"if not {test}: {fail}")
        if bits:
            self._put(depth, "elif Z == 1:")
            verdict = self._call(condition, "JUDGE")
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
