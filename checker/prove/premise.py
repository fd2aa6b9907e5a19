"""The start of a counterexample to induction as a condition, for an explorer to look for: what is printed of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any  # z3 is untyped

import z3
from kvsan.checker.prove.terms import Cell, Terms
from kvsan.spec.lang import ir
from kvsan.spec.lang.simplify import conj, negate
from kvsan.spec.lang.symbolic import is_open
from kvsan.spec.lang.walk import every

Term = Any


@dataclass(frozen=True)
class Seen:
    """A model: the terms that stand for its members, by their values in it; `value` evaluates a term."""

    terms: Terms
    stands: Mapping[int, Term]
    value: Callable[[Term], Term]

    def name(self, key: int) -> ir.Name:
        """The name of a member."""
        return ir.Name(f"m{list(self.stands).index(key)}", ir.SortType(self.stands[key].sort().name()))


def premise(seen: Seen, cells: Sequence[Cell]) -> ir.Expr:
    """That some members, all different, have these entries."""
    parts = [part for cell in cells for part in _has_value(seen, cell)]
    named = {e.name for part in parts for e in every(part) if isinstance(e, ir.Name)}
    members = [m for m in map(seen.name, seen.stands) if m.name in named]
    apart = [ir.Compare("!=", a, b) for a, b in combinations(members, 2) if a.type == b.type]
    whole = conj(*apart, *parts)
    for m in reversed(members):
        assert isinstance(m.type, ir.SortType)
        whole = ir.Quantifier("any", m.name, m.type, ir.Members(m.type.name), whole)
    return whole


def _has_value(seen: Seen, cell: Cell) -> Iterator[ir.Expr]:
    """The entry has the value that it has in the model."""
    v, members = seen.terms.variables[cell.variable], list(cell.members)
    index = tuple(
        ir.Const(sized, key) if sized is not None else seen.name(seen.value(members.pop(0)).get_id())
        for key, sized in zip(v.keys, cell.sized, strict=True)
    )
    read, found = ir.Read(v.name, index, v.value), seen.value(cell.term)
    inner = ir.bare(v.value)
    if isinstance(inner, ir.SetType):
        yield from _has_members(seen, cell, read, inner)
    elif is_open(inner, seen.terms.sizes):
        yield from _is_member(seen, found, read, v.value)
    elif inner == ir.BOOL:
        yield read if z3.is_true(found) else negate(read)
    elif isinstance(v.value, ir.OptionType) and found.as_long() < 0:
        yield ir.IsNone(read)
    else:
        yield ir.Compare("==", read, ir.Const(found.as_long(), inner))


def _is_member(seen: Seen, found: Term, read: ir.Read, type_: ir.Type) -> Iterator[ir.Expr]:
    """The entry is that member; one without a name is none of those that have one."""
    if isinstance(type_, ir.OptionType) and found.get_id() == seen.value(seen.terms.none(type_)).get_id():
        yield ir.IsNone(read)
    elif found.get_id() in seen.stands:
        yield ir.Compare("==", read, seen.name(found.get_id()))
    else:
        yield from [negate(ir.IsNone(read))] if isinstance(type_, ir.OptionType) else []
        alike = (seen.name(k) for k, t in seen.stands.items() if t.sort() == found.sort())
        yield from (ir.Compare("!=", read, m) for m in alike)


def _has_members(seen: Seen, cell: Cell, read: ir.Read, type_: ir.SetType) -> Iterator[ir.Expr]:
    """Which members that have a name, or which numbers, are in the set."""
    if type_.element is not None and is_open(type_.element, seen.terms.sizes):
        for key, stand in seen.stands.items():
            if stand.sort() == seen.terms.sort(type_.element):
                within = ir.Compare("in", seen.name(key), read)
                yield within if z3.is_true(seen.value(z3.Select(cell.term, stand))) else negate(within)
        return
    bits, element = seen.value(cell.term).as_long(), type_.element or ir.NAT
    for k in range(seen.terms.width(type_.element)):
        within = ir.Compare("in", ir.Const(k, element), read)
        yield within if bits >> k & 1 else negate(within)
