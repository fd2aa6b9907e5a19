"""The start states: every fact holds in them, for any number of blocks and branches.

An initial step names a few members and leaves all others alike, at their defaults (blocks and branches are scalarsets).
A fact speaks of a few members at once. So it holds of every scope when it holds of one that has, beside those which the
initial step touches, as many more as the fact names: a member more would be one more of the untouched.
"""

from __future__ import annotations

from itertools import product

from kvsan.checker.prove.system import System
from kvsan.spec.lang import ir
from kvsan.spec.lang.interpret import Plain, Value, default, value
from kvsan.spec.lang.symbolic import Guarded, Sizes, predicate, size_of

Fact = ir.Step


def broken_at_start(system: System) -> list[tuple[str, str]]:
    """The facts that a start state breaks, with the initial step."""
    found = []
    for start in system.begun:
        for fact in system.facts.all():
            if not holds_in(fact, system.variables, system.base.sizes, start.state):
                found.append((fact.name, start.step))
    return found


def holds_in(fact: Fact, variables: dict[str, ir.Variable], sizes: Sizes, state: Plain) -> bool:
    """Whether a fact holds of one state, for every value of its parameters."""
    condition = predicate(fact, variables, sizes)
    domains = [range(size_of(p.type, sizes)) for p in fact.params]
    if fact.kind == "counted":
        return _counts(fact, condition, variables, sizes, state)
    return all(_true(fact, condition, variables, state, values) for values in product(*domains))


def _true(
    fact: Fact, condition: Guarded, variables: dict[str, ir.Variable], state: Plain, values: tuple[int, ...]
) -> bool:
    names: dict[str, Value] = {f"{p.name}'": v for p, v in zip(fact.params, values, strict=True)}
    return bool(value(condition.condition, variables, state, names))


def _counts(fact: Fact, condition: Guarded, variables: dict[str, ir.Variable], sizes: Sizes, state: Plain) -> bool:
    variable = variables[fact.name.removesuffix("_counted")]
    *keys, member = (range(size_of(p.type, sizes)) for p in fact.params)
    for key in product(*keys):
        counted = sum(_true(fact, condition, variables, state, (*key, m)) for m in member)
        if state.get(variable.name, {}).get(key, default(variable.value)) != counted:
            return False
    return True
