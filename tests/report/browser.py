"""Debian's chromium without a window: what a page looks like once it is laid out, and what it draws."""

from __future__ import annotations

import json
import re
import shutil
import struct
import subprocess
import zlib
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any  # what a page measures of itself, JSON values

CHROMIUM = shutil.which("chromium")
ABSENT = "NO BROWSER: chromium is not installed, so no review is looked at (apt-get install chromium)"

LAPTOP = (1366, 768)
PAPER = (703, 1015)
"""A4 less the page's own margins, in CSS pixels."""

MEASURES = """
<script>
const box = e => { const r = e.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom].map(Math.round); };
const told = {
  window: [innerWidth, innerHeight], wide: document.documentElement.scrollWidth,
  fetched: performance.getEntriesByType("resource").map(e => e.name), links: [], diagrams: [], colours: [],
  boxes: [...document.querySelectorAll("table, pre, dl, p, svg")].filter(e => !e.closest("nav")).map(e => {
    const around = e.closest("div.wide"); return [e.tagName, box(e), around ? around.scrollWidth : 0]; }),
};
for (const svg of document.querySelectorAll("svg.sequence")) {
  const texts = [...svg.querySelectorAll("text")];
  const all = box(svg), scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
  told.diagrams.push({box: all, marks: svg.querySelectorAll("path.arrow").length, letters: 12 * scale,
    outside: texts.filter(t => { const b = box(t);
      return b[0] < all[0] || b[2] > all[2] + 1 || b[1] < all[1] || b[3] > all[3] + 1; }).map(t => t.textContent)});
}
const paper = document.createElement("i"); paper.style.background = "Canvas"; document.body.append(paper);
for (const e of document.querySelectorAll("p, td, code, b, svg text, dt")) {
  const style = getComputedStyle(e), clear = colour => colour.startsWith("rgba");
  let at = e, behind = "rgba(0, 0, 0, 0)";
  while (at && clear(behind)) { behind = getComputedStyle(at).backgroundColor; at = at.parentElement; }
  if (clear(behind)) behind = getComputedStyle(paper).backgroundColor;
  told.colours.push([e.tagName, e.tagName == "text" ? style.fill : style.color, behind].join("|"));
}
told.colours = [...new Set(told.colours)];
for (const to of new Set([...document.querySelectorAll("a[href]")].map(a => a.getAttribute("href")))) {
  document.querySelector(`a[href="${to}"]`).click();  // once each: the browser slows down pages that go on and on
  const there = document.getElementById(to.slice(1));
  told.links.push([to, location.hash, there ? box(there)[1] : null]);
}
const out = document.createElement("pre"); out.id = "measured"; out.textContent = JSON.stringify(told);
document.body.append(out);
</script>
"""


def chromium(folder: Path, *options: str) -> str:
    """Its standard output. No name resolves, so that a page that asks for anything shows it."""
    assert CHROMIUM is not None
    flags = (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        f"--user-data-dir={folder / 'profile'}",
    )
    command = (CHROMIUM, *flags, "--host-resolver-rules=MAP * ~NOTFOUND", *options)
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def measured(page: Path, folder: Path, window: tuple[int, int] = LAPTOP, *options: str, paper: bool = False) -> Any:
    """What a copy of the page finds of itself once it is laid out: as on paper where that is asked for."""
    text = page.read_text(encoding="utf-8")
    assert "<script" not in text
    if paper:
        text = text.replace("@media print", "@media all")
    copy = folder / f"measured-{page.name}"
    copy.write_text(text.replace("</body>", f"{MEASURES}</body>"), encoding="utf-8")
    size = f"--window-size={window[0]},{window[1]}"
    found = re.search(r'<pre id="measured">(.*?)</pre>', dom(copy, folder, size, *options), re.S)
    assert found, "the page was not laid out to its end"
    return json.loads(unescape(found[1]))


def dom(page: Path, folder: Path, *options: str) -> str:
    """The page as the browser has it after it was loaded."""
    return chromium(folder, *options, "--dump-dom", page.as_uri())


def contrast(one: str, other: str) -> float:
    """The ratio of two colours as WCAG 2 defines it, 1 to 21."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(p) / 255 for p in re.findall(r"\d+", colour)[:3]]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def pixels(png: Path) -> tuple[int, int, set[bytes]]:
    """Width, height and the colours of a picture of 8-bit RGB or RGBA."""
    data = png.read_bytes()
    width, height, depth, kind = struct.unpack(">IIBB", data[16:26])
    assert depth == 8 and kind in (2, 6)
    step = 3 if kind == 2 else 4
    colours, before = set[bytes](), bytearray(width * step)
    raw = zlib.decompress(b"".join(_chunks(data)))
    for y in range(height):
        at = y * (width * step + 1)
        before = _unfiltered(raw[at], bytearray(raw[at + 1 : at + 1 + width * step]), before, step)
        colours |= {bytes(before[x : x + 3]) for x in range(0, len(before), step)}
    return width, height, colours


def _chunks(data: bytes) -> Iterator[bytes]:
    at = 8
    while at < len(data):
        (size,) = struct.unpack(">I", data[at : at + 4])
        if data[at + 4 : at + 8] == b"IDAT":
            yield data[at + 8 : at + 8 + size]
        at += size + 12


def _unfiltered(kind: int, row: bytearray, before: bytearray, step: int) -> bytearray:
    """A row of a PNG, after the row before it: its filters are none, left, up, average and Paeth."""
    for x in range(len(row)):
        left, up = row[x - step] if x >= step else 0, before[x]
        corner = before[x - step] if x >= step else 0
        guess = (0, left, up, (left + up) // 2, _paeth(left, up, corner))[kind]
        row[x] = (row[x] + guess) & 255
    return row


def _paeth(left: int, up: int, corner: int) -> int:
    base = left + up - corner
    return min((left, up, corner), key=lambda v: abs(base - v))
