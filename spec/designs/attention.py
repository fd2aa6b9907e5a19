"""Attention: a branch reads its tokens from the first on."""

from __future__ import annotations

from kvsan.spec.lang.surface import event, excess, obey, row, some, span
from kvsan.spec.ownership.contents import read
from kvsan.spec.ownership.rules import read_is_initialised
from kvsan.spec.ownership.state import Branch, Ownership, Tokens


@event
def attend(s: Ownership, r: Branch, upto: Tokens) -> None:
    """Branch r reads its first tokens: each has an entry, and its slot was written in this life of the block.

    Entries are missed at the first position in the window and at the last; no design of ours has a gap between them.
    """
    read(s, r, upto)
    size = s.block_size[r]
    if upto > 0:
        first, last = s.window_from[r], (upto - 1) // size
        obey(
            read_is_initialised,
            first > last or s.table[r, first] is not None,
            "branch {r} read {upto} tokens, but has no block at position {first}",
        )
        obey(
            read_is_initialised,
            s.table[r, last] is not None,
            "branch {r} read {upto} tokens, but has no block at position {last}",
        )
    for p in row(s.table, r):
        b = some(s.table[r, p])
        obey(
            read_is_initialised,
            span(0, min(size, excess(upto, p * size))) <= s.written[b],
            "branch {r} read slots of block {b} at position {p} that were not written",
        )
