"""One state for each orbit: generated code that renames blocks, and branches, into a fixed order.

Blocks: with the branches named, everything that is known of a block (its entries, and the cells that hold it) makes
its signature; blocks of one signature are interchangeable, so sorting by signature is exact. Branches: sorted by their
colours; where some are alike, every order of theirs is tried, blocks sorted under each, and the least state wins.

A specification qualifies where `scalarset` proves both sorts and no variable relates one block to another.
"""

from __future__ import annotations

from itertools import permutations

from kvsan.checker.explore.colours import colours
from kvsan.checker.explore.layout import Layout
from kvsan.checker.explore.raw import Raw
from kvsan.checker.explore.sorting import NoSymmetry, rename, roles, settle
from kvsan.checker.explore.words import Words
from kvsan.checker.explore.writer import Writer

MOST_BRANCHES = 6


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
    settle(raw, fields, sorted_, sizes[sorted_])
    if tried is None:
        _settled(raw, sizes[sorted_])
    else:
        rename(raw, fields, tried, sizes[tried])
        colours(raw, fields, sorted_, tried, sizes)
        _places(out, sizes[tried])
        _least(raw, sorted_, tried, sizes)
    return out.text


def _settled(raw: Raw, size: int) -> None:
    out = raw.out
    with out.block("def canonical(buf, first, n)"):
        out.line(f"sig = words({size * 8})")
        out.line(f"rank = words({size + 1})")
        raw.words.begin("wo", out)
        with out.block("for k in range(first, n)"):
            raw.load("buf", "k")
            raw.apply("settle", "w", "o", "sig, rank")
            raw.save("buf", "k", "o")


def _places(out: Writer, size: int) -> None:
    """`places(c, turn)`: turn[m + 1] is the place of m by its colour, from 1. Returns how many pairs are alike."""
    out.line("@inline")
    with out.block("def places(c, turn)"):
        out.line("alike = 0")
        out.line("turn[0] = 0")
        with out.block(f"for x in range({size})"):
            out.line("place = 1")
            with out.block(f"for y in range({size})"):
                out.line("place += 1 if c[y] < c[x] or (c[y] == c[x] and y < x) else 0")
                out.line("alike += 1 if c[y] == c[x] and y < x else 0")
            out.line("turn[x + 1] = place")
        out.line("return alike")
    out.line("\n")


def _least(raw: Raw, sorted_: str, tried: str, sizes: dict[str, int]) -> None:
    """`canonical`: the least state over the orders of `tried` that sort the colours."""
    out, size, words = raw.out, sizes[tried], raw.words
    orders = list(permutations(range(size)))
    out.lines.append(f"ORDERS = {[x for p in orders for x in p]}")
    out.line("\n")
    with out.block("def canonical(buf, first, n)"):
        out.line(f"sig = words({sizes[sorted_] * 8})")
        out.line(f"rank = words({sizes[sorted_] + 1})")
        out.line(f"turn = words({size + 1})")
        for name, length in (("c", size), ("d", sizes[sorted_])):
            out.line(f"{name} = words({length})")
            out.line(f"{name}2 = words({length})")
        words.begin("wrsm", out)
        with out.block("for k in range(first, n)"):
            raw.load("buf", "k")
            out.line(f"alone({words.names('w')}, c)")
            out.line("alike = places(c, turn)")
            with out.block("if alike != 0"):
                out.line(f"together({words.names('w')}, c, d, c2, d2)")
                out.line("alike = places(c, turn)")
            raw.apply("rename", "w", "r", "turn")
            raw.apply("settle", "r", "m", "sig, rank")
            with out.block("if alike != 0"), out.block(f"for order in range(0, {len(orders) * size}, {size})"):
                out.line("fits = True")
                with out.block(f"for j in range({size - 1})"):
                    out.line("fits = False if c[ORDERS[order + j]] > c[ORDERS[order + j + 1]] else fits")
                out.line("if not fits:")
                out.line("    continue")
                with out.block(f"for j in range({size})"):
                    out.line("turn[ORDERS[order + j] + 1] = j + 1")
                raw.apply("rename", "w", "r", "turn")
                raw.apply("settle", "r", "s", "sig, rank")
                with out.block(f"if {_less(words, out)}"):
                    words.copy(words.each("m"), words.each("s"), out)
            raw.save("buf", "k", "m")


def _less(words: Words, out: Writer) -> str:
    """Whether the words `s` come before the words `m`."""
    if words.array:
        out.line("less = False")
        with out.block(f"for j in range({words.count})"), out.block("if s[j] != m[j]"):
            out.line("less = s[j] < m[j]")
            out.line("break")
        return "less"
    less = "False"
    for n in reversed(range(words.count)):
        less = f"(s{n} < m{n} or (s{n} == m{n} and {less}))"
    return less
