"""Python source for one event of the lowered specification.

An event function updates the state and judges its obligations in straight-line code. Two versions exist: the plain
one, and a careful one that runs while some member is *fuzzy* (its past is unknown, or a violation tainted it). The
careful version finds, for each obligation, the members it depends on: none fuzzy, it judges as usual; one tainted, it
stays silent; one with an unknown past, it judges in three values (`unknown`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from kvsan.checker.replay.emit_expr import ExprWriter, Key, local
from kvsan.checker.replay.layout import default, shape
from kvsan.spec.lang import ir
from kvsan.spec.lang.effects import reset_by
from kvsan.spec.lang.walk import all_expressions, all_statements, every

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
    """Writes the plain version of one event. first: the machine's number of the event's first obligation.

    The methods that `CarefulWriter` replaces take `path`: its name for the bits of the conditions that led here, ''
    where none of them can be fuzzy.
    """

    shared: Shared
    event: ir.Step
    effects: tuple[ir.Stmt, ...]
    first: int
    silenced: frozenset[int]
    lines: list[str] = field(default_factory=list)
    writer: ExprWriter = field(init=False)

    def __post_init__(self) -> None:
        self.writer = ExprWriter(self.shared.variables)

    def source(self) -> str:
        """The whole function."""
        body = without_dead_lets(self.effects, self.silenced)
        self._begin(body, ", ".join(local(p.name) for p in self.event.params))
        self._block(body, 1, "")
        if len(self.lines) == 1:
            self.lines.append(f"{INDENT}pass")
        return self.writer.temporaries.resolve("\n".join(self.lines)) + "\n"

    def _begin(self, body: tuple[ir.Stmt, ...], arguments: str) -> None:
        self._put(0, f"def E_{local(self.event.name)}({arguments}):")
        self._put(1, "if ANY[0]:")
        self._put(2, f"return CAREFUL[{self.event.name!r}]({arguments})")

    def _put(self, depth: int, text: str) -> None:
        self.lines.append(INDENT * depth + text)

    # --- statements ---------------------------------------------------------------------------------------------------

    def _block(self, block: tuple[ir.Stmt, ...], depth: int, path: str) -> None:
        start = len(self.lines)
        self._count(
            [self.first + s.number for s in block if isinstance(s, ir.Obey) and s.number not in self.silenced], depth
        )
        for statement in block:
            self._statement(statement, depth, path)
        if len(self.lines) == start and depth > 1:
            self._put(depth, "pass")

    def _count(self, judged: list[int], depth: int) -> None:
        """One counter for all obligations of a block: they are judged together."""
        if judged:
            self._put(depth, f"H[{len(self.shared.blocks)}] += 1")
            self.shared.blocks.append(judged)

    def _statement(self, statement: ir.Stmt, depth: int, path: str) -> None:
        match statement:
            case ir.Let():
                self._let(statement, depth, path)
            case ir.Store():
                self._store(statement, depth, path)
            case ir.If():
                self._if(statement, depth, path)
            case ir.For():
                self._for(statement, depth, path)
            case ir.Obey():
                if statement.number not in self.silenced:
                    k = self.first + statement.number
                    shown = "".join(f"{self._plain(e)}, " for _, e in statement.names)
                    self._judge(statement.condition, k, f"FAIL(({k}, ({shown})))", depth, path)
            case ir.Reset():
                self._reset(statement, depth)
            case ir.Require() | ir.CallStmt():
                raise AssertionError("an event has no guard, and calls are inlined")
            case _:
                assert_never(statement)

    def _let(self, let: ir.Let, depth: int, path: str) -> None:
        self._put(depth, f"{local(let.name)} = {self.writer.expr(let.value)}")

    def _store(self, store: ir.Store, depth: int, path: str) -> None:
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
        inner = self._path_inside(statement, depth, path)
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
            self._weaken(other, depth, unsure)  # only careful code is ever unsure
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
        path = self._path_of_turns(loop.domain, depth, path)
        self._put(depth, f"for {local(loop.name)} in {domain}:")
        self._block(loop.body, depth + 1, path)
        kept.kept = before

    def _judge(self, condition: ir.Expr, k: int, fail: str, depth: int, path: str) -> None:
        if isinstance(condition, ir.Const):
            if not condition.value:
                self._put(depth, fail)
            return
        self._put(depth, f"if not {self.writer.expr(condition)}:")
        self._put(depth + 1, fail)

    def _path_inside(self, statement: ir.If, depth: int, path: str) -> str:
        return path

    def _path_of_turns(self, domain: ir.Domain, depth: int, path: str) -> str:
        return path

    def _weaken(self, other: tuple[ir.Stmt, ...], depth: int, path: str) -> None:
        raise AssertionError("plain code is never unsure")

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

    def _plain(self, expr: ir.Expr) -> str:
        """Source that keeps and uses no temporaries: for places off the sure path."""
        kept = self.writer.temporaries
        enabled, kept.enabled = kept.enabled, False
        code = self.writer.expr(expr)
        kept.enabled = enabled
        return code


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


def without_dead_lets(block: tuple[ir.Stmt, ...], silenced: frozenset[int]) -> tuple[ir.Stmt, ...]:
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
