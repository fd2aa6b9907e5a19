"""Explore a design: the one call that the command and the tests make."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from kvsan.checker.explore.design import Design, Scoped
from kvsan.checker.explore.emit import REST, Generated, Judge, Model, generate
from kvsan.checker.explore.model import Start, model, starts
from kvsan.checker.explore.module import build
from kvsan.checker.explore.path import codes_to
from kvsan.checker.explore.pieces import cores
from kvsan.checker.explore.plain import literal
from kvsan.checker.explore.replay import Step, perform
from kvsan.checker.explore.search import UNLIMITED, Failure, Limits, Progress, Search, search
from kvsan.checker.explore.symmetry import symmetry as strongest
from kvsan.spec.lang.diagnostics import place
from kvsan.spec.lang.interpret import Plain


@dataclass(frozen=True)
class Finding:
    """Something that failed, with a shortest way to it. rule: `defined` where a step left its domain."""

    rule: str
    kind: str
    message: str
    steps: tuple[Step, ...]
    start: Plain = field(repr=False)


@dataclass(frozen=True)
class ObligationCount:
    """How often an action judged a rule at one place."""

    action: str
    rule: str
    place: str
    judged: int


@dataclass(frozen=True)
class Exploration:
    """What was found, and what was covered.

    symmetry: the one that was used; symmetry_note: why it is not what was asked for. stopped: why the search ended
    early. actions: transitions per action, those never taken too. judged: evaluations per rule. witnesses: the depth at
    which each was first seen. ends: states without a successor. fan: states by their number of successors.
    """

    design: str
    scoped: Scoped
    symmetry: str
    symmetry_note: str
    states: int
    transitions: int
    depth: int
    seconds: float
    stopped: str
    violations: tuple[Finding, ...]
    lints: tuple[Finding, ...]
    actions: dict[str, int]
    judged: dict[str, int]
    witnesses: dict[str, int | None]
    ends: int
    fan: dict[int, int]
    levels: tuple[int, ...]
    bytes: int
    bits: int
    variables: tuple[str, ...]
    deadlocks: int | None = None
    obligations: tuple[ObligationCount, ...] = ()

    @property
    def verdict(self) -> str:
        return "VIOLATED" if self.violations else "UNKNOWN" if self.stopped else "HOLDS"


@dataclass(frozen=True)
class Prepared:
    """A design in a scope, ready to be searched."""

    design: Design
    scoped: Scoped
    begun: tuple[Start, ...]
    model: Model
    generated: Generated
    symmetry: str
    symmetry_note: str


def prepare(
    design: Design, scoped: Scoped, symmetry: str = "full", lints: bool = False, without: Collection[str] = ()
) -> Prepared:
    """Slice, lay out and generate. Raises BadDesign."""
    begun = starts(design.spec, scoped)
    made = model(design.spec, scoped, begun, lints, without)
    used = strongest(made, symmetry)
    return Prepared(design, scoped, begun, made, generate(made, used.text), used.name, used.note)


def explore(
    prepared: Prepared,
    limits: Limits = UNLIMITED,
    tell: Callable[[Progress], None] = lambda _: None,
    threads: int = 0,
    partial: bool = False,
) -> Exploration:
    """Search, and find the way to the first failure of each rule at the depth where the search ended.

    threads: 0 for as many as there are cores. partial: an interrupt gives what there is, else it is raised. Raises
    NoCompiler.
    """
    module = build(prepared.generated.source)
    begun = [s.state for s in prepared.begun]
    found = search(
        prepared.model, prepared.generated, module, begun, limits, tell, threads=threads or cores(), partial=partial
    )
    violations, lints = list[Finding](), list[Finding]()
    judges = prepared.generated.judges
    for failure in found.failures:
        judge = judges[failure.judge]
        into = lints if judge.kind == "lint" else violations
        if judge.kind != "witness" and judge.rule not in (f.rule for f in into):
            told = finding_of(prepared, found, failure, judge)
            into += [told] if confirmed(told) else []
    return _outcome(prepared, found, tuple(violations), tuple(lints))


def explore_plainly(
    prepared: Prepared, limits: Limits = UNLIMITED, tell: Callable[[Progress], None] = lambda _: None
) -> Exploration:
    """The same by the interpreter, without a symmetry."""
    found = literal(prepared.model, [s.state for s in prepared.begun], limits, tell)
    violations, lints = list[Finding](), list[Finding]()
    for broken in found.broken:
        start = prepared.begun[broken.start].state
        steps = perform(prepared.design.spec, prepared.scoped, prepared.model, start, broken.codes)
        said = [b.message for b in steps[-1].breaches if b.rule == broken.rule] if steps else []
        into = lints if broken.kind == "lint" else violations
        into.append(Finding(broken.rule, broken.kind, said[0] if said else broken.message, steps, start))
    note = "searched by the interpreter" if prepared.symmetry != "none" else prepared.symmetry_note
    return Exploration(
        prepared.design.name,
        prepared.scoped,
        "none",
        note,
        found.states,
        found.transitions,
        found.depth,
        found.seconds,
        found.stopped,
        tuple(violations),
        tuple(lints),
        {a.name: found.actions[a.name] for a in prepared.design.spec.of_kind("action")},
        dict(found.judged),
        found.witnesses,
        found.fan[0],
        dict(sorted(found.fan.items())),
        tuple(found.levels),
        0,
        prepared.model.layout.bits,
        tuple(prepared.model.layout.fields),
        found.deadlocks if REST in found.witnesses else None,
    )


def finding_of(prepared: Prepared, found: Search, failure: Failure, judge: Judge) -> Finding:
    begun = [s.state for s in prepared.begun]
    start, codes = codes_to(found, failure, begun)
    steps = perform(prepared.design.spec, prepared.scoped, prepared.model, begun[start], codes)
    message = judge.message
    if judge.kind == "undefined":
        message = f"{place(judge.span)}: {judge.message}"
    for breach in steps[-1].breaches if steps else ():
        if breach.rule == judge.rule:
            message = breach.message
    return Finding(judge.rule, judge.kind, message, steps, begun[start])


def confirmed(finding: Finding) -> bool:
    """Whether whole states show it too. Where a step leaves its domain, which is a finding of its own, what else it
    broke was judged on values that mean nothing."""
    obligation = finding.kind in ("rule", "lint")
    return not obligation or any(b.rule == finding.rule for b in finding.steps[-1].breaches)


def _outcome(
    prepared: Prepared, found: Search, violations: tuple[Finding, ...], lints: tuple[Finding, ...]
) -> Exploration:
    judged: dict[str, int] = {}
    witnesses: dict[str, int | None] = {}
    depths, judges = {f.judge: f.depth for f in found.failures}, prepared.generated.judges
    for k, judge in enumerate(judges):
        if judge.kind in ("rule", "lint"):
            judged[judge.rule] = judged.get(judge.rule, 0) + int(found.judged[k])
        elif judge.kind == "invariant":
            judged[judge.rule] = found.expanded
        elif judge.kind == "witness":
            witnesses[judge.rule] = depths.get(k)
    taken = {a.name: int(n) for a, n in zip(prepared.model.actions, found.taken, strict=True)}
    return Exploration(
        prepared.design.name,
        prepared.scoped,
        prepared.symmetry,
        prepared.symmetry_note,
        found.count,
        found.transitions,
        found.depth,
        found.seconds,
        found.stopped,
        violations,
        lints,
        {a.name: taken.get(a.name, 0) for a in prepared.design.spec.of_kind("action")},
        judged,
        witnesses,
        int(found.fan[0]),
        {n: int(count) for n, count in enumerate(found.fan) if count},
        tuple(found.levels),
        found.bytes,
        prepared.model.layout.bits,
        tuple(prepared.model.layout.fields),
        next((int(found.judged[k]) for k, j in enumerate(judges) if j.kind == "deadlock"), None),
        _obligations(prepared, found),
    )


def _obligations(prepared: Prepared, found: Search) -> tuple[ObligationCount, ...]:
    """The evaluations, in the order of the actions; those of one place through several calls together."""
    counts: dict[tuple[str, str, str], int] = {}
    for k, judge in enumerate(prepared.generated.judges):
        if judge.kind in ("rule", "lint"):
            at = (judge.step, judge.rule, place(judge.span))
            counts[at] = counts.get(at, 0) + int(found.judged[k])
    return tuple(ObligationCount(*at, count) for at, count in counts.items())
