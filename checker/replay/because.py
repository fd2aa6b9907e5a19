"""The earlier facts that clash with a violation: the events that last changed what its rule read.

Derived: the obligation's read set names the cells of the ledger, a second replay watches them change. Nothing here
knows a rule, and the first replay pays nothing for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any  # a cell holds any value of the language

from kvsan.spec.lang import ir
from kvsan.traces import events as ev
from kvsan.traces.read import Gap

from .layout import default
from .outcome import Because
from .pairs import PairWatch
from .replay import Finding, Replay, ownership, with_because
from .wording import event_text

EXPLAINED = 20
"""Findings that are explained; the others are reported without their earlier facts."""

FACTS = 3
"""Earlier facts a finding is given at most, the latest ones."""


class Watch:
    """The cells that one finding's rule read, and the events that changed them."""

    def __init__(self, finding: Finding) -> None:
        self.finding = finding
        self.line = finding.violation.line
        self.facts: deque[Because] = deque(maxlen=FACTS)
        ids = {"Block": finding.block, "Branch": finding.branch}
        self.cells = list(cells_of(finding, ids))
        self.idle = not self.cells
        self.values: list[Any] = [None] * len(self.cells)

    def begin(self, replay: Replay) -> None:
        """The values before the first event, or after a gap: what was noted until then is of other blocks."""
        self.facts.clear()
        self.values = [read_cell(replay, variable, index) for variable, index in self.cells]

    def look(self, replay: Replay, line: int, event: ev.Event) -> None:
        """Notes the event if it changed a cell."""
        changes = []
        for i, (variable, index) in enumerate(self.cells):
            value = read_cell(replay, variable, index)
            if value != self.values[i]:
                before, self.values[i] = self.values[i], value
                changes.append(f"{variable} {before} -> {value}" if is_told(variable) else variable)
        if changes:
            counts = [c for c in changes if "->" in c]
            about = f" ({', '.join(counts)})" if counts else ""
            self.facts.append(Because(line, event_text(event) + about))


def is_told(variable: str) -> bool:
    """Counts and flags are told by their values; sets and entries only as having changed."""
    declared = ownership().variables[variable]
    return declared.derived or isinstance(declared.value, ir.BoolType)


def cells_of(finding: Finding, ids: dict[str, int | None]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The cells that the rule read, as far as the finding's own block and branch index them; a block's rows whole."""
    variables = ownership().variables
    reads = () if finding.obligation is None else finding.obligation.reads
    for name in dict.fromkeys(access.variable for access in reads):
        variable = variables[name]
        if variable.const or not variable.keys:
            continue
        index: list[int] = []
        for key in variable.keys:
            member = ids.get(key.name) if isinstance(key, ir.SortType) else None
            if member is None:
                break
            index.append(member)
        if len(index) == len(variable.keys) or (index and variable.keys[0] == ir.SortType("Block")):
            yield name, tuple(index)


def read_cell(replay: Replay, name: str, index: Sequence[Any]) -> Any:
    """A cell's value, or a copy of a row."""
    container, declared = replay.machine.state[name], replay.spec.variables[name]
    value = (
        container[index[0]] if index[0] < len(container) else {} if len(declared.keys) > 1 else default(declared.value)
    )
    if isinstance(value, dict):
        value = value.get(index[1], 0) if len(index) > 1 else dict(value)
    return bool(value) if isinstance(declared.value, ir.BoolType) and not isinstance(value, dict) else value


def explain(
    findings: Sequence[Finding],
    fresh: Callable[[], Replay],
    batches: Callable[[], Iterable[list[tuple[int, ev.Event | Gap]]]],
) -> list[Finding]:
    """The findings with their earlier facts. Reads the log once more, up to the last finding that is explained."""
    watches = [Watch(f) if f.told is None else PairWatch(f, f.told) for f in findings[:EXPLAINED]]
    active = [w for w in watches if not w.idle]
    if not active:
        return list(findings)
    replay = fresh()
    for watch in active:
        watch.begin(replay)
    for batch in batches():
        for line, event in batch:
            active = [w for w in active if w.line > line]
            if not active:
                break
            replay.perform(((line, event),))
            for watch in active:
                if isinstance(event, Gap):
                    watch.begin(replay)
                else:
                    watch.look(replay, line, event)
        if not active:
            break
    done = [with_because(w.finding, because=tuple(w.facts)) for w in watches]
    return [*done, *findings[EXPLAINED:]]
