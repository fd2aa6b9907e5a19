"""One engine call becomes one group of events, written in ownership order.

An engine moves its state in whatever order suits it: it drops a count before the table forgets the block, and takes
a block before the table shows it. A checker that had to tolerate that could not tell it from a fault. So what
`callgroup` has collected while the call ran is put down here, afterwards:

1. branches that end, entries that fall out of a table;
2. tokens that arrive;
3. what was taken, found or dropped, in the engine's own order, then the table entries that show it, each with the
   copy that fills it;
4. the identities that it registered, the blocks that it gave back, the holds that it took;
5. forks, and last the engine's own counts and tables.

A fact is never dropped or moved across another fact about the same block: a block that is given back and taken again
within one call keeps that order, and a block that is given back while a table still shows it is logged just so.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from kvsan.traces.engines.callgroup import EngineCall, Fact, Place, Seal, Table, differences
from kvsan.traces.engines.joined import Joined, Sink


def write(call: EngineCall, sink: Sink) -> None:
    """Emit the group of one call and bring its book up to date."""
    _Writer(call, sink).run()


def whose(table: Table) -> dict[str, object]:
    """The fields that name a table."""
    branch, _, group = table.partition("/")
    return {"branch": branch, "group": group} if group else {"branch": branch}


@dataclass(frozen=True)
class Entry:
    table: Table
    pos: int
    place: Place


class _Writer:
    """Puts the facts of one call into ownership order. Lives for one call."""

    def __init__(self, call: EngineCall, sink: Sink) -> None:
        self.call = call
        self.rows = call.book.rows
        self.out = Joined(sink)
        self.entries: list[Entry] = []  # entries still to be written
        self.owed: list[Place] = []  # blocks given back whose entries are still to be replaced
        self.taken: Counter[Place] = Counter()  # how often a block was taken or found, for entries still to come
        self.seals = list(call.seals)
        self.copies = list(call.copies)
        self.shown = {table for table in call.rows if table in self.rows}  # those that the log knows
        self.changed = [table for table, row in call.rows.items() if row != self.rows.get(table, [])]

    def run(self) -> None:
        call, out = self.call, self.out
        for ev, fields in call.before:
            out.emit(ev, **fields)
        for kind, branch in call.ended:
            out.emit(kind, branch=branch)
            for table in call.book.tables(branch):
                self.rows.pop(table, None)
        self._differ()
        for ev, fields in call.begun:
            out.emit(ev, **fields)
        self._windows(known=False)
        for fact in call.facts:
            self._fact(fact)
        self._settle(self.entries)
        self._free_owed(self.owed)
        for ev, fields in call.held:
            out.emit(ev, **fields)
        for child, parent in call.forks:
            out.emit("fork", branch=child, parent=parent)
            self.rows[child] = list(self.rows.get(parent, []))
        self._views()
        for ev, fields in call.closing:
            out.emit(ev, **fields)
        out.flush()

    def _differ(self) -> None:
        """Entries that leave are written now, those that come once their block was taken or found."""
        forked = {child for child, _ in self.call.forks}
        self._windows(known=True)
        for table, row in self.call.rows.items():
            if table in forked:
                continue
            for pos, _, after in list(differences(self.rows.get(table, []), row)):
                if after is None:
                    self._unmap(table, pos)
                else:
                    self.entries.append(Entry(table, pos, after))

    def _windows(self, known: bool) -> None:
        """A window moves before its entries leave; that of a new branch comes after the branch."""
        for table, start in self.call.windows:
            if (table in self.shown) == known:
                self.out.emit("window", **whose(table), **{"from": start})

    def _fact(self, fact: Fact) -> None:
        if fact.kind == "free":
            if self._replaced(fact.place):
                self.owed.append(fact.place)
            else:
                self.out.emit("free", pool=fact.place[0], block=fact.place[1])
            return
        if fact.place in self.owed:
            self._give_up(fact.place)
        if fact.kind == "hit" and any(seal.hash == fact.hash for seal in self.seals):
            self._settle(self._earned(fact.place))
        fields: dict[str, object] = {"pool": fact.place[0], "block": fact.place[1]}
        if fact.hash is not None:
            fields["hash"] = fact.hash
        table = self._account(fact.place)
        if table is not None and fact.kind != "evict":
            fields |= whose(table)
        if fact.group:
            fields["group"] = str(fact.group)
        self.taken[fact.place] += fact.kind != "evict"
        self.out.emit(fact.kind, **fields)

    def _earned(self, place: Place) -> list[Entry]:
        """The entries of `place` that an alloc or a hit has already paid for, one each."""
        return [entry for entry in self.entries if entry.place == place][: self.taken[place]]

    def _replaced(self, place: Place) -> bool:
        """Whether an entry that shows `place` is to be replaced by this call."""
        return any(self._shown(entry) == place for entry in self.entries)

    def _shown(self, entry: Entry) -> Place | None:
        row = self.rows.get(entry.table, [])
        return row[entry.pos] if entry.pos < len(row) else None

    def _account(self, place: Place) -> Table | None:
        """The table that is to show the block: of several, the next one that has no alloc or hit yet."""
        if place == self.call.null:
            return None
        tables = [entry.table for entry in self.entries if entry.place == place]
        paid = self.taken[place]
        return tables[paid] if paid < len(tables) else self.call.branch

    def _give_up(self, place: Place) -> None:
        """The block is about to be taken again: its old entries leave first."""
        for entry in self.entries:
            if self._shown(entry) == place:
                self._unmap(entry.table, entry.pos)
        self._free_owed([place])

    def _settle(self, entries: list[Entry]) -> None:
        """Write these entries, then what waits for them."""
        for entry in list(entries):
            self._map(entry)
            self.taken[entry.place] -= 1
            self._copy_into(entry)
        self.entries = [entry for entry in self.entries if entry not in entries]
        for seal in [seal for seal in self.seals if not self._waits(seal.place)]:
            self._seal(seal)
        self._free_owed([place for place in self.owed if not self._replaced(place)])

    def _waits(self, place: Place) -> bool:
        """Whether no table shows the block yet, though one is going to."""
        shown = any(place in self.rows.get(table, []) for table in self.call.rows)
        return not shown and any(entry.place == place for entry in self.entries)

    def _map(self, entry: Entry) -> None:
        self.out.emit("map", pool=entry.place[0], **whose(entry.table), pos=entry.pos, block=entry.place[1])
        row = self.rows.setdefault(entry.table, [])
        row += [None] * (entry.pos + 1 - len(row))
        row[entry.pos] = entry.place

    def _unmap(self, table: Table, pos: int) -> None:
        row = self.rows.get(table, [])
        place = row[pos] if pos < len(row) else None
        if place is None:
            return
        self.out.emit("unmap", pool=place[0], **whose(table), pos=pos, block=place[1])
        row[pos] = None
        while row and row[-1] is None:
            row.pop()

    def _copy_into(self, entry: Entry) -> None:
        """What the entry's block is filled from: the one it has just replaced."""
        for copy in [c for c in self.copies if (c.branch, c.target) == (entry.table, entry.place)]:
            fields: dict[str, object] = {"branch": copy.branch, "src": copy.source[1], "dst": copy.target[1]}
            fields |= {"slots": list(copy.slots), "src_pool": copy.source[0], "dst_pool": copy.target[0]}
            self.out.emit("copy", **fields)
            self.copies.remove(copy)

    def _seal(self, seal: Seal) -> None:
        fields: dict[str, object] = {"pool": seal.place[0], "block": seal.place[1], "hash": seal.hash}
        holder = self._holder(seal.place)
        if holder is not None:
            fields |= whose(holder)
        elif seal.group:
            fields["group"] = str(seal.group)
        if seal.parent is not None:
            fields["parent"] = seal.parent
        if seal.slots is not None:
            fields["slots"] = [0, seal.slots]
        self.out.emit("seal", **fields)
        self.seals.remove(seal)

    def _holder(self, place: Place) -> Table | None:
        """A table of this call that shows the block; the call's own branch where it is one of several."""
        own = self.call.book.tables(self.call.branch) if self.call.branch is not None else []
        return next((table for table in [*own, *self.call.rows] if place in self.rows.get(table, [])), None)

    def _free_owed(self, places: list[Place]) -> None:
        for place in list(places):
            self.out.emit("free", pool=place[0], block=place[1])
            self.owed.remove(place)

    def _views(self) -> None:
        for place, count in self.call.counts.items():
            self.out.emit("ref", pool=place[0], block=place[1], count=count)
        for pool, free in self.call.free_counts.items():
            self.out.emit("pool", pool=pool, free=free)
        for table in self.changed:
            row = self.call.rows[table]
            pools = {place[0] for place in row if place is not None}
            if len(pools) > 1:
                continue  # a table over two pools has no one event; its entries were logged one by one
            blocks: list[int | None] = [None if place is None else place[1] for place in row]
            self.out.emit("table", pool=pools.pop() if pools else "gpu", **whose(table), blocks=blocks)
