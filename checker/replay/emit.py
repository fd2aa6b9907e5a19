"""The replay machine: a specification turned into Python that follows a log and judges it.

    machine = Machine(spec, {"append_only": True})
    machine.grow("Block", 1024)
    machine.events["alloc"](3, -1)
    machine.failures        # [(obligation number, (values of the message's names, ...)), ...]; the caller drains it

Members are dense numbers, None is -1, a set a mask, a choice its index. Naturals have no upper bound here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar  # Any: the generated module's namespace, the containers (`layout.shape`)

from kvsan.checker.replay import layout
from kvsan.checker.replay.emit_expr import local
from kvsan.checker.replay.program import Obligation, program
from kvsan.checker.replay.terms import Known, Term, compile_term
from kvsan.checker.replay.unknown import UNKNOWN, Value, as_bool, firm, meet
from kvsan.spec.lang import ir

__all__ = ["INEXACT", "TAINTED", "Failure", "Machine", "Obligation"]

Failure = tuple[int, tuple[int, ...]]
INEXACT, TAINTED = 1, 2


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
        folded = layout.constant_values(variables, self.constants)
        self._program = program(self.spec, folded, self.unreliable)
        self.obligations, self.source = self._program.obligations, self._program.source
        self.slots = self._program.slots
        self.state = {n: layout.container(v) for n, v in variables.items() if n not in folded}
        self.sizes = dict.fromkeys(self.spec.sorts, 0)
        self.fuzzy = {sort: [0] for sort in self.spec.sorts} | {"": [0] * len(self.slots)}
        self._any = [0]
        self._hits = [0] * len(self._program.blocks)
        self._checked = [0] * len(self.obligations)
        self.unknown = [0] * len(self.obligations)
        namespace = self._namespace()
        exec(self._program.code, namespace)
        self.events = {e.name: namespace[f"E_{local(e.name)}"] for e in self.spec.of_kind("event", "settling")}

    def _namespace(self) -> dict[str, Any]:
        names: dict[str, Any] = {
            **{f"V_{name}": held for name, held in self.state.items()},
            **{f"F_{sort}": self.fuzzy[sort] for sort in self.spec.sorts},
            "F": self.fuzzy[""],
            "ANY": self._any,
            "N": self.sizes,
            "H": self._hits,
            "C": self._checked,
            "U": self.unknown,
            "FAIL": self.failures.append,
            "JUDGE": as_bool,
            "PUT": self._put,
            "UNKNOWN": UNKNOWN,
            "SORTED": sorted,
            "ALL": all,
            "EXISTS": any,
            "ORALL": _or_all,
        }

        def careful(name: str) -> Callable[..., None]:
            exec(self._program.careful(name), names)
            function: Callable[..., None] = names[f"E_{local(name)}__careful"]
            return function

        known = Known(self.spec.variables, self.state, self.fuzzy, self.slots, self.sizes)
        terms = self._program.terms
        names["CAREFUL"] = _Made[str, Callable[..., None]](careful)
        names["TERMS"] = _Made[int, Term](lambda number: compile_term(terms[number], known))
        return names

    # --- use ----------------------------------------------------------------------------------------------------------

    @property
    def checked(self) -> list[int]:
        """How often each obligation was judged with a result."""
        total = list(self._checked)
        for hits, numbers in zip(self._hits, self._program.blocks, strict=True):
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

    def still_fuzzy(self) -> bool:
        """Whether any member still is; if none is, events run their plain code again. Looks at every member."""
        self._any[0] = int(any(map(any, self.fuzzy.values())))
        return bool(self._any[0])

    def read(self, variable: str, *index: int) -> int:
        """One value of the state."""
        return layout.get(self.spec.variables[variable], self.state[variable], index)

    def _put(self, name: str, index: tuple[Value, ...], worth: Value, unsure: int) -> None:
        """Store what is sure of a value; where it is unsure whether it is stored at all, what is sure either way.

        Where an index is unsure, every entry that it may name is unsure. An unsure member of a sort is let be.
        """
        variable, held = self.spec.variables[name], self.state[name]
        value = firm(worth, variable.value)
        exact = [i for i in index if isinstance(i, int) and i >= 0]
        if len(exact) == len(index):
            if unsure:
                value = meet(layout.get(variable, held, tuple(exact)), value, variable.value)
            layout.put(variable, held, tuple(exact), value)
            return
        if any(isinstance(i, int) and i < 0 for i in index):
            return  # undefined on the path that was not taken
        for at in layout.entries(variable, held, index):
            old = layout.get(variable, held, at)
            layout.put(variable, held, at, meet(old, value, variable.value))


K = TypeVar("K")
M = TypeVar("M")


class _Made(dict[K, M]):
    """Things made when they are first asked for."""

    def __init__(self, make: Callable[[K], M]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, key: K) -> M:
        self[key] = self._make(key)
        return self[key]


def _or_all(bits: list[int]) -> int:
    found = 0
    for bit in bits:
        found |= bit
    return found
