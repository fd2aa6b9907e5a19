"""After a violation: what it was about is not trusted until it begins anew, and rules about it stay silent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvsan.spec.lang import ir

from .emit import TAINTED

if TYPE_CHECKING:
    from .feed import Feed


def taint_block(feed: Feed, b: int, queue: bool) -> None:
    """Block b is not trusted until its next alloc, nor are the entries and holds of branches for it.

    Its entries become null entries: what their branches do with them is nobody's breach twice. Costs one look at every
    live branch, once a violation. queue: the free count of the pool is wrong from here on, too.
    """
    state = feed.state
    feed.machine.blur("Block", b, TAINTED)
    if queue:
        feed.machine.blur("Pool", state["pool_of"][b], TAINTED)
    for h, count in state["pins"][b].items():
        feed.stale_pins[b, h] += count
    pair = (ir.SortType("Branch"), ir.SortType("Block"))
    pairs = [name for name, variable in feed.machine.spec.variables.items() if variable.keys == pair]
    for rows in feed.rows.values():
        for r in rows:
            table = state["table"][r]
            for p in [p for p, entry in table.items() if entry == b]:
                del table[p]
                state["skipped"][r][p] = True
            for variable in pairs:
                state[variable][r].pop(b, None)


def taint_queues(feed: Feed) -> None:
    """What is counted per pool is not known, for good."""
    for q in range(len(feed.names.pool_ids.names)):
        feed.machine.blur("Pool", q, TAINTED)
