"""One page that needs nothing else: no script, no font, no address is fetched. Everything from a log is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from kvsan.checker.replay.life import Life
from kvsan.checker.replay.outcome import Violation
from kvsan.checker.replay.wording import event_text

from .places import shown_place
from .rulebook import rulebook
from .text import count_of, shown, verdict
from .view import View, verdict_of

STYLE = """
:root { color-scheme: light dark; --line: #8886; --bad: #c62828; --good: #2e7d32; --open: #b26a00; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
code, pre, td.n { font: 13px/1.5 ui-monospace, monospace; }
h1 span, h2 span { padding: 0 .5em; border-radius: .3em; color: #fff; }
.VIOLATED { background: var(--bad); } .HOLDS { background: var(--good); } .UNKNOWN { background: var(--open); }
article { border: 1px solid var(--line); border-left: .4rem solid var(--open); padding: .2rem 1rem; margin: 1rem 0; }
article.violated { border-left-color: var(--bad); }
article h3 { margin: .4rem 0; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; margin: .5rem 0; }
dt { opacity: .7; } dd { margin: 0; overflow-wrap: anywhere; }
table { border-collapse: collapse; }
td, th { border-bottom: 1px solid var(--line); padding: .2rem .8rem; text-align: left; }
td.n { text-align: right; }
pre { overflow-x: auto; }
""".strip()


def render(views: Sequence[View], brief: bool = False) -> str:
    """The page. brief: nothing is left out."""
    return "\n".join(page(views)) + "\n"


def page(views: Sequence[View]) -> Iterator[str]:
    overall = verdict_of(views)
    title = views[0].outcome.name if len(views) == 1 else count_of(len(views), "log")
    yield "<!DOCTYPE html>"
    yield '<html lang="en">'
    yield f'<head><meta charset="utf-8"><title>kvsan: {text(title)} {overall}</title>'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<style>\n{STYLE}\n</style></head>"
    yield "<body>"
    yield f'<h1><span class="{overall}">{overall}</span> {text(title)}</h1>'
    for view in views:
        yield from section(view, len(views) > 1)
    yield "</body></html>"


def text(raw: object) -> str:
    """Text of a log, harmless."""
    return escape(shown(str(raw)))


def section(view: View, titled: bool) -> Iterator[str]:
    """One log."""
    outcome = view.outcome
    yield "<section>"
    if titled:
        yield f'<h2><span class="{outcome.verdict}">{outcome.verdict}</span> {text(outcome.name)}</h2>'
    yield f"<p>{text(verdict(view))}</p>"
    yield from listing("Reasons", outcome.reasons)
    if outcome.problem is not None:
        yield "<pre>" + "\n".join(map(text, str(outcome.problem).splitlines())) + "</pre>"
    for life in view.lives:
        yield from life_table(view, life)
    for word, found in (("violated", view.violations), ("lint", view.lints), ("suppressed", view.suppressed)):
        for finding in found:
            yield from article(word, view, finding)
    if view.hidden:
        yield f"<p>{count_of(view.hidden, 'finding')} about other blocks and branches not shown.</p>"
    yield from listing("Assumptions", outcome.assumptions)
    yield from listing("Suppressions that cover nothing", outcome.unused)
    yield from coverage(view)
    yield "</section>"


def listing(title: str, items: Sequence[str]) -> Iterator[str]:
    if items:
        yield f"<h3>{title}</h3><ul>"
        yield from (f"<li>{text(item)}</li>" for item in items)
        yield "</ul>"


def article(word: str, view: View, finding: Violation) -> Iterator[str]:
    """One finding, with its rule's labels folded away."""
    outcome = view.outcome
    yield f'<article class="{word}"><h3>{word} <code>{text(finding.rule)}</code>: {text(finding.message)}</h3>'
    rows = [("at", f"{shown_place(outcome, finding.line)}    {event_text(finding.event)}")]
    rows += [("because", f"{shown_place(outcome, fact.line)}    {fact.text}") for fact in finding.because]
    rest = (("missing", finding.missing), ("source", finding.source.rstrip(".")), ("reason", finding.suppressed))
    rows += [(label, value) for label, value in rest if value]
    rows += [("replay", finding.replay)] if finding.replay else []
    yield definitions(rows)
    if doc := rulebook().get(finding.rule):
        yield f"<details><summary>{text(doc.statement)}</summary>{definitions(doc.labels.items())}</details>"
    yield "</article>"


def definitions(rows: Iterable[tuple[str, str]]) -> str:
    return "<dl>" + "".join(f"<dt>{text(k)}</dt><dd><code>{text(v)}</code></dd>" for k, v in rows) + "</dl>"


def life_table(view: View, life: Life) -> Iterator[str]:
    """The events of a block or branch."""
    broken = {f.line: f.rule for f in (*view.lints, *view.suppressed, *view.violations)}
    yield f"<h3>{text(life.about)}: {count_of(len(life.events), 'event')}</h3><table>"
    for line, event in life.events:
        cells = (shown_place(view.outcome, line), event_text(event), broken.get(line, ""))
        yield "<tr>" + "".join(f"<td><code>{text(cell)}</code></td>" for cell in cells) + "</tr>"
    yield "</table>"


def coverage(view: View) -> Iterator[str]:
    """Every rule: how often it was checked, or why not."""
    if not view.outcome.coverage:
        return
    yield "<h3>Coverage</h3><table><tr><th>rule</th><th>status</th><th>checked</th><th>unknown</th><th>needs</th></tr>"
    for name, c in view.outcome.coverage.items():
        status, needs = c.status.replace("_", " "), ", ".join(c.needs)
        yield (
            f"<tr><td><code>{text(name)}</code></td><td>{status}</td>"
            f'<td class="n">{c.checked}</td><td class="n">{c.unknown}</td><td>{text(needs)}</td></tr>'
        )
    yield "</table>"
