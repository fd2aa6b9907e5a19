"""A document as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from .blocks import Block, Details, Diagram, Heading, Items, Paragraph, Run, Table, Verdict, anchors, target


def markdown(blocks: Iterable[Block]) -> str:
    """The text of a `.md` file."""
    made = tuple(blocks)
    known, lines, drawn = anchors(made), list[str](), False
    for line in _lines(made):
        drawn = line == "```mermaid" or (drawn and line != "```")
        lines.append(line if drawn or line.startswith("<details") else _linked(line, known))
    return "\n".join(lines).rstrip("\n") + "\n"


def _linked(line: str, known: frozenset[str]) -> str:
    def link(found: re.Match[str]) -> str:
        anchor = target(found[1], known)
        return f"[{found[0]}](#{anchor})" if anchor else found[0]

    return re.sub(r"`(\w+)`", link, line)


def _lines(blocks: Iterable[Block]) -> Iterator[str]:
    for block in blocks:
        yield from _block(block)
        yield ""


def _block(block: Block) -> Iterator[str]:
    match block:
        case Heading(level, text, anchor):
            yield f'<a id="{anchor}"></a>'
            yield ""
            yield f"{'#' * level} {plain(text)}"
        case Paragraph(text):
            yield plain(text)
        case Verdict(verdict, text):
            yield f"**{verdict}** {plain(text)}"
        case Items(items):
            for item in items:
                yield f"- {plain(item)}" if isinstance(item, str) else f"- **{plain(item[0])}** {plain(item[1])}"
        case Table(head, rows, numbers):
            yield _row(head)
            yield "|" + "|".join("---:" if n in numbers else "---" for n in range(len(head))) + "|"
            for row in rows:
                yield _row(row)
        case Diagram(mermaid, _):
            yield "```mermaid"
            yield mermaid.rstrip("\n")
            yield "```"
        case Details(summary, inside, anchor):
            yield f"<details{f' id={chr(34)}{anchor}{chr(34)}' if anchor else ''}><summary>{marked(summary)}</summary>"
            yield ""
            yield from _lines(inside)
            yield "</details>"
        case Run(text):
            yield f"<!-- run -->{plain(text)}"


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(plain(c).replace("|", "\\|").replace("\n", "<br>") for c in cells) + " |"


def marked(text: str) -> str:
    """Text inside HTML of a Markdown file."""
    safe = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", safe)


def plain(text: str) -> str:
    """Text that is not read as markup; what stands in backticks stays as it is."""
    parts = text.split("`")
    for n in range(0, len(parts), 2):
        part = parts[n].replace("\\", "\\\\").replace("<", "\\<")
        parts[n] = part.replace("*", "\\*").replace("_", "\\_").replace("[", "\\[")
    return "`".join(parts)
