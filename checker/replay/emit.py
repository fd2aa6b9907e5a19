"""The replay machine: a specification turned into Python that follows a log and judges it.

    machine = Machine(spec, {"append_only": True})
    machine.grow("Block", 1024)
    machine.events["alloc"](3, -1)
    machine.failures        # [(obligation number, (values of the message's names, ...)), ...]; the caller drains it

Members are dense numbers, None is -1, a set a mask, a choice its index. Naturals have no upper bound here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any  # the generated module's namespace and the containers, which `layout.shape` describes

from kvsan.checker.replay import layout
from kvsan.checker.replay.emit_step import FunctionWriter, Shared
from kvsan.checker.replay.unknown import UNKNOWN, Known, evaluate, judge
from kvsan.spec.lang import ir
from kvsan.spec.lang.diagnostics import Span
from kvsan.spec.lang.effects import Access, judged
from kvsan.spec.lang.simplify import simplify_block
from kvsan.spec.lang.walk import all_statements, every

Failure = tuple[int, tuple[int, ...]]
INEXACT, TAINTED = 1, 2


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
class Machine:
    """The state of one replay and the event functions over it.

    constants: values of `Const` scalars (missing: the default); `Const` maps are containers to fill. unreliable:
    variables that say nothing in this log. events: one function per event, positional ints. state: the container of
    each variable. fuzzy: for each sort the bits of its members (INEXACT, TAINTED), and one 0 more at the end, which
    stands for None; "" holds the bits of the variables in `slots`, which no sort indexes. Set bits with `blur`, not
    directly. unknown: how often each obligation was judged without a result.
    """

    spec: ir.Spec
    constants: Mapping[str, int | str | None] = field(default_factory=dict)
    unreliable: frozenset[str] = frozenset()
    state: dict[str, Any] = field(init=False)
    fuzzy: dict[str, list[int]] = field(init=False)
    sizes: dict[str, int] = field(init=False)
    slots: dict[str, int] = field(init=False)
    events: dict[str, Callable[..., None]] = field(init=False)
    obligations: list[Obligation] = field(init=False)
    failures: list[Failure] = field(init=False, default_factory=list)
    unknown: list[int] = field(init=False)
    source: str = field(init=False)

    def __post_init__(self) -> None:
        variables = self.spec.variables
        self.folded = layout.constant_values(variables, self.constants)
        self.state = {n: layout.container(v) for n, v in variables.items() if n not in self.folded}
        self.sizes = dict.fromkeys(self.spec.sorts, 0)
        unindexed = [n for n, v in variables.items() if not v.const and not _sorts(v)]
        self.slots = {name: slot for slot, name in enumerate(unindexed)}
        self.fuzzy = {sort: [0] for sort in self.spec.sorts} | {"": [0] * len(unindexed)}
        self._any = [0]
        self.events, self.obligations = {}, []
        self._generate()

    # --- generation ---------------------------------------------------------------------------------------------------

    def _generate(self) -> None:
        shared = Shared(self.spec.variables, self.slots)
        parts: list[str] = []
        for event in self.spec.of_kind("event", "settling"):
            effects = without_ghosts(simplify_block(event.effects, self.folded), self.spec.variables)
            first = len(self.obligations)
            silenced = self._declare(event, effects)
            for careful in (False, True):
                parts.append(FunctionWriter(shared, event, effects, first, silenced, careful).source())
        self.source = "\n\n".join(parts)
        self._hits, self._blocks = [0] * len(shared.blocks), shared.blocks
        self._checked = [0] * len(self.obligations)
        self.unknown = [0] * len(self.obligations)
        namespace = self._namespace(shared)
        exec(compile(self.source, f"<replay of {self.spec.name}>", "exec"), namespace)
        for event in self.spec.of_kind("event", "settling"):
            self.events[event.name] = namespace[f"E_{event.name}"]

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
            names = tuple((n, e.type) for n, e in obey.names)
            kind = self.spec.rules[obey.rule].kind
            number = len(self.obligations)
            self.obligations.append(
                Obligation(
                    number,
                    event.name,
                    obey.rule,
                    kind,
                    obey.message,
                    names,
                    reads,
                    obey.span,
                    obey.via,
                    mute,
                    live is not None,
                )
            )
        return frozenset(silenced)

    def _namespace(self, shared: Shared) -> dict[str, Any]:
        return {
            **{f"V_{name}": held for name, held in self.state.items()},
            **{f"F_{sort}": self.fuzzy[sort] for sort in self.spec.sorts},
            "F": self.fuzzy[""],
            "ANY": self._any,
            "N": self.sizes,
            "H": self._hits,
            "C": self._checked,
            "U": self.unknown,
            "FAIL": self.failures.append,
            "TERMS": shared.terms,
            "KNOWN": Known(self._read, self._row, self.sizes),
            "JUDGE": judge,
            "WORTH": evaluate,
            "UNKNOWN": UNKNOWN,
            "SORTED": sorted,
            "ALL": all,
            "EXISTS": any,
            "ORALL": _or_all,
        }

    # --- use ----------------------------------------------------------------------------------------------------------

    @property
    def checked(self) -> list[int]:
        """How often each obligation was judged with a result."""
        total = list(self._checked)
        for hits, numbers in zip(self._hits, self._blocks, strict=True):
            for number in numbers:
                total[number] += hits
        return total

    def grow(self, sort: str, size: int) -> None:
        """Make room for the members 0 .. size-1 of a sort; never shrinks."""
        missing = size - self.sizes[sort]
        if missing <= 0:
            return
        self.sizes[sort] = size
        for name, held in self.state.items():
            layout.grow(self.spec.variables[name], held, sort, size)
        self.fuzzy[sort].extend([0] * missing)

    def blur(self, sort: str, member: int, bits: int) -> None:
        """What the state says of a member is from now on INEXACT, TAINTED or both, until a `reset` of it."""
        self.fuzzy[sort][member] |= bits
        self._any[0] = 1

    def blur_variable(self, name: str, bits: int) -> None:
        """The same for a variable that no sort indexes."""
        self.fuzzy[""][self.slots[name]] |= bits
        self._any[0] = 1

    def read(self, variable: str, *index: int) -> int:
        """One value of the state."""
        return layout.get(self.spec.variables[variable], self.state[variable], index)

    def _read(self, name: str, index: tuple[int, ...]) -> tuple[int, int]:
        variable = self.spec.variables[name]
        value = layout.get(variable, self.state[name], index)
        return value, 0 if variable.const else self._bits(variable, index)

    def _bits(self, variable: ir.Variable, index: tuple[int, ...]) -> int:
        if variable.name in self.slots:
            return self.fuzzy[""][self.slots[variable.name]]
        bits = 0
        for key, member in zip(variable.keys, index, strict=False):
            if isinstance(key, ir.SortType):
                bits |= self.fuzzy[key.name][member]
        return bits

    def _row(self, name: str, first: int) -> tuple[list[int], int]:
        variable = self.spec.variables[name]
        held = self.state[name]
        rows = layout.shape(variable) == "rows"
        keys = sorted(held[first]) if rows else sorted(k[1] for k in held if k[0] == first)
        return keys, self._bits(variable, (first,))


def _sorts(variable: ir.Variable) -> bool:
    return any(isinstance(k, ir.SortType) for k in variable.keys)


def _or_all(bits: list[int]) -> int:
    found = 0
    for bit in bits:
        found |= bit
    return found


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
