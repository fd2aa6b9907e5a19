"""What the counters of the ledger count. A proof shows it, and the explorer recounts instead of storing them."""

from __future__ import annotations

from kvsan.spec.lang.surface import counted

from .ledger import owns
from .state import Block, Branch, Ownership, Pos


@counted
def places_counted(s: Ownership, r: Branch, b: Block, p: Pos) -> bool:
    """places[r, b] is the number of positions of the table of r that name block b.

    Source: ours.
    Catches: an entry set or cleared past `enter` and `leave`.
    Except: none.
    Deviates: none.
    """
    return s.table[r, p] == b


@counted
def owners_counted(s: Ownership, b: Block, r: Branch) -> bool:
    """owners[b] is the number of branches that own block b.

    Source: ours.
    Catches: an owner that joins or leaves uncounted.
    Except: none.
    Deviates: none.
    """
    return owns(s, r, b)
