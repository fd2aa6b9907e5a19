"""Which event kinds occur in a whole file: they decide, before the first event is judged, what the log can show.

A look at the bytes, not a second decoding. It ends early, once what was found decides everything.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from kvsan.traces.problem import Broken
from kvsan.traces.read import Log
from kvsan.traces.unpack import plain_bytes

KIND = re.compile(rb'"ev"\s*:\s*"(\w+)"')
PARTS = {
    "write": re.compile(rb'"writes"\s*:\s*\[\s*\['),
    "copy": re.compile(rb'"copies"\s*:\s*\[\s*\['),
    "read": re.compile(rb'"reads"\s*:\s*\[\s*[^\]\s]'),
}
"""What a step does, by the fields that are not empty."""

THREAD = b'"thread"'

BRANCH_READ = re.compile(rb'"ev"\s*:\s*"read"[^\n]*"branch"|"branch"[^\n]*"ev"\s*:\s*"read"|"reads"\s*:\s*\[\s*[^\]\s]')


def occurring_kinds(log: Log, enough: Callable[[frozenset[str]], bool]) -> tuple[frozenset[str], bool]:
    """The kinds that occur, a step's parts among them, and whether branch reads do.

    `enough` says when more kinds would change nothing.
    """
    kinds: set[str] = set()
    reads = False
    for source in log.sources:
        rest = b""
        try:
            for chunk in plain_bytes(source, log.limits):
                whole, newline, tail = chunk.rpartition(b"\n")
                text = rest + whole if newline else b""
                rest = tail if newline else rest + chunk
                reads = look(text, kinds) or reads
                if reads and enough(frozenset(kinds)):
                    return frozenset(kinds), reads
        except Broken:
            pass  # the reading proper will say where and why
        reads = look(rest, kinds) or reads
    return frozenset(kinds) - {"trace"}, reads


def look(text: bytes, kinds: set[str]) -> bool:
    """Adds the kinds of some whole lines; true where one is a branch's read."""
    kinds.update(kind.decode() for kind in set(KIND.findall(text)))
    if "step" in kinds:
        kinds.update(kind for kind, part in PARTS.items() if kind not in kinds and part.search(text))
    return "read" in kinds and BRANCH_READ.search(text) is not None


def names_threads(log: Log) -> bool:
    """Whether any event may name its host thread."""
    for source in log.sources:
        rest = b""
        try:
            for chunk in plain_bytes(source, log.limits):
                if THREAD in rest + chunk:
                    return True
                rest = chunk[-len(THREAD) :]
        except Broken:
            pass  # the reading proper will say where and why
    return False
