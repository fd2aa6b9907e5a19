"""Facts about the ledger that hold between the steps of every design: what an induction needs and no rule says.

The parameters of a fact stand for every branch, block, position and so on.
"""

from __future__ import annotations

from kvsan.spec.lang.surface import auxiliary

from .counts import owners_counted, places_counted  # noqa: F401  # facts of every design too
from .state import Block, Branch, Ownership, Pos


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
