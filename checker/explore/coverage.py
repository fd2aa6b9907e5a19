"""What each `require` refuses and lets pass: the search once more, with counters in its guards.

The guards keep their places because each has the switch of `guards`, which is never turned here; so a condition that a
scope decides beforehand is counted too.
"""

from __future__ import annotations

from dataclasses import dataclass

from kvsan.checker.explore.design import Design, Scoped
from kvsan.checker.explore.guards import Guard, guards, switched
from kvsan.checker.explore.module import build
from kvsan.checker.explore.search import UNLIMITED, Limits, search


@dataclass(frozen=True)
class GuardCount:
    """Evaluations, one for each choice of the parameters that the condition and those before it name."""

    guard: Guard
    refused: int
    passed: int

    @property
    def said(self) -> str:
        """What is worth knowing of it, '' where it does its work."""
        if not self.refused and not self.passed:
            return "never reached"
        return "" if self.refused and self.passed else "never refuses" if self.passed else "never holds"


def guard_counts(
    design: Design, scoped: Scoped, symmetry: str = "full", limits: Limits = UNLIMITED
) -> tuple[GuardCount, ...]:
    """The counts of every guard, in source order. Raises BadDesign, NoCompiler."""
    every = guards(design.spec)
    prepared = switched(design, scoped, symmetry, len(every), counting=True)
    begun = [s.state for s in prepared.begun]
    found = search(prepared.model, prepared.generated, build(prepared.generated.source), begun, limits)
    first = dict[str, int]()
    for k, judge in enumerate(prepared.generated.judges):
        if judge.kind == "guard":
            first.setdefault(judge.step, k)
    out, place = [], dict[str, int]()
    for guard in every:
        n = place.get(guard.action, 0)
        place[guard.action] = n + 1
        at = first[guard.action] + 2 * n
        out.append(GuardCount(guard, int(found.judged[at]), int(found.judged[at + 1])))
    return tuple(out)
