"""Dense integer ids for the names of a log, given out on first sight and taken back when nothing stands on them.

The hot path goes through these integers only, so that a compiled replay can take the place of the generated Python.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable


class Ids(dict[Hashable, int]):
    """name -> dense id of one sort; looking up a new name gives it an id.

    grow: makes room for so many members; called ever more rarely. born: told each id that is given out, where given.
    `names[id]` is the name, also of an id that was taken back, until it is given out again: a finding still shows it.
    """

    def __init__(self, grow: Callable[[int], None], born: Callable[[int], None] | None = None) -> None:
        super().__init__()
        self.grow, self.born = grow, born
        self.room = self.kept = 0
        self.names: list[Hashable] = []
        self.unused: list[int] = []

    def __missing__(self, name: Hashable) -> int:
        if self.unused:
            dense = self.unused.pop()
            self.names[dense] = name
        else:
            dense = len(self.names)
            self.names.append(name)
            if dense >= self.room:
                self.room = max(64, 2 * dense)
                self.grow(self.room)
        self[name] = dense
        if self.born is not None:
            self.born(dense)
        return dense

    def crowded(self) -> bool:
        """Many ids are in use, twice as many as the latest sweep left: another is due."""
        return len(self) > max(4096, 2 * self.kept)

    def sweep(self, live: Callable[[int], bool]) -> list[int]:
        """Take back every id on which nothing stands; returns them. Costs one look at each id."""
        gone = [dense for dense in self.values() if not live(dense)]
        for dense in gone:
            self.release(dense)
        self.kept = len(self)
        return gone

    def release(self, dense: int) -> None:
        """The id may stand for another name from now on. The caller knows that nothing refers to it."""
        self.retire(dense)
        self.unused.append(dense)

    def retire(self, dense: int) -> None:
        """The name gets a new id when it comes again; the id itself is not given out until it is among `unused`."""
        del self[self.names[dense]]
