"""States between their two forms: words, and the plain form of `kvsan.spec.lang.interpret`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from kvsan.checker.explore.layout import WORD, Field, Layout
from kvsan.spec.lang import ir
from kvsan.spec.lang.interpret import Plain, Value, default


def entries(field: Field) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Every entry: its number and its index."""
    return enumerate(product(*map(range, field.shape)))


def where(field: Field, entry: int) -> tuple[int, int]:
    """The word and the shift of an entry."""
    even = field.chunks[entry // field.even] if field.even else None
    chunk = even or next(c for c in field.chunks if c.first <= entry < c.first + c.count)
    return chunk.word, chunk.offset + (entry - chunk.first) * field.bits


def encode(field: Field, value: Value) -> int:
    """A value as it is stored."""
    if isinstance(value, frozenset):
        return sum(1 << m for m in value)
    if field.optional:
        return 0 if value is None else value + 1
    assert value is not None, f"{field.name} is no option"
    return int(value)


def decode(field: Field, stored: int) -> Value:
    """What a stored value means."""
    match field.type:
        case ir.SetType():
            return frozenset(m for m in range(stored.bit_length()) if stored >> m & 1)
        case ir.OptionType():
            return None if stored == 0 else stored - 1
        case ir.BoolType():
            return bool(stored)
        case _:
            return stored


def pack(state: Plain, layout: Layout) -> tuple[int, ...]:
    """The words of a state, signed. Variables without a field are left out."""
    words = [0] * layout.words
    for name, field in layout.fields.items():
        given = state.get(name, {})
        for entry, index in entries(field) if given and field.bits else ():
            if index in given:
                word, shift = where(field, entry)
                words[word] |= encode(field, given[index]) << shift
    return tuple(w - (1 << WORD) if w >> (WORD - 1) else w for w in words)


def unpack(words: Sequence[int], layout: Layout) -> Plain:
    """The plain form of a packed state."""
    state: Plain = {}
    for name, field in layout.fields.items():
        if not field.bits:
            continue
        absent, found = default(field.type), dict[tuple[int, ...], Value]()
        for entry, index in entries(field):
            word, shift = where(field, entry)
            value = decode(field, (int(words[word]) >> shift) & ((1 << field.bits) - 1))
            if value != absent:
                found[index] = value
        if found:
            state[name] = found
    return state
