"""A second opinion as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from kvsan.checker.prove.spacer import Opinion
from kvsan.checker.prove.system import System


@dataclass(frozen=True)
class Second:
    """What Spacer says of a design."""

    system: System
    opinions: tuple[Opinion, ...]

    @property
    def verdict(self) -> str:
        """What is broken in the abstraction need not be in the design."""
        good = self.opinions and all(o.status == "proved" for o in self.opinions)
        return "HOLDS" if good else "UNKNOWN"


def as_json(second: Second) -> str:
    """One object, indented, in a fixed order of fields."""
    out = {
        "verdict": second.verdict,
        "design": second.system.design.name,
        "rests_on": ["count_members", *_counters(second)],
        "opinions": [
            {
                "rule": o.rule,
                "status": o.status,
                "invariant": list(o.invariant),
                "trace": list(o.trace),
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
    yield f"{second.system.design.name}  one block b and one branch w of any number, as Spacer sees them"
    for o in second.opinions:
        yield ""
        yield f"  {o.rule}  {o.status}  {o.seconds:.2f} s, {o.clauses} clauses"
        if o.status == "proved":
            yield "    its invariant, which a plain solver finds inductive:"
        yield from (f"      {part}" for part in o.invariant)
        if o.trace:
            yield f"    by {'; '.join(o.trace)}"
    yield ""
    yield "  rests on      the lemma count_members"
    if _counters(second):
        yield f"  and on        {' and '.join(_counters(second))}, which the induction shows"
    bad = [o.rule for o in second.opinions if o.status == "broken"]
    if bad:
        yield "  broken        in the abstraction, which forgets all but b and w: the design may be right"
    if second.verdict == "HOLDS":
        yield "HOLDS for any number of blocks and branches"
        return
    yield f"UNKNOWN: not proved: {', '.join(o.rule for o in second.opinions if o.status != 'proved')}"
    yield f"  replay        {replay}"


def _counters(second: Second) -> list[str]:
    """What a design's counters count is taken from the induction; of the discipline it is asked."""
    return [] if second.system.events else [c.name for c in second.system.facts.counted]
