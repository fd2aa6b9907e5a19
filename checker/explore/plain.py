"""The search by the interpreter: nothing is compiled, no symmetry is used, and every state is a plain one.

The oracle of the compiled search, with which it shares the sliced steps and nothing else; and what runs where there is
no compiler, for scopes of some thousand states.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field

from kvsan.checker.explore.emit import NO_DEADLOCK, REST, STUCK, Model
from kvsan.checker.explore.search import UNLIMITED, Limits, Progress
from kvsan.spec.lang import ir
from kvsan.spec.lang.interpret import Outcome, Plain, holds, run
from kvsan.spec.lang.symbolic import Functional, functional, predicate
from kvsan.spec.lang.walk import all_statements

TELL_EVERY = 64


@dataclass(frozen=True)
class Broken:
    """What failed first of its rule. steps: the codes of a shortest way, from the start with this number."""

    rule: str
    kind: str
    message: str
    start: int
    codes: tuple[int, ...]


@dataclass
class Literal:
    """What a search found; the fields are those of `Exploration`."""

    states: int = 0
    depth: int = 0
    seconds: float = 0.0
    stopped: str = ""
    broken: list[Broken] = field(default_factory=list)
    actions: Counter[str] = field(default_factory=Counter)
    judged: Counter[str] = field(default_factory=Counter)
    witnesses: dict[str, int | None] = field(default_factory=dict)
    fan: Counter[int] = field(default_factory=Counter)
    levels: list[int] = field(default_factory=list)
    deadlocks: int = 0

    @property
    def transitions(self) -> int:
        return sum(self.actions.values())


def key(state: Plain, variables: Mapping[str, object]) -> Hashable:
    """A state as something to look up: what the search stores of it."""
    return tuple((name, frozenset(state[name].items())) for name in variables if state.get(name))


@dataclass
class _Searcher:
    model: Model
    starts: list[Plain]
    limits: Limits
    found: Literal = field(default_factory=Literal)
    order: list[Plain] = field(default_factory=list)
    came: list[tuple[int, int]] = field(default_factory=list)
    seen: set[Hashable] = field(default_factory=set)
    forms: dict[str, Functional] = field(default_factory=dict)

    def __post_init__(self) -> None:
        model = self.model
        self.forms = {a.name: functional(a, model.variables, model.sizes) for a in model.actions}
        self.facts = [(s, predicate(s, model.variables, model.sizes)) for s in model.invariants]
        self.sights = [(s, predicate(s, model.variables, model.sizes)) for s in model.witnesses]
        self.rest = next((sight for step, sight in self.sights if step.name == REST), None)
        self.found.witnesses = {s.name: None for s in model.witnesses}
        asked = [o.rule for a in model.actions for o in all_statements(a.effects) if isinstance(o, ir.Obey)]
        self.found.judged.update(dict.fromkeys((*asked, *(s.name for s in model.invariants)), 0))
        self.codes = [(n, *model.decode(n)) for n in range(model.bases[-1])]
        for n, start in enumerate(self.starts):
            self.add(start, -1 - n, -1)

    def add(self, state: Plain, before: int, code: int) -> None:
        at = key(state, self.model.layout.fields)
        if at not in self.seen:
            self.seen.add(at)
            self.order.append(state)
            self.came.append((before, code))

    def way(self, at: int, code: int) -> tuple[int, tuple[int, ...]]:
        codes = [code] if code >= 0 else []
        while at >= 0:
            before, taken = self.came[at]
            if taken >= 0:
                codes.insert(0, taken)
            at = before
        return -1 - at, tuple(codes)

    def fail(self, rule: str, kind: str, message: str, at: int, code: int = -1) -> None:
        if rule not in [b.rule for b in self.found.broken]:
            self.found.broken.append(Broken(rule, kind, message, *self.way(at, code)))

    def inspect(self, at: int, depth: int) -> bool:
        """Judge a state. Returns whether it may be expanded."""
        state, right = self.order[at], True
        for step, fact in self.facts:
            self.found.judged[step.name] += 1
            if not holds(fact, self.model.variables, state):
                self.fail(step.name, "invariant", _first_line(step.doc), at)
                right = False
        for step, sight in self.sights:
            if self.found.witnesses[step.name] is None and holds(sight, self.model.variables, state):
                self.found.witnesses[step.name] = depth
        return right

    def expand(self, at: int) -> None:
        before, fan, right = self.order[at], 0, True
        for code, action, values in self.codes:
            given = {p.name: v for p, v in zip(action.params, values, strict=True)}
            outcome = run(self.forms[action.name], self.model.variables, before, given)
            if not outcome.enabled:
                continue
            self.found.actions[action.name] += 1
            if self._clean(outcome, at, code):
                fan += 1
                self.add(outcome.after, at, code)
            else:
                right = False
        self.found.fan[fan] += 1
        if not fan and right and self.rest is not None and not holds(self.rest, self.model.variables, before):
            self.found.deadlocks += 1
            self.fail(NO_DEADLOCK, "deadlock", STUCK, at)

    def _clean(self, outcome: Outcome, at: int, code: int) -> bool:
        if not outcome.defined:
            self.fail("defined", "undefined", "the step leaves its domain", at, code)
            return False
        clean = True
        for verdict in outcome.verdicts:
            self.found.judged[verdict.rule] += 1
            if not verdict.holds:
                lint = verdict.rule in self.model.lints
                self.fail(verdict.rule, "lint" if lint else "rule", "", at, code)
                clean = clean and lint
        return clean

    def level(self, depth: int, first: int, tell: Callable[[Progress], None], begun: float) -> None:
        for at in range(first, len(self.order)):
            if self.inspect(at, depth):
                self.expand(at)
            else:
                self.found.fan[0] += 1  # it counts as one without successors
            if at % TELL_EVERY == 0:
                passed = time.perf_counter() - begun
                tell(Progress(len(self.order), self.found.transitions, len(self.order) - at, depth, passed))
            if len(self.order) > self.limits.states:
                self.found.stopped = "the limit of states"
                return


def literal(
    model: Model, starts: list[Plain], limits: Limits = UNLIMITED, tell: Callable[[Progress], None] = lambda _: None
) -> Literal:
    """Search breadth first, to the end of the depth at which something failed. A KeyboardInterrupt ends it early."""
    begun, first = time.perf_counter(), 0
    searcher = _Searcher(model, starts, limits)
    found = searcher.found
    try:
        while first < len(searcher.order) and not found.stopped:
            depth = len(found.levels)
            found.levels.append(first)
            if depth > limits.depth:
                found.stopped = f"depth {limits.depth}"
                break
            end = len(searcher.order)
            searcher.level(depth, first, tell, begun)
            first = end
            if any(b.kind != "lint" for b in found.broken):
                break
    except KeyboardInterrupt:
        found.stopped = "interrupted"
    found.states, found.depth = len(searcher.order), max(0, len(found.levels) - 1)
    found.seconds = time.perf_counter() - begun
    return found


def _first_line(doc: str) -> str:
    return doc.strip().splitlines()[0] if doc.strip() else ""
