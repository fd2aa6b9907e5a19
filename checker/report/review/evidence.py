"""The parts of a review that say what was shown: searches, proofs, wrong decisions, blocks, public bugs."""

from __future__ import annotations

from collections.abc import Iterator

from kvsan.checker.explore.replay import Step
from kvsan.spec.lang import ir
from kvsan.spec.lang.labels import split_doc

from . import words
from .blocks import Block, Details, Diagram, Heading, Items, Paragraph, Table, Verdict
from .material import LABELS, Material, Shown, public_bugs, settings
from .words import told, where


def explored(m: Material) -> Iterator[Block]:
    yield Heading(2, "Explored", "explored")
    yield Paragraph(
        "Every state of each scope, breadth first and compared whole. A symmetry is used only where the language proves"
        " that blocks or branches stand for each other. The seconds stand in the line below the title."
    )
    rows = [
        (scope, settings(found.scoped.settings),
         found.verdict if not found.stopped else f"{found.verdict}: {found.stopped}",
         found.symmetry, f"{found.states:,}", f"{found.transitions:,}", str(found.depth))
        for scope, found in m.scopes
    ]  # fmt: skip
    head = ("scope", "settings", "verdict", "symmetry", "states", "transitions", "depth")
    yield Table(head, tuple(rows), frozenset({4, 5, 6}))
    notes: dict[str, list[str]] = {}
    for scope, found in m.scopes:
        notes.setdefault(words.without_folders(found.symmetry_note), []).append(scope)
    for note, scopes in notes.items():
        if note:
            yield Paragraph(f"No more symmetry in {', '.join(scopes)}. {note}.")
    for scope, found in m.scopes:
        for finding in found.violations:
            yield Verdict("VIOLATED", f"`{finding.rule}` in {scope}: {finding.message}")
            yield _steps(m, finding.steps)
    seen: dict[str, list[str]] = {}
    for scope, found in m.scopes:
        for name, depth in found.witnesses.items():
            seen.setdefault(name, [])
            if depth is not None:
                seen[name].append(f"{scope} at depth {depth}")
    if seen:
        yield Paragraph("What the design can do, and how soon that was first seen:")
        yield Items(tuple((f"`{name}`", ", ".join(at) or "never seen") for name, at in seen.items()))


# --- proved -----------------------------------------------------------------------------------------------------------


def proved(m: Material) -> Iterator[Block]:
    yield Heading(2, "Proved", "proved")
    if isinstance(m.proof, str):
        yield Verdict(
            "UNPROVED", f"{m.proof} What is said of this design holds in the scopes explored, and no further."
        )
        return
    yield Verdict(str(m.proof["verdict"]), f"for any number of blocks and branches, with {settings(m.proof['fixed'])}")
    yield Paragraph(
        "Each step, from any state in which every fact holds, is defined (it unwraps no None and goes past no range),"
        " obeys its rules, and leads to such a state; every start is one. A step that changes nothing that a fact reads"
        " leaves it as it is."
    )
    yield _table_of_proof(m.proof["results"])
    if m.facts:
        yield Paragraph("What is proved together with the rules, which alone do not follow from one state to the next:")
        yield Table(("fact", "what it says", "source"), tuple(_fact(s) for s in m.facts))
    if m.proof["rests_on"]:
        yield Paragraph(
            f"It rests on the lemmas {', '.join(m.proof['rests_on'])}, proved by hand where they are stated."
        )


KINDS = ("rule", "defined", "invariant", "auxiliary", "counted")


def _table_of_proof(results: list[dict[str, str]]) -> Table:
    rows: dict[tuple[str, str], dict[str, list[str]]] = {}
    for r in results:
        rows.setdefault((r["kind"], r["rule"]), {}).setdefault(r["status"], []).append(r["action"])
    table = [
        (kind, f"`{rule}`", ", ".join(by.get("proved", [])), str(len(by.get("untouched", [])) or ""),
         ", ".join(by.get("failed", []) + by.get("unknown", [])))
        for (kind, rule), by in sorted(rows.items(), key=lambda row: KINDS.index(row[0][0]))
    ]  # fmt: skip
    whole = not any(row[-1] for row in table)
    head = ("kind", "fact", "proved at", "left as it is by", "not proved at")
    return Table(head[: 5 - whole], tuple(row[: 5 - whole] for row in table), frozenset({3}))


def _fact(step: ir.Step) -> tuple[str, str, str]:
    said, labels = split_doc(step.doc)
    told_of = ((label, told(labels[label])) for label in LABELS if labels.get(label))
    more = "".join(f"\n{label}: {text}" for label, text in told_of if text != "none.")
    return f"`{step.name}`", told(said) + more, where(step.span)


# --- wrong decisions --------------------------------------------------------------------------------------------------


def mutants(m: Material) -> Iterator[Block]:
    yield Heading(2, "Wrong decisions, and what catches them", "mutants")
    if not m.mutants:
        yield Paragraph(m.no_mutants)
        return
    yield Paragraph("Each is one decision of the design taken wrong, and the shortest way from the start to a breach.")
    rows = [
        (f"`{s.caught.name}`", f"`{s.caught.rule}`" if s.caught.rule else "nothing", str(s.caught.steps or ""),
         s.caught.scope, _note(s))
        for s in m.mutants
    ]  # fmt: skip
    yield Table(("decision", "caught by", "steps", "scope", ""), tuple(rows), frozenset({2}))
    for shown in m.mutants:
        yield _mutant(m, shown)


def _note(shown: Shown) -> str:
    differs = shown.caught.pinned is not None and not shown.caught.agrees
    return "differs from what is pinned" if differs else "" if shown.caught.agrees else "not caught"


def _mutant(m: Material, shown: Shown) -> Block:
    caught = shown.caught
    said, spots = words.wrong(m.design, caught.name)
    inside: list[Block] = [Paragraph(f"Seen in {said}")] if said else []
    if spots:
        rows = tuple((spot.where, f"`{spot.step}`", f"`{spot.line}`") for spot in spots)
        inside.append(Table(("decided at", "in", "by"), rows))
    if caught.finding is None:
        return Details(f"`{caught.name}` is not caught", tuple(inside), f"mutant-{caught.name}")
    if caught.finding.message:
        inside.append(Verdict("CAUGHT", f"`{caught.rule}`: {caught.finding.message}"))
    inside.append(_steps(m, caught.finding.steps))
    if shown.diagram:
        inside.append(Diagram(shown.diagram, f"A shortest way from the start to a breach, with {caught.name}"))
    summary = f"`{caught.name}` breaks `{caught.rule}` after {caught.steps} steps, in {caught.scope}"
    return Details(summary, tuple(inside), f"mutant-{caught.name}")


def _steps(m: Material, steps: tuple[Step, ...]) -> Table:
    """Each step with all that it changes: what the design keeps, then the ledger."""
    own = {v.name for v in words.own(m.design)}
    ledger = len(own) < len(m.design.spec.variables)
    rows = [
        (str(n), f"`{step.text}`", _changes(step, own, True), *((_changes(step, own, False),) if ledger else ()))
        for n, step in enumerate(steps, 1)
    ]
    head = ("", "step", "changes in the design", *(("changes in the ledger",) if ledger else ()))
    return Table(head, tuple(rows), frozenset({0}))


def _changes(step: Step, own: set[str], of_design: bool) -> str:
    """The entries of one variable together: `table[r1, 0] None → b0, [r1, 1] None → b1`."""
    found: dict[str, list[str]] = {}
    for change in step.changes:
        name, bracket, index = change.entry.partition("[")
        if (name in own) == of_design:
            found.setdefault(name, []).append(f"{bracket}{index} {change.before} \u2192 {change.after}".strip())
    return "; ".join(f"{name}{'' if said[0][0] == '[' else ' '}{', '.join(said)}" for name, said in found.items())


# --- blocks, and what the rules answer to -----------------------------------------------------------------------------


def measured(m: Material) -> Iterator[Block]:
    yield Heading(2, "Blocks it needs", "budget")
    if isinstance(m.budget, str):
        yield Paragraph(m.budget)
        return
    f, found = m.budget.figures, m.budget
    copies = "without bound on a way that gives no branch up" if f.copies is None else f"{f.copies} on one way at most"
    smallest = "none of those searched" if found.smallest is None else f"{found.smallest} blocks"
    yield Items((
        ("measured over", f"{f.states:,} states of {settings(found.scoped.settings)}"),
        ("peak", f"{f.peak} blocks held, {f.tables} of them in tables at most"),
        ("transient", f"{f.transient} at most outside every table: targets of copies, pins, frees that wait"),
        ("steady", f"{f.steady} at most while none is transient"),
        ("copies", copies),
        ("smallest pool", f"{smallest} in which branches never all wait for a block"),
    ))  # fmt: skip


def bugs(m: Material) -> Iterator[Block]:
    yield Heading(2, "Public bugs that these rules answer to", "bugs")
    judged, caught = m.judged, {s.caught.rule for s in m.mutants}
    rows = [
        (f"{b['project']} {b['number']}", str(b["title"]), f"`{b['rule']}`")
        for b in public_bugs()
        if judged.get(b["rule"]) or b["rule"] in caught
    ]
    if not rows:
        yield Paragraph("The corpus of public bugs is not installed here, or answers to none of these rules.")
        return
    yield Table(("where", "what", "rule"), tuple(rows))
