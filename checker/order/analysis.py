"""The order analysis of one log, beside its replay: it hears each event right after the ledger, with the same ids.

It sleeps until the first event that accesses a block, so that a log without device work pays next to nothing. Which
slots an event accesses, and which rule two unordered accesses break, is said in `kvsan.spec.ownership.accesses`; what
is written, whose table holds what, and what is tainted is the ledger's.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any  # handlers of many record types

from kvsan.spec.ownership.accesses import ORDER_RULES, Use
from kvsan.spec.ownership.rules import read_is_initialised
from kvsan.traces import events as ev

from .attention import Attention
from .clocks import Clocks
from .history import History, Race

if TYPE_CHECKING:
    from kvsan.checker.replay.feed import Feed

TAINTED = 2
NONE = -1
MARK = -1
"""Stands among the failures of the replay for breaches of order."""

INITIALISED = ORDER_RULES.index(read_is_initialised)

Handler = Callable[[Any], None]


@dataclass(frozen=True)
class Unwritten:
    """A branch reads slots that were not written in this life, or a token for which its table has no entry.

    block: None where there is no entry. mask: the slots. pos: the position in the table of `branch`.
    """

    block: int | None
    branch: int
    pos: int
    mask: int
    lane: int


Breach = Race | Unwritten


class Order:
    """`line` is set before each event; `breaches` fills up when the failures get a MARK, and is drained by the caller.

    distrusted: rows whose length is known to be wrong. checked: pairs or positions judged, by the number of the rule.
    """

    def __init__(
        self,
        feed: Feed,
        legacy: Hashable | None,
        failures: list[tuple[int, tuple[int, ...]]],
        unreliable: frozenset[str],
        distrusted: set[int],
    ) -> None:
        self.feed, self.failures, self.distrusted = feed, failures, distrusted
        self.line = 0
        self.shows_writes = "written" not in unreliable
        self.shows_tables = not unreliable & {"table", "places", "held"}
        self.shows_length = "length" not in unreliable
        self.state, self.fuzzy = feed.state, feed.fuzzy
        self.clocks = Clocks(legacy)
        self.history = History(self.clocks)
        self.attention = Attention(self.history, self.state["block_size"])
        self.unsure: dict[int, int] = {}
        self.unwritten: list[Unwritten] = []
        self.copied: list[tuple[int, int]] = []
        self.checked = self.history.checked
        self.plain: dict[type, Handler] = dict(feed.handlers)
        for kind in (ev.Write, ev.Read, ev.Copy, ev.Step):
            feed.handlers[kind] = self._first

    def _first(self, e: ev.Event) -> None:
        """The first access of the log: from here on every event is heard that changes who holds what, or orders."""
        handlers = self.feed.handlers
        for kind in (ev.Write, ev.Read, ev.Copy, ev.Step):
            handlers[kind] = self.plain[kind]
        for name, record in ev.EVENT_TYPES.items():
            mine = getattr(self, "on_" + name, None)
            if mine is not None:
                handlers[record] = mine
        for rows in self.feed.rows.values():
            for r in rows:
                self._enter_all(r)
        handlers[type(e)](e)

    def forget(self, block: int) -> None:
        """The block is tainted: silence until its next alloc."""
        self.history.forget(block)
        self.attention.forget(block)

    @property
    def breaches(self) -> Sequence[Breach]:
        """What the latest event broke; draining."""
        found: list[Breach] = [*self.history.races, *self.unwritten]
        self.history.races.clear()
        self.unwritten.clear()
        return found

    def _report(self) -> None:
        """`copied` holds what the event copied, for the breaches that its copies pass on."""
        if self.history.races or self.unwritten:
            self.failures.append((MARK, ()))

    # --- the pool and the tables --------------------------------------------------------------------------------------

    def on_alloc(self, e: ev.Alloc) -> None:
        self.plain[ev.Alloc](e)
        lives, unsure = self.history.lives, self.unsure
        for raw in (e.block,) if isinstance(e.block, int) else e.block:
            b = self.feed.block(raw, e.pool)
            lives[b] = lives.get(b, 0) + 1
            unsure.pop(b, None)
            self.clocks.hand_over(e.thread, b)

    def on_free(self, e: ev.Free) -> None:
        self.plain[ev.Free](e)
        for b in self.feed.several(e.block, e.pool):
            self.clocks.hand_over(e.thread, b)

    def _enter_all(self, r: int) -> None:
        start = self.state["window_from"][r]
        for p, b in self.state["table"][r].items():
            if p >= start:
                self.attention.enter(r, p, b)

    def _leave_all(self, r: int) -> None:
        for p, b in self.state["table"][r].items():
            self.attention.leave(r, p, b)
        self.attention.end(r)

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
                    self.attention.enter(r, p, new)

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
            self._leave_all(r)
        self.plain[ev.Fork](e)
        for r in self.feed.rows.get(e.branch, ()):
            self._enter_all(r)

    def on_window(self, e: ev.Window) -> None:
        r = self.feed.row(e.branch, e.group)
        old, new = self.state["window_from"][r], e.from_
        self.plain[ev.Window](e)
        for p, b in self.state["table"][r].items():
            if old <= p < new:
                self.attention.leave(r, p, b)
            elif new <= p < old:
                self.attention.enter(r, p, b)
        row = self.attention.row(r)
        row.dirty.update(range(new, min(old, row.upto // self.state["block_size"][r] + 1)))

    def _on_end(self, e: ev.Finish | ev.Cancel | ev.Preempt) -> None:
        for r in self.feed.rows.get(e.branch, ()):
            self._leave_all(r)
        self.plain[type(e)](e)

    on_finish = on_cancel = on_preempt = _on_end

    # --- accesses -----------------------------------------------------------------------------------------------------

    def on_write(self, e: ev.Write) -> None:
        self.plain[ev.Write](e)
        self.clocks.launch(e.thread, e.op, e.stream)
        self.copied.clear()
        lo, hi = e.slots
        raw = e.block
        if type(raw) is int and e.pool is None and raw != self.feed.null:  # the hot path of most logs
            self._write(self.feed.block(raw), lo, hi, Use.WRITE, e.op)
        else:
            for b in self.feed.several(raw, e.pool):
                self._write(b, lo, hi, Use.WRITE, e.op)
        self._report()

    def on_read(self, e: ev.Read) -> None:
        self.plain[ev.Read](e)
        self.clocks.launch(e.thread, e.op, e.stream)
        self.copied.clear()
        if e.branch is not None:
            self._attend(self.feed.row(e.branch, e.group), e.upto, e.op)
        elif e.block is not None:
            for b in self.feed.several(e.block, e.pool):
                lo, hi = (0, self.state["slots_of"][b]) if e.slots is None else e.slots
                self._read(b, lo, hi, Use.TRANSFER, e.op)
        self._report()

    def on_copy(self, e: ev.Copy) -> None:
        src_pool = e.pool if e.src_pool is None else e.src_pool
        dst_pool = e.pool if e.dst_pool is None else e.dst_pool
        self.clocks.launch(e.thread, e.op, e.stream)
        if self.feed.is_null(e.src, src_pool) or self.feed.is_null(e.dst, dst_pool):
            self.plain[ev.Copy](e)
            return
        self.plain[ev.Copy](e)
        self.copied.clear()
        self._copy(self.feed.block(e.src, src_pool), self.feed.block(e.dst, dst_pool), *e.slots, e.op)
        self._report()

    def on_step(self, e: ev.Step) -> None:
        self.plain[ev.Step](e)
        feed, pool, group, op = self.feed, e.pool, e.group, e.op
        self.clocks.launch(e.thread, op, e.stream)
        self.copied.clear()
        for src, dst, lo, hi in e.copies:
            if not (feed.is_null(src, pool) or feed.is_null(dst, pool)):
                self._copy(feed.block(src, pool), feed.block(dst, pool), lo, hi, op)
        for _, raw, lo, hi in e.writes:
            if not feed.is_null(raw, pool):
                self._write(feed.block(raw, pool), lo, hi, Use.WRITE, op)
        for what in e.reads:
            if isinstance(what, tuple | list):
                self._attend(feed.row(what[0], group), what[1], op)
            else:
                self._attend(feed.row(what, group), None, op)
        self._report()

    def on_invalidate(self, e: ev.Invalidate) -> None:
        self.plain[ev.Invalidate](e)
        for b in self.feed.several(e.block, e.pool):
            self.attention.lost(b)
            if b in self.unsure:
                lo, hi = (0, self.state["slots_of"][b]) if e.slots is None else e.slots
                self.unsure[b] &= ~((1 << hi) - (1 << lo))

    def _write(self, b: int, lo: int, hi: int, use: int, op: Hashable | None) -> None:
        if self.fuzzy["Block"][b] & TAINTED:
            return
        mask = (1 << hi) - (1 << lo)
        self.history.write(b, mask, use, self.line, op)
        self.attention.written(b, lo, mask, use, self.line, op)
        if b in self.unsure and use != Use.COPY_TARGET:
            self.unsure[b] &= ~mask

    def _read(self, b: int, lo: int, hi: int, use: int, op: Hashable | None) -> None:
        if not self.fuzzy["Block"][b] & TAINTED:
            self.history.read(b, (1 << hi) - (1 << lo), use, self.line, op)

    def _copy(self, src: int, dst: int, lo: int, hi: int, op: Hashable | None) -> None:
        """Reads the source, writes the target. Whether the target's slots are written is as sure as the source's."""
        if src == dst:
            return
        self.copied.append((src, dst))
        mask = (1 << hi) - (1 << lo)
        doubt = mask if self.fuzzy["Block"][src] else self.unsure.get(src, 0) & mask
        if doubt or dst in self.unsure:
            self.unsure[dst] = (self.unsure.get(dst, 0) & ~mask) | doubt
        self._read(src, lo, hi, Use.COPY_SOURCE, op)
        self._write(dst, lo, hi, Use.COPY_TARGET, op)

    def _attend(self, r: int, upto: int | None, op: Hashable | None) -> None:
        """Attention of a row over its first `upto` tokens, or all it has."""
        if upto is None:
            if not self.shows_length or r in self.distrusted:
                return
            upto = self.state["length"][r]
        state, attention, history = self.state, self.attention, self.history
        table, size, start = state["table"][r], state["block_size"][r], state["window_from"][r]
        written, fuzzy, unsure = state["written"], self.fuzzy["Block"], self.unsure
        skipped, last = state["skipped"][r], None
        for p in attention.positions(r, upto, start):
            b = table.get(p, NONE)
            if b == NONE:
                if p in skipped:
                    continue
                self._no_entry(r, p)
                last = max((*table, *skipped), default=-1) if last is None else last
                if p > last:
                    break  # no entry follows: the first that is missing stands for all
                continue
            if fuzzy[b] & TAINTED:
                continue
            count = upto - p * size
            mask = (1 << (count if count < size else size)) - 1
            history.judge(b, mask, Use.ATTENTION, self.line, op, r)
            if self.shows_writes and not fuzzy[b]:
                missing = mask & ~written[b]
                if missing and unsure:
                    missing &= ~unsure.get(b, 0)
                self.checked[INITIALISED] += 1
                if missing:
                    self.unwritten.append(Unwritten(b, r, p, missing, self.clocks.now))
        attention.read(r, upto, self.line, op)

    def _no_entry(self, r: int, p: int) -> None:
        if self.shows_tables and not self.fuzzy["Branch"][r]:
            self.checked[INITIALISED] += 1
            self.unwritten.append(Unwritten(None, r, p, 0, self.clocks.now))

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
