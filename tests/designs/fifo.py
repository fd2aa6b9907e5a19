"""Device queues, literally: work is launched, runs when its stream comes to it, and is known complete when the host
has waited for it. Two accesses race where both orders of running them are possible.

The oracle of order in the state (`kvsan.spec.designs.device`), which keeps no queue.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

Slots = frozenset[tuple[int, int]]


@dataclass(frozen=True)
class Launch:
    """reads, writes: (block, slot)."""

    stream: str
    reads: Slots
    writes: Slots

    def conflicts(self, other: Launch) -> bool:
        return bool(self.writes & (other.reads | other.writes) or self.reads & other.writes)


@dataclass(frozen=True)
class Order:
    """Stream `later` waits for what stream `earlier` has been given so far."""

    later: str
    earlier: str


@dataclass(frozen=True)
class Learn:
    """The host waits for the launch with this number in the program."""

    launch: int


Program = tuple[Launch | Order | Learn, ...]


@dataclass(frozen=True)
class Queues:
    """All ways in which a program may run."""

    program: Program

    @cached_property
    def before(self) -> dict[int, list[int]]:
        """What must have run before a launch runs: the one before it in its queue, and what its stream waits for."""
        last: dict[str, int] = {}
        waits: dict[str, list[int]] = {}
        found: dict[int, list[int]] = {}
        for n, item in enumerate(self.program):
            match item:
                case Launch(stream):
                    found[n] = [*waits.get(stream, []), *([last[stream]] if stream in last else [])]
                    last[stream] = n
                case Order(later, earlier):
                    # an event stands behind the queue it is recorded in, and behind what that queue waits for
                    behind = [*waits.get(earlier, []), *([last[earlier]] if earlier in last else [])]
                    waits[later] = [*waits.get(later, []), *behind]
                case Learn():
                    pass
        return found

    def onward(self, host: int, ran: frozenset[int]) -> Iterator[tuple[int, frozenset[int]]]:
        """The host does its next step, or the device runs something that was launched."""
        if host < len(self.program):
            item = self.program[host]
            if not isinstance(item, Learn) or item.launch in ran:
                yield host + 1, ran
        for n, needed in self.before.items():
            if n < host and n not in ran and all(k in ran for k in needed):
                yield host, ran | {n}

    @cached_property
    def states(self) -> frozenset[tuple[int, frozenset[int]]]:
        start = (0, frozenset[int]())
        seen, todo = {start}, [start]
        while todo:
            for after in self.onward(*todo.pop()):
                if after not in seen:
                    seen.add(after)
                    todo.append(after)
        return frozenset(seen)

    def races(self, later: int) -> bool:
        """Whether the launch may run while a conflicting launch before it has not."""
        mine = self.program[later]
        assert isinstance(mine, Launch)
        rivals = [
            n
            for n in self.before
            if n < later and mine.conflicts(self.program[n])  # type: ignore[arg-type]  # Launch
        ]
        return any(later in ran and any(n not in ran for n in rivals) for _, ran in self.states)
