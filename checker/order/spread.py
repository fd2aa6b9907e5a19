"""Launches whose events are spread over the log, with something between them that may have been ordered behind them.

A launch stands in the order where its first event is, and what its later events access is to be judged there. So a log
with such a launch is read again: first the survey here notes what the later events access, each as the tables and the
lives of blocks at its own line have it; then `placed` judges all of it in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple  # what `Order` takes, and names of blocks

from kvsan.spec.ownership.accesses import slots_attended
from kvsan.traces import events as ev

from .analysis import Order
from .judge import ATTENTION, COPY_TARGET, WRITE, WRITE_BIT, Judge

if TYPE_CHECKING:
    from kvsan.checker.replay.feed import Feed

Access = ev.Write | ev.Read | ev.Copy | ev.Step

LATE_MAX = 1_000_000
"""Accesses of later events that are kept in memory; where there are more, order is judged up to the first of them."""


class Late(NamedTuple):
    """What a later event of a launch accesses: slots [lo,hi) of a block, in a life of it.

    block: its name. source: of a copy, its block and the life of that. branch, pos: whose attention, and where.
    """

    line: int
    op: Hashable
    use: int
    block: Any  # as the feed names it
    life: int
    lo: int
    hi: int
    source: tuple[Any, int] | None = None
    branch: Hashable | None = None
    pos: int = 0


@dataclass
class Spread:
    """What a survey found. begins, op, goes_on: the first launch that goes on too late, and where it does.

    behind: the accesses to be heard of behind the event of a line. begun: of each line that is heard of before, the
    line of that event. kept: how many accesses there are. lost: the first one may have begun where events are missing,
    or names two streams, the other one in `torn`.
    """

    begins: int = 0
    op: str = ""
    goes_on: int = 0
    behind: dict[int, list[Late]] = field(default_factory=dict)
    begun: dict[int, int] = field(default_factory=dict)
    kept: int = 0
    lost: bool = False
    torn: Hashable | None = None

    @property
    def full(self) -> bool:
        """There is more than can be kept, or than is known."""
        return self.lost or self.kept > LATE_MAX

    def too_late(self, begins: int, op: object, goes_on: int, torn: Hashable | None = None) -> None:
        """What may have been ordered behind the launch comes before this line."""
        if not self.begins or begins < self.begins:
            self.begins, self.op, self.goes_on, self.torn = begins, str(op), goes_on, torn

    def keep(self, begun: int, line: int, accesses: list[Late]) -> None:
        """What the event of a line accesses is heard of behind another event."""
        self.kept += len(accesses)
        if not self.full:
            self.begun[line] = begun
            self.behind.setdefault(begun, []).extend(accesses)

    @property
    def reason(self) -> str:
        """Why the order was not judged to the end."""
        if self.begins == self.goes_on:
            return (
                f"the order of device work was judged before line {self.begins} alone: op {self.op} was running where "
                "events are missing, and more of it or a new op comes there; give each launch an id of its own"
            )
        if self.torn is not None:
            return (
                f"the order of device work was judged before line {self.begins} alone: op {self.op}, launched there "
                f"and still running, is on stream {self.torn} at line {self.goes_on}; give each launch an id of its own"
            )
        return (
            f"the order of device work was judged before line {self.begins} alone: op {self.op}, launched there, goes "
            f"on at line {self.goes_on}, after what may come behind it; write the events of a launch together"
        )


class Survey(Order):
    """Judges nothing: notes what is accessed by events of a launch that come behind other accesses."""

    def __init__(self, spread: Spread, *args: Any) -> None:
        super().__init__(*args)
        self.spread = spread

    def judging(self, *args: Any) -> Notes:
        self.notes = Notes(*args)
        return self.notes

    too_early = False

    def _hear(self, e: Access) -> None:
        clocks, notes, line = self.clocks, self.notes, self.line
        clocks.mixed = clocks.spread = False
        clocks.launch(e.thread, e.op, e.stream)
        if e.op is None:
            self.plain[type(e)](e)
            return
        launch = clocks.ops[e.op]
        launch.begins = launch.begins or line
        if e.stream is not None and e.stream != launch.stream:
            self.spread.lost = True
            self.spread.too_late(launch.begins, e.op, line, e.stream)
        launch.apart |= clocks.mixed or clocks.spread
        if not launch.apart:
            launch.last = line
            self.plain[type(e)](e)
            return
        if clocks.spread:
            self.spread.lost |= launch.begins == line
            self.spread.too_late(launch.begins, e.op, line)
        JUDGED[type(e)](self, e)
        self.spread.keep(launch.last, line, notes.accesses)
        notes.accesses.clear()

    on_write = on_read = on_copy = on_step = _hear


class Notes(Judge):
    """Stands for the judge, and notes what it hears of."""

    def __init__(self, feed: Feed, *args: Any) -> None:
        super().__init__(feed, *args)
        self.names, self.rows_named = feed.blocks.names, feed.branches.names
        self.accesses: list[Late] = []

    def _of(self, b: int) -> tuple[Any, int]:
        return self.names[b], self.history.block(b).life

    def write(
        self, b: int, lo: int, hi: int, line: int, op: Hashable | None, use: int = WRITE, bit: int = WRITE_BIT
    ) -> None:
        self.accesses.append(Late(line, op, use, *self._of(b), lo, hi))

    def read(self, b: int, lo: int, hi: int, use: int, line: int, op: Hashable | None) -> None:
        self.accesses.append(Late(line, op, use, *self._of(b), lo, hi))

    def copy(self, src: int, dst: int, lo: int, hi: int, line: int, op: Hashable | None) -> None:
        self.accesses.append(Late(line, op, COPY_TARGET, *self._of(dst), lo, hi, self._of(src)))

    def attend(self, r: int, upto: int | None, line: int, op: Hashable | None) -> None:
        upto = self.all_tokens(r) if upto is None else upto
        size = self.attention.sizes[r]
        for p, b in self.table[r].items():
            count = slots_attended(size, upto, p)
            if count and p >= self.window_from[r]:
                self.accesses.append(Late(line, op, ATTENTION, *self._of(b), 0, count, None, self.rows_named[r], p))


JUDGED: dict[type, Callable[[Order, Any], None]] = {
    ev.Write: Order.on_write,
    ev.Read: Order.on_read,
    ev.Copy: Order.on_copy,
    ev.Step: Order.on_step,
}
