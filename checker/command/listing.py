"""`kvsan rules`: the rules with their labels."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from difflib import get_close_matches

from kvsan.checker.report.rulebook import KINDS, RuleDoc, rulebook

from .usage import Refused

WIDTH = 100


def chosen(names: Sequence[str]) -> list[RuleDoc]:
    """The rules of these names, or all. Raises Refused."""
    book = rulebook()
    for name in names:
        if name not in book:
            near = get_close_matches(name, book, 1)
            raise Refused(f"there is no rule {name!r}: " + (f"did you mean {near[0]}?" if near else "see kvsan rules"))
    return [book[name] for name in names] or list(book.values())


def as_text(rules: Sequence[RuleDoc]) -> str:
    """Rule by rule, under a heading a kind."""
    return "\n".join(lines(rules)) + "\n"


def lines(rules: Sequence[RuleDoc]) -> Iterator[str]:
    kind = ""
    for rule in rules:
        if rule.kind != kind:
            kind = rule.kind
            yield f"{heading(kind)}: {KINDS[kind]}"
            yield ""
        yield rule.name
        yield from textwrap.wrap(rule.statement, WIDTH, initial_indent="  ", subsequent_indent="  ")
        for label, sentence in rule.labels.items():
            yield from textwrap.wrap(
                sentence, WIDTH, initial_indent=f"    {label + ':':<10}", subsequent_indent=" " * 14
            )
        yield ""


def heading(kind: str) -> str:
    return {"rule": "Rules", "lint": "Lints"}.get(kind, f"{kind.capitalize()} rules")


def as_json(rules: Sequence[RuleDoc]) -> str:
    return json.dumps({"rules": [asdict(rule) for rule in rules]}, indent=2) + "\n"
