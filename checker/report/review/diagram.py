"""A sequence diagram drawn as SVG, from the text that `kvsan.checker.explore.sequence` writes for Mermaid.

A page that opens from disk can load no script, so the few statements that we write are drawn here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape

ROW, CHARACTER, MARGIN = 27, 6.7, 14
"""Sizes in pixels: a row, a character of the text, and the space around all."""
WIDEST, NARROWEST, PAGE = 128, 100, 1080
"""A column is as wide as a page on a laptop has room for, between these; the name of a stream needs the least."""

PARTICIPANT = re.compile(r"\s*participant (\w+) as (.*)")
ARROW = re.compile(r"\s*(\w+)->>(\w+): (.*)")
NOTE = re.compile(r"\s*Note over (\w+)(?:,(\w+))?: (.*)")


@dataclass
class _Sketch:
    """columns: where each participant stands. bad: whether what follows is marked."""

    columns: dict[str, int] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    marks: list[str] = field(default_factory=list)
    row: int = 0
    right: float = 0.0
    bad: bool = False

    @property
    def column(self) -> float:
        return min(WIDEST, max(NARROWEST, PAGE // max(1, len(self.columns))))

    def x(self, who: str) -> float:
        return MARGIN + self.column * (self.columns[who] + 0.5)

    def y(self) -> float:
        return MARGIN + ROW * (self.row + 1.6)

    def reach(self, x: float, text: str) -> None:
        self.right = max(self.right, x + CHARACTER * len(text) + MARGIN)


def svg(mermaid: str, title: str) -> str:
    """The drawing, for a page's own style: classes `life`, `head`, `bar`, `arrow`, `note`, `bad`."""
    sketch = _Sketch()
    for line in mermaid.splitlines():
        if found := PARTICIPANT.match(line):
            sketch.columns[found[1]] = len(sketch.columns)
            sketch.names.append(unescaped(found[2]))
        elif found := ARROW.match(line):
            _arrow(sketch, found[1], found[2], unescaped(found[3]))
        elif found := NOTE.match(line):
            _note(sketch, found[1], found[2] or found[1], unescaped(found[3]))
        elif line.strip().startswith("rect"):
            sketch.bad = True
        elif line.strip() == "end":
            sketch.bad = False
    return "\n".join(_drawn(sketch, title))


def unescaped(text: str) -> str:
    """Mermaid's `#59;` as the character it stands for."""
    return re.sub(r"#(\d+);", lambda m: chr(int(m[1])), text)


def _drawn(sketch: _Sketch, title: str) -> Iterator[str]:
    width = max(sketch.right, MARGIN * 2 + sketch.column * len(sketch.columns))
    height = MARGIN * 2 + ROW * (sketch.row + 1)
    label = escape(title, quote=True)
    yield f'<svg class="sequence" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" role="img"'
    yield f'  aria-label="{label}"><title>{label}</title>'
    for who, name in zip(sketch.columns, sketch.names, strict=True):
        x = sketch.x(who)
        yield f'<line class="life" x1="{x:.0f}" y1="{MARGIN + 22}" x2="{x:.0f}" y2="{height - MARGIN:.0f}"/>'
        left, wide = x - sketch.column / 2 + 4, sketch.column - 8
        yield f'<rect class="head" x="{left:.0f}" y="{MARGIN}" width="{wide}" height="22" rx="4"/>'
        yield f'<text x="{x:.0f}" y="{MARGIN + 15}" text-anchor="middle">{escape(name)}</text>'
    yield from sketch.marks
    yield "</svg>"


def _arrow(sketch: _Sketch, source: str, target: str, text: str) -> None:
    a, b, y = sketch.x(source), sketch.x(target), sketch.y()
    if source == target:
        path = f"M{a:.0f} {y - 6:.0f} h18 v10 h-12"
        tip, start = f"M{a + 6:.0f} {y + 4:.0f} l6 -3 v6 z", a + 24
    else:
        way = 1 if b > a else -1
        path = f"M{a:.0f} {y:.0f} H{b - way * 7:.0f}"
        tip, start = f"M{b:.0f} {y:.0f} l{-way * 8} -4 v8 z", min(a, b) + 6
    sketch.marks.append(f'<path class="arrow" d="{path}"/><path class="tip" d="{tip}"/>')
    sketch.marks.append(f'<text class="said" x="{start:.0f}" y="{y - 5:.0f}">{escape(text)}</text>')
    sketch.reach(start, text)
    sketch.row += 1


def _note(sketch: _Sketch, first: str, last: str, text: str) -> None:
    """A note over one participant stands beside its line; one over several is a bar."""
    y = sketch.y()
    if first == last:
        x = sketch.x(first) - sketch.column / 2 + 4
        width = max(sketch.column - 8, CHARACTER * len(text) + 12)
        kind = "note"
    else:
        x = sketch.x(first) - sketch.column / 2 + 4
        width = max(sketch.x(last) + sketch.column / 2 - 4 - x, CHARACTER * len(text) + 12)
        kind = "bad" if sketch.bad else "bar"
    sketch.marks.append(
        f'<rect class="{kind}" x="{x:.0f}" y="{y - 17:.0f}" width="{width:.0f}" height="23" rx="3"/>'
        f'<text x="{x + 6:.0f}" y="{y - 1:.0f}">{escape(text)}</text>'
    )
    sketch.reach(x, text)
    sketch.right = max(sketch.right, x + width + MARGIN)
    sketch.row += 1
