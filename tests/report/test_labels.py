"""Rules' docstrings, taken apart."""

from __future__ import annotations

from kvsan.spec.lang.labels import LABELS, labels, statement
from kvsan.spec.lang.surface import Rule
from kvsan.spec.ownership import rules

DOC = """A fact that needs
    two lines.

    Source: here; and
        there.
    Catches: a bug: this one.
    Except: none.
    Deviates: none.
    """


def test_continuation_lines_are_joined() -> None:
    assert statement(DOC) == "A fact that needs two lines."
    assert labels(DOC) == {
        "Source": "here; and there.",
        "Catches": "a bug: this one.",
        "Except": "none.",
        "Deviates": "none.",
    }


def test_a_missing_label_is_not_invented() -> None:
    assert labels("A fact.") == {}


def test_every_rule_of_the_discipline_has_a_statement_and_four_labels() -> None:
    named = {name: rule for name, rule in vars(rules).items() if isinstance(rule, Rule)}
    assert named
    for name, rule in named.items():
        assert statement(rule.doc), name
        said = labels(rule.doc)
        assert set(said) >= set(LABELS) and all(said.values()), name
