"""Prove a design: the one call that the command and the tests make."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_all_start_methods, get_context

from kvsan.checker.prove import counts
from kvsan.checker.prove.induction import Result, induction, reads_of
from kvsan.checker.prove.initial import broken_at_start, varying
from kvsan.checker.prove.reach import Reached, reach, steps_to
from kvsan.checker.prove.system import SPEND, Scoped, System
from kvsan.spec.lang import ir
from kvsan.spec.lang.symbolic import Entangled


@dataclass
class Proof:
    """What was shown of a design.

    results: every rule and fact at every action. start: facts that a start state breaks, with the step and the scope.
    varying: what a start leaves otherwise where there are more members, so that it stands for no other number. never:
    actions that these sizes never enable. lemmas: what the counters rest on. reached: what the explorer says of the
    steps that failed. left: actions that were not tried, and why. asked: the actions it is about, if not all.
    """

    system: System
    results: list[Result] = field(default_factory=list)
    start: list[tuple[str, str, Scoped]] = field(default_factory=list)
    varying: list[tuple[str, str]] = field(default_factory=list)
    never: list[str] = field(default_factory=list)
    lemmas: tuple[str, ...] = ()
    reached: Reached | None = None
    left: dict[str, str] = field(default_factory=dict)
    asked: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def failed(self) -> list[Result]:
        return [r for r in self.results if r.status == "failed"]

    @property
    def verdict(self) -> str:
        if self.start or (self.reached is not None and self.reached.broken):
            return "VIOLATED"
        good = all(r.status in ("proved", "untouched") for r in self.results) and not self.left and not self.varying
        return "HOLDS" if good else "UNKNOWN"


@dataclass(frozen=True)
class Attempt:
    """What every action is tried with. spend: on a query. until: of `time.perf_counter`, one clock for all
    processes."""

    system: System
    spend: int
    until: float
    first: bool

    def __call__(self, number: int) -> Tried:
        """One action, by its number among those of the system."""
        system = self.system
        if time.perf_counter() > self.until:
            return Tried(left="no time")
        rest = (self.spend, system.events, self.until, self.first)
        try:
            results, enabled = induction(system.actions[number], system.facts, system.variables, system.sizes, *rest)
        except Entangled as tie:
            return Tried(left=str(tie))
        return Tried(results, enabled)


@dataclass(frozen=True)
class Tried:
    """What became of one action. left: why it was not tried."""

    results: list[Result] = field(default_factory=list)
    enabled: bool = True
    left: str = ""


SHARED: list[Attempt] = []
"""What forked processes inherit: a system holds functions, which no pipe carries."""


def _attempts(attempt: Attempt, chosen: Sequence[ir.Step], processes: int) -> Iterator[Tried]:
    """Each action, in order; by several processes where that is asked and possible."""
    names = [a.name for a in attempt.system.actions]
    numbers = [names.index(a.name) for a in chosen]
    if processes < 2 or len(numbers) < 2 or attempt.first or "fork" not in get_all_start_methods():
        yield from map(attempt, numbers)
        return
    SHARED[:] = [attempt]
    with ProcessPoolExecutor(processes, get_context("fork")) as pool:
        yield from pool.map(_shared, numbers)
    SHARED.clear()


def _shared(number: int) -> Tried:
    return SHARED[0](number)


def prove(
    system: System,
    actions: Sequence[str] = (),
    spend: int = SPEND,
    budget: float = 600.0,
    explore: bool = True,
    first: bool = False,
    tell: Callable[[str], None] = lambda _: None,
    processes: int = 1,
) -> Proof:
    """Every step of a design by induction; what fails is looked for by the explorer.

    actions: only these. spend: on a query, in Z3's count. budget: seconds of a clock altogether; what is not reached
    is left. first: stop at the first step that fails, which leaves the others. processes: that share the actions.
    Raises BadDesign.
    """
    begun = time.perf_counter()
    read = dict.fromkeys(name for fact in system.facts.all() for name in sorted(reads_of(fact)))
    proof = Proof(system, start=broken_at_start(system), varying=varying(system, read), asked=tuple(actions))
    proof.lemmas = tuple(
        dict.fromkeys(lemma for c in system.facts.counted for lemma in counts.rests_on(counts.counter(c), system.sizes))
    )
    chosen = [a for a in system.actions if not actions or a.name in actions]
    tell(f"0 of {len(chosen)} actions")
    attempt = Attempt(system, spend, begun + budget, first)
    for k, (action, made) in enumerate(zip(chosen, _attempts(attempt, chosen, processes), strict=True), 1):
        tell(f"{k} of {len(chosen)} actions")
        if made.left:
            proof.left[action.name] = made.left
            continue
        proof.results += made.results
        proof.never += [] if made.enabled else [action.name]
        if first and proof.failed:
            proof.left |= {a.name: "no time" for a in chosen[k:]}
            break
    if proof.failed and explore and not system.events:
        tell("what failed, in the explorer")
        proof.reached = reach(system, [r.rule for r in proof.failed], system.scoped)
        _look_for_starts(proof)
    proof.seconds = time.perf_counter() - begun
    return proof


def _look_for_starts(proof: Proof) -> None:
    """Whether the explorer reaches the start of the first steps that failed, where it breaks what they break."""
    assert proof.reached is not None
    for r in [r for r in proof.failed if r.rule in proof.reached.broken][:STARTS]:
        if r.example is not None:
            r.started = steps_to(proof.system, r.example.start, proof.system.scoped)


STARTS = 4
"""Of how many failed steps the start is looked for: each is a search of its own."""
