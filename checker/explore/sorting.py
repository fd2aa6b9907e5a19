"""Generated code that renames the members of one sort: into the order of their signatures, or as told.

What is known of one member is its row: its entries in each variable that it indexes, and the cells that name it. A row
whose entries lie side by side in a word is moved and compared as one number.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from kvsan.checker.explore.layout import Chunk, Field
from kvsan.checker.explore.raw import Raw
from kvsan.checker.explore.writer import Writer
from kvsan.spec.lang import ir

SIGNATURE_BITS = 62


class NoSymmetry(Exception):
    """The state cannot be sorted: the message says which variable is in the way."""


@dataclass(frozen=True)
class Roles:
    """Where a sort stands in a field: the keys that are of it, and whether the value is one, maybe None, or a set."""

    keys: tuple[int, ...]
    value: str  # '', 'one', 'option' or 'set'

    @property
    def count(self) -> int:
        return len(self.keys) + bool(self.value)


def roles(field: Field, sort: str) -> Roles:
    """The roles of a sort in a field."""
    type_ = ir.SortType(sort)
    keys = tuple(n for n, key in enumerate(field.keys) if key == type_)
    match field.type:
        case ir.OptionType(inner) if inner == type_:
            value = "option"
        case ir.SetType(element) if element == type_:
            value = "set"
        case _:
            value = "one" if field.type == type_ else ""
    return Roles(keys, value)


def joined(field: Field, sort: str) -> Field:
    """The field with what a member of the sort indexes as one entry, where that lies side by side in a word."""
    role, width = roles(field, sort), prod(field.shape[1:])
    apart = any(c.first % width or c.count % width for c in field.chunks)
    if role.keys != (0,) or role.value or apart or width * field.bits > SIGNATURE_BITS:
        return field
    chunks = tuple(Chunk(c.word, c.offset, c.first // width, c.count // width) for c in field.chunks)
    bits = width * field.bits
    return Field(field.name, field.keys[:1], field.type, field.shape[:1], 1 << bits, bits, chunks, field.even // width)


def settle(raw: Raw, fields: list[Field], sort: str, size: int) -> None:
    """`settle(words, sig, rank)`: the words with the members of `sort` in the order of their signatures."""
    out = raw.out
    placed = _signature(fields, sort)
    width = 1 + max((word for *_, word, _ in placed), default=0)
    with raw.function("settle", "sig, rank"):
        with out.block(f"for b in range({size * width})"):
            out.line("sig[b] = 0")
        for field, role, word, at in placed:
            _sign(raw, field, role, size, width, word, at)
        _rank(out, size, width)
        _moved(raw, fields, sort, size, "rank")


def _signature(fields: list[Field], sort: str) -> list[tuple[Field, Roles, int, int]]:
    """Each field that names the sort, with the word of the signature and the bit its part begins at.

    Parts wider than a word are refused.
    """
    out, word, at = list[tuple[Field, Roles, int, int]](), 0, 0
    for field in (joined(f, sort) for f in fields):
        role = roles(field, sort)
        if not role.count:
            continue
        bits = field.entries // field.shape[role.keys[0]] * field.bits if role.keys else field.entries
        if bits > SIGNATURE_BITS:
            raise NoSymmetry(f"`{field.name}` says too much about one {sort}: {bits} bits")
        if at + bits > SIGNATURE_BITS:
            word, at = word + 1, 0
        out.append((field, role, word, at))
        at += bits
    return out


def _sign(raw: Raw, field: Field, role: Roles, size: int, width: int, word: int, at: int) -> None:
    out = raw.out
    if role.keys:
        with raw.indexes(field, keep=role.keys[0]) as (index, rest):
            value = raw.get(field, index, "w")
            member = index[role.keys[0]]
            out.line(f"sig[{member} * {width} + {word}] |= {value} << ({rest} * {field.bits} + {at})")
        return
    with raw.indexes(field) as (index, rest):
        value = raw.get(field, index, "w")
        if role.value == "set":
            with out.block(f"for b in range({size})"):
                out.line(f"sig[b * {width} + {word}] |= (({value} >> b) & 1) << ({rest} + {at})")
        elif role.value == "option":
            with out.block(f"if {value} > 0"):
                out.line(f"sig[({value} - 1) * {width} + {word}] |= 1 << ({rest} + {at})")
        else:
            out.line(f"sig[{value} * {width} + {word}] |= 1 << ({rest} + {at})")


def _rank(out: Writer, size: int, width: int) -> None:
    """rank[b + 1]: the place of b, counted from 1; rank[0] is 0, which stands for None."""
    out.line("rank[0] = 0")
    with out.block(f"for b in range({size})"):
        out.line("place = 1")
        with out.block(f"for c in range({size})"):
            test = "c < b"
            for word in reversed(range(width)):
                x, y = f"sig[c * {width} + {word}]", f"sig[b * {width} + {word}]"
                test = f"({x} > {y} or ({x} == {y} and {test}))"
            out.line(f"place += 1 if {test} else 0")
        out.line("rank[b + 1] = place")


def _moved(raw: Raw, fields: list[Field], sort: str, size: int, rank: str) -> None:
    """Make the words `o` from the words `w` with member b named rank[b + 1] - 1."""
    out = raw.out
    raw.untouched([f for f in fields if not roles(f, sort).count])
    for field in (joined(f, sort) for f in fields):
        role = roles(field, sort)
        if not role.count:
            continue
        with raw.indexes(field) as (index, _):
            value = raw.get(field, index, "w")
            target = [f"({rank}[{i} + 1] - 1)" if n in role.keys else i for n, i in enumerate(index)]
            if role.value == "option":
                value = f"{rank}[{value}]"
            elif role.value == "one":
                value = f"({rank}[{value} + 1] - 1)"
            elif role.value == "set":
                mask = out.fresh("s")
                out.line(f"{mask} = 0")
                with out.block(f"for b in range({size})"):
                    out.line(f"{mask} |= (({value} >> b) & 1) << ({rank}[b + 1] - 1)")
                value = mask
            raw.add(field, target, value, "o")


def rename(raw: Raw, fields: list[Field], sort: str, size: int) -> None:
    with raw.function("rename", "rank"):
        _moved(raw, fields, sort, size, "rank")
