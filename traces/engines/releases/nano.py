"""The block manager of nano-vLLM, as two packages ship it: `nano-vllm-npu` unchanged, `nano-vllm-fork` mended.

The manager has no event of its own for a hit: what a sequence's `num_cached_tokens` covers was hit, the rest of its
table was allocated. Its hash function (xxhash over a numpy array) is replaced by Python's; which one it is does not
matter to who owns what.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from kvsan.traces.engines.releases.hooks import WatchedDict, around
from kvsan.traces.engines.releases.ledger import Ledger, Note, Sink

BLOCK_SIZE = 4
PACKAGES = ("nanovllmnpu", "nanovllm")  # the import names of the two


class Nano:
    """One block manager with its hooks, and the scheduler's calls to it."""

    def __init__(self, package: str, blocks: int, sink: Sink) -> None:
        self.sequence = importlib.import_module(f"{package}.engine.sequence").Sequence
        made = importlib.import_module(f"{package}.engine.block_manager").BlockManager
        made.compute_hash = classmethod(lambda cls, tokens, prefix=-1: hash((prefix, *tokens)))
        self.sequence.block_size = BLOCK_SIZE
        self.manager = made(blocks, BLOCK_SIZE)
        self.live: dict[str, Any] = {}
        self.ledger = Ledger(
            sink, self.tables, lambda: {b.block_id: b.ref_count for b in self.manager.blocks}, self.free_count
        )
        around(self.manager, "_deallocate_block", self.note_free)
        self.manager.hash_to_block_id = WatchedDict({}, self.note_stored, self.note_dropped)

    def tables(self) -> dict[str, list[int]]:
        return {name: list(seq.block_table) for name, seq in self.live.items()}

    def free_count(self) -> int:
        return len(self.manager.free_block_ids)

    def note_free(self, original: Any, block: int) -> None:
        original(block)
        self.ledger.note("free", block=block)

    def note_dropped(self, key: int, block: int) -> None:
        self.ledger.note("evict", block=block, hash=self.ledger.name_of(key))

    def note_stored(self, key: int, block: int, old: int | None) -> None:
        if block == old:  # written again on every hit
            return
        assert self.ledger.call is not None
        self.ledger.call.seals.append(Note("seal", {"block": block, "hash": self.ledger.name_of(key)}))

    def digest(self, seq: Any, pos: int) -> str:
        return self.ledger.name_of(tuple(seq.token_ids[: (pos + 1) * BLOCK_SIZE]), "d")

    def allocate(self, name: str, tokens: list[int]) -> None:
        seq = self.sequence(tokens)
        assert self.manager.can_allocate(seq), f"the scheduler would not admit {name}"
        with self.ledger.calling(name) as call:
            call.begins.append(Note("admit", {"branch": name, "tokens": len(tokens)}))
            self.manager.allocate(seq)
            self.live[name] = seq
            key = -1
            for pos, block in enumerate(seq.block_table):
                if pos < seq.num_cached_tokens // BLOCK_SIZE:
                    key = self.manager.compute_hash(seq.block(pos), key)
                    hashed = self.ledger.name_of(key)
                    self.ledger.note("hit", block=block, hash=hashed, digest=self.digest(seq, pos))
                else:
                    self.ledger.note("alloc", block=block)
            for seal in call.seals:
                pos = seq.block_table.index(seal.fields["block"])
                seal.fields |= {"branch": name, "digest": self.digest(seq, pos)}

    def finish(self, name: str) -> None:
        with self.ledger.calling(name):
            self.manager.deallocate(self.live.pop(name))


def same_block_under_another_prefix(sink: Sink) -> None:
    """A freed block is written again with the same tokens after another prefix; then the first prompt comes again."""
    nano = Nano(next(package for package in PACKAGES if package in sys.modules), 5, sink)
    first, other, tail = list(range(4)), list(range(10, 14)), [100, 101, 102, 103]
    nano.allocate("first", first + tail)
    nano.finish("first")
    nano.allocate("busy", list(range(200, 205)))
    nano.allocate("other", other + tail)
    nano.finish("busy")
    nano.allocate("again", first + tail)
    nano.finish("other")
    nano.finish("again")
    nano.ledger.quiescent()
