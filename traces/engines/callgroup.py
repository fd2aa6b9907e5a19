"""One engine call becomes one group of events, written in ownership order.

An engine moves its state in whatever order suits it: it drops a count before the table forgets the block, and takes
a block before the table shows it. A checker that had to tolerate that could not tell it from a fault. So the hooks
only collect facts while the call runs, and `EngineCall.write` puts them down afterwards:

1. branches that end, entries that fall out of a table;
2. tokens that arrive;
3. what was taken, found or dropped, in the engine's own order, then the table entries that show it, each with the
   copy that fills it;
4. the identities that it registered, the blocks that it gave back;
5. forks, and last the engine's own counts and tables.

A fact is never dropped or moved across another fact about the same block: a block that is given back and taken again
within one call keeps that order, and a block that is given back while a table still shows it is logged just so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, Protocol

Place = tuple[str, int]  # pool, block
Row = list["Place | None"]  # one branch's table; None is an entry without a block (below a sliding window)
Ending = Literal["finish", "cancel", "preempt"]
FactKind = Literal["alloc", "free", "evict", "hit"]


class Sink(Protocol):
    """What the group needs of a recorder."""

    def emit(self, ev: str, /, **fields: object) -> None: ...


@dataclass
class Book:
    """What the log has said so far: each branch's table. A call is written as the difference to it."""

    rows: dict[str, Row] = field(default_factory=dict)


@dataclass(frozen=True)
class Fact:
    kind: FactKind
    place: Place
    hash: str | None = None


@dataclass(frozen=True)
class Seal:
    place: Place
    hash: str
    parent: str | None


@dataclass(frozen=True)
class Copy:
    branch: str
    source: Place
    target: Place
    slots: tuple[int, int]


@dataclass(frozen=True)
class Entry:
    branch: str
    pos: int
    place: Place


class EngineCall:
    """Facts of one engine call, collected in the engine's order.

    `branch` is the branch on whose account the call runs, where there is one.
    """

    def __init__(self, book: Book, branch: str | None = None, null: Place | None = None) -> None:
        self.book = book
        self.branch = branch
        self.null = null
        self.before: list[tuple[str, dict[str, object]]] = []
        self.ended: list[tuple[Ending, str]] = []
        self.begun: list[tuple[str, dict[str, object]]] = []
        self.windows: list[tuple[str, int]] = []
        self.facts: list[Fact] = []
        self.seals: list[Seal] = []
        self.copies: list[Copy] = []
        self.forks: list[tuple[str, str]] = []
        self.rows: dict[str, Row] = {}
        self.closing: list[tuple[str, dict[str, object]]] = []
        self.counts: dict[Place, int] = {}
        self.free_counts: dict[str, int] = {}

    # What the hooks say ----------------------------------------------------------------------------------------

    def took(self, place: Place) -> None:
        self.facts.append(Fact("alloc", place))

    def gave_back(self, place: Place) -> None:
        self.facts.append(Fact("free", place))

    def dropped(self, place: Place, identity: str) -> None:
        self.facts.append(Fact("evict", place, identity))

    def found(self, place: Place, identity: str) -> None:
        self.facts.append(Fact("hit", place, identity))

    def sealed(self, place: Place, identity: str, parent: str | None) -> None:
        self.seals.append(Seal(place, identity, parent))

    def touched(self) -> list[Place]:
        """Every block that this call names, each once, in order of appearance."""
        places = [fact.place for fact in self.facts]
        for branch, row in self.rows.items():
            places += [place for _, place in _changes(self.book.rows.get(branch, []), row) if place is not None]
            places += [old for old, _ in _changes(self.book.rows.get(branch, []), row) if old is not None]
        for child, _ in self.forks:
            places += [place for place in self.rows.get(child, []) if place is not None]
        for _, branch in self.ended:
            places += [place for place in self.book.rows.get(branch, []) if place is not None]
        return [place for place in dict.fromkeys(places) if place != self.null]

    # Writing ----------------------------------------------------------------------------------------------------

    def write(self, sink: Sink) -> None:
        """Emit the group and bring the book up to date."""
        _Writer(self, sink).run()


def _changes(old: Row, new: Row) -> list[tuple[Place | None, Place | None]]:
    return [(before, after) for _, before, after in _differences(old, new)]


def _differences(old: Row, new: Row) -> Iterator[tuple[int, Place | None, Place | None]]:
    for pos in range(max(len(old), len(new))):
        before = old[pos] if pos < len(old) else None
        after = new[pos] if pos < len(new) else None
        if before != after:
            yield pos, before, after


class _Writer:
    """Puts the facts of one call into ownership order. Lives for one call."""

    def __init__(self, call: EngineCall, sink: Sink) -> None:
        self.call = call
        self.rows = call.book.rows
        self.out = _Joined(sink)
        self.entries: list[Entry] = []  # entries still to be written
        self.owed: list[Place] = []  # blocks given back whose entries are still to be replaced
        self.taken: Counter[Place] = Counter()  # how often a block was taken or found, for entries still to come
        self.seals = list(call.seals)
        self.copies = list(call.copies)
        self.shown = set(self.rows)  # branches with a table before the call
        self.changed = [branch for branch, row in call.rows.items() if row != self.rows.get(branch, [])]

    def run(self) -> None:
        call, out = self.call, self.out
        for ev, fields in call.before:
            out.emit(ev, **fields)
        for kind, branch in call.ended:
            out.emit(kind, branch=branch)
            self.rows.pop(branch, None)
        self._differ()
        for ev, fields in call.begun:
            out.emit(ev, **fields)
        self._windows(known=False)
        for fact in call.facts:
            self._fact(fact)
        self._settle(self.entries)
        self._free_owed(self.owed)
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
        for branch, row in self.call.rows.items():
            if branch in forked:
                continue
            for pos, _, after in list(_differences(self.rows.get(branch, []), row)):
                if after is None:
                    self._unmap(branch, pos)
                else:
                    self.entries.append(Entry(branch, pos, after))

    def _windows(self, known: bool) -> None:
        """A window moves before its entries leave; that of a new branch comes after the branch."""
        for branch, start in self.call.windows:
            if (branch in self.shown) == known:
                self.out.emit("window", **{"branch": branch, "from": start})

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
        branch = self._account(fact.place)
        if branch is not None and fact.kind != "evict":
            fields["branch"] = branch
        self.taken[fact.place] += fact.kind != "evict"
        self.out.emit(fact.kind, **fields)

    def _earned(self, place: Place) -> list[Entry]:
        """The entries of `place` that an alloc or a hit has already paid for, one each."""
        return [entry for entry in self.entries if entry.place == place][: self.taken[place]]

    def _replaced(self, place: Place) -> bool:
        """Whether an entry that shows `place` is to be replaced by this call."""
        return any(self._shown(entry) == place for entry in self.entries)

    def _shown(self, entry: Entry) -> Place | None:
        row = self.rows.get(entry.branch, [])
        return row[entry.pos] if entry.pos < len(row) else None

    def _account(self, place: Place) -> str | None:
        """The branch that is to show the block: of several, the next one that has no alloc or hit yet."""
        if place == self.call.null:
            return None
        branches = [entry.branch for entry in self.entries if entry.place == place]
        paid = self.taken[place]
        return branches[paid] if paid < len(branches) else self.call.branch

    def _give_up(self, place: Place) -> None:
        """The block is about to be taken again: its old entries leave first."""
        for entry in self.entries:
            if self._shown(entry) == place:
                self._unmap(entry.branch, entry.pos)
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
        shown = any(place in self.rows.get(branch, []) for branch in self.call.rows)
        return not shown and any(entry.place == place for entry in self.entries)

    def _map(self, entry: Entry) -> None:
        self.out.emit("map", pool=entry.place[0], branch=entry.branch, pos=entry.pos, block=entry.place[1])
        row = self.rows.setdefault(entry.branch, [])
        row += [None] * (entry.pos + 1 - len(row))
        row[entry.pos] = entry.place

    def _unmap(self, branch: str, pos: int) -> None:
        row = self.rows.get(branch, [])
        place = row[pos] if pos < len(row) else None
        if place is None:
            return
        self.out.emit("unmap", pool=place[0], branch=branch, pos=pos, block=place[1])
        row[pos] = None
        while row and row[-1] is None:
            row.pop()

    def _copy_into(self, entry: Entry) -> None:
        """What the entry's block is filled from: the one it has just replaced."""
        for copy in [c for c in self.copies if (c.branch, c.target) == (entry.branch, entry.place)]:
            fields: dict[str, object] = {"branch": copy.branch, "src": copy.source[1], "dst": copy.target[1]}
            fields |= {"slots": list(copy.slots), "src_pool": copy.source[0], "dst_pool": copy.target[0]}
            self.out.emit("copy", **fields)
            self.copies.remove(copy)

    def _seal(self, seal: Seal) -> None:
        fields: dict[str, object] = {"pool": seal.place[0], "block": seal.place[1], "hash": seal.hash}
        holder = self._holder(seal.place)
        if holder is not None:
            fields["branch"] = holder
        if seal.parent is not None:
            fields["parent"] = seal.parent
        self.out.emit("seal", **fields)
        self.seals.remove(seal)

    def _holder(self, place: Place) -> str | None:
        if self.call.branch is not None and place in self.rows.get(self.call.branch, []):
            return self.call.branch
        return next((branch for branch in self.call.rows if place in self.rows.get(branch, [])), None)

    def _free_owed(self, places: list[Place]) -> None:
        for place in list(places):
            self.out.emit("free", pool=place[0], block=place[1])
            self.owed.remove(place)

    def _views(self) -> None:
        for place, count in self.call.counts.items():
            self.out.emit("ref", pool=place[0], block=place[1], count=count)
        for pool, free in self.call.free_counts.items():
            self.out.emit("pool", pool=pool, free=free)
        for branch in self.changed:
            row = self.call.rows[branch]
            pools = {place[0] for place in row if place is not None}
            if len(pools) > 1:
                continue  # a table over two pools has no one event; its entries were logged one by one
            blocks: list[int | None] = [None if place is None else place[1] for place in row]
            self.out.emit("table", pool=pools.pop() if pools else "gpu", branch=branch, blocks=blocks)


class _Joined:
    """Joins neighbouring `alloc`, `free` and `map` events into one with a list of blocks."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self.held: tuple[str, dict[str, object], list[int]] | None = None

    def emit(self, ev: str, **fields: object) -> None:
        if fields.get("pool") == "gpu":
            del fields["pool"]  # the format's default
        block = fields.get("block")
        if ev not in ("alloc", "free", "map") or not isinstance(block, int):
            self.flush()
            self.sink.emit(ev, **fields)
            return
        rest = {name: value for name, value in fields.items() if name not in ("block", "pos")}
        if self.held is not None and self._continues(ev, fields, rest):
            self.held[2].append(block)
            return
        self.flush()
        self.held = ev, fields, [block]

    def _continues(self, ev: str, fields: dict[str, object], rest: dict[str, object]) -> bool:
        assert self.held is not None
        kind, first, blocks = self.held
        same = kind == ev and rest == {n: v for n, v in first.items() if n not in ("block", "pos")}
        pos, start = fields.get("pos"), first.get("pos")
        if not same or not isinstance(pos, int) or not isinstance(start, int):
            return same
        return pos == start + len(blocks)

    def flush(self) -> None:
        if self.held is None:
            return
        ev, fields, blocks = self.held
        self.held = None
        self.sink.emit(ev, **(fields | {"block": blocks if len(blocks) > 1 else blocks[0]}))
