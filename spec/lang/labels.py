"""The labels in a rule's docstring, four that it must have and one that it may, and the statement before them."""

from __future__ import annotations

import re

LABELS = ("Source", "Catches", "Except", "Deviates")
MEND = "Mend"
"""What would have to be there: an error shows it as what is missing."""

_LABEL = re.compile(r"\s*(" + "|".join((*LABELS, MEND)) + r"):\s*(.*)")


def labels(doc: str) -> dict[str, str]:
    """The labelled sentences, continuation lines joined; a label that is not there is not in the result."""
    return split_doc(doc)[1]


def statement(doc: str) -> str:
    """What stands before the labels, as one line: the fact that the rule states."""
    return split_doc(doc)[0]


def split_doc(doc: str) -> tuple[str, dict[str, str]]:
    """The statement of a rule's docstring, and its labelled sentences."""
    before: list[str] = []
    found: dict[str, list[str]] = {}
    into = before
    for line in doc.splitlines():
        match = _LABEL.match(line)
        if match:
            into = found.setdefault(match[1], [])
            line = match[2]
        into.append(line.strip())
    return " ".join(filter(None, before)), {label: " ".join(filter(None, lines)) for label, lines in found.items()}
