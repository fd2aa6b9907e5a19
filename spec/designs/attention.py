"""Attention: a branch reads every token that it has."""

from __future__ import annotations

from kvsan.spec.lang.surface import event, excess, obey, row, some, span
from kvsan.spec.ownership.contents import read
from kvsan.spec.ownership.rules import read_is_initialised
from kvsan.spec.ownership.state import Branch, Ownership


@event
def attend(s: Ownership, r: Branch) -> None:
    """Branch r reads all its tokens: each has an entry, and its slot was written in this life of the block."""
    read(s, r, None)
    size, length = s.block_size[r], s.length[r]
    if length > 0:
        last = (length - 1) // size
        obey(
            read_is_initialised,
            s.table[r, last] is not None,
            "branch {r} read {length} tokens, but has no block at position {last}",
        )
    for p in row(s.table, r):
        b = some(s.table[r, p])
        obey(
            read_is_initialised,
            span(0, min(size, excess(length, p * size))) <= s.written[b],
            "branch {r} read slots of block {b} at position {p} that were not written",
        )
