"""One engine call is one group of events, written in ownership order.

Engines drop counts before their tables forget the block, and take blocks before they map them. So the hooks only note
what the pool did, in the order it did it; tables and counts are compared before and after the call. The group is then
written as: branches that begin, entries that end, what the pool did, entries that begin, copies, identities, the
engine's own counts. The pool's own events keep their order among each other, because they name the same blocks.

A fault survives this order. A block freed under a standing entry shows as a `free` while the entry stands, since the
entry only goes where the engine's own table lost it. A block handed out with its identity shows as an `alloc` without
`evict`, followed by a `hit`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

Tables = Mapping[str, list[int]]
Counts = Mapping[int, int]


class Sink(Protocol):
    def emit(self, ev: str, /, **fields: Any) -> object: ...


@dataclass
class Note:
    """One event a hook noted, to be written in its place of the group."""

    ev: str
    fields: dict[str, Any]


@dataclass
class Call:
    """What the hooks saw during one engine call."""

    branch: str | None
    begins: list[Note] = field(default_factory=list)  # admit, grow
    pool: list[Note] = field(default_factory=list)  # alloc, free, evict, hit, in the pool's order
    forks: dict[str, str] = field(default_factory=dict)  # child: parent
    copies: list[Note] = field(default_factory=list)
    seals: list[Note] = field(default_factory=list)
    windows: dict[str, int] = field(default_factory=dict)  # branch: first position inside the window
    ending: str = "finish"  # how a table that vanishes in this call ended

    def freed(self) -> set[int]:
        return {note.fields["block"] for note in self.pool if note.ev == "free"}


class Ledger:
    """Turns engine calls into groups of events.

    `tables` and `counts` read the engine's present block tables and reference counts, `free` its free count; `null` is
    its null block.
    """

    def __init__(
        self,
        sink: Sink,
        tables: Callable[[], Tables],
        counts: Callable[[], Counts],
        free: Callable[[], int],
        null: int | None = None,
    ) -> None:
        self._sink, self._tables, self._counts, self._free = sink, tables, counts, free
        self._names: dict[str, dict[object, str]] = {}  # by kind
        self._shown_free: int | None = None
        self._below: dict[str, int] = {}  # branch: first position inside its window
        self.null = null
        self.call: Call | None = None

    def name_of(self, key: object, kind: str = "h") -> str:
        """A short name per identity, in order of first sight: engines' own hashes differ from run to run."""
        names = self._names.setdefault(kind, {})
        return names.setdefault(key, f"{kind}{len(names)}")

    def note(self, ev: str, **fields: Any) -> None:
        """Note what the pool did. Outside an engine call there is nothing to group it with: an error of the hooks."""
        if self.call is None:
            raise RuntimeError(f"{ev} {fields} outside an engine call: a hook is missing")
        if self.call.branch is not None and ev != "evict":  # whoever evicts, the identity is another's
            fields.setdefault("branch", self.call.branch)
        self.call.pool.append(Note(ev, fields))

    @contextmanager
    def calling(self, branch: str | None) -> Iterator[Call]:
        """Everything inside is one group. An exception of the engine still writes what it did before."""
        if self.call is not None:  # an engine call made by another one
            yield self.call
            return
        old_tables, old_counts = snapshot(self._tables()), dict(self._counts())
        self.call = call = Call(branch)
        try:
            yield call
        finally:
            self.call = None
            self._write(call, old_tables, old_counts)

    def below(self, branch: str) -> int:
        """The first position inside the window of `branch`, as the log has it."""
        return self._below.get(branch, 0)

    def quiescent(self) -> None:
        self._sink.emit("quiescent")

    def _write(self, call: Call, old_tables: Tables, old_counts: Counts) -> None:
        new_tables = self._tables()
        self._write_notes(call.begins)
        self._write_ends(call, old_tables, new_tables)
        self._write_notes(call.pool)
        self._write_begins(call, old_tables, new_tables)
        self._write_notes(call.copies)
        self._write_windows(call, new_tables)
        self._write_notes(call.seals)
        self._write_views(old_counts)

    def _write_notes(self, notes: list[Note]) -> None:
        for note in notes:
            self._sink.emit(note.ev, **note.fields)

    def _write_ends(self, call: Call, old_tables: Tables, new_tables: Tables) -> None:
        freed = call.freed()
        for branch, old_row in old_tables.items():
            new_row = new_tables.get(branch, [])
            if branch not in new_tables or (call.ending == "preempt" and branch == call.branch):
                self._sink.emit(call.ending, branch=branch)
                continue
            for pos, block in enumerate(old_row):
                if pos >= len(new_row) or (new_row[pos] != block and block in freed):
                    self._sink.emit("unmap", branch=branch, pos=pos, block=block)

    def _write_begins(self, call: Call, old_tables: Tables, new_tables: Tables) -> None:
        for branch, new_row in new_tables.items():
            old_row = old_tables.get(branch, [])
            parent = call.forks.get(branch)
            if parent is not None:
                self._sink.emit("fork", branch=branch, parent=parent)
                old_row = list(new_tables[parent])
            changed = [pos for pos, block in enumerate(new_row) if pos >= len(old_row) or old_row[pos] != block]
            for first, last in runs(changed):
                blocks = new_row[first : last + 1]
                self._sink.emit("map", branch=branch, pos=first, block=blocks if last > first else blocks[0])

    def _write_windows(self, call: Call, tables: Tables) -> None:
        """What leaves a window leaves the table: last, since a copy of the same call may still read it."""
        for child, parent in call.forks.items():
            self._below[child] = self.below(parent)
        for branch, first in call.windows.items():
            self._sink.emit("window", branch=branch, **{"from": first})
            for pos in range(self.below(branch), first):
                if tables[branch][pos] != self.null:
                    self._sink.emit("unmap", branch=branch, pos=pos, block=tables[branch][pos])
            self._below[branch] = first

    def _write_views(self, old_counts: Counts) -> None:
        for block, count in sorted(self._counts().items()):
            if old_counts.get(block) != count:
                self._sink.emit("ref", block=block, count=count)
        free = self._free()
        if free != self._shown_free:
            self._sink.emit("pool", free=free)
            self._shown_free = free


def snapshot(tables: Tables) -> dict[str, list[int]]:
    return {branch: list(row) for branch, row in tables.items()}


def runs(positions: list[int]) -> Iterator[tuple[int, int]]:
    """First and last of each run of consecutive positions."""
    for index, pos in enumerate(positions):
        if index == 0 or positions[index - 1] != pos - 1:
            first = pos
        if index == len(positions) - 1 or positions[index + 1] != pos + 1:
            yield first, pos
