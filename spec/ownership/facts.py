"""Facts about the ledger that hold between the steps of every design: what an induction needs and no rule says.

The parameters of a fact stand for every branch, block, position and so on.
"""

from __future__ import annotations

from kvsan.spec.lang.surface import auxiliary, empty

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
def filling_is_held(s: Ownership, r: Branch, b: Block) -> bool:
    """A block that a pending copy fills is held.

    Source: ours.
    Catches: a target freed under its copy.
    Except: none.
    Deviates: none.
    """
    return not s.filling[r, b] or s.held[b]


@auxiliary
def pinned_is_held(s: Ownership, b: Block) -> bool:
    """A pinned block is held.

    Source: ours; the standing form of what `free_once` says of pins.
    Catches: a block freed under a pin.
    Except: none.
    Deviates: none.
    """
    return s.keeps[b] == 0 or s.held[b]


@auxiliary
def lone_owner_agrees_with_nobody(s: Ownership, b: Block) -> bool:
    """A block with at most one owner has no agreed slots.

    Source: ours.
    Catches: agreement that outlives the owners who agreed.
    Except: none.
    Deviates: none.
    """
    return s.owners[b] > 1 or s.agreed[b] == empty()
