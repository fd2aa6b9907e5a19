"""Facts that hold between the steps of every design in which no table names a block twice."""

from __future__ import annotations

from kvsan.spec.lang.surface import auxiliary
from kvsan.spec.ownership.facts import entries_are_held  # noqa: F401  # and every fact beside it
from kvsan.spec.ownership.state import Block, Branch, Ownership, Pos


@auxiliary
def entries_differ(s: Ownership, r: Branch, p: Pos, q: Pos) -> bool:
    """No table names a block twice.

    Source: ours.
    Catches: a new block that was not new.
    Except: a sliding-window ring.
    Deviates: none.
    """
    b = s.table[r, p]
    return b is None or p == q or s.table[r, q] != b


@auxiliary
def spot_is_an_entry(s: Ownership, r: Branch, b: Block) -> bool:
    """Where a branch holds a block, its spot is a position that names the block.

    Source: ours.
    Catches: a spot that outlives its entry.
    Except: none.
    Deviates: none.
    """
    return s.places[r, b] == 0 or s.table[r, s.spot[r, b]] == b
