"""One state for each orbit: generated code that renames blocks, and branches, into a fixed order.

Blocks: with the branches named, everything that is known of a block (its entries, and the cells that hold it) makes
its signature; blocks of one signature are interchangeable, so sorting by signature is exact. Branches: their colours,
made of sums over everything they take part in, do not depend on names; every order of the branches that sorts the
colours is tried, blocks sorted under each, and the least state wins. A colour that collides costs time, no state.

A specification qualifies where `scalarset` proves both sorts and no variable relates one block to another.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

from kvsan.checker.explore.layout import Field, Layout
from kvsan.checker.explore.raw import Raw
from kvsan.checker.explore.writer import Writer
from kvsan.spec.lang import ir

SIGNATURE_BITS = 62
MOST_BRANCHES = 6


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


def canonical(layout: Layout, sorted_: str, tried: str | None, sizes: dict[str, int]) -> str:
    """The text of `canonical(buf, first, n)`: sorts the members of one sort, tries the orders of another.

    Raises NoSymmetry.
    """
    fields = [f for f in layout.fields.values() if f.bits]
    for field in fields:
        if roles(field, sorted_).count > 1:
            raise NoSymmetry(f"`{field.name}` relates one {sorted_} to another, so they cannot be sorted")
    if tried is not None and sizes[tried] > MOST_BRANCHES:
        raise NoSymmetry(f"{sizes[tried]} members of {tried} have too many orders; at most {MOST_BRANCHES}")
    out = Writer()
    raw = Raw(out, layout)
    _settle(raw, fields, sorted_, sizes[sorted_])
    if tried is None:
        _driver(raw, f"settle({raw.words('w')}, sig, rank)", sizes[sorted_], 1)
    else:
        _rename(raw, fields, tried, sizes[tried])
        _colours(raw, fields, sorted_, tried, sizes)
        _least(raw, sorted_, tried, sizes)
    return out.text


def _driver(raw: Raw, call: str, size: int, width: int) -> None:
    out = raw.out
    with out.block("def canonical(buf, first, n)"):
        out.line(f"sig = words({size * width * 8})")
        out.line(f"rank = words({size + 1})")
        with out.block("for k in range(first, n)"):
            raw.load("buf", "k")
            out.line(f"{raw.words('w')} = {call}" if raw.layout.words > 1 else f"w0 = {call}")
            raw.save("buf", "k")


# --- the sort that is sorted ------------------------------------------------------------------------------------------


def _settle(raw: Raw, fields: list[Field], sort: str, size: int) -> None:
    """`settle(words, sig, rank)`: the words with the members of `sort` in the order of their signatures."""
    out = raw.out
    placed = _signature(fields, sort)
    width = 1 + max((word for *_, word, _ in placed), default=0)
    with out.block(f"def settle({raw.words('w')}, sig, rank)"):
        with out.block(f"for b in range({size * width})"):
            out.line("sig[b] = 0")
        for field, role, word, at in placed:
            _sign(raw, field, role, size, width, word, at)
        _rank(out, size, width)
        _moved(raw, fields, sort, size, "rank")
        raw.give()
    out.line("\n")


def _signature(fields: list[Field], sort: str) -> list[tuple[Field, Roles, int, int]]:
    """Each field that names the sort, with the word of the signature and the bit its part begins at.

    Parts wider than a word are refused.
    """
    out, word, at = list[tuple[Field, Roles, int, int]](), 0, 0
    for field in fields:
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


# --- renaming ---------------------------------------------------------------------------------------------------------


def _moved(raw: Raw, fields: list[Field], sort: str, size: int, rank: str) -> None:
    """Make the words `o` from the words `w` with member b named rank[b + 1] - 1."""
    out = raw.out
    raw.untouched([f for f in fields if not roles(f, sort).count])
    for field in fields:
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


def _rename(raw: Raw, fields: list[Field], sort: str, size: int) -> None:
    out = raw.out
    with out.block(f"def rename({raw.words('w')}, rank)"):
        _moved(raw, fields, sort, size, "rank")
        raw.give()
    out.line("\n")


# --- the sort whose orders are tried ----------------------------------------------------------------------------------


def _colours(raw: Raw, fields: list[Field], sorted_: str, tried: str, sizes: dict[str, int]) -> None:
    """`colours(words, c, d, c2, d2)`: c for `tried`, d for `sorted_`; two rounds. Returns the mask of those named."""
    out = raw.out
    out.line("@inline")
    with out.block("def stir(x)"):
        out.line("x = (x ^ (x >> 29)) * -4658895280553007687")
        out.line("return (x ^ (x >> 32)) * -7723592293110705685")
    out.line("\n")
    with out.block(f"def colours({raw.words('w')}, c, d, c2, d2)"):
        out.line("named = 0")
        for target, n in (("c", sizes[tried]), ("d", sizes[sorted_])):
            with out.block(f"for m in range({n})"):
                out.line(f"{target}[m] = 0")
                out.line(f"{target}2[m] = 0")
        with out.block("for turn in range(2)"):
            for tag, field in enumerate(fields, 1):
                _stir(raw, field, tag, sorted_, tried, sizes)
            for target, n in (("c", sizes[tried]), ("d", sizes[sorted_])):
                with out.block(f"for m in range({n})"):
                    out.line(f"{target}[m] = stir({target}2[m])")
        out.line("return named")
    out.line("\n")


def _stir(raw: Raw, field: Field, tag: int, sorted_: str, tried: str, sizes: dict[str, int]) -> None:
    """Add what each entry says to the colours of all that take part in it."""
    out = raw.out
    outer, inner = roles(field, tried), roles(field, sorted_)
    if not outer.count and not inner.count:
        return
    with raw.indexes(field) as (index, _):
        value = raw.get(field, index, "w")
        plain = [i for n, i in enumerate(index) if n not in outer.keys and n not in inner.keys]
        with out.block(f"if {value} != 0"):
            text = f"{tag}"
            for part in plain:
                text = f"({text} * 1000003 + {part})"
            if not outer.value and not inner.value:
                text = f"({text} * 1000003 + {value})"
            base = out.fresh("h")
            out.line(f"{base} = stir({text} + 7)")
            parts = [(f"c[{index[n]}]", f"c2[{index[n]}]") for n in outer.keys]
            parts += [(f"d[{index[n]}]", f"d2[{index[n]}]") for n in inner.keys]
            for n in outer.keys:
                out.line(f"named |= 1 << {index[n]}")
            for role, letter, sort in ((outer, "c", tried), (inner, "d", sorted_)):
                if role.value == "set":
                    with out.block(f"for m in range({sizes[sort]})"):
                        out.line(f"if not ({value} >> m) & 1:")
                        out.line("    continue")
                        _shares(out, base, [*parts, (f"{letter}[m]", f"{letter}2[m]")])
                        if letter == "c":
                            out.line("named |= 1 << m")
                    return
                if role.value:
                    at = f"{value} - 1" if role.value == "option" else value
                    parts.append((f"{letter}[{at}]", f"{letter}2[{at}]"))
                    if letter == "c":
                        out.line(f"named |= 1 << ({at})")
            _shares(out, base, parts)


def _shares(out: Writer, base: str, parts: list[tuple[str, str]]) -> None:
    for n, (_, target) in enumerate(parts):
        text = f"{base} + {n * 77}"
        for k, (colour, other) in enumerate(parts):
            if k != n:
                text = f"stir({text} + (5 if {_same(target, other)} else {colour}) * {2 * k + 3})"
        out.line(f"{target} += {text}")


def _same(target: str, other: str) -> str:
    """Whether two participants are one member (a branch that wrote its own token)."""
    if target.split("[")[0] != other.split("[")[0]:
        return "False"
    return f"({target.split('[', 1)[1][:-1]}) == ({other.split('[', 1)[1][:-1]})"


def _least(raw: Raw, sorted_: str, tried: str, sizes: dict[str, int]) -> None:
    """`canonical`: the least state over the orders of `tried` that sort the colours, members that nothing names last
    and in the order they have."""
    out, size, words = raw.out, sizes[tried], raw.layout.words
    out.lines.append(f"ORDERS = {[x for p in permutations(range(size)) for x in p]}")
    out.line("\n")
    with out.block("def canonical(buf, first, n)"):
        out.line(f"sig = words({sizes[sorted_] * 8})")
        out.line(f"rank = words({sizes[sorted_] + 1})")
        out.line(f"turn = words({size + 1})")
        out.line("turn[0] = 0")
        for name, length in (("c", size), ("d", sizes[sorted_])):
            out.line(f"{name} = words({length})")
            out.line(f"{name}2 = words({length})")
        with out.block("for k in range(first, n)"):
            raw.load("buf", "k")
            out.line(f"named = colours({raw.words('w')}, c, d, c2, d2)")
            out.line("some = False")
            for n in range(words):
                out.line(f"m{n} = w{n}")
            with out.block(f"for order in range(0, {len(list(permutations(range(size)))) * size}, {size})"):
                out.line("fits = True")
                with out.block(f"for j in range({size - 1})"):
                    out.line("x, y = ORDERS[order + j], ORDERS[order + j + 1]")
                    out.line("nx, ny = (named >> x) & 1, (named >> y) & 1")
                    with out.block("if nx < ny or (nx == ny and ((nx == 0 and x > y) or (nx == 1 and c[x] > c[y])))"):
                        out.line("fits = False")
                        out.line("break")
                out.line("if not fits:")
                out.line("    continue")
                with out.block(f"for j in range({size})"):
                    out.line("turn[ORDERS[order + j] + 1] = j + 1")
                renamed = ", ".join(f"r{n}" for n in range(words))
                out.line(f"{renamed} = rename({raw.words('w')}, turn)")
                out.line(f"{renamed} = settle({renamed}, sig, rank)")
                less = "False"
                for n in reversed(range(words)):
                    less = f"(r{n} < m{n} or (r{n} == m{n} and {less}))"
                with out.block(f"if not some or {less}"):
                    for n in range(words):
                        out.line(f"m{n} = r{n}")
                    out.line("some = True")
            raw.save("buf", "k", "m")
