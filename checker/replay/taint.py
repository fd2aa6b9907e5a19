"""After a violation: what it was about is not trusted until it begins anew, and rules about it stay silent."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .feed import Feed

TAINTED = 2
"""The bit of `Machine.fuzzy` that silences obligations."""


def taint_block(feed: Feed, b: int) -> None:
    """Block b is not trusted until its next alloc, nor are the entries and holds of branches for it.

    Its entries become null entries: what their branches do with them is nobody's breach twice. Costs one look at every
    live branch, once a violation.
    """
    state = feed.state
    feed.fuzzy["Block"][b] |= TAINTED
    feed.fuzzy["Pool"][state["pool_of"][b]] |= TAINTED
    for rows in feed.rows.values():
        for r in rows:
            table = state["table"][r]
            for p in [p for p, entry in table.items() if entry == b]:
                del table[p]
                state["skipped"][r][p] = True
            for variable in ("places", "spot", "filling", "named", "hit_slots"):
                state[variable][r].pop(b, None)
            if state["replaced"][r] == b:
                state["replaced"][r] = -1
