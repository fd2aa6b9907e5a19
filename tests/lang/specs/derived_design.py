"""A design that derives its state from a ledger in another module and performs that module's events."""

from __future__ import annotations

from base_ledger import Block, Ledger, take
from kvsan.spec.lang.surface import Ghost, Map, action, invariant, members, require


class Design(Ledger):
    """The ledger and one mark."""

    mark: Ghost[Map[Block, bool]]


@action
def take_free(s: Design, b: Block) -> None:
    """A free block is taken and marked."""
    require(not s.held[b])

    take(s, b)
    s.mark[b] = True


@invariant
def mark_is_true(s: Design) -> bool:
    """What is held is marked."""
    return all(s.mark[b] == s.held[b] for b in members(Block, s))
