"""Definitions of a LET, and what is made of them: without those that nothing uses, and short."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from kvsan.checker.export.tla_expr import ATOM, WIDTH, after, fits

NONE = '"none"'


@dataclass
class Definition:
    """`name == lines`. then, other: for a choice between two values, their texts; lines is its test."""

    name: str
    lines: list[str]
    hold: int = ATOM
    then: str = ""
    other: str = ""
    parameters: str = ""


@dataclass(frozen=True)
class Check:
    """An obligation, or those of a loop. failed: whether it is broken. rule: what is broken then."""

    failed: list[str]
    rule: str


def record(fields: list[Definition]) -> list[str]:
    flat = "[" + ", ".join(f"{f.name} |-> {' '.join(shown(f, WIDTH))}" for f in fields) + "]"
    if all(len(shown(f, WIDTH)) == 1 for f in fields) and fits([flat]):
        return [flat]
    lines: list[str] = []
    for n, field_ in enumerate(fields):
        head = f"{' ' if n else '['}{field_.name} |-> "
        lines += after(head, shown(field_, len(head)), "]" if n == len(fields) - 1 else ",")
    return lines


def bullets(fields: list[Definition]) -> list[str]:
    """The next value of each variable."""
    heads = [f"/\\ {f.name}' = " for f in fields]
    return [line for h, f in zip(heads, fields, strict=True) for line in after(h, shown(f, len(h)))]


def verdict(checks: list[Check]) -> list[str]:
    """The first rule that is broken, or "none"."""
    if [c.failed for c in checks] == [[f"{c.rule} # {NONE}"] for c in checks[:1]]:
        return [checks[0].rule]
    lines: list[str] = []
    for n, check in enumerate(checks):
        lines += after("ELSE IF " if n else "IF ", check.failed)
        lines.append(f"THEN {check.rule}")
    return [*lines, f"ELSE {NONE}"] if lines else [NONE]


def let(defined: list[Definition], body: list[str]) -> list[str]:
    """`LET ... IN body`."""
    lines: list[str] = []
    for d in defined:
        lines += _definition(d, "    " if lines else "LET ")
    return [*lines, *after("IN  ", body)] if lines else body


def _definition(d: Definition, margin: str) -> list[str]:
    head = f"{margin}{d.name}{d.parameters} == "
    lines = shown(d, len(head))
    if len(lines) > 1 and (d.parameters or len(head) > 30):
        return [head.rstrip(), *after(" " * 6, lines)]
    return after(head, lines)


def shown(d: Definition, margin: int = 0) -> list[str]:
    """The text of a definition behind a margin."""
    if not d.then:
        return d.lines
    if d.then == d.other:
        return [d.then]
    flat = f"IF {d.lines[0]} THEN {d.then} ELSE {d.other}"
    short = margin + len(flat) <= WIDTH
    return [flat] if short else [f"IF {d.lines[0]}", f"THEN {d.then}", f"ELSE {d.other}"]


def tidy(defined: list[Definition], ends: list[Definition]) -> list[Definition]:
    """The definitions that are used. One that is used once, as a whole, stands where it is used; ends: changed so."""
    kept: list[Definition] = []
    used = Counter(w for e in ends for w in _words(e))
    for d in reversed(defined):
        if used[d.name] == 0:
            continue
        used.update(_words(d))
        if used[d.name] > 1 or d.parameters or not any(_take(u, d) for u in (*kept, *ends)):
            kept.insert(0, d)
    return kept


def _words(d: Definition) -> list[str]:
    """The names in a text, without those of fields."""
    return [w for text in (*d.lines, d.then, d.other) for w in re.findall(r"(?<![.\w])\w+", text)]


def _take(user: Definition, d: Definition) -> bool:
    """Put a definition in the place of its name, where that is all of a value, or of an arm on one line."""
    if user.lines == [d.name] and not user.then:
        user.lines, user.hold, user.then, user.other = d.lines, d.hold, d.then, d.other
        return True
    if d.hold != ATOM or len(d.lines) > 1 or d.then:
        return False
    if user.then == d.name:
        user.then = d.lines[0]
        return True
    if user.other == d.name:
        user.other = d.lines[0]
        return True
    return False
