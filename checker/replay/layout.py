"""Where the state of a replay lives: plain lists and dicts, one per variable, over dense member numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from kvsan.spec.lang import ir

Container: TypeAlias = Any  # list of values, list of dicts, or dict: `shape` says which; the hot path indexes it raw


def encode(value: int | None) -> int:
    """A value as replay holds it: None is -1, a bool 0 or 1, a set a mask, a choice its index."""
    return -1 if value is None else int(value)


def default(type_: ir.Type) -> int:
    return encode(ir.default(type_))


def fixed(key: ir.Type) -> int | None:
    """How many members an index type has where the type itself says so."""
    match key:
        case ir.BoolType():
            return 2
        case ir.ChoiceType(names=names):
            return len(names)
        case _:
            return None


def shape(variable: ir.Variable) -> str:
    """How a variable is held.

    `cell`: a list of one. `list`: indexed by the first key. `rows`: a list by the first key of dicts from the second
    key, or from the tuple of the further keys. `dict`: from the key or the tuple of keys, where the first key is a
    range, whose bound a log does not say. Dicts never hold a default.
    """
    if not variable.keys:
        return "cell"
    match variable.keys[0]:
        case ir.SortType() | ir.ChoiceType() | ir.BoolType():
            return "list" if len(variable.keys) == 1 else "rows"
        case _:
            return "dict"


def container(variable: ir.Variable) -> Container:
    """An all-default container; lists over a sort start empty and grow."""
    match shape(variable):
        case "cell":
            return [default(variable.value)]
        case "dict":
            return {}
        case "list":
            return [default(variable.value)] * (fixed(variable.keys[0]) or 0)
        case _:
            return [{} for _ in range(fixed(variable.keys[0]) or 0)]


def grow(variable: ir.Variable, held: Container, sort: str, size: int) -> None:
    """Make room for `size` members of a sort where it is the first key."""
    if variable.keys and variable.keys[0] == ir.SortType(sort):
        missing = size - len(held)
        if shape(variable) == "list":
            held.extend([default(variable.value)] * missing)
        else:
            held.extend({} for _ in range(missing))


def get(variable: ir.Variable, held: Container, index: tuple[int, ...]) -> int:
    """One value, as the emitted code would read it."""
    match shape(variable):
        case "cell":
            value = held[0]
        case "list":
            value = held[index[0]]
        case "rows":
            value = held[index[0]].get(index[1] if len(index) == 2 else index[1:], default(variable.value))
        case _:
            value = held.get(index[0] if len(index) == 1 else index, default(variable.value))
    return int(value)


def put(variable: ir.Variable, held: Container, index: tuple[int, ...], value: int) -> None:
    """Set one value, as the emitted code would."""
    match shape(variable):
        case "cell":
            held[0] = value
            return
        case "list":
            held[index[0]] = value
            return
        case "rows":
            row, key = held[index[0]], index[1] if len(index) == 2 else index[1:]
        case _:
            row, key = held, index[0] if len(index) == 1 else index
    if value == default(variable.value):
        row.pop(key, None)
    else:
        row[key] = value


def entries(variable: ir.Variable, held: Container, index: tuple[object, ...]) -> list[tuple[int, ...]]:
    """The indexes of the stored entries that agree with the ints in `index`; anything else there matches all.

    Empty where the first index is an unsure member of a sort: that would be all of them.
    """
    first = index[0]
    match shape(variable):
        case "dict":
            found = [k if isinstance(k, tuple) else (k,) for k in held]
        case _ if isinstance(variable.keys[0], ir.SortType) and not isinstance(first, int):
            return []
        case "list":
            found = [(i,) for i in range(len(held))]
        case _:
            rows = [first] if isinstance(first, int) else range(len(held))
            found = [(r, *(k if isinstance(k, tuple) else (k,))) for r in rows for k in held[r]]
    return [at for at in found if all(not isinstance(i, int) or i == j for i, j in zip(index, at, strict=True))]


def constant_values(
    variables: Mapping[str, ir.Variable], given: Mapping[str, int | str | None]
) -> dict[str, int | None]:
    """The value of every `Const` scalar: given (a choice by name or index), else its default."""
    values: dict[str, int | None] = {}
    for name, variable in variables.items():
        if not variable.const or variable.keys:
            continue
        value = given.get(name, ir.default(variable.value))
        if isinstance(value, str):
            choice = ir.bare(variable.value)
            assert isinstance(choice, ir.ChoiceType), f"{name} is no choice"
            value = choice.names.index(value)
        values[name] = value
    return values
