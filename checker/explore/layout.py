"""Where each variable of a state lies in its words. An entry never straddles two 64-bit words.

An entry is stored as a natural: a member or choice as its index, a set as its mask, an option as 0 for None and one
more than the value else. So the all-default state is all zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod

from kvsan.spec.lang import ir
from kvsan.spec.lang.symbolic import Sizes, size_of

WORD = 64
LINE = 8
"""The words of a cache line."""
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
    """One variable. shape: members per index. values: how many an entry may have. bits: what an entry takes."""

    name: str
    keys: tuple[ir.Type, ...]
    type: ir.Type
    shape: tuple[int, ...]
    values: int
    bits: int
    chunks: tuple[Chunk, ...]

    @property
    def entries(self) -> int:
        return prod(self.shape)

    @property
    def optional(self) -> bool:
        return isinstance(self.type, ir.OptionType)


@dataclass(frozen=True)
class Layout:
    """All fields, in the order of the specification, and the words of one state."""

    fields: Mapping[str, Field]
    words: int
    bits: int

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
    """Place the variables, wide ones first; one is split over words only where that saves a word. Raises TooWide."""
    bare = [_bare(v, sizes) for v in variables]
    total = sum(f.bits * f.entries for f in bare)
    fewest = -(-total // WORD)
    room: list[int] = []
    placed: dict[str, Field] = {}
    for field in sorted(bare, key=lambda f: -f.bits * f.entries):
        placed[field.name] = _place(field, room, fewest)
    return Layout({f.name: placed[f.name] for f in bare}, max(1, len(room)), total)


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
