"""Every mutant of the discipline in one specification: a new variable says which of them is meant.

Each obligation, and each store, is wrapped in a test of the variable `mutant`, which no event writes. The replay code
is generated once, and a mutant costs nothing but its logs. A helper that several events inline is one place: its
obligations and stores are mutated in all of them at once, as an edit of the source would.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from kvsan.checker.replay.kinds import occurring_kinds
from kvsan.checker.replay.memory import memory_log
from kvsan.checker.replay.recorded import kinds_of, recorded_kinds
from kvsan.checker.replay.replay import Replay, ownership
from kvsan.spec.lang import ir
from kvsan.spec.lang.diagnostics import Span
from kvsan.spec.lang.walk import all_expressions
from kvsan.traces.read import open_log

ROOT = Path(__file__).parents[2]
MINIMAL = ROOT / "tests" / "replay" / "minimal"
CORPUS = ROOT / "traces" / "corpus"

NUMBER = ir.NatType("mutants")
MUTANT = ir.Read("mutant", (), NUMBER)

Shown = frozenset[tuple[str, int, str]]
"""What a log shows: (rule, line, message) of every violation and lint."""


@dataclass(frozen=True)
class Place:
    """Where a mutant changes the source. what: `kept` or `broken` (the condition is always true, always false) or
    `dropped` (the store is left out). name: the rule of an obligation, the variable of a store."""

    what: str
    name: str
    span: Span
    text: str

    def __str__(self) -> str:
        return f"{Path(self.span.file).name}:{self.span.line} {self.what} {self.text}"


@dataclass
class Mutants:
    """The specification with every mutant in it; `places[n]` says what mutant n + 1 changes."""

    spec: ir.Spec
    places: list[Place]

    def events(self, place: Place) -> set[str]:
        """The event kinds of a log that may come to the place."""
        chosen = ir.Compare("==", MUTANT, ir.Const(self.number(place), NUMBER))
        steps = self.spec.of_kind("event", "settling")
        return {kind for step in steps if chosen in all_expressions(step.effects) for kind in kinds_of(step.name)}

    def number(self, place: Place) -> int:
        return self.places.index(place) + 1


@cache
def mutants() -> Mutants:
    """The discipline with every mutant of it."""
    spec, places = ownership(), list[Place]()
    numbers: dict[tuple[str, str, Span], int] = {}

    def chosen(what: str, name: str, span: Span, text: str) -> ir.Expr:
        key = (what, name, span)
        if key not in numbers:
            places.append(Place(what, name, span, text))
            numbers[key] = len(places)
        return ir.Compare("==", MUTANT, ir.Const(numbers[key], NUMBER))

    def mutate(statement: ir.Stmt) -> ir.Stmt:
        match statement:
            case ir.Obey(rule, condition, message, span=span):
                text = f"{rule}: {message}"
                if condition != ir.FALSE:
                    broken = chosen("broken", rule, span, text)
                    condition = ir.And((ir.Not(broken), condition))
                return replace(statement, condition=ir.Or((chosen("kept", rule, span, text), condition)))
            case ir.Store(variable, span=span):
                return ir.If(chosen("dropped", variable, span, variable), (), (statement,), span)
            case ir.If(then=then, orelse=orelse):
                return replace(statement, then=tuple(map(mutate, then)), orelse=tuple(map(mutate, orelse)))
            case ir.For(body=body):
                return replace(statement, body=tuple(map(mutate, body)))
            case _:
                return statement

    steps = {
        name: replace(step, effects=tuple(map(mutate, step.effects))) if step.kind in ("event", "settling") else step
        for name, step in spec.steps.items()
    }
    variable = ir.Variable("mutant", (), NUMBER, const=False, derived=False, ghost=False)
    return Mutants(replace(spec, steps=steps, variables={**spec.variables, "mutant": variable}), places)


@dataclass
class Case:
    """A small log, read once: a file, or the lines of a generated one."""

    path: Path
    lines: Sequence[dict[str, Any]] | None = None

    def __post_init__(self) -> None:
        log = open_log(self.path) if self.lines is None else memory_log(self.lines)
        assert log.header is not None
        self.header = log.header
        self.expect: dict[str, Any] = self.lines[0] if self.lines else json.loads(self.path.open().readline())
        self.occurring, reads = occurring_kinds(log, lambda _: False)
        self.recorded = recorded_kinds(self.occurring, log.header.complete, reads)
        self.batches = list(log.batches())
        assert log.problem is None

    @property
    def name(self) -> str:
        return f"{self.path.parent.name}/{self.path.stem}"

    def replay(self, mutant: int = 0) -> Replay:
        replay = Replay(self.header, self.recorded, self.occurring, mutants().spec)
        replay.machine.state["mutant"][0] = mutant
        for batch in self.batches:
            replay.perform(batch)
        replay.finish()
        return replay

    def shows(self, mutant: int = 0) -> Shown:
        try:
            replay = self.replay(mutant)
        except (LookupError, ValueError) as error:  # a mutant may tell of members that do not exist
            return frozenset({("no answer", 0, str(error))})
        return shown(replay)


def shown(replay: Replay) -> Shown:
    return frozenset((v.rule, v.line, v.message) for v in (f.violation for f in (*replay.findings, *replay.lints)))


@cache
def cases() -> tuple[Case, ...]:
    """The smallest logs, those of an unbroken run first, then the logs of bugs reduced by hand."""
    minimal, corpus = sorted(MINIMAL.glob("*.jsonl")), sorted(CORPUS.rglob("*.jsonl"))
    by_hand = [p for p in corpus if json.loads(p.open().readline()).get("x_by") == "reduced by hand"]
    return tuple(Case(path) for path in (*minimal, *by_hand))


@cache
def baseline() -> dict[str, Replay]:
    """Every log, replayed on the specification as it is."""
    return {case.name: case.replay() for case in cases()}


@cache
def judging() -> dict[tuple[str, Span], list[Case]]:
    """The logs in which an obligation is judged, the smallest first, by its rule and place."""
    found: dict[tuple[str, Span], list[Case]] = {}
    for case in cases():
        machine = baseline()[case.name].machine
        judged = {(o.rule, o.span) for o in machine.obligations if machine.checked[o.number]}
        for key in judged:
            found.setdefault(key, []).append(case)
    return found


def noticed_by(place: Place, candidates: Iterable[Case]) -> Iterator[Case]:
    """Those of the logs that tell the mutant from the specification."""
    number = mutants().number(place)
    return (case for case in candidates if case.shows(number) != shown(baseline()[case.name]))
