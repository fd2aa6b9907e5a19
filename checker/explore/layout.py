"""Where each variable of a state lies in its words. An entry never straddles two 64-bit words.

An entry is stored as a natural: a member or choice as its index, a set as its mask, an option as 0 for None and one
more than the value else. So the all-default state is all zero.

Few words are packed tight. Where they are many, a field that is wider than a word has words of its own, with as many
entries in each, so that code finds an entry by a division (see `words`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import prod

from kvsan.spec.lang import ir
from kvsan.spec.lang.symbolic import Sizes, size_of

WORD = 64
LINE = 8
"""The words of a cache line."""
MOST_NAMED = 8
"""Words up to which a state is packed tight, and each has a name in generated code."""
WIDEST_SET = 62
"""A mask is a signed 64-bit number in the generated code, and `1 << n` for n members must be one too."""


class TooWide(Exception):
    """A type that cannot be packed: it has no bound, or more members than a mask holds."""


@dataclass(frozen=True)
class Chunk:
    """Entries first .. first+count-1 of a field, side by side in one word from bit `offset` on."""

    word: int
    offset: int
    first: int
    count: int


@dataclass(frozen=True)
class Field:
    """One variable. shape: members per index. values: how many an entry may have. bits: what an entry takes.

    even: entries in each word but the last, in words one after the other; 0 where it is only as the chunks say.
    """

    name: str
    keys: tuple[ir.Type, ...]
    type: ir.Type
    shape: tuple[int, ...]
    values: int
    bits: int
    chunks: tuple[Chunk, ...]
    even: int = 0

    @property
    def entries(self) -> int:
        return prod(self.shape)

    @property
    def optional(self) -> bool:
        return isinstance(self.type, ir.OptionType)

    def together(self, keys: int) -> bool:
        """Whether the entries with the same first keys, so many, lie in one word, side by side."""
        return len(self.chunks) == 1 or (self.even > 0 and self.even % prod(self.shape[keys:]) == 0)


@dataclass(frozen=True)
class Layout:
    """All fields, in the order of the specification, and the words of one state. spread: too many for a name each."""

    fields: Mapping[str, Field]
    words: int
    bits: int
    spread: bool = False

    @property
    def cut(self) -> int:
        """How many words of a state a search keeps apart from the others, 0 where it keeps rows whole.

        A wide row is two numbers, of its halves: many states share a half. That takes less memory (SCOPES.md tells the
        bytes a state), and two lookups more.
        """
        return (self.words + 1) // 2 if self.words > LINE else 0

    @property
    def widths(self) -> tuple[int, ...]:
        """The words of a row in each set of rows that a search keeps: the states, then the halves."""
        return (1, self.cut, self.words - self.cut) if self.cut else (self.words,)


def values_of(type_: ir.Type, sizes: Sizes) -> int:
    """How many values a type has. Raises TooWide."""
    match type_:
        case ir.OptionType(inner):
            return values_of(inner, sizes) + 1
        case ir.SetType(element):
            members = 0 if element is None else size_of(element, sizes)
            if members > WIDEST_SET:
                raise TooWide(f"a set of {members} members is wider than a word")
            return 1 << members
        case ir.NatType(None):
            raise TooWide("a natural without a range cannot be packed")
        case _:
            return size_of(type_, sizes)


def layout(variables: Iterable[ir.Variable], sizes: Sizes) -> Layout:
    """Place the variables, wide ones first. Raises TooWide."""
    bare = [_bare(v, sizes) for v in variables]
    wide_first = sorted(bare, key=lambda f: -f.bits * f.entries)
    placed, words = _tight(wide_first)
    spread = words > MOST_NAMED
    if spread:
        placed, words = _spread(wide_first)
    total = sum(f.bits * f.entries for f in bare)
    return Layout({f.name: placed[f.name] for f in bare}, max(1, words), total, spread)


def _tight(fields: list[Field]) -> tuple[dict[str, Field], int]:
    """A field is split over words only where that saves a word."""
    fewest = -(-sum(f.bits * f.entries for f in fields) // WORD)
    room: list[int] = []
    return {f.name: _place(f, room, fewest) for f in fields}, len(room)


def _spread(fields: list[Field]) -> tuple[dict[str, Field], int]:
    """A field that a word can hold is not split; the others are even, and leave what they do not fill to those."""
    room: list[int] = []
    placed: dict[str, Field] = {}
    for field in fields:
        narrow = field.bits * field.entries <= WORD
        placed[field.name] = _place(field, room, len(room) + 1) if narrow else _evenly(field, room)
    return placed, len(room)


def _evenly(field: Field, room: list[int]) -> Field:
    """room: as in `_place`."""
    even = _entries_a_word(field)
    chunks = []
    for first in range(0, field.entries, even):
        chunk = Chunk(len(room), 0, first, min(even, field.entries - first))
        chunks.append(chunk)
        room.append(WORD - chunk.count * field.bits)
    return replace(field, chunks=tuple(chunks), even=even)


def _entries_a_word(field: Field) -> int:
    """Whole rows where that takes few words more: a row in a word is read, copied and cleared at once."""
    most, row = WORD // field.bits, prod(field.shape[1:])
    whole = most // row * row
    return whole if whole * 5 >= most * 4 else most


def _bare(v: ir.Variable, sizes: Sizes) -> Field:
    values = values_of(v.value, sizes)
    shape = tuple(size_of(k, sizes) for k in v.keys)
    return Field(v.name, v.keys, v.value, shape, values, (values - 1).bit_length(), ())


def _place(field: Field, room: list[int], fewest: int) -> Field:
    """room: free bits at the top of each word so far; changed."""
    chunks: list[Chunk] = []
    first, need = 0, field.bits * field.entries
    if need == 0:
        return field
    snug = [w for w, free in enumerate(room) if free >= need]
    if not snug and need <= WORD and len(room) < fewest:
        room.append(WORD)
        snug = [len(room) - 1]
    while first < field.entries:
        if not any(free >= field.bits for free in room):
            room.append(WORD)
        word = min(snug, key=room.__getitem__) if snug else max(range(len(room)), key=room.__getitem__)
        count = min(field.entries - first, room[word] // field.bits)
        chunks.append(Chunk(word, WORD - room[word], first, count))
        room[word] -= count * field.bits
        first += count
    return Field(field.name, field.keys, field.type, field.shape, field.values, field.bits, tuple(chunks))
