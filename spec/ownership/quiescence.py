"""Nothing is running: what is still held, promised or published now is a leak."""

from __future__ import annotations

from kvsan.spec.lang.surface import empty, members, obey, settling

from .ledger import settle_rollback
from .rules import events_match_cache, no_leak, pins_balanced, seal_is_earned
from .state import Block, Branch, Ownership, Pool, Published


@settling
def quiescent(s: Ownership) -> None:
    """Every account is settled. The one event that looks at every block."""
    for b in members(Block, s):
        if s.held[b]:
            obey(
                no_leak,
                s.owners[b] > 0 or s.keeps[b] > 0,
                "block {b} is held, but no branch owns it and no pin keeps it",
            )
        if s.keeps[b] > 0:
            pins = s.keeps[b]
            obey(pins_balanced, pins == s.cache_pins[b], "block {b} still has {pins} pins, not all of them the cache's")
        if s.sealed[b] != empty():
            obey(seal_is_earned, s.sealed[b] <= s.written[b], "slots of block {b} were sealed and never written")
    for r in members(Branch, s):
        settle_rollback(s, r)
    for e in members(Published, s):
        if s.streaming and any(s.sealing[q] for q in members(Pool, s)):
            obey(events_match_cache, s.stored[e] == (s.resident[e] > 0), "the stream and the cache differ on hash {e}")
