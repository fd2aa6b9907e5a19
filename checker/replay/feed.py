"""From the lines of a log to the events of the discipline: names become dense ids, lists and steps single events.

Nothing is judged here. The null block is no block: its entries become null entries, the rest about it is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any  # generated functions and handlers of many record types

from kvsan.traces import events as ev

from .emit import TAINTED, Machine
from .names import NONE, Names

MODES = {None: NONE, "keep": 0, "freeze": 1}
KINDS = {None: NONE, "copy": 0, "transfer": 1, "step": 2, "cache": 3}


def entries(field: int | tuple[int | None, ...] | None) -> tuple[int | None, ...]:
    """The table entries that a field names, one or a list."""
    return field if isinstance(field, tuple) else (field,)


class Feed:
    """Performs the events of one log on a machine.

    `handlers` maps a record type to the method that performs it.
    """

    def __init__(self, machine: Machine, header: ev.Trace, unknown_past: bool) -> None:
        self.machine = machine
        self.do: dict[str, Callable[..., None]] = machine.events
        self.write, self.read, self.grow = self.do["write"], self.do["read"], self.do["grow"]
        self.state: dict[str, Any] = machine.state
        self.fuzzy: dict[str, list[int]] = machine.fuzzy
        self.names = names = Names(machine, header, unknown_past)
        self.null, self.ids, self.rows, self.released = names.null, names.ids, names.rows, names.released
        self.blocks, self.branches, self.holders = names.blocks, names.branches, names.holders
        self.block, self.several, self.is_null = names.block, names.several, names.is_null
        self.row, self.all_rows, self.describe = names.row, names.all_rows, names.describe
        self.stale_pins: Counter[tuple[int, int]] = Counter()
        self.handlers: dict[type, Callable[[Any], object]] = {
            record: getattr(self, "on_" + name, self.ignore) for name, record in ev.EVENT_TYPES.items()
        }

    # --- the pool -----------------------------------------------------------------------------------------------------

    def ignore(self, e: Any) -> None:
        """An event that only the order of device work gives a meaning to."""

    def on_alloc(self, e: ev.Alloc) -> None:
        r = NONE if e.branch is None else self.row(e.branch, e.group)
        for raw in (e.block,) if isinstance(e.block, int) else e.block:
            b = self.block(raw, e.pool)
            ended = self.state["carried"][b]
            if ended:
                self.names.ended.update(ended)
            self.do["alloc"](b, r)

    def on_free(self, e: ev.Free) -> None:
        for b in self.several(e.block, e.pool):
            self.do["free"](b)

    def on_alloc_failed(self, e: ev.AllocFailed) -> None:
        self.do["alloc_failed"](self.row(e.branch, e.group))

    def on_pin(self, e: ev.Pin) -> None:
        h = self.names.holder(e.holder)
        for b in self.several(e.block, e.pool):
            self.do["pin"](b, h, MODES[e.mode or "keep"], KINDS[e.kind or "transfer"])

    def on_unpin(self, e: ev.Unpin) -> None:
        h = self.names.holder(e.holder)
        for b in self.several(e.block, e.pool):
            if self.stale_pins and self._is_stale(b, h):
                continue
            self.do["unpin"](b, h, MODES[e.mode], KINDS[e.kind])

    def _is_stale(self, b: int, h: int) -> bool:
        """The pin was taken in a life of the block that ended in a violation: its end is no breach of its own."""
        if self.machine.read("pins", b, h) or not self.stale_pins[b, h]:
            return False
        self.stale_pins[b, h] -= 1
        return True

    def on_ref(self, e: ev.Ref) -> None:
        for b in self.several(e.block, e.pool):
            self.do["ref"](b, e.count)

    def on_pool(self, e: ev.Pool) -> None:
        self.do["pool"](self.names.pool_ids["gpu" if e.pool is None else str(e.pool)], e.free)

    def on_quiescent(self, e: ev.Quiescent) -> None:
        self.do["quiescent"]()

    # --- branches -----------------------------------------------------------------------------------------------------

    def on_admit(self, e: ev.Admit) -> None:
        for r in self.all_rows(e.branch):
            self.fuzzy["Branch"][r] = 0
            self.do["admit"](r, e.tokens or 0)

    def on_grow(self, e: ev.Grow) -> None:
        tokens = 1 if e.tokens is None else e.tokens
        for r in self.rows.get(e.branch) or self.all_rows(e.branch):
            self.grow(r, tokens)

    def on_reserve(self, e: ev.Reserve) -> None:
        self.do["reserve"](self.row(e.branch, e.group), e.blocks)

    def on_fork(self, e: ev.Fork) -> None:
        upto = NONE if e.upto is None else e.upto
        parents = self.all_rows(e.parent)
        names = [self.branches.names[r] for r in parents]
        for parent, name in zip(parents, names, strict=True):
            child = self.row(e.branch, name[1] if isinstance(name, tuple) else None)
            self.fuzzy["Branch"][child] = 0
            self.do["fork"](child, parent, upto)

    def on_map(self, e: ev.Map) -> None:
        r = self.row(e.branch, e.group)
        for p, raw in enumerate(entries(e.block), e.pos):
            if raw is None or self.is_null(raw, e.pool):
                self.do["map_null"](r, p)
            else:
                self.do["map"](r, p, self.block(raw, e.pool))

    def on_unmap(self, e: ev.Unmap) -> None:
        r = self.row(e.branch, e.group)
        for p, raw in enumerate(entries(e.block), e.pos):
            if raw is None or self.is_null(raw, e.pool):
                self.do["unmap_null"](r, p)
            elif self.fuzzy["Block"][b := self.block(raw, e.pool)] & TAINTED and self.state["table"][r].get(p) != b:
                self.do["unmap_null"](r, p)  # taint took the entry out
            else:
                self.do["unmap"](r, p, b)

    def on_window(self, e: ev.Window) -> None:
        self.do["window"](self.row(e.branch, e.group), e.from_)

    def on_finish(self, e: ev.Finish | ev.Cancel) -> None:
        for r in self.all_rows(e.branch):
            self.do["finish"](r)
        self.names.release_branch(e.branch)

    on_cancel = on_finish

    def on_preempt(self, e: ev.Preempt) -> None:
        for r in self.all_rows(e.branch):
            self.do["preempt"](r)

    def on_propose(self, e: ev.Propose) -> None:
        for r in self.all_rows(e.branch):
            self.do["propose"](r, e.tokens)

    def on_accept(self, e: ev.Accept) -> None:
        for r in self.all_rows(e.branch):
            self.do["accept"](r, e.tokens)

    def on_table(self, e: ev.Table) -> None:
        r = self.row(e.branch, e.group)
        for p, raw in enumerate(e.blocks):
            if raw is None or self.is_null(raw, e.pool):
                self.do["view_null"](r, p)
            elif not self.fuzzy["Block"][b := self.block(raw, e.pool)] & TAINTED:  # whose entries taint took out
                self.do["view_entry"](r, p, b)
        self.do["view_end"](r, len(e.blocks))

    # --- contents -----------------------------------------------------------------------------------------------------

    def on_write(self, e: ev.Write) -> int:
        """Returns the one block, where a branch writes it; else NONE."""
        lo, hi = e.slots
        if e.branch is None:
            assert e.holder is not None
            h = self.names.holder(e.holder)
            for b in self.several(e.block, e.pool):
                self.do["write_inbound"](h, b, lo, hi)
            return NONE
        branch, raw = e.branch, e.block
        first, last = (NONE, NONE) if e.tokens is None else e.tokens
        r, me = self.row(branch, e.group), self.holders.get(branch, NONE)  # pins under a branch's name are its own
        if type(raw) is int and e.pool is None and raw != self.null:  # the hot path of most logs
            known = self.blocks.get(raw)
            b = self.block(raw) if known is None else known
            self.write(r, b, lo, hi, first, last, me)
            return b
        for b in self.several(raw, e.pool):
            self.write(r, b, lo, hi, first, last, me)
        return NONE

    def on_read(self, e: ev.Read) -> int:
        """Returns the row that is read, NONE where a holder reads."""
        if e.branch is not None:
            r = self.row(e.branch, e.group)
            self.read(r, NONE if e.upto is None else e.upto)
            return r
        if e.block is not None and e.holder is not None:
            h = self.names.holder(e.holder)
            for b in self.several(e.block, e.pool):
                self.do["read_outbound"](h, b)
        return NONE

    def on_copy(self, e: ev.Copy) -> None:
        lo, hi = e.slots
        src_pool = e.pool if e.src_pool is None else e.src_pool
        dst_pool = e.pool if e.dst_pool is None else e.dst_pool
        if self.is_null(e.src, src_pool) or self.is_null(e.dst, dst_pool):
            return
        r = self.names.optional_row(e.branch, e.group)
        self.do["copy"](r, self.block(e.src, src_pool), self.block(e.dst, dst_pool), lo, hi)

    def on_step(self, e: ev.Step) -> None:
        do, pool, group = self.do, e.pool, e.group
        for src, dst, lo, hi in e.copies:
            if not (self.is_null(src, pool) or self.is_null(dst, pool)):
                do["copy"](NONE, self.block(src, pool), self.block(dst, pool), lo, hi)
        for branch, raw, lo, hi in e.writes:
            if not self.is_null(raw, pool):
                me = self.holders.get(branch, NONE)
                self.write(self.row(branch, group), self.block(raw, pool), lo, hi, NONE, NONE, me)
        for what in e.reads:
            if isinstance(what, tuple | list):
                self.read(self.row(what[0], group), what[1])
            else:
                self.read(self.row(what, group), NONE)

    def on_invalidate(self, e: ev.Invalidate) -> None:
        for b in self.several(e.block, e.pool):
            lo, hi = (0, self.state["slots_of"][b]) if e.slots is None else e.slots
            self.do["invalidate"](b, lo, hi)

    # --- identities ---------------------------------------------------------------------------------------------------

    def on_seal(self, e: ev.Seal) -> None:
        r = self.names.optional_row(e.branch, e.group)
        h = self.names.identity(e.hash, e.namespace, e.pool, e.group)
        digest = self.names.digest(e.digest)
        published = self.names.publication(e.pool, e.hash if e.published is None else e.published, e.group)
        for b in self.several(e.block, e.pool):
            whole = self.state["slots_of"][b] if r == NONE else self.state["block_size"][r]
            lo, hi = (0, whole) if e.slots is None else e.slots
            self.do["seal"](b, h, r, lo, hi, digest, published)

    def on_hit(self, e: ev.Hit) -> None:
        r = self.names.optional_row(e.branch, e.group)
        h = self.names.identity(e.hash, e.namespace, e.pool, e.group)
        lo, hi = (NONE, NONE) if e.slots is None else e.slots
        digest = self.names.digest(e.digest)
        for b in self.several(e.block, e.pool):
            self.do["hit"](b, h, r, lo, hi, digest)
        self.names.ended.add(h)

    def on_evict(self, e: ev.Evict) -> None:
        h = self.names.identity(e.hash, e.namespace, e.pool, e.group)
        for b in self.several(e.block, e.pool):
            self.names.ended.update(self.state["carried"][b])
            self.do["evict"](b, h)
        self.names.ended.add(h)

    def on_kv_stored(self, e: ev.KvStored) -> None:
        medium = self.names.medium(e.medium)
        for raw in e.hash if isinstance(e.hash, tuple | list) else (e.hash,):
            self.do["kv_stored"](self.names.publication(medium, raw, e.group))

    def on_kv_removed(self, e: ev.KvRemoved) -> None:
        medium = self.names.medium(e.medium)
        for raw in e.hash if isinstance(e.hash, tuple | list) else (e.hash,):
            self.do["kv_removed"](self.names.publication(medium, raw, e.group))

    def on_kv_cleared(self, e: ev.KvCleared) -> None:
        medium = None if e.medium is None else self.names.medium(e.medium)
        for name, dense in list(self.names.published.items()):
            if medium is None or (isinstance(name, tuple) and name[0] == medium):
                self.do["kv_cleared"](dense)
