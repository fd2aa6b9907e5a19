"""Liveness: whether whatever a design began comes to an end, if its engine and device do what they can do.

A design names what is pending of a branch (a helper, true from the beginning to the end) and its fair actions. Weak
fairness: an action that a branch could take without a pause is taken at some time, with some choice of its other
parameters. Requests come and go as they like: nobody must fork, admit or cancel.

A branch waits for ever where a set of states, each reachable from each other, all have it pending, and each fair action
of each branch is taken among them or is somewhere not enabled. A state that nothing fair leads out of is such a set of
one. The whole graph is needed, so scopes are small, and no symmetry is used.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from kvsan.checker.explore.design import BadDesign, Design, Scoped, scoped
from kvsan.checker.explore.explore import Prepared, prepare
from kvsan.checker.explore.graph import NoGraphs
from kvsan.checker.explore.module import build
from kvsan.checker.explore.packed import unpack
from kvsan.checker.explore.path import codes_to, successors
from kvsan.checker.explore.replay import Step, perform
from kvsan.checker.explore.search import Failure, Limits, Search, search
from kvsan.spec.lang import ir
from kvsan.spec.lang.interpret import holds
from kvsan.spec.lang.symbolic import Guarded, predicate

MOST = 200_000
"""States of a scope that is judged: the graph is kept as Python objects."""
LARGER_POOLS = 4
"""So many more blocks are tried, one by one, for a pool that suffices."""

Turn = tuple[str, int]
"""A fair action, and the branch that takes it."""


class TooLarge(Exception):
    """The scope has too many states: the message says what to do."""


@dataclass(frozen=True)
class Waiting:
    """A branch that may wait for ever. steps: a shortest way to a state of the set. circle: how many states are in it.
    never, sometimes: the branch's own fair actions, by where among them they are enabled."""

    branch: int
    steps: tuple[Step, ...]
    circle: int
    never: tuple[str, ...]
    sometimes: tuple[str, ...]


@dataclass(frozen=True)
class Liveness:
    """pending: states with something pending, by branch. suffices: the smallest larger pool where nothing waits."""

    scoped: Scoped
    states: int
    pending: Mapping[int, int]
    waiting: Waiting | None
    suffices: int | None = None

    @property
    def verdict(self) -> str:
        return "VIOLATED" if self.waiting else "HOLDS" if any(self.pending.values()) else "UNKNOWN"


def liveness(design: Design, chosen: Scoped, tell: Callable[[str], None] = lambda _: None) -> Liveness:
    """Judge a scope, and, where a branch waits, larger pools. Raises BadDesign, TooLarge, NoCompiler, NoGraphs."""
    tell("its scope")
    found = _judge(design, chosen)
    if found.waiting is None:
        return found
    blocks = int(chosen.settings["blocks"]) if "blocks" in chosen.settings else 0
    for more in range(1, LARGER_POOLS + 1) if blocks else ():
        changed = {n: str(v) for n, v in chosen.settings.items()} | {"blocks": str(blocks + more)}
        tell(f"a pool of {blocks + more} blocks")
        try:
            if _judge(design, scoped(design, changed)).waiting is None:
                return replace(found, suffices=blocks + more)
        except TooLarge:
            break
    return found


def _judge(design: Design, chosen: Scoped) -> Liveness:
    if not design.pending or not design.fair:
        raise BadDesign(
            f"{design.name} does not say what is pending, or which actions are fair: a file of yours has"
            " PENDING = 'a_helper_of_a_branch' and FAIR = ('an_action', ...)"
        )
    prepared = prepare(_watched(design), chosen, "none")
    found = search(
        prepared.model,
        prepared.generated,
        build(prepared.generated.source),
        [s.state for s in prepared.begun],
        Limits(MOST),
        stop=False,
    )
    if found.stopped:
        raise TooLarge(f"more than {MOST:,} states: liveness needs a smaller scope (--set, --scope)")
    judged = _Graph(prepared, found, design)
    waiting = next((w for r in judged.branches if (w := judged.waiting(r)) is not None), None)
    return Liveness(chosen, found.count, {r: len(judged.pending[r]) for r in judged.branches}, waiting)


def _watched(design: Design) -> Design:
    """The design with a witness of its pending, so that slicing keeps what that depends on."""
    helper = design.spec.steps.get(design.pending)
    if helper is None or helper.value is None or len(helper.params) != 1:
        raise BadDesign(f"{design.pending} is no helper `(s, r: Branch) -> bool` of {design.name}")
    unknown = [a for a in design.fair if design.spec.steps.get(a, helper).kind != "action"]
    if unknown:
        raise BadDesign(f"{design.name} has no action {unknown[0]}, which it calls fair")
    (param,) = helper.params
    domain = ir.Members(str(param.type))
    some = ir.Quantifier("any", param.name, param.type, domain, helper.value)
    watch = replace(helper, name=f"can_{helper.name}", kind="witness", params=(), value=some)
    spec = replace(design.spec, steps={**design.spec.steps, watch.name: watch})
    return replace(design, spec=spec)


class _Graph:
    """Every state and step of a scope. enabled: the fair turns that a state has. taken: those of a step, if it is one.
    pending: the states where something of a branch is pending."""

    def __init__(self, prepared: Prepared, found: Search, design: Design) -> None:
        self.prepared, self.found, self.fair = prepared, found, frozenset(design.fair)
        model, width = prepared.model, prepared.model.layout.words
        rows = [tuple(found.states[n * width : (n + 1) * width].tolist()) for n in range(found.count)]
        numbers = {row: n for n, row in enumerate(rows)}
        self.onward: list[list[tuple[int, Turn | None]]] = []
        for row in rows:
            steps = successors(found, row)
            self.onward.append([(numbers[tuple(words.tolist())], self._turn(code)) for code, words, _ in steps])
        self.enabled = [frozenset(turn for _, turn in steps if turn is not None) for steps in self.onward]
        helper = design.spec.steps[design.pending]
        assert helper.value is not None
        self.branches = range(prepared.scoped.sizes.sorts["Branch"])
        facts = {r: self._fact(helper, r) for r in self.branches}
        self.pending: dict[int, set[int]] = defaultdict(set)
        for n, row in enumerate(rows):
            state = {**prepared.scoped.constants, **unpack(row, model.layout)}
            for r, fact in facts.items():
                if holds(fact, model.variables, state):
                    self.pending[r].add(n)

    def _fact(self, helper: ir.Step, branch: int) -> Guarded:
        (param,) = helper.params
        assert helper.value is not None
        bound = ir.LetIn(param.name, ir.Const(branch, param.type), helper.value, ir.BOOL)
        fixed = replace(helper, kind="witness", params=(), value=bound)
        return predicate(fixed, self.prepared.model.variables, self.prepared.model.sizes)

    def _turn(self, code: int) -> Turn | None:
        action, values = self.prepared.model.decode(code)
        if action.name not in self.fair:
            return None
        branch = next((v for p, v in zip(action.params, values, strict=True) if str(p.type) == "Branch"), None)
        return action.name, -1 if branch is None else branch

    def waiting(self, branch: int) -> Waiting | None:
        """The first found set of states in which the branch may wait for ever."""
        try:
            import networkx as nx
        except ModuleNotFoundError as error:
            raise NoGraphs("networkx is not installed") from error
        inside = self.pending[branch]
        drawn = nx.DiGraph()
        drawn.add_nodes_from(sorted(inside))
        drawn.add_edges_from((n, m) for n in sorted(inside) for m, _ in self.onward[n] if m in inside)
        traps = [s for s in map(frozenset, nx.strongly_connected_components(drawn)) if self._is_fair(s)]
        if not traps:
            return None
        trap = min(traps, key=min)
        own = {turn for turn in self._turns() if turn[1] == branch}
        somewhere = frozenset().union(*(self.enabled[n] for n in trap))
        return Waiting(
            branch,
            self._way(min(trap)),
            len(trap),
            tuple(sorted(name for name, r in own if (name, r) not in somewhere)),
            tuple(sorted(name for name, r in own if (name, r) in somewhere)),
        )

    def _turns(self) -> frozenset[Turn]:
        return frozenset().union(*self.enabled)

    def _is_fair(self, states: frozenset[int]) -> bool:
        """Whether a run may stay among these states and be weakly fair."""
        always = frozenset.intersection(*(self.enabled[n] for n in states))
        taken = {turn for n in states for m, turn in self.onward[n] if m in states}
        return always <= taken

    def _way(self, at: int) -> tuple[Step, ...]:
        begun = [s.state for s in self.prepared.begun]
        level = max(d for d, first in enumerate(self.found.levels) if first <= at)
        start, codes = codes_to(self.found, Failure(-1, at, -1, level), begun)
        return perform(self.prepared.design.spec, self.prepared.scoped, self.prepared.model, begun[start], codes)
