"""The material of a review as a document: what each section says, and in which order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath

from kvsan.checker.explore.explore import Exploration
from kvsan.checker.explore.replay import Step
from kvsan.spec.lang import ir
from kvsan.spec.lang.diagnostics import Span
from kvsan.spec.lang.labels import split_doc

from .blocks import Block, Details, Diagram, Heading, Items, Paragraph, Run, Table, Verdict
from .material import Material, Shown, public_bugs

LABELS = ("Source", "Catches", "Except", "Deviates")
CHANGES = 6
"""Entries that a step of a counterexample shows; one that changes more says how many."""


def title(material: Material) -> str:
    return f"Design review: {material.design.name}"


def document(material: Material) -> tuple[Block, ...]:
    """The whole review."""
    return tuple(_document(material))


def _document(m: Material) -> Iterator[Block]:
    yield Heading(1, title(m), "top")
    yield Run(m.run)
    yield from _summary(m)
    yield from _design(m)
    yield from _rules(m)
    yield from _explored(m)
    yield from _proved(m)
    yield from _mutants(m)
    yield from _budget(m)
    yield from _bugs(m)
    yield from _open(m)


def _summary(m: Material) -> Iterator[Block]:
    yield Heading(2, "In short", "short")
    worst = verdict_of([found for _, found in m.scopes])
    states = sum(found.states for _, found in m.scopes)
    scopes = f"{len(m.scopes)} scope{'s' * (len(m.scopes) != 1)}"
    yield Verdict(worst, f"in every state of {scopes}: {states:,} states, one of each orbit where a symmetry is proved")
    if isinstance(m.proof, dict):
        yield Verdict(str(m.proof["verdict"]), "by induction, for any number of blocks and branches")
    caught = [s for s in m.mutants if s.caught.agrees]
    if m.mutants:
        verdict = "HOLDS" if len(caught) == len(m.mutants) else "VIOLATED"
        yield Verdict(
            verdict, f"{len(caught)} of {len(m.mutants)} wrong decisions are caught by the rule they are pinned to"
        )


def verdict_of(found: Sequence[Exploration]) -> str:
    """The worst of several, UNKNOWN where there is none."""
    verdicts = {f.verdict for f in found}
    return next((v for v in ("VIOLATED", "UNKNOWN") if v in verdicts), "HOLDS" if verdicts else "UNKNOWN")


# --- the design -------------------------------------------------------------------------------------------------------


def _design(m: Material) -> Iterator[Block]:
    yield Heading(2, "The design", "design")
    for paragraph in m.doc.split("\n\n"):
        yield _prose(paragraph)
    yield Heading(3, "State", "state")
    yield Paragraph("What the design keeps besides the ledger of blocks, tables, pins and identities.")
    rows = [(f"`{v.name}`", _type(v), _kind(v), where(v.span)) for v in m.own]
    yield Table(("variable", "type", "", "source"), tuple(rows))
    yield Heading(3, "Steps", "steps")
    steps = m.design.spec.of_kind("initial", "action")
    done = tuple((f"`{s.name}({', '.join(p.name for p in s.params)})`", _words(s.doc), where(s.span)) for s in steps)
    yield Table(("step", "what it does", "source"), done)
    facts = m.design.spec.of_kind("invariant", "witness")
    if facts:
        yield Heading(3, "Invariants and witnesses", "facts")
        told = tuple((f"`{s.name}`", s.kind, _words(s.doc), where(s.span)) for s in facts)
        yield Table(("name", "kind", "what it says", "source"), told)


def _prose(paragraph: str) -> Block:
    """A paragraph of a docstring; indented lines `name  words` are a list of terms."""
    lines = paragraph.splitlines()
    pairs = [line.strip().split("  ", 1) for line in lines[1:]]
    if len(lines) > 1 and all(line.startswith("    ") for line in lines[1:]) and all(len(p) == 2 for p in pairs):
        head = (lines[0].strip(), "")
        return Items((head, *((p[0], p[1].strip()) for p in pairs)))
    return Paragraph(_words(paragraph))


def _words(doc: str) -> str:
    return " ".join(doc.split())


def _type(v: ir.Variable) -> str:
    keys = ", ".join(map(str, v.keys))
    return f"({keys}) to {v.value}" if keys else str(v.value)


def _kind(v: ir.Variable) -> str:
    return "constant" if v.const else "derived" if v.derived else "ghost" if v.ghost else ""


def where(span: Span) -> str:
    """A place in a specification: the last two parts of its path, and the line."""
    parts = PurePath(span.file).parts[-2:]
    return f"{'/'.join(parts)}:{span.line}"


# --- the rules --------------------------------------------------------------------------------------------------------


def _rules(m: Material) -> Iterator[Block]:
    yield Heading(2, "Rules in force", "rules")
    yield Paragraph(
        "Every rule that a step of the design is judged by, with how often that was in all scopes together."
    )
    judged = m.judged
    for name, rule in m.design.spec.rules.items():
        if judged.get(name):
            labels = tuple((label, _words(rule.labels[label])) for label in LABELS if rule.labels.get(label))
            said = f"`{name}`: {_words(rule.statement)} Judged {judged[name]:,} times."
            yield Details(said, (Items((*labels, ("Written", where(rule.span)))),), f"rule-{name}")


# --- what was shown ---------------------------------------------------------------------------------------------------


def _explored(m: Material) -> Iterator[Block]:
    yield Heading(2, "Explored", "explored")
    yield Paragraph(
        "Every state of each scope, breadth first and compared whole. A symmetry is used only where the language proves"
        " that blocks or branches stand for each other."
    )
    rows = [
        (scope, _settings(found), found.verdict if not found.stopped else f"{found.verdict}: {found.stopped}",
         found.symmetry, f"{found.states:,}", f"{found.transitions:,}", str(found.depth))
        for scope, found in m.scopes
    ]  # fmt: skip
    head = ("scope", "settings", "verdict", "symmetry", "states", "transitions", "depth")
    yield Table(head, tuple(rows), frozenset({4, 5, 6}))
    seen: dict[str, list[str]] = {}
    for scope, found in m.scopes:
        for name, depth in found.witnesses.items():
            seen.setdefault(name, [])
            if depth is not None:
                seen[name].append(f"{scope} at depth {depth}")
    if seen:
        yield Paragraph("The design can do its job:")
        yield Items(tuple((f"`{name}`", ", ".join(at) or "never seen") for name, at in seen.items()))


def _settings(found: Exploration) -> str:
    return " ".join(f"{n}={str(v).lower()}" for n, v in found.scoped.settings.items() if n != "mutant")


def _proved(m: Material) -> Iterator[Block]:
    yield Heading(2, "Proved", "proved")
    if isinstance(m.proof, str):
        yield Paragraph(m.proof)
        return
    fixed = ", ".join(f"{n}={str(v).lower()}" for n, v in m.proof["fixed"].items())
    yield Verdict(str(m.proof["verdict"]), f"for any number of blocks and branches, with {fixed}")
    yield Paragraph(
        "Each step, from any state in which every fact holds, obeys its rules and leads to such a state. A step that"
        " fails is shown, and what the explorer says of where it starts."
    )
    rows: dict[tuple[str, str], dict[str, list[str]]] = {}
    for r in m.proof["results"]:
        rows.setdefault((r["kind"], r["rule"]), {}).setdefault(r["status"], []).append(r["action"])
    table = [
        (kind, f"`{rule}`", ", ".join(by.get("proved", [])), str(len(by.get("untouched", []))),
         ", ".join(by.get("failed", []) + by.get("unknown", [])))
        for (kind, rule), by in rows.items()
    ]  # fmt: skip
    head = ("kind", "fact", "proved at", "reads nothing that changes", "not proved")
    yield Table(head, tuple(table), frozenset({3}))
    if m.facts:
        yield Paragraph("What the proof needs beside the rules; without one of these some step is not inductive:")
        yield Table(("fact", "what it says", "source"), tuple(_fact(s) for s in m.facts))
    if m.proof["rests_on"]:
        yield Paragraph(
            f"It rests on the lemmas {', '.join(m.proof['rests_on'])}, proved by hand where they are stated."
        )


def _fact(step: ir.Step) -> tuple[str, str, str]:
    said, labels = split_doc(step.doc)
    more = "".join(f"\n{label}: {_words(labels[label])}" for label in LABELS if labels.get(label))
    return f"`{step.name}`", _words(said) + more, where(step.span)


def _mutants(m: Material) -> Iterator[Block]:
    yield Heading(2, "Wrong decisions, and what catches them", "mutants")
    if not m.mutants:
        yield Paragraph("The design names no mutants.")
        return
    rows = [
        (f"`{s.caught.name}`", f"`{s.caught.rule}`" if s.caught.rule else "nothing", str(s.caught.steps),
         s.caught.scope, "" if s.caught.agrees else "differs from what is pinned")
        for s in m.mutants
    ]  # fmt: skip
    yield Table(("decision", "caught by", "steps", "scope", ""), tuple(rows), frozenset({2}))
    for shown in m.mutants:
        yield _mutant(shown)


def _mutant(shown: Shown) -> Block:
    caught = shown.caught
    if caught.finding is None:
        return Details(f"`{caught.name}` is not caught", (), f"mutant-{caught.name}")
    rows = [(str(n), f"`{s.text}`", _changes(s)) for n, s in enumerate(caught.finding.steps, 1)]
    inside: list[Block] = [Paragraph(caught.finding.message)] if caught.finding.message else []
    inside.append(Table(("", "step", "what it changes"), tuple(rows), frozenset({0})))
    if shown.diagram:
        inside.append(Diagram(shown.diagram, f"A shortest way from the start to a breach, with {caught.name}"))
    said = f"`{caught.name}` breaks `{caught.rule}` after {caught.steps} steps, in {caught.scope}"
    return Details(said, tuple(inside), f"mutant-{caught.name}")


def _changes(step: Step) -> str:
    shown = [f"{c.entry} {c.before} -> {c.after}" for c in step.changes[:CHANGES]]
    more = len(step.changes) - CHANGES
    return "; ".join(shown) + (f"; {more} more" if more > 0 else "")


def _budget(m: Material) -> Iterator[Block]:
    yield Heading(2, "Blocks it needs", "budget")
    if isinstance(m.budget, str):
        yield Paragraph(m.budget)
        return
    f, found = m.budget.figures, m.budget
    copies = "without bound on a way that gives no branch up" if f.copies is None else str(f.copies)
    smallest = "none of those searched" if found.smallest is None else f"{found.smallest} blocks"
    yield Items((
        ("measured over", f"{f.states:,} states of {_of(found.scoped.settings)}"),
        ("peak", f"{f.peak} blocks held, {f.tables} of them in tables at most"),
        ("transient", f"{f.transient} at most outside every table: targets of copies, pins, frees that wait"),
        ("steady", f"{f.steady} at most while none is transient"),
        ("copies", copies),
        ("smallest pool", f"{smallest} in which branches never all wait for a block"),
    ))  # fmt: skip


def _of(settings: dict[str, object] | object) -> str:
    assert isinstance(settings, dict)
    return " ".join(f"{n}={str(v).lower()}" for n, v in settings.items() if n != "mutant")


def _bugs(m: Material) -> Iterator[Block]:
    yield Heading(2, "Public bugs that these rules answer to", "bugs")
    judged = m.judged
    rows = [
        (f"{b['project']} {b['number']}", str(b["title"]), f"`{b['rule']}`")
        for b in public_bugs()
        if judged.get(b["rule"])
    ]
    if not rows:
        yield Paragraph("The corpus of public bugs is not installed here.")
        return
    yield Table(("where", "what", "rule"), tuple(rows))


def _open(m: Material) -> Iterator[Block]:
    yield Heading(2, "What is not covered", "open")
    yield Items(tuple(_gaps(m)))


def _gaps(m: Material) -> Iterator[str]:
    judged = m.judged
    for scope, found in m.scopes:
        if found.stopped:
            yield f"The search of {scope} ended early: {found.stopped}."
    taken = {a for _, found in m.scopes for a, count in found.actions.items() if count}
    idle = [s.name for s in m.design.spec.of_kind("action") if s.name not in taken]
    if idle:
        yield f"Steps that no scope enables: {', '.join(f'`{a}`' for a in idle)}."
    unjudged = [n for n, r in m.design.spec.rules.items() if r.kind != "lint" and not judged.get(n)]
    if unjudged:
        yield f"Rules that no step of these scopes is judged by: {', '.join(f'`{n}`' for n in unjudged)}."
    for shown in m.mutants:
        if not shown.caught.agrees:
            yield f"The wrong decision `{shown.caught.name}` is not caught as pinned."
    if isinstance(m.proof, str):
        yield "Nothing is proved beyond the scopes that were explored."
    else:
        open_ = [
            f"`{r['rule']}` at `{r['action']}`" for r in m.proof["results"] if r["status"] in ("failed", "unknown")
        ]
        if open_:
            yield f"Not proved: {', '.join(open_)}."
        if m.proof["never_enabled"]:
            never = ", ".join(f"`{a}`" for a in m.proof["never_enabled"])
            yield f"The sizes of the proof never enable {never}: of these it says nothing."
        yield "The proof leaves out how large a counter may grow, and lints; positions and slots keep their sizes."
    yield "Contents are ghosts: no key and no value is modelled, only for which branch and place a slot is right."
    yield "One pool and one cache group; blocks of one size."
    yield "An engine may do what its design does not say: `kvsan check` on its recorded logs answers that."
