"""The order analysis of one log, beside its replay: it hears each event right after the ledger, with the same ids.

It sleeps until the first event that accesses a block, so that a log without device work pays next to nothing. Which
slots an event accesses, and which rule two unordered accesses break, is said in `kvsan.spec.ownership.accesses`; what
is written, whose table holds what, and what is tainted is the ledger's.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any  # handlers of many record types

from kvsan.spec.ownership.accesses import ORDER_RULES, Use, slots_attended
from kvsan.spec.ownership.rules import read_is_initialised
from kvsan.traces import events as ev

from .attention import POSITION, POSITION_BITS, Attention
from .clocks import Clocks
from .history import MIXED, NOBODY, History, Race

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

    distrusted: rows whose length is known to be wrong. one_thread: no event names a thread.
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
        self.feed, self.failures, self.distrusted = feed, failures, distrusted
        self.line = 0
        self.shows_writes = "written" not in unreliable
        self.shows_tables = not unreliable & {"table", "places", "held"}
        self.shows_length = "length" not in unreliable
        self.state, self.fuzzy = feed.state, feed.fuzzy
        self.clocks = Clocks(legacy, one_thread)
        self.history = History(self.clocks)
        self.attention = Attention(self.history, self.state["block_size"])
        self.blocks, self.rows = self.history.blocks, self.attention.rows
        self.unsure: dict[int, int] = {}
        self.unwritten: list[Unwritten] = []
        self.copied: tuple[int, list[tuple[int, int]]] = (0, [])
        self.checked_positions = 0
        self.fuzzy_blocks = self.fuzzy["Block"]
        self.plain: dict[type, Handler] = dict(feed.handlers)
        self.plain_write, self.plain_read = self.plain[ev.Write], self.plain[ev.Read]
        self.block_ids, self.row_ids, self.null = feed.blocks, feed.branches, feed.null
        self.table, self.sizes, self.written = self.state["table"], self.state["block_size"], self.state["written"]
        self.window_from = self.state["window_from"]
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
    def checked(self) -> list[int]:
        """Pairs and positions judged, by the number of the rule."""
        total = self.history.checked
        total[INITIALISED] += self.checked_positions
        return total

    @property
    def breaches(self) -> Sequence[Breach]:
        """What the latest event broke; draining."""
        found: list[Breach] = [*self.history.races, *self.unwritten]
        self.history.races.clear()
        self.unwritten.clear()
        return found

    @property
    def copies(self) -> list[tuple[int, int]]:
        """What the event copied, from block to block: a breach is passed on by copies."""
        line, copies = self.copied
        return copies if line == self.line else []

    def _report(self) -> None:
        """Wakes the caller."""
        if self.history.races or self.unwritten:
            self.failures.append((MARK, ()))

    # --- the pool and the tables --------------------------------------------------------------------------------------

    def on_alloc(self, e: ev.Alloc) -> None:
        self.plain[ev.Alloc](e)
        history, unsure = self.history, self.unsure
        for raw in (e.block,) if isinstance(e.block, int) else e.block:
            b = self.feed.block(raw, e.pool)
            history.begin(b)
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
        if new < old:
            self.attention.row(r).lane = NOBODY  # the next read looks at everything

    def _on_end(self, e: ev.Finish | ev.Cancel | ev.Preempt) -> None:
        for r in self.feed.rows.get(e.branch, ()):
            self._leave_all(r)
        self.plain[type(e)](e)

    on_finish = on_cancel = on_preempt = _on_end

    # --- accesses -----------------------------------------------------------------------------------------------------

    def on_write(self, e: ev.Write) -> None:
        self.plain_write(e)
        op, clocks = e.op, self.clocks
        running = clocks.ops.get(op)
        if running is None or running.epoch != clocks.epoch or running.thread != e.thread:
            clocks.launch(e.thread, op, e.stream)
        else:
            clocks.now, clocks.at, clocks.known = running.point
        lo, hi = e.slots
        raw = e.block
        if type(raw) is int and e.pool is None and raw != self.null:  # the hot path of most logs
            self._write(self.block_ids[raw], lo, hi, Use.WRITE, op)
        else:
            for b in self.feed.several(raw, e.pool):
                self._write(b, lo, hi, Use.WRITE, op)
        if self.history.races:
            self._report()

    def on_read(self, e: ev.Read) -> None:
        self.plain_read(e)
        op, clocks = e.op, self.clocks
        running = clocks.ops.get(op)
        if running is None or running.epoch != clocks.epoch or running.thread != e.thread:
            clocks.launch(e.thread, op, e.stream)
        else:
            clocks.now, clocks.at, clocks.known = running.point
        if e.branch is not None:
            r = self.row_ids[e.branch] if e.group is None else self.feed.row(e.branch, e.group)
            self._attend(r, e.upto, op)
        elif e.block is not None:
            for b in self.feed.several(e.block, e.pool):
                lo, hi = (0, self.state["slots_of"][b]) if e.slots is None else e.slots
                self._read(b, lo, hi, Use.TRANSFER, op)
        if self.history.races or self.unwritten:
            self._report()

    def on_copy(self, e: ev.Copy) -> None:
        src_pool = e.pool if e.src_pool is None else e.src_pool
        dst_pool = e.pool if e.dst_pool is None else e.dst_pool
        self.clocks.launch(e.thread, e.op, e.stream)
        if self.feed.is_null(e.src, src_pool) or self.feed.is_null(e.dst, dst_pool):
            self.plain[ev.Copy](e)
            return
        self.plain[ev.Copy](e)
        self.copied = (self.line, [])
        self._copy(self.feed.block(e.src, src_pool), self.feed.block(e.dst, dst_pool), *e.slots, e.op)
        self._report()

    def on_step(self, e: ev.Step) -> None:
        self.plain[ev.Step](e)
        feed, pool, group, op = self.feed, e.pool, e.group, e.op
        self.clocks.launch(e.thread, op, e.stream)
        self.copied = (self.line, [])
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
        if self.fuzzy_blocks[b] & TAINTED:
            return
        mask = (1 << hi) - (1 << lo)
        block = self.blocks.get(b)
        if block is None:
            block = self.history.block(b)
        line, now = self.line, self.clocks.now
        if block.union & mask:
            self.history.cover(block, b, mask, use, line, op)
        block.accesses.append((mask, now, self.clocks.at, block.life, use, line, op))
        block.union |= mask
        block.seen |= 1 << use
        if block.lane != now:
            block.lane = now if block.lane == NOBODY else MIXED
        for key, turn in block.holders.items():  # their branches look at the block once more
            r, p = key >> POSITION_BITS, key & POSITION
            row = self.rows[r]
            row.dirty.add(p)
            if row.reach > p * self.sizes[r] + lo:
                found = self.attention.reaching(row, turn, self.sizes[r], p, mask, block.life)
                self.history.against_attention(b, found, use, line, op, r)
        if self.unsure and b in self.unsure and use != Use.COPY_TARGET:
            self.unsure[b] &= ~mask

    def _read(self, b: int, lo: int, hi: int, use: int, op: Hashable | None) -> None:
        if not self.fuzzy_blocks[b] & TAINTED:
            self.history.read(b, (1 << hi) - (1 << lo), use, self.line, op)

    def _copy(self, src: int, dst: int, lo: int, hi: int, op: Hashable | None) -> None:
        """Reads the source, writes the target. Whether the target's slots are written is as sure as the source's."""
        if src == dst:
            return
        self.copied[1].append((src, dst))
        mask = (1 << hi) - (1 << lo)
        doubt = mask if self.fuzzy_blocks[src] else self.unsure.get(src, 0) & mask
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
        attention = self.attention
        table, size, now = self.table[r], self.sizes[r], self.clocks.now
        written, fuzzy, judged = self.written, self.fuzzy_blocks, self.shows_writes
        row = self.rows.get(r)
        if row is None:
            row = attention.row(r)
        for p in attention.positions(row, size, upto, self.window_from[r]):
            b = table.get(p, NONE)
            if b == NONE:
                if p in self.state["skipped"][r]:
                    continue
                self._no_entry(r, p)
                for further in sorted(at for at in table if p < at and at * size < upto):
                    self._attend_entry(r, further, table[further], upto, op)
                break
            count = upto - p * size
            mask = (1 << (count if count < size else size)) - 1
            block = self.blocks.get(b)
            if (block is None or block.lane == now) and not fuzzy[b] and not (judged and mask & ~written[b]):
                self.checked_positions += judged  # all is well, on the hot path
                if block is not None and block.union & mask:
                    self.history.tally[block.seen] += 1
            else:
                self._attend_entry(r, p, b, upto, op)
        attention.read(row, upto, self.line, op)

    def _attend_entry(self, r: int, p: int, b: int, upto: int, op: Hashable | None) -> None:
        """Attention over the first `upto` tokens of a row, at one of its entries."""
        if self.fuzzy_blocks[b] & TAINTED:
            return
        mask = (1 << slots_attended(self.sizes[r], upto, p)) - 1
        self.history.judge(b, mask, Use.ATTENTION, self.line, op, r)
        if self.shows_writes and not self.fuzzy_blocks[b]:
            self.checked_positions += 1
            if mask & ~self.written[b]:
                self._unwritten(b, r, p, mask & ~self.written[b])

    def _unwritten(self, b: int, r: int, p: int, mask: int) -> None:
        missing = mask & ~self.unsure.get(b, 0)
        if missing:
            self.unwritten.append(Unwritten(b, r, p, missing, self.clocks.now))

    def _no_entry(self, r: int, p: int) -> None:
        if self.shows_tables and not self.fuzzy["Branch"][r]:
            self.checked_positions += 1
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
