"""Plain states under a renaming of members: what the tests of symmetries compare."""

from __future__ import annotations

from collections.abc import Mapping

from kvsan.spec.lang import ir
from kvsan.spec.lang.interpret import Plain, Value

Names = Mapping[str, tuple[int, ...]]
"""Per sort, the new number of each member."""


def member(type_: ir.Type | None, value: Value, names: Names) -> Value:
    """A value with the members in it renamed."""
    match type_:
        case ir.SortType(sort) if sort in names and isinstance(value, int):
            return names[sort][value]
        case ir.OptionType(inner):
            return member(inner, value, names)
        case ir.SetType(element) if isinstance(value, frozenset):
            return frozenset(x for v in value if isinstance(x := member(element, v, names), int))
        case _:
            return value


def renamed(state: Plain, variables: Mapping[str, ir.Variable], names: Names) -> frozenset[object]:
    """The entries of the state with the members of each sort in `names` renamed; {} only freezes them."""
    return frozenset(
        (v, tuple(member(k, i, names) for k, i in zip(variables[v].keys, at, strict=True)),
         member(variables[v].value, value, names))
        for v, entries in state.items()
        for at, value in entries.items()
    )  # fmt: skip


def moved(state: Plain, variables: Mapping[str, ir.Variable], names: Names) -> Plain:
    """The state with members renamed, as a state."""
    out: Plain = {}
    for v, entries in state.items():
        keys, type_ = variables[v].keys, variables[v].value
        out[v] = {
            tuple(x for k, i in zip(keys, at, strict=True) if isinstance(x := member(k, i, names), int)): member(
                type_, value, names
            )
            for at, value in entries.items()
        }
    return out
