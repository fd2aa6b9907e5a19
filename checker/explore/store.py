"""The states that a search keeps, as rows of words with a hash table over them; wide ones in two halves.

The generated code reads and writes them where `sets` says they lie (see `kernel`).
"""

from __future__ import annotations

from typing import Any  # numpy arrays, which carry no types that help here

from kvsan.checker.explore.emit import AHEAD, BATCH
from kvsan.checker.explore.layout import Layout
from kvsan.checker.explore.module import Module

LOAD = 0.6
"""How full a hash table may become."""
FIRST_BITS = 14
WIDEST_TABLE = 31
ROWS, COUNT, TABLE, BITS, FITS = range(5)
"""What the five numbers of a set are."""


class Store:
    """States, numbered in the order in which they came.

    sets: five numbers for each set of rows: the states, and where those are kept in halves the left and the right ones.
    """

    def __init__(self, module: Module, layout: Layout, states: int, memory: int, fan: int) -> None:
        np = self._np = module.np
        self._module, self.layout = module, layout
        self._hashes = np.zeros(BATCH, np.uint64)
        most = [min(states, memory // (8 * width)) + 2 * (BATCH + fan) for width in layout.widths]
        self._rows = [np.empty(n * width, np.int64) for n, width in zip(most, layout.widths, strict=True)]
        self._most = most
        self._tables = [np.zeros(1 << FIRST_BITS, np.uint32) for _ in most]
        self.sets = np.zeros(5 * len(most), np.int64)
        for which, rows in enumerate(self._rows):
            self.sets[5 * which + ROWS] = rows.ctypes.data
            self.sets[5 * which + BITS] = FIRST_BITS
            self._fit(which)

    @property
    def count(self) -> int:
        return int(self.sets[COUNT])

    @property
    def bytes(self) -> int:
        """What rows take, and the tables that they need once the first ones are too small."""
        total = 0
        for which, width in enumerate(self.layout.widths):
            count = self._of(which, COUNT)
            bits = _bits(count)
            total += 8 * width * count + (4 << bits if bits > FIRST_BITS else 0)
        return total

    def has_room(self, rows: int) -> bool:
        """Whether so many rows can be added, whatever the tables need."""
        return all(self._of(which, COUNT) + rows <= most for which, most in enumerate(self._most))

    def make_room(self, rows: int) -> None:
        """Widen the tables so that so many rows more may come. Raises MemoryError."""
        for which, most in enumerate(self._most):
            bits = _bits(min(most, self._of(which, COUNT) + rows))
            if bits > WIDEST_TABLE:
                raise MemoryError("more states than the table can number")
            if bits > self._of(which, BITS):
                self._widen(which, bits)

    def row(self, n: int) -> Any:
        """The words of one state."""
        return self._words(n, n + 1)

    def all(self) -> Any:
        """The words of all states, one after the other; a copy where they are kept in halves."""
        return self._words(0, self.count)

    def _words(self, first: int, stop: int) -> Any:
        rows = self._rows[0][first * self.layout.widths[0] : stop * self.layout.widths[0]]
        if not self.layout.cut:
            return rows
        left, right = (self._rows[n].reshape(-1, self.layout.widths[n]) for n in (1, 2))
        return self._np.hstack([left[rows & 0xFFFFFFFF], right[rows >> 32]]).reshape(-1)

    def _of(self, which: int, what: int) -> int:
        return int(self.sets[5 * which + what])

    def _fit(self, which: int) -> None:
        bits = self._of(which, BITS)
        self.sets[5 * which + TABLE] = self._tables[which].ctypes.data
        self.sets[5 * which + FITS] = min(int((1 << bits) * LOAD), self._most[which])

    def _widen(self, which: int, bits: int) -> None:
        np = self._np
        self._tables[which] = np.zeros(0, np.uint32)  # the old one goes first
        self._tables[which] = np.zeros(1 << bits, np.uint32)
        self.sets[5 * which + BITS] = bits
        self._fit(which)
        self._module.rehash(self.sets, which, self.layout.widths[which], self._hashes)


def _bits(rows: int) -> int:
    """The bits of a table for so many rows. It grows to twice its size, or four times while it is small."""
    bits = FIRST_BITS
    while rows > (1 << bits) * LOAD:
        bits += 2 if bits < 20 else 1
    return bits


def single(layout: Layout, module: Module, words: Any) -> tuple[Any, list[Any]]:
    """The sets of a store of one state, and what must live as long as they do."""
    np = module.np
    row = np.array(words, np.int64)
    parts = [np.zeros(1 + AHEAD, np.int64), row[: layout.cut].copy(), row[layout.cut :].copy()] if layout.cut else [row]
    sets = np.zeros(5 * len(parts), np.int64)
    sets[ROWS::5] = [part.ctypes.data for part in parts]
    return sets, parts
