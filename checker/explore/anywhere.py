"""Whether some entry of a variable has a value, asked of all entries of a word at once.

`any(s.table[r, p] == b for ...)` over whole sorts or rows compares fields that lie side by side: the word, less as many
copies of the value, has a field of zeros exactly where an entry has it. Fields do not borrow from each other, since the
low bits of each are added to as many ones first, and only the carry into its top bit is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from kvsan.checker.explore.layout import Field
from kvsan.checker.explore.words import runs
from kvsan.spec.lang import ir

if TYPE_CHECKING:
    from kvsan.checker.explore.emit_expr import Emitter

Binders = tuple[ir.Quantifier, ...]


@dataclass(frozen=True)
class _Part:
    """`field[fixed..., bound...] == value`, each name in `bound` ranging over all it can be."""

    field: Field
    fixed: tuple[str, ...]
    value: ir.Name | ir.Const


def anywhere(expr: ir.Quantifier, emit: Emitter) -> str | None:
    """The truth of `any ... ==` or `all ... !=` over entries side by side, None where it is something else."""
    parts = _parts(expr, expr.kind, (), emit)
    if parts is None:
        return None
    found = " or ".join(test for part in parts for test in _tests(part, emit))
    return f"({found})" if expr.kind == "any" else f"(not ({found}))"


def _parts(expr: ir.Expr, kind: str, binders: Binders, emit: Emitter) -> list[_Part] | None:
    match expr:
        case ir.Quantifier(same, body=body) if same == kind:
            return _parts(body, kind, (*binders, expr), emit)
        case ir.Or(items) if kind == "any":
            return _each(items, kind, binders, emit)
        case ir.And(items) if kind == "all":
            return _each(items, kind, binders, emit)
        case ir.Compare(op, ir.Read() as read, other) | ir.Compare(op, other, ir.Read() as read):
            part = _part(read, other, binders, emit) if op == ("==" if kind == "any" else "!=") else None
            return None if part is None else [part]
        case _:
            return None


def _each(items: tuple[ir.Expr, ...], kind: str, binders: Binders, emit: Emitter) -> list[_Part] | None:
    found = [_parts(item, kind, binders, emit) for item in items]
    return None if any(f is None for f in found) else [part for f in found if f for part in f]


def _part(read: ir.Read, other: ir.Expr, binders: Binders, emit: Emitter) -> _Part | None:
    """The comparison, where every entry that it is about lies beside the next and nothing can be undefined."""
    field, names = emit.layout.fields.get(read.variable), [b.name for b in binders]
    if field is None or not field.bits:
        return None
    index = [i.name if isinstance(i, ir.Name) else "" for i in read.index]
    fixed = tuple(index[: len(index) - len(names)])
    if index[len(fixed) :] != names or (fixed and not field.together(len(fixed))):
        return None
    if not all(_known(name, size, emit) for name, size in zip(fixed, field.shape, strict=False)):
        return None
    if not all(_whole(b, read, field, other) for b in binders):
        return None
    match other:
        case ir.Name(name) if _known(name, field.values - field.optional, emit):
            return _Part(field, fixed, other)
        case ir.Const(value) if value is None or value < field.values - field.optional:
            return _Part(field, fixed, other)
        case _:
            return None


def _whole(binder: ir.Quantifier, read: ir.Read, field: Field, other: ir.Expr) -> bool:
    """Whether the name goes over every index, or over those that the row of the same variable has.

    A row leaves out what is None, so the value must not be.
    """
    match binder.domain:
        case ir.Members():
            return True
        case ir.Row(variable, first):
            own = variable == read.variable and read.index[:-1] == (first,)
            return own and field.optional and not isinstance(other.type, ir.OptionType)
        case _:
            return False


def _known(name: str, below: int, emit: Emitter) -> bool:
    """A name from outside whose value is shown to be below a size, so that nothing is undefined.

    Names are unique within a step: one that is bound here has no value yet.
    """
    top = emit.values[name].top if name in emit.values else None
    return top is not None and top < below


def _tests(part: _Part, emit: Emitter) -> Iterator[str]:
    """One for each word that has some of the entries; words that are alike have one in a loop."""
    field, value = part.field, emit.expr(part.value).text
    stored = f"({value} + 1)" if field.optional else value
    if part.fixed:
        yield _has(emit, *_row(part, emit), stored)
        return
    for chunk, alike in runs(field):
        home = field.chunks[0].word if field.even else chunk.word
        if alike == 1:
            yield _has(emit, f"{emit.word(home, str(chunk.word))} >> {chunk.offset}", chunk.count, field.bits, stored)
            continue
        found, at = emit.out.fresh("q"), emit.out.fresh("k")
        emit.out.line(f"{found} = False")
        with emit.out.block(f"for {at} in range({chunk.word}, {chunk.word + alike})"):
            has = _has(emit, f"{emit.word(home, at)} >> {chunk.offset}", chunk.count, field.bits, stored)
            with emit.out.block(f"if {has}"):
                emit.out.line(f"{found} = True")
                emit.out.line("break")
        yield found


def _row(part: _Part, emit: Emitter) -> tuple[str, int, int]:
    """The entries with the fixed indexes: what has the first of them in its low bits, how many, the bits of each."""
    field, row = part.field, ""
    for name, size in zip(part.fixed, field.shape, strict=False):
        row = f"({row} * {size} + {emit.values[name].text})" if row else emit.values[name].text
    count, home = prod(field.shape[len(part.fixed) :]), field.chunks[0].word
    if field.even:
        word, shift = emit.computed(field, row, field.even // count, count * field.bits)
        return f"{emit.word(home, word)} >> {shift}", count, field.bits
    return f"{emit.word(home)} >> ({row} * {count * field.bits} + {field.chunks[0].offset})", count, field.bits


def _has(emit: Emitter, shifted: str, count: int, bits: int, stored: str) -> str:
    ones = sum(1 << n * bits for n in range(count))
    low, high = ones * ((1 << bits - 1) - 1), ones << bits - 1
    apart = emit.out.fresh("g")
    emit.out.line(f"{apart} = (({shifted}) & {ones * ((1 << bits) - 1)}) ^ ({stored} * {ones})")
    return f"(((({apart} & {low}) + {low}) | {apart}) & {high}) != {high}"
