"""Evaluate the functional form on a plain state: the second evaluator, which shares nothing with `surface`.

A state maps each variable to its entries that differ from the default: `{"held": {(3,): True}, "shortages": {(): 2}}`.
Members and choices are their numbers, a set is a frozenset of numbers, None is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from kvsan.spec.lang import ir
from kvsan.spec.lang.symbolic import Functional, Guarded, Update

Value: TypeAlias = int | frozenset[int] | None
Plain: TypeAlias = dict[str, dict[tuple[int, ...], Value]]


@dataclass(frozen=True)
class Verdict:
    """One obligation that was reached: its number in the step, its rule, whether it held."""

    number: int
    rule: str
    holds: bool


@dataclass(frozen=True)
class Outcome:
    """enabled: every guard held. defined: nothing left its domain; the rest says nothing where this is False."""

    enabled: bool
    defined: bool
    verdicts: tuple[Verdict, ...]
    after: Plain


def default(type_: ir.Type) -> Value:
    """The default value of a type in a plain state."""
    return frozenset() if isinstance(type_, ir.SetType) else ir.default(type_)


@dataclass
class _Evaluation:
    state: Plain
    variables: Mapping[str, ir.Variable]
    values: Mapping[str, Value]
    memo: dict[int, Value]

    def truth(self, expr: ir.Expr) -> bool:
        return bool(self.of(expr))

    def of(self, expr: ir.Expr) -> Value:
        key = id(expr)
        if key not in self.memo:
            self.memo[key] = self._compute(expr)
        return self.memo[key]

    def number(self, expr: ir.Expr) -> int:
        value = self.of(expr)
        assert isinstance(value, int), f"{expr} is no number"
        return value

    def group(self, expr: ir.Expr) -> frozenset[int]:
        value = self.of(expr)
        assert isinstance(value, frozenset), f"{expr} is no set"
        return value

    def _compute(self, expr: ir.Expr) -> Value:
        match expr:
            case ir.Name(name):
                return self.values[name]
            case ir.Const(value):
                return value
            case ir.Empty():
                return frozenset()
            case ir.Read(variable, index):
                at = tuple(self.number(i) for i in index)
                return self.state.get(variable, {}).get(at, default(self.variables[variable].value))
            case ir.Not(operand):
                return not self.truth(operand)
            case ir.And(items):
                return all(self.truth(i) for i in items)
            case ir.Or(items):
                return any(self.truth(i) for i in items)
            case ir.Compare(op, a, b):
                return self._compare(op, a, b)
            case ir.IsNone(operand):
                return self.of(operand) is None
            case ir.Arith(op, a, b, type_):
                return self._sets(op, a, b) if isinstance(type_, ir.SetType) else self._numbers(op, a, b)
            case ir.Only(member):
                return frozenset((self.number(member),))
            case ir.Cond(test, then, other):
                return self.of(then if self.truth(test) else other)
            case ir.Some() | ir.Quantifier() | ir.LetIn() | ir.CallExpr():
                raise AssertionError(f"{type(expr).__name__} has no place in the functional form")
            case _:
                assert_never(expr)

    def _compare(self, op: str, a: ir.Expr, b: ir.Expr) -> bool:
        match op:
            case "==":
                return self.of(a) == self.of(b)
            case "!=":
                return self.of(a) != self.of(b)
            case "in":
                return self.of(a) in self.group(b)
            case "subset":
                return self.group(a) <= self.group(b)
            case "<":
                return self.number(a) < self.number(b)
            case "<=":
                return self.number(a) <= self.number(b)
            case ">":
                return self.number(a) > self.number(b)
            case _:
                return self.number(a) >= self.number(b)

    def _numbers(self, op: str, a: ir.Expr, b: ir.Expr) -> int:
        x, y = self.number(a), self.number(b)
        match op:
            case "+":
                return x + y
            case "-":
                return x - y
            case "*":
                return x * y
            case "//":
                return x // y
            case "%":
                return x % y
            case "min":
                return x if x < y else y
            case "max":
                return x if x > y else y
            case "excess":
                return x - y if x > y else 0
            case _:
                raise AssertionError(op)

    def _sets(self, op: str, a: ir.Expr, b: ir.Expr) -> frozenset[int]:
        if op == "span":
            return frozenset(range(self.number(a), self.number(b)))
        x, y = self.group(a), self.group(b)
        return x | y if op == "|" else x & y if op == "&" else x - y


def holds(predicate: Guarded, variables: Mapping[str, ir.Variable], state: Plain) -> bool | None:
    """An invariant or witness in one state; None where it is undefined."""
    run = _Evaluation(state, variables, {}, {})
    return run.truth(predicate.condition) if run.truth(predicate.defined) else None


def value(expr: ir.Expr, variables: Mapping[str, ir.Variable], state: Plain, values: Mapping[str, Value]) -> Value:
    """What an expression of a functional form is in a state, with these parameter values."""
    return _Evaluation(state, variables, values, {}).of(expr)


def run(step: Functional, variables: Mapping[str, ir.Variable], state: Plain, values: Mapping[str, Value]) -> Outcome:
    """Do one step with these parameter values. The state given is not changed."""
    evaluation = _Evaluation(state, variables, values, {})
    for guard in step.guard:
        if not evaluation.truth(guard.defined):
            return Outcome(True, False, (), state)
        if not evaluation.truth(guard.condition):
            return Outcome(False, True, (), state)
    for path, condition in step.defined:
        if evaluation.truth(path) and not evaluation.truth(condition):
            return Outcome(True, False, (), state)
    verdicts = tuple(
        Verdict(o.number, o.rule, evaluation.truth(o.holds)) for o in step.obligations if evaluation.truth(o.path)
    )
    after = {name: dict(entries) for name, entries in state.items()}
    for name, updates in step.updates.items():
        _apply(after, variables[name], updates, evaluation)
    return Outcome(True, True, verdicts, after)


def _apply(after: Plain, variable: ir.Variable, updates: tuple[Update, ...], evaluation: _Evaluation) -> None:
    entries = after.setdefault(variable.name, {})
    absent = default(variable.value)
    for update in updates:
        if not evaluation.truth(update.path):
            continue
        value = evaluation.of(update.value)
        index = [None if i is None else evaluation.number(i) for i in update.index]
        if None in index:
            for at in [e for e in entries if all(i is None or i == j for i, j in zip(index, e, strict=True))]:
                del entries[at]
        elif value == absent:
            entries.pop(tuple(i for i in index if i is not None), None)
        else:
            entries[tuple(i for i in index if i is not None)] = value
    if not entries:
        del after[variable.name]
