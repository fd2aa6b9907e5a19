"""Color for the text report, added to finished lines, so that a report without it is the same text."""

from __future__ import annotations

import re

RED, GREEN, YELLOW, BOLD, DIM, RESET = (f"\x1b[{code}m" for code in ("31", "32", "33", "1", "2", "0"))

HEADS = (
    (re.compile(r"(violated \w+)(:.*)"), RED + BOLD),
    (re.compile(r"((?:lint|suppressed) \w+)(:.*)"), YELLOW + BOLD),
    (re.compile(r"(VIOLATED)( .*)"), RED + BOLD),
    (re.compile(r"(UNKNOWN)( .*)"), YELLOW + BOLD),
    (re.compile(r"(HOLDS)( .*)"), GREEN + BOLD),
    (re.compile(r"((?:unreadable log|malformed line|log cut short|log refused))(:.*)"), RED + BOLD),
)
LABEL = re.compile(r"(  (?:at|because|missing|source|reason|replay|fix)|assumed|rules|unused|hidden)( {2,}.*)")


def paint(text: str) -> str:
    """The report with its labels and verdicts colored. Each line keeps its characters; only escapes are added."""
    return "".join(map(paint_line, text.splitlines(keepends=True)))


def paint_line(line: str) -> str:
    for pattern, style in HEADS:
        if match := pattern.match(line):
            return f"{style}{match[1]}{RESET}{line[match.end(1) :]}"
    if match := LABEL.match(line):
        return f"{DIM}{match[1]}{RESET}{line[match.end(1) :]}"
    return line
