"""What of a log can be there when the later of two accesses comes first: what a witness is made of.

The host's events stay in the order of the log. What comes after the earlier access is left out where a thread knows of
that, and runs behind the later one where it is only launched. So the order of the two accesses alone is turned round,
and nothing has recorded that.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, product
from typing import Any  # the parts of a step

from kvsan.checker.replay.again import block_and_pool
from kvsan.checker.replay.outcome import Violation
from kvsan.checker.replay.replay import Replay
from kvsan.traces import events as ev
from kvsan.traces.read import Gap, Log
from msgspec import structs

from .clocks import Clocks
from .schedule import Line, NoWitness, op_of
from .timeline import Op

LONG = 200_000
"""Events before a breach; of more, only those since the block's life began are looked at."""

Access = ev.Write | ev.Read | ev.Copy | ev.Step


@dataclass
class Launch:
    """An op of the log. first: the line of its first event. behind: it comes after the earlier access, or makes it.

    An id may name several, one after the other; name: its own, once that is told.
    """

    first: int
    behind: bool = False
    name: Hashable | None = None


@dataclass
class Cut:
    """Events that can be there, with their lines, each with the launch that it is about, and the two accesses' lines.

    last: the earlier access comes last, for its thread makes it or waits for it. within: both are of one launch.
    mid_run: there were other events before. broken: rules that the log breaks without a race, each with its line.
    """

    later: int
    earlier: int | None
    mid_run: bool
    kept: list[tuple[int, ev.Event, Launch | None]] = field(default_factory=list)
    last: bool = False
    within: bool = False
    broken: set[tuple[str, int]] = field(default_factory=set)

    def lines(self) -> list[Line]:
        """The events, in which no id names two launches."""
        names: dict[Hashable, int] = {}
        for _, event, launch in self.kept:
            if launch is not None and launch.name is None:
                op = op_of(event)
                names[op] = names.get(op, 0) + 1
                launch.name = op if names[op] == 1 else f"{op}, launch {names[op]}"
        return [
            (line, event if launch is None else structs.replace(event, op=launch.name))
            for line, event, launch in self.kept
        ]

    @property
    def behind(self) -> list[Hashable]:
        """The names of the launches that run behind the later access, once `lines` has told them."""
        return [*dict.fromkeys(launch.name for _, _, launch in self.kept if launch is not None and launch.behind)]

    @cached_property
    def _firsts(self) -> dict[int, int]:
        """Of each line that is part of a launch, the line where that begins."""
        return {line: launch.first for line, _, launch in self.kept if launch is not None}

    def begins(self, line: int) -> int:
        """The line where the launch of an event begins, if it is part of one."""
        return self._firsts.get(line, line)

    def in_place(self, lines: Sequence[Line]) -> bool:
        """No launch comes behind an access that it was before, for want of its first events."""
        last = self.earlier if self.last else None
        begun = [*dict.fromkeys(self._firsts.get(n, n) for n, e in lines if isinstance(e, Access) and n != last)]
        return begun == sorted(begun)

    def orders(self, block: str | None) -> Iterator[list[Line]]:
        """The events in an order that shows the breach; if the first does not, then ever less of them beside the two
        accesses, and of these. Of copies of one launch, no other access is looked at: they could tell of it first."""
        lines, pair = self.lines(), (self.later, self.earlier)
        if self.earlier is None:
            yield lines
            return
        late, early = (next(event for line, event in lines if line == at) for at in pair)
        launched = {*pair, self.begins(self.later), self.begins(self.earlier)}
        alone, bare = (
            [one for one in lines if one[0] in needed or not isinstance(one[1], Access)] for needed in (launched, pair)
        )
        trimmed = product(parts(early, block), parts(late, block)) if early is not late else ()
        for first, second in chain([(early, late)], trimmed):
            for some in [bare] if self.within else [lines, alone, bare]:
                turned = self._turned(some, first, second)
                if self.in_place(turned):
                    yield turned

    def _turned(self, lines: list[Line], early: ev.Event, late: ev.Event) -> list[Line]:
        """The lines with these for the two accesses, and the earlier one last where it has to be."""
        if early is late:
            assert isinstance(late, ev.Step)
            early = late = structs.replace(late, copies=late.copies[::-1])
        events = {self.earlier: early, self.later: late}
        turned = [(line, events.get(line, event)) for line, event in lines]
        if not self.last:
            return turned
        return [one for one in turned if one[0] != self.earlier] + [(self.earlier or 0, early)]


def parts(event: ev.Event, block: str | None) -> Iterator[ev.Event]:
    """What an access does to a block, without what else it does: of a step, each copy, write or read alone."""
    number = int(block_and_pool(block or "")[0])
    if isinstance(event, ev.Write | ev.Read) and isinstance(event.block, tuple):
        yield structs.replace(event, block=number)
    elif isinstance(event, ev.Step):
        touches: dict[str, Sequence[Any]] = {
            "copies": [copy for copy in event.copies if number in copy[:2]],
            "writes": [write for write in event.writes if write[1] == number],
            "reads": event.reads,
        }
        for name, every in touches.items():
            for part in every:
                yield structs.replace(event, **{**dict.fromkeys(touches, ()), name: (part,)})
    else:
        yield event


def possible_first(log: Log, found: Violation, fresh: Callable[[], Replay]) -> Cut:
    """What of the log can come first. fresh: makes replays of it. Raises NoWitness."""
    first = beginning(log, found)
    reading = Reading(found, first, fresh())
    reading.read(log)
    if reading.late:
        reading = Reading(found, first, fresh(), reading.place)
        reading.read(log)
    reading.cut.broken = {
        (f.violation.rule, f.violation.line) for f in reading.replay.findings if not f.violation.earlier
    }
    return reading.cut


class Reading:
    """One reading of the log, up to both accesses. place: the timeline of the earlier one and its count there, if that
    is known before; late: it was not, and what comes before its line may come after it."""

    def __init__(self, found: Violation, first: int, replay: Replay, place: tuple[int, int] | None = None) -> None:
        self.found, self.first, self.replay, self.given = found, first, replay, place
        self.end = max(found.line, found.earlier or 0)
        self.late = False
        self._begin(first > 1)

    def _begin(self, mid_run: bool) -> None:
        self.cut = Cut(self.found.line, self.found.earlier, mid_run)
        self.place = self.given
        self.ops: dict[Hashable, tuple[Op, Launch]] = {}
        self.launches: dict[int | None, Launch | None] = {}

    def read(self, log: Log) -> None:
        """Raises NoWitness."""
        line = 0
        for line, event in events_until(log, self.end):
            self.replay.perform([(line, event)])
            if isinstance(event, Gap):
                self._begin(True)
            elif line >= self.first:
                self._hear(line, event)
        if line < self.end:
            raise NoWitness("the log does not come so far")

    def _hear(self, line: int, event: ev.Event) -> None:
        clocks, cut = self.replay.order.clocks, self.cut
        host, launch = clocks.thread(event.thread), self._launch(clocks, line, event)
        mine = line in (cut.later, cut.earlier)
        if line == cut.earlier:
            number, count, _ = clocks.here
            self.place = number, count
            self.late = self.given is None and launch is not None and launch.first < line
            cut.last = op_of(event) is None
        if mine:
            self.launches[line] = launch
            cut.within = launch is not None and self.launches.get(cut.later) is self.launches.get(cut.earlier)
            cut.last |= cut.within
        if launch is not None and isinstance(event, Access):
            number, count, known = clocks.ops[op_of(event)].point
            launch.behind |= self._after(number, count, known)
        lanes = [host]
        if cut.last and getattr(event, "stream", None) is not None:
            lanes.append(clocks.stream(event.stream))  # type: ignore[union-attr]  # those that name one
        if mine or not any(self._after(lane.number, lane.count, lane.known) for lane in lanes):
            cut.kept.append((line, event, launch))

    def _launch(self, clocks: Clocks, line: int, event: ev.Event) -> Launch | None:
        """The launch that an event is part of, or that its thread has learned the end of."""
        op = op_of(event)
        running = None if op is None else clocks.ops.get(op)
        if running is None:
            return None
        known = self.ops.get(op)
        if known is None or known[0] is not running:
            known = self.ops[op] = running, Launch(line)
        return known[1]

    def _after(self, number: int, count: int, known: dict[int, int]) -> bool:
        """A place comes after the earlier access, or is its own."""
        if self.place is None:
            return False
        lane, at = self.place
        return count >= at if number == lane else known.get(lane, 0) >= at


def beginning(log: Log, found: Violation) -> int:
    """The line from which on the log is looked at: all of it, or since the life of the block that the breach is in."""
    count, first, at = 0, 1, found.earlier or found.line
    for line, event in events_until(log, found.line):
        count += 1
        if line <= at and isinstance(event, ev.Alloc) and found.block is not None and names(event, found.block):
            first = line
    return 1 if count <= LONG else first if first > 1 else at


def events_until(log: Log, last: int) -> Iterator[tuple[int, ev.Event | Gap]]:
    for batch in log.batches():
        for line, event in batch:
            if line > last:
                return
            yield line, event


def names(event: ev.Alloc, block: str) -> bool:
    number, pool = block_and_pool(block)
    ids = (event.block,) if isinstance(event.block, int) else event.block
    return int(number) in ids and pool == (event.pool or "gpu")
