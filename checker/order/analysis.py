"""The order analysis of one log, beside its replay: it hears each event right after the ledger, with the same ids.

It sleeps until the first event that accesses a block, so that a log without device work pays next to nothing. Which
slots an event accesses, and which rule two unordered accesses break, is said in `kvsan.spec.ownership.accesses`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any  # handlers of many record types, and what a judge takes

from kvsan.spec.ownership.accesses import ORDER_RULES
from kvsan.spec.ownership.rules import read_is_initialised
from kvsan.traces import events as ev

from .clocks import Clocks
from .judge import NONE, TRANSFER, Breach, Judge, Unwritten

if TYPE_CHECKING:
    from kvsan.checker.replay.feed import Feed

__all__ = ["INITIALISED", "MARK", "Breach", "Order", "Unwritten", "slots_of"]

MARK = -1
"""Stands among the failures of the replay for breaches of order."""

INITIALISED = ORDER_RULES.index(read_is_initialised)

Handler = Callable[[Any], Any]


class Order:
    """`line` is set before each event; `breaches` fills up when the failures get a MARK, and is drained by the caller.

    distrusted: rows whose length is known to be wrong. one_thread: no event names a thread. unheard: line and channel
    of the first await of what nobody has signalled.
    """

    def __init__(
        self,
        feed: Feed,
        legacy: Hashable | None,
        failures: list[tuple[int, tuple[int, ...]]],
        unreliable: frozenset[str],
        distrusted: set[int],
        one_thread: bool = False,
    ) -> None:
        self.feed, self.failures, self.one_thread = feed, failures, one_thread
        self.line = 0
        self.unheard: tuple[int, Hashable] | None = None
        self.state = feed.state
        self.clocks = Clocks(legacy, one_thread)
        self.judge = self.judging(feed, self.clocks, unreliable, distrusted, self._wake)
        self.history, self.attention = self.judge.history, self.judge.attention
        self.fresh = self.clocks.fresh
        self.plain: dict[type, Handler] = dict(feed.handlers)
        self.plain_write, self.plain_read = self.plain[ev.Write], self.plain[ev.Read]
        for kind in (ev.Write, ev.Read, ev.Copy, ev.Step):
            feed.handlers[kind] = self._first
        feed.handlers[ev.Signal] = self.on_signal  # who awaits it later, has heard it

    def judging(self, *args: Any) -> Judge:
        """Who judges the accesses."""
        return Judge(*args)

    @property
    def too_early(self) -> bool:
        """Something was judged before all was known that it comes after, see `spread`."""
        return self.clocks.spread

    def begun(self, line: int) -> int:
        """The line where the launch of an event stands in the order: the event's own, or an earlier one."""
        return line

    def _first(self, e: ev.Event) -> None:
        """The first access of the log: from here on every event is heard that changes who holds what, or orders."""
        handlers = self.feed.handlers
        for kind in (ev.Write, ev.Read, ev.Copy, ev.Step):
            handlers[kind] = self.plain[kind]
        for name, record in ev.EVENT_TYPES.items():
            mine = getattr(self, "on_" + name, None)
            if mine is not None and not (record is ev.Free and self.one_thread):
                handlers[record] = mine
        for rows in self.feed.rows.values():
            for r in rows:
                self._enter_all(r)
        handlers[type(e)](e)

    def forget(self, block: int) -> None:
        """The block is tainted: silence until its next alloc."""
        self.judge.forget(block)

    @property
    def checked(self) -> list[int]:
        """Pairs and positions judged, by the number of the rule."""
        total = self.history.checked
        total[INITIALISED] += self.judge.checked_positions
        return total

    @property
    def breaches(self) -> Sequence[Breach]:
        """What the latest event broke; draining."""
        return self.judge.breaches

    @property
    def copies(self) -> list[tuple[int, int]]:
        """What the event copied, from block to block: a breach is passed on by copies."""
        line, copies = self.judge.copied
        return copies if line == self.line else []

    def _wake(self) -> None:
        """There are breaches to take."""
        self.failures.append((MARK, ()))

    # --- the pool and the tables --------------------------------------------------------------------------------------

    def on_alloc(self, e: ev.Alloc) -> None:
        self.plain[ev.Alloc](e)
        begin, threads = self.history.begin, not self.one_thread
        for raw in (e.block,) if isinstance(e.block, int) else e.block:
            b = self.feed.block(raw, e.pool)
            begin(b)
            if threads:
                self.clocks.hand_over(e.thread, b)

    def on_free(self, e: ev.Free) -> None:
        self.plain[ev.Free](e)
        for b in self.feed.several(e.block, e.pool):
            self.clocks.hand_over(e.thread, b)

    def _enter_all(self, r: int) -> None:
        """The entries of a row that nobody has read."""
        start = self.state["window_from"][r]
        for p, b in self.state["table"][r].items():
            if p >= start:
                self.attention.enter(r, p, b, 0)

    def on_map(self, e: ev.Map) -> None:
        r = self.feed.row(e.branch, e.group)
        table = self.state["table"][r]
        positions = range(e.pos, e.pos + (len(e.block) if isinstance(e.block, tuple) else 1))
        former = [table.get(p, NONE) for p in positions]
        self.plain[ev.Map](e)
        start = self.state["window_from"][r]
        for p, old in zip(positions, former, strict=True):
            new = table.get(p, NONE)
            if new != old:
                if old != NONE:
                    self.attention.leave(r, p, old)
                if new != NONE and p >= start:
                    self.attention.enter(r, p, new, self.line)

    def on_unmap(self, e: ev.Unmap) -> None:
        r = self.feed.row(e.branch, e.group)
        table = self.state["table"][r]
        positions = range(e.pos, e.pos + (len(e.block) if isinstance(e.block, tuple) else 1))
        former = [table.get(p, NONE) for p in positions]
        self.plain[ev.Unmap](e)
        for p, old in zip(positions, former, strict=True):
            if old != NONE and table.get(p, NONE) != old:
                self.attention.leave(r, p, old)

    def on_fork(self, e: ev.Fork) -> None:
        for r in self.feed.rows.get(e.branch, ()):
            self.attention.end(r, self.state["table"][r])
        self.plain[ev.Fork](e)
        for r in self.feed.rows.get(e.branch, ()):
            self._enter_all(r)

    def on_window(self, e: ev.Window) -> None:
        r = self.feed.row(e.branch, e.group)
        old, new = self.state["window_from"][r], e.from_
        self.plain[ev.Window](e)
        for p, b in self.state["table"][r].items():
            if p < new:
                self.attention.leave(r, p, b)
            elif p < old:
                self.attention.enter(r, p, b, self.line)
        if new < old:
            self.attention.row(r).forget_looks()

    def _on_end(self, e: ev.Finish | ev.Cancel | ev.Preempt) -> None:
        for r in self.feed.rows.get(e.branch, ()):
            self.attention.end(r, self.state["table"][r])
        self.plain[type(e)](e)

    on_finish = on_cancel = on_preempt = _on_end

    # --- accesses -----------------------------------------------------------------------------------------------------

    def on_write(self, e: ev.Write) -> None:
        b = self.plain_write(e)
        op, thread, clocks = e.op, e.thread, self.clocks
        point = self.fresh.get((op, e.stream, thread))
        if point is None:
            clocks.launch(thread, op, e.stream)
        elif point is not clocks.here:
            clocks.go_on(point)
        lo, hi = e.slots
        if b != NONE:  # the hot path of most logs
            self.judge.write(b, lo, hi, self.line, op)
        else:
            for b in self.feed.several(e.block, e.pool):
                self.judge.write(b, lo, hi, self.line, op)

    def on_read(self, e: ev.Read) -> None:
        r = self.plain_read(e)
        op, thread, clocks = e.op, e.thread, self.clocks
        point = self.fresh.get((op, e.stream, thread))
        if point is None:
            clocks.launch(thread, op, e.stream)
        elif point is not clocks.here:
            clocks.go_on(point)
        if r != NONE:
            self.judge.attend(r, e.upto, self.line, op)
        elif e.block is not None:
            for b in self.feed.several(e.block, e.pool):
                lo, hi = (0, self.state["slots_of"][b]) if e.slots is None else e.slots
                self.judge.read(b, lo, hi, TRANSFER, self.line, op)

    def on_copy(self, e: ev.Copy) -> None:
        src_pool = e.pool if e.src_pool is None else e.src_pool
        dst_pool = e.pool if e.dst_pool is None else e.dst_pool
        self.clocks.launch(e.thread, e.op, e.stream)
        self.plain[ev.Copy](e)
        if self.feed.is_null(e.src, src_pool) or self.feed.is_null(e.dst, dst_pool):
            return
        self.judge.copy(self.feed.block(e.src, src_pool), self.feed.block(e.dst, dst_pool), *e.slots, self.line, e.op)

    def on_step(self, e: ev.Step) -> None:
        self.plain[ev.Step](e)
        feed, judge, pool, line, op = self.feed, self.judge, e.pool, self.line, e.op
        self.clocks.launch(e.thread, op, e.stream)
        for src, dst, lo, hi in e.copies:
            if not (feed.is_null(src, pool) or feed.is_null(dst, pool)):
                judge.copy(feed.block(src, pool), feed.block(dst, pool), lo, hi, line, op)
        for _, raw, lo, hi in e.writes:
            if not feed.is_null(raw, pool):
                judge.write(feed.block(raw, pool), lo, hi, line, op)
        for what in e.reads:
            branch, upto = what if isinstance(what, tuple | list) else (what, None)
            judge.attend(feed.row(branch, e.group), upto, line, op)

    def on_invalidate(self, e: ev.Invalidate) -> None:
        self.plain[ev.Invalidate](e)
        for b in self.feed.several(e.block, e.pool):
            self.attention.lost(b)

    # --- what orders --------------------------------------------------------------------------------------------------

    def on_done(self, e: ev.Done) -> None:
        self.clocks.done(e.thread, e.op)

    def on_record(self, e: ev.Record) -> None:
        self.clocks.record(e.thread, e.event, e.stream)

    def on_wait(self, e: ev.Wait) -> None:
        self.clocks.wait(e.thread, e.event, e.stream)

    def on_sync(self, e: ev.Sync) -> None:
        if e.stream is not None:
            self.clocks.sync_stream(e.thread, e.stream)
        elif e.event is not None:
            self.clocks.sync_event(e.thread, e.event)
        else:
            self.clocks.sync_device(e.thread)

    def on_signal(self, e: ev.Signal) -> None:
        self.clocks.signal(e.thread, e.channel)

    def on_await(self, e: ev.Await) -> None:
        if self.unheard is None and e.channel not in self.clocks.channels:
            self.unheard = self.line, e.channel
        self.clocks.await_(e.thread, e.channel)


def slots_of(mask: int) -> str:
    """`[2,4)`, or several spans."""
    spans: list[str] = []
    lo = 0
    while mask >> lo:
        if mask >> lo & 1:
            hi = lo
            while mask >> hi & 1:
                hi += 1
            spans.append(f"[{lo},{hi})")
            lo = hi
        else:
            lo += 1
    return ", ".join(spans)
