"""Dense ids for the names of one log: blocks by pool, branches by cache group, and what else its events name.

An id is taken back when nothing stands on it, and given out again; a name is given back as the log has it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import partial
from typing import Any  # the state holds values of any type

from kvsan.spec.lang import ir
from kvsan.traces import events as ev

from .emit import INEXACT, Machine
from .ids import Ids

NOBODY = ("a branch that ended", None)
"""The name of one branch that stands for all those whose ids were given out again."""

NONE = -1
"""An absent option, as the generated code knows it."""

RETIRED_MAX = 1024
"""Ids of ended branches that wait to be given out again: one look at every block serves so many."""

MEDIA = {"gpu": "gpu", "cpu": "cpu", "cpu_pinned": "cpu"}


class Names:
    """The ids of one log, on one machine.

    Branches are interned per cache group, blocks per pool; `describe(sort, id)` gives a name back as the log has it.
    rows: the tables of each branch. ended: identities that something was taken from. released: ids that may stand for
    another branch.
    """

    def __init__(self, machine: Machine, header: ev.Trace, unknown_past: bool) -> None:
        self.machine, self.header = machine, header
        self.unknown_past = unknown_past
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
        self.forget()

    def _ids(self, sort: str) -> Ids:
        """The ids of one sort; where the past is unknown, so is what stands on a name that is new."""
        born = partial(self._blur, sort) if self.unknown_past else None
        return Ids(partial(self.machine.grow, sort), born)

    def _blur(self, sort: str, dense: int) -> None:
        self.machine.blur(sort, dense, INEXACT)

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

    def release_branch(self, branch: Hashable) -> None:
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
