"""Generate the code of a replay machine, once per specification, constants and unreliable variables.

The careful versions of the events are generated when a log first needs them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import CodeType

from kvsan.checker.replay.emit_careful import CarefulWriter
from kvsan.checker.replay.emit_step import FunctionWriter, Shared
from kvsan.spec.lang import ir
from kvsan.spec.lang.diagnostics import Span
from kvsan.spec.lang.effects import Access, judged
from kvsan.spec.lang.simplify import simplify_block
from kvsan.spec.lang.walk import all_statements, every


@dataclass(frozen=True)
class Obligation:
    """One `obey` or `advise` of one event, calls inlined.

    names: what the message shows, with types, in the order of a failure's values. reads: what condition and path
    depend on. silenced: the unreliable variables among them; such an obligation is never judged. live: whether it can
    be reached under these constants.
    """

    number: int
    event: str
    rule: str
    kind: str
    message: str
    names: tuple[tuple[str, ir.Type], ...]
    reads: tuple[Access, ...]
    span: Span
    via: tuple[Span, ...]
    silenced: tuple[str, ...] = ()
    live: bool = True


@dataclass
class Program:
    """The generated code, which any number of machines can run.

    source: the plain version of every event. blocks: for each hit counter, the obligations that it counts. slots: the
    fuzzy slot of each variable that no sort indexes.
    """

    spec: ir.Spec
    folded: Mapping[str, int | None]
    unreliable: frozenset[str]
    obligations: list[Obligation] = field(default_factory=list)
    source: str = field(init=False)
    code: CodeType = field(init=False)

    def __post_init__(self) -> None:
        variables = self.spec.variables
        unindexed = [n for n, v in variables.items() if not v.const and not _sorts(v)]
        self.slots = {name: slot for slot, name in enumerate(unindexed)}
        self._shared = Shared(variables, self.slots)
        self._events: dict[str, tuple[ir.Step, tuple[ir.Stmt, ...], int, frozenset[int]]] = {}
        self._careful: dict[str, CodeType] = {}
        parts: list[str] = []
        for event in self.spec.of_kind("event", "settling"):
            effects = without_ghosts(simplify_block(event.effects, self.folded), variables)
            first = len(self.obligations)
            silenced = self._declare(event, effects)
            self._events[event.name] = (event, effects, first, silenced)
            parts.append(FunctionWriter(self._shared, event, effects, first, silenced).source())
        self.source = "\n\n".join(parts)
        self.code = compile(self.source, f"<replay of {self.spec.name}>", "exec")

    @property
    def blocks(self) -> list[list[int]]:
        return self._shared.blocks

    @property
    def terms(self) -> list[ir.Expr]:
        """What careful code evaluates in three values; grows as careful versions are generated."""
        return self._shared.terms

    def careful_source(self, name: str) -> str:
        """The careful version of an event."""
        event, effects, first, silenced = self._events[name]
        return CarefulWriter(self._shared, event, effects, first, silenced).source()

    def careful(self, name: str) -> CodeType:
        """The careful version of an event, compiled once."""
        if name not in self._careful:
            self._careful[name] = compile(self.careful_source(name), f"<careful replay of {name}>", "exec")
        return self._careful[name]

    def _declare(self, event: ir.Step, effects: tuple[ir.Stmt, ...]) -> frozenset[int]:
        """Add the event's obligations; returns the numbers, within it, of those that are silenced."""
        known = {j.obey.number: j for j in judged(replace(event, effects=effects))}
        silenced: set[int] = set()
        everything = [s for s in all_statements(event.effects) if isinstance(s, ir.Obey)]
        for obey in sorted(everything, key=lambda o: o.number):
            live = known.get(obey.number)
            reads = live.reads if live else ()
            mute = tuple(dict.fromkeys(a.variable for a in reads if a.variable in self.unreliable))
            if mute:
                silenced.add(obey.number)
            self.obligations.append(
                Obligation(
                    number=len(self.obligations),
                    event=event.name,
                    rule=obey.rule,
                    kind=self.spec.rules[obey.rule].kind,
                    message=obey.message,
                    names=tuple((n, e.type) for n, e in obey.names),
                    reads=reads,
                    span=obey.span,
                    via=obey.via,
                    silenced=mute,
                    live=live is not None,
                )
            )
        return frozenset(silenced)


_PROGRAMS: dict[tuple[int, frozenset[tuple[str, int | None]], frozenset[str]], Program] = {}


def program(spec: ir.Spec, folded: Mapping[str, int | None], unreliable: frozenset[str]) -> Program:
    """The program for a specification, made once a process (a program keeps its specification alive)."""
    key = (id(spec), frozenset(folded.items()), unreliable)
    if key not in _PROGRAMS:
        _PROGRAMS[key] = Program(spec, folded, unreliable)
    return _PROGRAMS[key]


def _sorts(variable: ir.Variable) -> bool:
    return any(isinstance(k, ir.SortType) for k in variable.keys)


def without_ghosts(block: tuple[ir.Stmt, ...], variables: Mapping[str, ir.Variable]) -> tuple[ir.Stmt, ...]:
    """Drop what only the explorer needs: stores to ghosts, and names and branches that read one."""

    def reads_ghost(expr: ir.Expr) -> bool:
        return any(isinstance(e, ir.Read) and variables[e.variable].ghost for e in every(expr))

    out: list[ir.Stmt] = []
    for statement in block:
        match statement:
            case ir.Store(variable) if variables[variable].ghost:
                continue
            case ir.Let(value=value) if reads_ghost(value):
                continue
            case ir.If(test, then, orelse):
                arms = without_ghosts(then, variables), without_ghosts(orelse, variables)
                if any(arms) and not reads_ghost(test):
                    out.append(replace(statement, then=arms[0], orelse=arms[1]))
            case ir.For(body=body):
                inner = without_ghosts(body, variables)
                if inner:
                    out.append(replace(statement, body=inner))
            case _:
                out.append(statement)
    return tuple(out)
