"""A document as one HTML page that needs nothing else: no script, no font, no address is fetched."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import escape

from .blocks import Block, Details, Diagram, Heading, Items, Paragraph, Run, Table, Verdict, anchors, target
from .diagram import svg

STYLE = """
:root { color-scheme: light dark; --line: #8886; --soft: #8882; --bad: #c62828; --good: #2e7d32; --open: #935600; }
body { font: 15px/1.55 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1.2rem; }
code { font: .92em/1.4 ui-monospace, monospace; background: var(--soft); padding: 0 .25em; border-radius: .2em; }
h1 { font-size: 1.7rem; } h2 { margin-top: 2.4rem; border-bottom: 1px solid var(--line); } h3 { margin-top: 1.6rem; }
nav ol { columns: 2; } a { color: inherit; } td { overflow-wrap: break-word; }
p.verdict b { padding: .1em .5em; border-radius: .3em; color: #fff; margin-right: .4em; background: var(--open); }
b.HOLDS, b.CAUGHT { background: var(--good) !important; } b.VIOLATED, b.MISSED { background: var(--bad) !important; }
div.wide { overflow-x: auto; margin: .8rem 0; }
table { border-collapse: collapse; font-size: 14px; }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .7rem .25rem 0; text-align: left; vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; } dt { opacity: .75; } dd { margin: 0; }
details { border: 1px solid var(--line); border-radius: .3rem; padding: .3rem .9rem; margin: .6rem 0; }
summary { cursor: pointer; } p.run { opacity: .7; font-size: 13px; }
svg.sequence { max-width: none; height: auto; font: 12px system-ui, sans-serif; }
svg text { fill: currentColor; } svg text.said { paint-order: stroke; stroke: Canvas; stroke-width: 4px; }
svg .life { stroke: var(--line); stroke-dasharray: 4 3; } svg .head { fill: var(--soft); stroke: var(--line); }
svg .arrow { fill: none; stroke: currentColor; } svg .tip { fill: currentColor; }
svg .note { fill: Canvas; stroke: var(--line); } svg .bar { fill: var(--soft); }
svg .bad { fill: #c6282833; stroke: var(--bad); }
@media print {
  :root { color-scheme: light; } @page { margin: 14mm 12mm; }
  body { max-width: none; margin: 0; padding: 0; font-size: 11px; } details { border: 0; padding: 0; }
  h2, h3, summary, p.verdict, thead { break-after: avoid; } dl, tr, svg { break-inside: avoid; }
  svg.sequence { max-width: 85%; max-height: 250mm; } div.wide { overflow: visible; } table { font-size: 10px; }
  p.verdict b { print-color-adjust: exact; } nav { display: none; }
}
""".strip()


def page(title: str, blocks: Iterable[Block]) -> str:
    """The text of an `.html` file."""
    made = tuple(blocks)
    known = anchors(made)
    return "\n".join(_linked(line, known) for line in _page(title, made)) + "\n"


def _linked(line: str, known: frozenset[str]) -> str:
    """Names of rules and mutants lead to their own parts; a line that opens a part is not a link to itself."""

    def link(found: re.Match[str]) -> str:
        anchor = target(found[1], known)
        return f'<a href="#{anchor}">{found[0]}</a>' if anchor else found[0]

    return line if line.startswith("<details") else re.sub(r"<code>(\w+)</code>", link, line)


def _page(title: str, blocks: tuple[Block, ...]) -> Iterator[str]:
    yield "<!DOCTYPE html>"
    yield '<html lang="en">'
    yield f'<head><meta charset="utf-8"><title>{escape(title)}</title>'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<style>\n{STYLE}\n</style></head>"
    yield "<body>"
    for n, block in enumerate(blocks):
        yield from _block(block)
        if n == 0:
            yield from _contents(blocks)
    yield "</body></html>"


def _contents(blocks: tuple[Block, ...]) -> Iterator[str]:
    yield "<nav><ol>"
    for block in blocks:
        if isinstance(block, Heading) and block.level == 2:
            yield f'<li><a href="#{escape(block.anchor, quote=True)}">{text(block.text)}</a></li>'
    yield "</ol></nav>"


def _block(block: Block) -> Iterator[str]:
    match block:
        case Heading(level, said, anchor):
            yield f'<h{level} id="{escape(anchor, quote=True)}">{text(said)}</h{level}>'
        case Paragraph(said):
            yield f"<p>{text(said)}</p>"
        case Verdict(verdict, said):
            yield f'<p class="verdict"><b class="{verdict}">{verdict}</b>{text(said)}</p>'
        case Items(items):
            yield from _items(items)
        case Table():
            yield from _table(block)
        case Diagram(mermaid, title):
            yield f'<div class="wide">{svg(mermaid, title)}</div>'
        case Details(summary, inside, anchor):
            name = f' id="{escape(anchor, quote=True)}"' if anchor else ""
            yield f"<details open{name}><summary>{text(summary)}</summary>"
            for part in inside:
                yield from _block(part)
            yield "</details>"
        case Run(said):
            yield f'<p class="run">{text(said)}</p>'


def _items(items: tuple[str | tuple[str, str], ...]) -> Iterator[str]:
    pairs = [item for item in items if isinstance(item, tuple)]
    if len(pairs) == len(items):
        yield "<dl>"
        for term, said in pairs:
            yield f"<dt>{text(term)}</dt><dd>{text(said)}</dd>"
        yield "</dl>"
        return
    yield "<ul>"
    for item in items:
        yield f"<li>{text(item if isinstance(item, str) else ' '.join(item))}</li>"
    yield "</ul>"


def _table(table: Table) -> Iterator[str]:
    def cells(tag: str, row: tuple[str, ...]) -> str:
        classes = [' class="n"' if n in table.numbers else "" for n in range(len(row))]
        return "".join(f"<{tag}{c}>{text(cell)}</{tag}>" for c, cell in zip(classes, row, strict=True))

    yield '<div class="wide"><table>'
    yield f"<thead><tr>{cells('th', table.head)}</tr></thead><tbody>"
    for row in table.rows:
        yield f"<tr>{cells('td', row)}</tr>"
    yield "</tbody></table></div>"


def text(raw: str) -> str:
    """Plain text, harmless; what stands in backticks as code."""
    parts = raw.split("`")
    for n, part in enumerate(parts):
        safe = escape(part).replace("\n", "<br>")
        parts[n] = f"<code>{safe}</code>" if n % 2 and n < len(parts) - 1 else safe
    return "".join(parts)
