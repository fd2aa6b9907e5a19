"""A log like an engine's, of any length: 256 branches over 16,384 blocks, prompts, decoding, prefix hits, forks.

Its bookkeeping is its own; the log it writes is legal, which the benchmark asserts.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

BRANCHES, BLOCKS, SIZE = 256, 16_384, 16

HEADER = {
    "ev": "trace",
    "schema": "kvsan/1",
    "engine": "workload",
    "version": "1",
    "discipline": "paged_cow",
    "block_size": SIZE,
    "blocks": BLOCKS,
}


class Sequence:
    """One branch: its name, tokens and table."""

    def __init__(self, name: str) -> None:
        self.name, self.tokens, self.table = name, 0, list[int]()


class Engine:
    """The pool and the running branches."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.free = deque(range(BLOCKS))
        self.owners = [0] * BLOCKS
        self.running: list[Sequence] = []
        self.count = 0

    def events(self) -> Iterator[dict[str, Any]]:
        """Events without end."""
        while True:
            while len(self.running) < BRANCHES:
                yield from self.admit()
            for r in self.running:
                yield from self.decode(r)
            for r in self.random.sample(self.running, 3):
                self.running.remove(r)
                yield from self.end(r)

    def take(self, r: Sequence, count: int) -> Iterator[dict[str, Any]]:
        blocks = [self.free.popleft() for _ in range(count)]
        for b in blocks:
            self.owners[b] = 1
        yield {"ev": "alloc", "block": blocks if count > 1 else blocks[0], "branch": r.name}
        yield {"ev": "map", "branch": r.name, "pos": len(r.table), "block": blocks if count > 1 else blocks[0]}
        r.table += blocks

    def admit(self) -> Iterator[dict[str, Any]]:
        self.count += 1
        r = Sequence(f"r{self.count}")
        self.running.append(r)
        if len(self.running) > 1 and self.random.random() < 0.3:
            yield from self.fork(r, self.random.choice(self.running[:-1]))
            return
        r.tokens = self.random.randrange(20, 400)
        yield {"ev": "admit", "branch": r.name, "tokens": r.tokens}
        yield from self.take(r, -(-r.tokens // SIZE))
        for p, b in enumerate(r.table):
            lo, hi = p * SIZE, min((p + 1) * SIZE, r.tokens)
            yield {
                "ev": "write",
                "branch": r.name,
                "block": b,
                "slots": [0, hi - lo],
                "tokens": [lo, hi],
                "stream": "compute",
            }

    def fork(self, r: Sequence, parent: Sequence) -> Iterator[dict[str, Any]]:
        r.tokens, r.table = parent.tokens, list(parent.table)
        for b in r.table:
            self.owners[b] += 1
        yield {"ev": "fork", "branch": r.name, "parent": parent.name}

    def decode(self, r: Sequence) -> Iterator[dict[str, Any]]:
        p, slot = divmod(r.tokens, SIZE)
        yield {"ev": "grow", "branch": r.name}
        if slot == 0:
            yield from self.take(r, 1)
        elif self.owners[r.table[p]] > 1:
            yield from self.copy_on_write(r, p, slot)
        yield {
            "ev": "write",
            "branch": r.name,
            "block": r.table[p],
            "slots": [slot, slot + 1],
            "tokens": [r.tokens, r.tokens + 1],
            "stream": "compute",
        }
        r.tokens += 1
        yield {"ev": "read", "branch": r.name, "upto": r.tokens, "stream": "compute"}

    def copy_on_write(self, r: Sequence, p: int, slot: int) -> Iterator[dict[str, Any]]:
        old, new = r.table[p], self.free.popleft()
        self.owners[old] -= 1
        self.owners[new] = 1
        r.table[p] = new
        yield {"ev": "alloc", "block": new, "branch": r.name}
        yield {"ev": "map", "branch": r.name, "pos": p, "block": new}
        yield {"ev": "copy", "branch": r.name, "src": old, "dst": new, "slots": [0, slot], "stream": "compute"}

    def end(self, r: Sequence) -> Iterator[dict[str, Any]]:
        yield {"ev": "finish", "branch": r.name}
        gone = []
        for b in r.table:
            self.owners[b] -= 1
            if self.owners[b] == 0:
                gone.append(b)
        self.free.extend(gone)
        if gone:
            yield {"ev": "free", "block": gone}


def write_workload(path: Path, events: int, seed: int = 0) -> None:
    """A log of so many events."""
    encode = msgspec.json.Encoder().encode
    with path.open("wb") as file:
        file.write(encode(HEADER) + b"\n")
        for seq, event in zip(range(1, events + 1), Engine(seed).events(), strict=False):
            file.write(encode({"ev": event.pop("ev"), "seq": seq, **event}) + b"\n")
