"""Branches that decode over two streams, mostly in order. A read is judged by what changed since the branch's last one,
which must come to the same as looking at all of its context.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from oracle import Model
from programs import HEADER, SIZE
from test_interleavings import agree

BLOCKS, STREAMS, EVENTS = 8, ("s", "t"), 120
Event = dict[str, Any]


class Decoding:
    """A random log. A branch's tokens are written by a holder, in blocks that it alone holds."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.careless = self.dice.choice([0.02, 0.1, 0.4])
        self.log: list[Event] = [{**HEADER, "blocks": BLOCKS}]
        self.free = list(range(BLOCKS))
        self.tables: dict[str, dict[int, int]] = {}
        self.windows: dict[str, int] = {}
        self.written: dict[int, set[int]] = {}
        self.ops: list[str] = []
        self.names = 0
        while len(self.log) < EVENTS:
            getattr(self, self.dice.choice(MOVES))()

    def add(self, ev: str, **fields: Any) -> None:
        self.log.append({"ev": ev, **fields})

    def name(self) -> str:
        self.names += 1
        return f"n{self.names}"

    def branch(self) -> str:
        if not self.tables:
            self.admit()
        return self.dice.choice(sorted(self.tables))

    def launch(self) -> dict[str, Any]:
        """A stream, most often one that waits for the others first."""
        stream = self.dice.choice(STREAMS)
        if self.dice.random() >= self.careless:
            for other in STREAMS:
                if other != stream:
                    self.add("record", event="e", stream=other)
                    self.add("wait", event="e", stream=stream)
        if self.dice.random() < 0.2:
            return {"stream": stream}
        self.ops.append(self.name())
        return {"op": self.ops[-1], "stream": stream}

    def owners(self, b: int) -> int:
        return sum(b in table.values() for table in self.tables.values())

    def tidy(self) -> None:
        """Blocks that nobody holds go back."""
        for b in sorted(set(range(BLOCKS)) - set(self.free)):
            if not self.owners(b):
                self.add("free", block=b)
                self.free.append(b)

    def take(self) -> int | None:
        if not self.free:
            return None
        b = self.free.pop(0)
        self.written[b] = set()
        self.add("alloc", block=b)
        return b

    # --- moves --------------------------------------------------------------------------------------------------------

    def admit(self) -> None:
        if len(self.tables) < 3:
            r = self.name()
            self.tables[r], self.windows[r] = {}, 0
            self.add("admit", branch=r, tokens=0)

    def fork(self) -> None:
        parent = self.branch()
        if len(self.tables) < 3:
            r = self.name()
            self.tables[r], self.windows[r] = dict(self.tables[parent]), self.windows[parent]
            self.add("fork", branch=r, parent=parent)

    def end(self) -> None:
        r = self.branch()
        if self.dice.random() < 0.3:
            del self.tables[r]
            self.add(self.dice.choice(["finish", "cancel"]), branch=r)
            self.tidy()

    def grow(self) -> None:
        """The next position, or a block in the place of another."""
        r = self.branch()
        table = self.tables[r]
        p = self.dice.choice([len(table), len(table), *table])
        b = self.take() if p < 4 else None
        if b is not None:
            table[p] = b
            self.add("map", branch=r, pos=p, block=b)
            self.write_slots(b, [0, self.dice.choice([1, SIZE])])
            self.tidy()

    def shrink(self) -> None:
        r = self.branch()
        if self.tables[r]:
            p = max(self.tables[r])
            self.add("unmap", branch=r, pos=p, block=self.tables[r].pop(p))
            self.tidy()

    def window(self) -> None:
        r = self.branch()
        self.windows[r] = self.dice.randrange(len(self.tables[r]) + 1)
        self.add("window", branch=r, **{"from": self.windows[r]})

    def write(self) -> None:
        sole = [b for table in self.tables.values() for b in table.values() if self.owners(b) == 1]
        if sole:
            lo = self.dice.randrange(SIZE)
            self.write_slots(self.dice.choice(sole), [lo, self.dice.randrange(lo, SIZE) + 1])

    def write_slots(self, b: int, slots: list[int]) -> None:
        self.written[b] |= set(range(*slots))
        self.add("write", holder="h", block=b, slots=slots, **self.launch())

    def copy(self) -> None:
        held = sorted(set(range(BLOCKS)) - set(self.free))
        sole = [b for b in held if self.owners(b) == 1]
        if sole and len(held) > 1:
            dst = self.dice.choice(sole)
            src = self.dice.choice([b for b in held if b != dst])
            self.written[dst] = (self.written[dst] - {0}) | (self.written[src] & {0})
            self.add("copy", src=src, dst=dst, slots=[0, 1], **self.launch())

    def read(self) -> None:
        """Attention over as much as is written, or less."""
        r = self.branch()
        upto = 0
        for p in range(len(self.tables[r])):
            whole = p < self.windows[r] or len(self.written[self.tables[r][p]]) == SIZE
            upto = p * SIZE + (SIZE if whole else 0 in self.written[self.tables[r][p]])
            if not whole:
                break
        if upto:
            self.add("read", branch=r, upto=self.dice.choice([upto, upto, self.dice.randint(1, upto)]), **self.launch())

    def learn(self) -> None:
        if self.ops:
            self.add("done", op=self.dice.choice(self.ops[-3:]))
        self.add("sync", stream=self.dice.choice(STREAMS))


MOVES = ["admit", "fork", "end", "grow", "grow", "grow", "shrink", "window", "write", "write", "copy", "learn",
         *["read"] * 6]  # fmt: skip


def held_to_the_paths(seed: int) -> int:
    log = Decoding(seed).log
    true = Model(log).races_by_paths()
    agree(log, true)
    return len(true)


@pytest.mark.parametrize("seeds", [range(60), pytest.param(range(60, 20_000), marks=pytest.mark.slow)])
def test_a_race_is_reported_exactly_where_no_way_of_waits_orders_two_accesses(seeds: range) -> None:
    races = [held_to_the_paths(seed) for seed in seeds]
    assert len(seeds) / 5 < sum(map(bool, races)) < len(seeds) * 4 / 5
