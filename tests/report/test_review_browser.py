"""A review in a real browser, on a laptop and on paper: it reads, its diagrams are seen, and it needs nothing else.

`KVSAN_REVIEWS` names a folder of pages to look at besides: those that were built to be read.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from browser import ABSENT, CHROMIUM, LAPTOP, PAPER, chromium, contrast, dom, measured, pixels
from kvsan.checker.command.line import Line
from kvsan.checker.command.review import Request, gathered
from kvsan.checker.explore.design import find
from kvsan.checker.report.review.blocks import Details, Diagram, Heading, Items, Paragraph, Table
from kvsan.checker.report.review.content import document, title
from kvsan.checker.report.review.page import page

pytest.importorskip("llvmlite", reason="the searches need the extra `explore`")
pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason=ABSENT)]

BUILT = sorted(Path(os.environ["KVSAN_REVIEWS"]).glob("*.html")) if "KVSAN_REVIEWS" in os.environ else []
DARK = "--blink-settings=preferredColorScheme=0"
BREACH, SMALL = (244, 212, 212), (900, 620)
BAD = "<script>document.title='run'</script><img src=x onerror=\"document.title='run'\"> & `x<y>` </svg></title>"


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with diagrams that takes a few seconds to make."""
    material = gathered(Request("tail_copy", proof=False), find("tail_copy"), Line("review", quiet=True))
    where = tmp_path_factory.mktemp("own") / "tail_copy.html"
    where.write_text(page(title(material), document(material)), encoding="utf-8")
    return where


@pytest.fixture(params=["own", *BUILT], ids=lambda p: getattr(p, "name", p))
def review(request: pytest.FixtureRequest) -> Path:
    return request.getfixturevalue("own") if request.param == "own" else request.param.resolve()


def test_it_is_laid_out_within_a_laptop_and_its_links_lead_there(review: Path, tmp_path: Path) -> None:
    assert review.stat().st_size < 2_000_000
    told = measured(review, tmp_path)
    assert told["fetched"] == []
    width, height = told["window"]
    assert width == LAPTOP[0] >= told["wide"]  # wide tables and diagrams scroll by themselves
    assert all(left >= 0 and right <= max(LAPTOP[0], left + wide) for _, (left, _, right, _), wide in told["boxes"])
    assert len(told["links"]) > 9
    for to, reached, top in told["links"]:
        assert to == reached and top is not None and -1 <= top < height


def test_every_diagram_is_seen_whole(review: Path, tmp_path: Path) -> None:
    told = measured(review, tmp_path)
    wanted = len(re.findall(r'<details open id="mutant-[^"]+"><summary>[^\n]* breaks ', review.read_text("utf-8")))
    assert len(told["diagrams"]) >= wanted > 0
    for diagram in told["diagrams"]:
        left, top, right, bottom = diagram["box"]
        assert right - left > 300 and bottom - top > 100 and diagram["marks"] > 0
        assert diagram["outside"] == []
        assert diagram["letters"] > 9


def test_it_reads_on_paper(review: Path, tmp_path: Path) -> None:
    told = measured(review, tmp_path, PAPER, paper=True)
    assert told["wide"] <= PAPER[0], [b for b in told["boxes"] if b[1][2] > PAPER[0]]
    assert all(d["letters"] > 5 for d in told["diagrams"])  # 4 points
    printed = tmp_path / "review.pdf"
    chromium(tmp_path, "--no-pdf-header-footer", f"--print-to-pdf={printed}", review.as_uri())
    pages = len(re.findall(rb"/Type\s*/Page\b", printed.read_bytes()))
    assert 3 < pages < 100


@pytest.mark.parametrize("options", [(), (DARK,)], ids=["light", "dark"])
def test_no_text_is_lost_in_what_is_behind_it(own: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    told = measured(own, tmp_path, LAPTOP, *options)
    backs = {c.split("|")[2] for c in told["colours"]}
    assert (contrast("rgb(255, 255, 255)", min(backs, key=lambda b: contrast(b, "rgb(0, 0, 0)"))) > 10) == bool(options)
    for tag, ink, behind in (c.split("|") for c in told["colours"]):
        assert contrast(ink, behind) > 4.5, (tag, ink, behind)  # WCAG 2, level AA


def test_a_breach_is_seen_in_its_colour(own: Path, tmp_path: Path) -> None:
    shot, short = tmp_path / "shot.png", tmp_path / "short.html"
    text = own.read_text("utf-8")
    part = text[text.index("<summary><code>cancel_frees_shared</code>") :]
    drawn = part[part.index("<svg") : part.index("</svg>") + 6]  # alone, so that the window shows it
    assert ">free</text>" in drawn  # from a log, not from what each step changed
    short.write_text(f"{text[: text.index('<body>')]}<body>{drawn}</body></html>", encoding="utf-8")
    chromium(tmp_path, f"--window-size={SMALL[0]},{SMALL[1]}", f"--screenshot={shot}", short.as_uri())
    width, height, colours = pixels(shot)
    assert (width, height) == SMALL
    assert any(all(abs(a - b) < 3 for a, b in zip(c, BREACH, strict=True)) for c in colours)


def test_text_from_outside_runs_nothing(tmp_path: Path) -> None:
    drawn = f"sequenceDiagram\n    participant host as {BAD}\n    Note over host: {BAD}\n    host->>host: {BAD}\n"
    blocks = (
        Heading(1, BAD, "top"), Paragraph(BAD), Items(((BAD, BAD),)), Table((BAD,), ((BAD,),)),
        Details(BAD, (Paragraph(BAD),), "d"), Diagram(drawn, BAD),
    )  # fmt: skip
    where = tmp_path / "bad.html"
    where.write_text(page(BAD, blocks), encoding="utf-8")
    seen = dom(where, tmp_path)
    assert "<script" not in seen and "<img" not in seen
    named = re.search(r"<title>(.*?)</title>", seen)
    assert named and named[1] != "run" and named[1].startswith("&lt;script&gt;")
    assert seen.count("&lt;script&gt;document.title='run'&lt;/script&gt;") >= 10
