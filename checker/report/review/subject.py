"""The parts of a review that say what the design is, and which rules it is judged by."""

from __future__ import annotations

from collections.abc import Iterator

from kvsan.spec.lang import ir

from . import words
from .blocks import Block, Details, Heading, Items, Paragraph, Table
from .material import LABELS, Material
from .words import told, where


def design(m: Material) -> Iterator[Block]:
    yield Heading(2, "The design", "design")
    for paragraph in words.of_module(m.design).split("\n\n"):
        yield _prose(paragraph)
    yield Heading(3, "State", "state")
    yield from _state(m)
    yield Heading(3, "Steps", "steps")
    steps = m.design.spec.of_kind("initial", "action")
    done = tuple((f"`{s.name}({', '.join(p.name for p in s.params)})`", told(s.doc), where(s.span)) for s in steps)
    yield Table(("step", "what it does", "source"), done)
    facts = m.design.spec.of_kind("invariant", "witness")
    if facts:
        yield Heading(3, "Invariants and witnesses", "facts")
        rows = tuple((f"`{s.name}`", s.kind, told(s.doc), where(s.span)) for s in facts)
        yield Table(("name", "kind", "what it says", "source"), rows)


def _state(m: Material) -> Iterator[Block]:
    classes = [(f"`{name}`", said) for name, said in words.of_state(m.design) if said]
    if classes:
        yield Items(tuple(classes))
    yield Paragraph("What the design keeps besides the ledger of blocks, tables, pins and identities:")
    variables = words.own(m.design)
    yield Table(
        ("variable", "type", "", "source"), tuple((f"`{v.name}`", _type(v), _kind(v), where(v.span)) for v in variables)
    )
    choices = words.own_choices(m.design)
    if choices:
        rows = tuple((f"`{n}`", ", ".join(values), words.of_choice(m.design, n)) for n, values in choices.items())
        yield Table(("type", "values", "what they say"), rows)


def _prose(paragraph: str) -> Block:
    """A paragraph of a docstring; indented lines `name  words` are a list of terms."""
    lines = paragraph.splitlines()
    pairs = [line.strip().split("  ", 1) for line in lines[1:]]
    if len(lines) > 1 and all(line.startswith("    ") for line in lines[1:]) and all(len(p) == 2 for p in pairs):
        head = (lines[0].strip(), "")
        return Items((head, *((p[0], p[1].strip()) for p in pairs)))
    return Paragraph(told(paragraph))


def _type(v: ir.Variable) -> str:
    keys = ", ".join(map(str, v.keys))
    return f"({keys}) to {v.value}" if keys else str(v.value)


def _kind(v: ir.Variable) -> str:
    kind = "constant" if v.const else "derived" if v.derived else "ghost" if v.ghost else ""
    return "; ".join(filter(None, (kind, words.comment(v.span))))


def rules(m: Material) -> Iterator[Block]:
    yield Heading(2, "Rules in force", "rules")
    yield Paragraph(
        "Every rule that a step of the design is judged by, with how often that was in all scopes together; then those"
        " that only a wrong decision is judged by."
    )
    judged, caught = m.judged, {s.caught.rule for s in m.mutants}
    named = m.design.spec.rules.items()
    for name, rule in named:
        if judged.get(name):
            yield _rule(name, rule, f"Judged {judged[name]:,} times.")
    for name, rule in named:
        if name in caught and not judged.get(name):
            lint = ", a lint" if rule.kind == "lint" else ""
            yield _rule(name, rule, f"Only with a decision taken wrong{lint}.")


def _rule(name: str, rule: ir.RuleDecl, how_often: str) -> Block:
    labels = tuple((label, told(rule.labels[label])) for label in LABELS if rule.labels.get(label))
    said = f"`{name}`: {told(rule.statement)} {how_often}"
    return Details(said, (Items((*labels, ("Written", where(rule.span)))),), f"rule-{name}")
