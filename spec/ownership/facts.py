"""Facts about the ledger that hold between the steps of every design: what an induction needs and no rule says.

The parameters of a fact stand for every branch, block, position and so on.
"""

from __future__ import annotations

from kvsan.spec.lang.surface import auxiliary, counted

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


@auxiliary
def entries_are_held(s: Ownership, r: Branch, p: Pos) -> bool:
    """A block that a table names is held.

    Source: PagedAttention (SOSP'23) section 4.3; the standing form of `entry_is_held`.
    Catches: a block freed under an entry.
    Except: none.
    Deviates: none.
    """
    b = s.table[r, p]
    return b is None or s.held[b]


@auxiliary
def held_is_not_queued(s: Ownership, b: Block) -> bool:
    """A held block is not in the free queue.

    Source: ours.
    Catches: a block that enters the free queue while it is held.
    Except: none.
    Deviates: none.
    """
    return not (s.held[b] and s.queued[b])


@auxiliary
def spot_is_an_entry(s: Ownership, r: Branch, b: Block) -> bool:
    """Where a branch holds a block, its spot is a position that names the block.

    Source: ours.
    Catches: a spot that outlives its entry.
    Except: none.
    Deviates: a block that a branch holds at several positions has the spot set last.
    """
    return s.places[r, b] == 0 or s.table[r, s.spot[r, b]] == b
