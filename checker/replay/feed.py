"""From the lines of a log to the events of the discipline: names become dense ids, lists and steps single events.

Nothing is judged here. The null block is no block: its entries become null entries, the rest about it is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from functools import partial
from typing import Any  # generated functions and handlers of many record types

from kvsan.spec.lang import ir
from kvsan.traces import events as ev

from .emit import INEXACT, TAINTED, Machine
from .ids import Ids

NOBODY = ("a branch that ended", None)
"""The name of one branch that stands for all those whose ids were given out again."""

NONE = -1
"""An absent option, as the generated code knows it."""

MODES = {None: NONE, "keep": 0, "freeze": 1}
KINDS = {None: NONE, "copy": 0, "transfer": 1, "step": 2, "cache": 3}
RETIRED_MAX = 1024
"""Ids of ended branches that wait to be given out again: one look at every block serves so many."""

MEDIA = {"gpu": "gpu", "cpu": "cpu", "cpu_pinned": "cpu"}


def entries(field: int | tuple[int | None, ...] | None) -> tuple[int | None, ...]:
    """The table entries that a field names, one or a list."""
    return field if isinstance(field, tuple) else (field,)


class Feed:
    """Performs the events of one log on a machine.

    `handlers` maps a record type to the method that performs it. Branches are interned per cache group, blocks per
    pool; `describe(sort, id)` gives a name back as the log has it. `released`: ids that may stand for another branch.
    """

    def __init__(self, machine: Machine, header: ev.Trace, unknown_past: bool) -> None:
        self.machine, self.header = machine, header
        self.unknown_past = unknown_past
        self.do: dict[str, Callable[..., None]] = machine.events
        self.write, self.read, self.grow = self.do["write"], self.do["read"], self.do["grow"]
        self.state: dict[str, Any] = machine.state
        self.fuzzy: dict[str, list[int]] = machine.fuzzy
        self.null = header.null_block
        self.groups = {str(g): i.block_size or header.block_size for g, i in (header.groups or {}).items()}
        self.pools: dict[str, tuple[int, int]] = {"gpu": (header.blocks, header.block_size)}
        for name, info in (header.pools or {}).items():
            self.pools[str(name)] = (info.blocks, info.block_size or header.block_size)
        self.ids = {sort: self._ids(sort) for sort in machine.fuzzy if sort}
        self.blocks, self.branches, self.holders = self.ids["Block"], self.ids["Branch"], self.ids["Holder"]
        self.identities, self.digests = self.ids["Identity"], self.ids["Digest"]
        self.published, self.pool_ids = self.ids["Published"], self.ids["Pool"]
        self.rows: dict[Hashable, tuple[int, ...]] = {}
        self.ended: set[int] = set()
        self.released: set[int] = set()
        self.retired: list[int] = []
        self.named_lately: set[int] = set()
        self.stale_pins: Counter[tuple[int, int]] = Counter()
        self.forget()
        self.handlers: dict[type, Callable[[Any], object]] = {
            record: getattr(self, "on_" + name, self.ignore) for name, record in ev.EVENT_TYPES.items()
        }

    def _ids(self, sort: str) -> Ids:
        """The ids of one sort; where the past is unknown, so is what stands on a name that is new."""
        born = partial(self._blur, sort) if self.unknown_past else None
        return Ids(partial(self.machine.grow, sort), born)

    def _blur(self, sort: str, dense: int) -> None:
        self.machine.blur(sort, dense, INEXACT)

    # --- names --------------------------------------------------------------------------------------------------------

    def forget(self) -> None:
        """What was known is void: a log begins, or goes on after a gap."""
        for name, (blocks, _) in self.pools.items():
            self.state["free"][self.pool_ids[name]] = max(0, blocks - (self.null is not None and name == "gpu"))

    def block(self, raw: int, pool: Hashable = None) -> int:
        """The dense id of a block; blocks of pool gpu go by their number, others by number and pool."""
        name: Hashable = raw if pool is None or pool == "gpu" else (raw, str(pool))
        known = self.blocks.get(name)
        return self._new_block(name) if known is None else known

    def _new_block(self, name: Hashable) -> int:
        dense = self.blocks[name]
        raw, pool = name if isinstance(name, tuple) else (name, "gpu")  # of a name that `block` has made
        count, size = self.pools.get(pool, (0, self.header.block_size))
        self.state["slots_of"][dense] = size
        self.state["pool_of"][dense] = self.pool_ids[pool]
        self.state["imaginary"][dense] = raw >= count or self.is_null(raw, pool)
        return dense

    def several(self, raw: int | tuple[int, ...], pool: Hashable) -> Iterable[int]:
        """The dense ids of a block field, without the null block."""
        if isinstance(raw, int):
            return () if self.is_null(raw, pool) else (self.block(raw, pool),)
        return [self.block(one, pool) for one in raw if not self.is_null(one, pool)]

    def is_null(self, raw: int | None, pool: Hashable) -> bool:
        return raw is None or (raw == self.null and (pool is None or pool == "gpu"))

    def row(self, branch: Hashable, group: Hashable = None) -> int:
        """The dense id of a branch's table in one cache group."""
        name: Hashable = branch if group is None or group == "0" or group == 0 else (branch, str(group))
        known = self.branches.get(name)
        return self._new_rows(branch, name) if known is None else known

    def _new_rows(self, branch: Hashable, name: Hashable) -> int:
        """A branch is seen for the first time: it gets a table in each declared group."""
        keys = {branch: self.header.block_size} if "0" not in self.groups else {branch: self.groups["0"]}
        for group, size in self.groups.items():
            if group != "0":
                keys[(branch, group)] = size
        keys.setdefault(name, self.header.block_size)
        for key, size in keys.items():
            if key not in self.branches:
                dense = self.branches[key]
                self.state["block_size"][dense] = size
                self.fuzzy["Branch"][dense] = 0
                if self.unknown_past:
                    self.machine.blur("Branch", dense, INEXACT)
                sibling = self.rows.get(branch)
                if sibling:
                    self.state["length"][dense] = self.state["length"][sibling[0]]
                self.rows[branch] = (*self.rows.get(branch, ()), dense)
        return self.branches[name]

    def all_rows(self, branch: Hashable) -> tuple[int, ...]:
        """The tables of a branch, one for each of its cache groups."""
        known = self.rows.get(branch)
        if known is None:
            self.row(branch)
            known = self.rows[branch]
        return known

    def optional_row(self, branch: Hashable | None, group: Hashable) -> int:
        return NONE if branch is None else self.row(branch, group)

    def identity(self, raw: Hashable, namespace: Hashable, pool: Hashable, group: Hashable) -> int:
        """The id of a hash within its namespace; each pool and each cache group has identities of its own."""
        self._release_identities()
        where = (str(pool or "gpu"), str(group or 0))
        if where == ("gpu", "0"):
            return self.identities[raw if namespace is None else (raw, namespace)]
        return self.identities[(raw, namespace, *where)]

    def holder(self, name: Hashable) -> int:
        """The id of a holder. One that pins nothing, and was not named for a long while, is forgotten."""
        if self.holders.crowded():
            pinning = {h for row in self.state["pins"] for h in row}
            for h in self.holders.sweep(lambda h: h in pinning or h in self.named_lately):
                self.state["has_pinned"][h] = False
            self.named_lately.clear()
        h = self.holders[name]
        self.named_lately.add(h)
        return h

    def digest(self, name: Hashable | None) -> int:
        if name is None:
            return NONE
        if self.digests.crowded():
            standing = {d for row in self.state["digests"] for d in row.values()}
            self.digests.sweep(standing.__contains__)
        return self.digests[name]

    def publication(self, pool: Hashable, raw: Hashable, group: Hashable) -> int:
        if self.published.crowded():
            stored, resident = self.state["stored"], self.state["resident"]
            self.published.sweep(lambda e: bool(stored[e] or resident[e]))
        medium = str(pool) if pool is not None else "gpu"
        return self.published[(medium, raw) if group is None or str(group) == "0" else (medium, raw, str(group))]

    def medium(self, medium: Hashable) -> str:
        return "gpu" if medium is None else MEDIA.get(str(medium).lower(), str(medium).lower())

    def describe(self, sort: str, dense: int) -> str:
        """A name as the log has it."""
        if dense == NONE:
            return "none"
        name = self.ids[sort].names[dense]
        if isinstance(name, tuple):
            first, second = name[:2]
            if second is None:
                return str(first)
            word = {"Block": "{} of pool {}", "Branch": "{} (group {})", "Identity": "{} (namespace {})"}.get(sort)
            return word.format(first, second) if word else f"{second} ({first})"
        return str(name)

    def _release_branch(self, branch: Hashable) -> None:
        for dense in self.rows.pop(branch, ()):
            self.branches.retire(dense)
            self.retired.append(dense)
        if len(self.retired) >= RETIRED_MAX:
            self._reuse_retired()

    def _reuse_retired(self) -> None:
        """Give out the ids of ended branches again: what blocks still say of one is then about a branch long gone."""
        gone, nobody = set(self.retired), self.branches[NOBODY]
        for variable in self.machine.spec.variables.values():
            if variable.value == ir.OptionType(ir.SortType("Branch")):
                held = self.state[variable.name]
                held[:] = [nobody if r in gone else r for r in held]
        self.released |= gone
        self.branches.unused += self.retired
        self.retired.clear()

    def _release_identities(self) -> None:
        """Give back ids that nothing stands on. Done when the next identity comes: a finding still shows the last."""
        standing = self.state["standing"]
        for dense in self.ended:
            if standing[dense] == 0:
                self.identities.release(dense)
        self.ended.clear()

    # --- the pool -----------------------------------------------------------------------------------------------------

    def ignore(self, e: Any) -> None:
        """An event that only the order of device work gives a meaning to."""

    def on_alloc(self, e: ev.Alloc) -> None:
        r = NONE if e.branch is None else self.row(e.branch, e.group)
        for raw in (e.block,) if isinstance(e.block, int) else e.block:
            b = self.block(raw, e.pool)
            ended = self.state["carried"][b]
            if ended:
                self.ended.update(ended)
            self.do["alloc"](b, r)

    def on_free(self, e: ev.Free) -> None:
        for b in self.several(e.block, e.pool):
            self.do["free"](b)

    def on_alloc_failed(self, e: ev.AllocFailed) -> None:
        self.do["alloc_failed"](self.row(e.branch, e.group))

    def on_pin(self, e: ev.Pin) -> None:
        h = self.holder(e.holder)
        for b in self.several(e.block, e.pool):
            self.do["pin"](b, h, MODES[e.mode or "keep"], KINDS[e.kind or "transfer"])

    def on_unpin(self, e: ev.Unpin) -> None:
        h = self.holder(e.holder)
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
        self.do["pool"](self.pool_ids["gpu" if e.pool is None else str(e.pool)], e.free)

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
        self._release_branch(e.branch)

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
            h = self.holder(e.holder)
            for b in self.several(e.block, e.pool):
                self.do["write_inbound"](h, b, lo, hi)
            return NONE
        branch, raw = e.branch, e.block
        first, last = (NONE, NONE) if e.tokens is None else e.tokens
        r, me = self.row(branch, e.group), self.holders.get(branch, NONE)  # pins under a branch's name are its own
        if type(raw) is int and e.pool is None and raw != self.null:  # the hot path of most logs
            b = self.block(raw)
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
            h = self.holder(e.holder)
            for b in self.several(e.block, e.pool):
                self.do["read_outbound"](h, b)
        return NONE

    def on_copy(self, e: ev.Copy) -> None:
        lo, hi = e.slots
        src_pool = e.pool if e.src_pool is None else e.src_pool
        dst_pool = e.pool if e.dst_pool is None else e.dst_pool
        if self.is_null(e.src, src_pool) or self.is_null(e.dst, dst_pool):
            return
        r = self.optional_row(e.branch, e.group)
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
        r = self.optional_row(e.branch, e.group)
        h = self.identity(e.hash, e.namespace, e.pool, e.group)
        digest = self.digest(e.digest)
        published = self.publication(e.pool, e.hash if e.published is None else e.published, e.group)
        for b in self.several(e.block, e.pool):
            whole = self.state["slots_of"][b] if r == NONE else self.state["block_size"][r]
            lo, hi = (0, whole) if e.slots is None else e.slots
            self.do["seal"](b, h, r, lo, hi, digest, published)

    def on_hit(self, e: ev.Hit) -> None:
        r = self.optional_row(e.branch, e.group)
        h = self.identity(e.hash, e.namespace, e.pool, e.group)
        lo, hi = (NONE, NONE) if e.slots is None else e.slots
        digest = self.digest(e.digest)
        for b in self.several(e.block, e.pool):
            self.do["hit"](b, h, r, lo, hi, digest)
        self.ended.add(h)

    def on_evict(self, e: ev.Evict) -> None:
        h = self.identity(e.hash, e.namespace, e.pool, e.group)
        for b in self.several(e.block, e.pool):
            self.ended.update(self.state["carried"][b])
            self.do["evict"](b, h)
        self.ended.add(h)

    def on_kv_stored(self, e: ev.KvStored) -> None:
        medium = self.medium(e.medium)
        for raw in e.hash if isinstance(e.hash, tuple | list) else (e.hash,):
            self.do["kv_stored"](self.publication(medium, raw, e.group))

    def on_kv_removed(self, e: ev.KvRemoved) -> None:
        medium = self.medium(e.medium)
        for raw in e.hash if isinstance(e.hash, tuple | list) else (e.hash,):
            self.do["kv_removed"](self.publication(medium, raw, e.group))

    def on_kv_cleared(self, e: ev.KvCleared) -> None:
        medium = None if e.medium is None else self.medium(e.medium)
        for name, dense in list(self.published.items()):
            if medium is None or (isinstance(name, tuple) and name[0] == medium):
                self.do["kv_cleared"](dense)
