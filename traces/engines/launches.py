"""A launch of the model as one `step`: what the slot mapping of the kernel says, cut up by branch and block."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

Write = list[object]  # [branch, block, lo, hi]
STREAM = "main"


def slot_writes(block_size: int, branches: Iterable[tuple[str, list[int]]]) -> list[Write]:
    """branches: each with the slots it writes, in order; slot = block * block_size + offset, -1 is padding."""
    return [
        [branch, block, low, high + 1]
        for branch, slots in branches
        for block, low, high in _runs([slot for slot in slots if slot >= 0], block_size)
    ]


def cut(slots: list[int], branches: Iterable[tuple[str, int]]) -> list[tuple[str, list[int]]]:
    """Give each branch its number of slots, in order. What is left over at the end is padding of the batch."""
    parts, start = [], 0
    for branch, count in branches:
        parts.append((branch, slots[start : start + count]))
        start += count
    if start > len(slots):
        raise ValueError(f"{start} tokens are scheduled, but the slot mapping has {len(slots)} slots")
    return parts


def _runs(slots: list[int], block_size: int) -> list[tuple[int, int, int]]:
    """Neighbouring slots of one block as (block, first, last)."""
    runs = []
    for _, members in groupby(enumerate(slots), key=lambda item: (item[1] // block_size, item[1] - item[0])):
        run = [slot for _, slot in members]
        runs.append((run[0] // block_size, run[0] % block_size, run[-1] % block_size))
    return runs
