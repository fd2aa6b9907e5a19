"""Generated code that tells members of one sort apart by colours, which do not depend on their names.

A colour is a number made of what is said of the member alone; where some are still alike, also of sums over everything
they take part in, whose terms carry the colours of the others. A colour that collides costs time, no state.
"""

from __future__ import annotations

from kvsan.checker.explore.layout import Field
from kvsan.checker.explore.raw import Raw
from kvsan.checker.explore.sorting import joined, roles
from kvsan.checker.explore.writer import Writer

ROUNDS = 2
LAST = (1 << 63) - (1 << 10)
"""Greater than a colour: there are at most that many members."""


def colours(raw: Raw, fields: list[Field], sorted_: str, tried: str, sizes: dict[str, int]) -> None:
    """Two functions: `alone(words, c)` for the members of `tried`, and, for those that it leaves alike,
    `together(words, c, d, c2, d2)`, with d for `sorted_`. Members that nothing names come last then, in their order."""
    out = raw.out
    out.line("@inline")
    with out.block("def stir(x)"):
        out.line("x = (x ^ (x >> 29)) * -4658895280553007687")
        out.line("return (x ^ (x >> 32)) * -7723592293110705685")
    out.line("\n")
    out.line("@inline")
    with out.block(f"def alone({raw.words.parameters('w')}, c)"):
        _alone(raw, fields, "c", tried, sorted_, sizes[tried])
        with out.block(f"for m in range({sizes[tried]})"):  # of whom nothing is said comes last
            out.line(f"c[m] = {LAST} if c[m] == 0 else c[m]")
    out.line("\n")
    with out.block(f"def together({raw.words.parameters('w')}, c, d, c2, d2)"):
        out.line("named = 0")
        for field in (joined(f, tried) for f in fields if _of_one(f, tried, sorted_)):
            with raw.indexes(field) as (index, _):
                value = raw.get(field, index, "w")
                out.line(f"named |= 1 << {index[roles(field, tried).keys[0]]} if {value} != 0 else 0")
        _alone(raw, fields, "d", sorted_, tried, sizes[sorted_])
        for target, n in (("c", sizes[tried]), ("d", sizes[sorted_])):
            with out.block(f"for m in range({n})"):
                out.line(f"{target}2[m] = {target}[m]")
        shared = [f for f in fields if not _of_one(f, tried, sorted_) and not _of_one(f, sorted_, tried)]
        with out.block(f"for turn in range({ROUNDS})"):
            for tag, field in enumerate(shared, 1):
                _stir(raw, field, tag, sorted_, tried, sizes)
            for target, n in (("c", sizes[tried]), ("d", sizes[sorted_])):
                with out.block(f"for m in range({n})"):
                    out.line(f"{target}[m] = stir({target}2[m])")
        with out.block(f"for m in range({sizes[tried]})"):
            out.line("if not (named >> m) & 1:")
            out.line(f"    c[m] = {LAST} + m")
    out.line("\n")


def _of_one(field: Field, sort: str, other: str) -> bool:
    """Whether each entry says something of one member of the sort, and of nobody else."""
    role = roles(field, sort)
    return len(role.keys) == 1 and not role.value and not roles(field, other).count


def _alone(raw: Raw, fields: list[Field], target: str, sort: str, other: str, size: int) -> None:
    """Set the colours to what the entries say that are of one member only, in an order that is the same for all."""
    out = raw.out
    with out.block(f"for m in range({size})"):
        out.line(f"{target}[m] = 0")
    for field in (joined(f, sort) for f in fields if _of_one(f, sort, other)):
        with raw.indexes(field) as (index, _):
            value = raw.get(field, index, "w")
            member = f"{target}[{index[roles(field, sort).keys[0]]}]"
            out.line(f"{member} = ({member} + {value}) * -7046029254386353131")


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
