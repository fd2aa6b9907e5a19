"""What an abstraction sees of a value: of a member, whether it is none or a witness; of a number, which it is."""

from __future__ import annotations

from typing import Any  # z3 is untyped

import z3
from kvsan.checker.prove.terms import Terms
from kvsan.spec.lang import ir
from kvsan.spec.lang.symbolic import is_open, size_of

Term = Any
BLOCK, BRANCH = ir.SortType("Block"), ir.SortType("Branch")


def letter(type_: ir.Type) -> str:
    """The name of the witness of a sort."""
    return "b" if type_ == BLOCK else "w" if type_ == BRANCH else "?"


def _shown(type_: ir.Type, number: int) -> str:
    if number < 0:
        return "None"
    return type_.names[number] if isinstance(type_, ir.ChoiceType) else str(number)


def told_apart(terms: Terms, type_: ir.Type) -> range:
    """The values of a number that are told apart; of one without an end, none, one and more."""
    inner = ir.bare(type_)
    no_end = isinstance(inner, ir.NatType) and inner.parameter not in terms.sizes.limits
    return range(-1 if isinstance(type_, ir.OptionType) else 0, 2 if no_end else size_of(inner, terms.sizes))


def views(terms: Terms, value: Term, type_: ir.Type, block: Term, branch: Term) -> list[Term]:
    """A value as truth values."""
    inner = ir.bare(type_)
    if isinstance(inner, ir.SetType):
        if inner.element is not None and is_open(inner.element, terms.sizes):
            return [z3.Select(value, block if inner.element == BLOCK else branch)]
        return [z3.Extract(k, k, value) == 1 for k in range(terms.width(inner.element))]
    if not is_open(inner, terms.sizes):
        return [value] if inner == ir.BOOL else [value == k for k in told_apart(terms, type_)]
    is_none = [value == terms.none(inner)] if isinstance(type_, ir.OptionType) else []
    return is_none + ([value == (block if inner == BLOCK else branch)] if inner in (BLOCK, BRANCH) else [])


def words(terms: Terms, type_: ir.Type) -> list[str]:
    """What each view says, to stand behind the entry."""
    inner = ir.bare(type_)
    if isinstance(inner, ir.SetType):
        if inner.element is not None and is_open(inner.element, terms.sizes):
            return [f" has {letter(inner.element)}"]
        return [f" has {k}" for k in range(terms.width(inner.element))]
    if not is_open(inner, terms.sizes):
        return [""] if inner == ir.BOOL else [f" is {_shown(inner, k)}" for k in told_apart(terms, type_)]
    is_none = [" is None"] if isinstance(type_, ir.OptionType) else []
    return is_none + ([f" is {letter(inner)}"] if inner in (BLOCK, BRANCH) else [])


def literals(terms: Terms, value: Any, type_: ir.Type, block: int, branch: int) -> list[Term]:
    """The views of a value in a start state."""
    inner = ir.bare(type_)
    if isinstance(inner, ir.SetType):
        if inner.element is not None and is_open(inner.element, terms.sizes):
            return [z3.BoolVal((block if inner.element == BLOCK else branch) in value)]
        width = terms.width(inner.element)
        return [z3.BoolVal(k in value) for k in range(width)]
    if not is_open(inner, terms.sizes):
        if inner == ir.BOOL:
            return [z3.BoolVal(bool(value))]
        return [z3.BoolVal((-1 if value is None else value) == k) for k in told_apart(terms, type_)]
    is_none = [z3.BoolVal(value is None)] if isinstance(type_, ir.OptionType) else []
    same = [z3.BoolVal(value == (block if inner == BLOCK else branch))] if inner in (BLOCK, BRANCH) else []
    return is_none + same


def is_empty(value: Term) -> Term:
    """Whether a set of members has none."""
    return value == z3.K(value.sort().domain(), z3.BoolVal(False))
