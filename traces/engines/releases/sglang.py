"""SGLang's `TokenToKVPoolAllocator` (pages of one token), whose free list is a tensor of indices.

The allocator slices, joins and counts index tensors and nothing else, so a list that can do that takes the place of
torch. A slot is a block of one token; slot 0 takes the writes of padded tokens and belongs to nobody.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any

from kvsan.traces.engines.releases.hooks import around
from kvsan.traces.engines.releases.ledger import Ledger, Note, Sink

PACKAGES = ("sglang", "sglang.srt", "sglang.srt.mem_cache", "sglang.srt.mem_cache.allocator")


class Indices(list[int]):
    """As much of an index tensor as the allocator uses."""

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return Indices(found) if isinstance(found, list) else found

    def numel(self) -> int:
        return len(self)

    def clone(self) -> Indices:
        return Indices(self)


def index_torch() -> types.ModuleType:
    torch = types.ModuleType("torch")
    functions: dict[str, Any] = {
        "int64": int,
        "Tensor": Indices,
        "arange": lambda low, high, **_: Indices(range(low, high)),
        "empty": lambda shape, **_: Indices(),
        "cat": lambda parts: Indices(index for part in parts for index in part),
    }
    torch.__dict__.update(functions)
    return torch


class Slots:
    """One allocator with its hooks, and the requests that hold its slots."""

    def __init__(self, size: int, sink: Sink, guarded: bool) -> None:
        sys.modules["torch"] = index_torch()
        made = importlib.import_module("sglang.srt.mem_cache.allocator.token").TokenToKVPoolAllocator
        self.allocator = made(size, int, "cpu", None, need_sort=False)
        self.held: dict[str, Indices] = {}
        self.ledger = Ledger(sink, lambda: self.held, dict, self.allocator.available_size)
        around(self.allocator, "free", self.note_free)
        if guarded:
            around(self.allocator, "free", self.keep_held)

    def note_free(self, original: Any, indices: Indices) -> None:
        original(indices)
        for slot in indices:
            self.ledger.note("free", block=slot)

    def keep_held(self, original: Any, indices: Indices) -> None:
        """What the allocator lacks: slots that are free already are left out."""
        original(Indices(slot for slot in indices if slot not in self.allocator.free_pages))

    def alloc(self, name: str, tokens: int) -> None:
        with self.ledger.calling(name) as call:
            call.begins.append(Note("admit", {"branch": name, "tokens": tokens}))
            self.held[name] = Indices()
            slots = self.allocator.alloc(tokens)
            if slots is None:
                self.ledger.note("alloc_failed")
                return
            for slot in slots:
                self.ledger.note("alloc", block=slot)
            self.held[name] = slots

    def end(self, name: str) -> Indices:
        with self.ledger.calling(name):
            slots = self.held.pop(name)
            self.allocator.free(slots)
        return slots


def freed_on_cancel_and_on_completion(sink: Sink, guarded: bool) -> None:
    """One request's slots are given back twice; two later requests then get the same slot."""
    slots = Slots(4, sink, guarded)
    slots.alloc("r0", 2)
    again = slots.end("r0")
    with slots.ledger.calling(None):
        slots.allocator.free(again)
    slots.alloc("r1", 3)
    slots.alloc("r2", 2)
    slots.end("r1")
    slots.end("r2")
    slots.ledger.quiescent()
