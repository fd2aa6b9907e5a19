"""What a document is made of. Text is plain; `code` in backticks is the only markup in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Heading:
    """level: 1 to 3. anchor: its name for links."""

    level: int
    text: str
    anchor: str


@dataclass(frozen=True)
class Paragraph:
    text: str


@dataclass(frozen=True)
class Verdict:
    """A verdict that stands out, and what it is about."""

    verdict: str
    text: str


@dataclass(frozen=True)
class Items:
    """A list; an item may be a pair of a term and what is said of it."""

    items: tuple[str | tuple[str, str], ...]


@dataclass(frozen=True)
class Table:
    """numbers: the columns that are numbers, to be set right."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Diagram:
    """A sequence diagram in Mermaid's text. title: what it shows."""

    mermaid: str
    title: str


@dataclass(frozen=True)
class Details:
    """Blocks below a line that opens them. anchor: its name for links."""

    summary: str
    blocks: tuple[Block, ...]
    anchor: str = ""


@dataclass(frozen=True)
class Run:
    """The one line that differs from run to run."""

    text: str


def anchors(blocks: Iterable[Block]) -> frozenset[str]:
    """Every name that can be linked to."""
    found: set[str] = set()
    for block in blocks:
        if isinstance(block, Heading | Details) and block.anchor:
            found.add(block.anchor)
    return frozenset(found)


def target(name: str, known: frozenset[str]) -> str:
    """Where a name in backticks leads: a rule's or a mutant's own part, '' where it has none."""
    return next((f"{kind}-{name}" for kind in ("rule", "mutant") if f"{kind}-{name}" in known), "")


Block: TypeAlias = Heading | Paragraph | Verdict | Items | Table | Diagram | Details | Run
