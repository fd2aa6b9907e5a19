"""The rules with their labels, as reports document them. Read from the specification, never written twice."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from kvsan.spec.lang.labels import split_doc
from kvsan.spec.lang.surface import Rule
from kvsan.spec.ownership import rules

KINDS = {
    "rule": "judged at the event",
    "order": "judged in every order that the log's synchronisation allows",
    "step": "judged where steps are explored",
    "ghost": "judged on ghost contents, where states are explored",
    "lint": "advice, never a violation",
}
"""What each kind of rule means, in the order in which the kinds are listed."""


@dataclass(frozen=True)
class RuleDoc:
    """A rule: the fact it states, and its four labels (Source, Catches, Except, Deviates)."""

    name: str
    kind: str
    statement: str
    labels: dict[str, str]


@cache
def rulebook() -> dict[str, RuleDoc]:
    """Every rule and lint by name, in the order of the specification."""
    found = [rule for rule in vars(rules).values() if isinstance(rule, Rule)]
    return {rule.name: RuleDoc(rule.name, rule.kind, *split_doc(rule.doc)) for rule in found}
