"""A second opinion as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from kvsan.checker.prove.reach import Reached
from kvsan.checker.prove.second import Opinion, counters
from kvsan.checker.prove.system import System

LEFT = "a finer abstraction gave no answer for what it may spend"
LOST = "the abstraction is too weak for it: it keeps one block and one branch, not what holds between two"


@dataclass(frozen=True)
class Second:
    """What is said of a design without its facts. reached: what the explorer finds of the rules that are broken in the
    abstraction; None where it did not look."""

    system: System
    opinions: tuple[Opinion, ...]
    reached: Reached | None = None

    @property
    def verdict(self) -> str:
        """What is broken in the abstraction alone need not be in the design."""
        if any(self.is_real(o) for o in self.opinions):
            return "VIOLATED"
        return "UNKNOWN" if self.unproved or not self.opinions else "HOLDS"

    @property
    def unproved(self) -> list[str]:
        """What has no proof: of what was asked, and of what the rest rests on."""
        proved = {o.rule for o in self.opinions if o.status == "proved"}
        wanted = [*(o.rule for o in self.opinions), *_counters(self)]
        return [rule for rule in dict.fromkeys(wanted) if rule not in proved]

    def is_real(self, o: Opinion) -> bool:
        """Whether the explorer finds the rule broken too."""
        return o.status == "broken" and self.reached is not None and o.rule in self.reached.broken

    def status(self, o: Opinion) -> str:
        """In words: what only the abstraction breaks is not known."""
        if o.status == "broken" and not self.is_real(o):
            return "unknown"
        return o.status

    def said(self, o: Opinion) -> str:
        """What the explorer makes of a rule that is broken in the abstraction."""
        found = self.reached
        if found is None or found.stopped == "no compiler":
            return "in the abstraction; whether the design breaks it was not looked for"
        scope = ", ".join(f"{found.settings[n]} {n}" for n in ("branches", "blocks") if n in found.settings)
        if o.rule in found.broken:
            return f"and the explorer breaks it with {scope}: {'; '.join(found.broken[o.rule])}"
        if o.rule in _counters(self):
            return "in the abstraction; the explorer, which counts again what it can, is not asked of a counter"
        why = LEFT if o.left else LOST
        return f"in the abstraction, but not in the {found.states:,} states that the explorer sees with {scope}: {why}"


def as_json(second: Second) -> str:
    """One object, indented, in a fixed order of fields."""
    out = {
        "verdict": second.verdict,
        "design": second.system.design.name,
        "rests_on": ["count_members", *_counters(second)],
        "opinions": [
            {
                "rule": o.rule,
                "status": second.status(o),
                "by": o.by,
                "invariant": list(o.invariant),
                "trace": list(o.trace),
                "asked": o.asked or "every step",
                "explored": second.said(o) if o.status == "broken" else "",
                "few": list(o.few),
                "tied": o.tied,
                "clauses": o.clauses,
                "seconds": round(o.seconds, 2),
            }
            for o in second.opinions
        ],
    }
    return json.dumps(out, indent=2) + "\n"


def as_text(second: Second, replay: str) -> str:
    """For people."""
    return "\n".join(_lines(second, replay)) + "\n"


def _lines(second: Second, replay: str) -> Iterator[str]:
    yield f"{second.system.design.name}  one block b and one branch w of any number"
    for o in second.opinions:
        yield ""
        by = f" by {o.by}" if o.by else ""
        yield f"  {o.rule}  {second.status(o)}{by}  {o.seconds:.2f} s, {o.clauses} clauses"
        if o.varying:
            names = ", ".join(o.varying)
            yield f"    of one number of members alone: with more, the start leaves {names} otherwise"
        if o.tied:
            yield f"    every step was not asked: {o.tied}"
        if o.status == "proved" or o.varying:
            yield "    its invariant, which a plain solver finds inductive:"
        yield from (f"      {part}" for part in o.invariant)
        if o.status == "broken":
            yield f"    broken {second.said(o)}"
            yield f"    in the abstraction by {'; '.join(o.trace)}"
            if o.asked:
                yield f"    asked of {o.asked}, and of what these depend on"
            if o.few:
                yield f"    no more turns than the scope has members in the loops of {', '.join(o.few)}"
    yield ""
    yield "  rests on      the lemma count_members"
    if _counters(second):
        yield f"  and on        {' and '.join(_counters(second))}"
    if not second.system.events:
        yield "  leaves out    whether each step is defined, invariants of the design's own, rules of order, lints"
    match second.verdict:
        case "HOLDS":
            yield "HOLDS what is proved above, for any number of blocks and branches"
            return
        case "VIOLATED":
            yield f"VIOLATED: {', '.join(o.rule for o in second.opinions if second.is_real(o))}"
        case _:
            yield f"UNKNOWN: not proved: {', '.join(second.unproved)}"
    yield f"  replay        {replay}"


def _counters(second: Second) -> list[str]:
    """Facts of a design that are asked beside its rules. Those of the discipline are what is asked of it."""
    return [] if second.system.events else [c.name for c in counters(second.system)]
