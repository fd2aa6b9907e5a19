"""Prove a design: the one call that the command and the tests make."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kvsan.checker.prove import counts
from kvsan.checker.prove.induction import Result, induction
from kvsan.checker.prove.initial import broken_at_start
from kvsan.checker.prove.reach import Reached, reach
from kvsan.checker.prove.system import System
from kvsan.spec.lang.symbolic import Entangled


@dataclass
class Proof:
    """What was shown of a design.

    results: every rule and fact at every action. start: facts that a start state breaks, with the initial step. never:
    actions that these sizes never enable. lemmas: what the counters rest on. reached: what the explorer says of the
    steps that failed. left: actions that were not tried, and why.
    """

    system: System
    results: list[Result] = field(default_factory=list)
    start: list[tuple[str, str]] = field(default_factory=list)
    never: list[str] = field(default_factory=list)
    lemmas: tuple[str, ...] = ()
    reached: Reached | None = None
    left: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def failed(self) -> list[Result]:
        return [r for r in self.results if r.status == "failed"]

    @property
    def verdict(self) -> str:
        if self.start or (self.reached is not None and self.reached.broken):
            return "VIOLATED"
        good = all(r.status in ("proved", "untouched") for r in self.results) and not self.left
        return "HOLDS" if good else "UNKNOWN"


def prove(
    system: System,
    actions: Sequence[str] = (),
    timeout: float = 10.0,
    budget: float = 600.0,
    explore: bool = True,
    first: bool = False,
    tell: Callable[[str], None] = lambda _: None,
) -> Proof:
    """Every step of a design by induction; what fails is looked for by the explorer.

    actions: only these. timeout: seconds a query. budget: seconds altogether; what is not reached is left. first: stop
    at the first step that fails, which leaves the others. Raises BadDesign.
    """
    begun = time.monotonic()
    proof = Proof(system, start=broken_at_start(system))
    proof.lemmas = tuple(
        dict.fromkeys(lemma for c in system.facts.counted for lemma in counts.rests_on(counts.counter(c), system.sizes))
    )
    for action in system.actions:
        if actions and action.name not in actions:
            continue
        if time.monotonic() - begun > budget or (first and proof.failed):
            proof.left[action.name] = "no time"
            continue
        tell(action.name)
        ms, until = int(timeout * 1000), time.perf_counter() + budget - (time.monotonic() - begun)
        try:
            results, enabled = induction(
                action, system.facts, system.variables, system.sizes, ms, system.events, until, first
            )
        except Entangled as tie:
            proof.left[action.name] = str(tie)
            continue
        proof.results += results
        if not enabled:
            proof.never.append(action.name)
    if proof.failed and explore and not system.events:
        tell("what failed, in the explorer")
        proof.reached = reach(system, [r.rule for r in proof.failed], system.scoped)
    proof.seconds = time.monotonic() - begun
    return proof
