"""Events of the prefix cache: identities are registered, found, dropped and published."""

from __future__ import annotations

from kvsan.spec.lang.surface import advise, empty, event, obey, row, span

from .ledger import after_failure, end_identity, is_whole, take
from .rules import duplicate_full_block, events_match_cache, hit_is_live, rollback_exact, seal_is_earned, sealed_twice
from .state import Block, Branch, Digest, Identity, Ownership, Published, Slots


@event
def seal(
    s: Ownership,
    b: Block,
    h: Identity,
    r: Branch | None,
    lo: Slots,
    hi: Slots,
    digest: Digest | None,
    published: Published | None,
) -> None:
    """Slots [lo, hi) of block b are registered under identity h, by branch r or by the block's owners."""
    slots = span(lo, hi)
    if r is not None:
        holds = s.places[r, b] > 0
        obey(seal_is_earned, holds, "branch {r} sealed block {b}, which its table does not hold")
        if holds:
            end = s.spot[r, b] * s.block_size[r] + hi
            length = s.length[r]
            if end > length and end <= s.stale_to[r]:
                obey(
                    rollback_exact, False, "branch {r} sealed rolled-back slots of block {b} before they were rewritten"
                )
            else:
                obey(
                    seal_is_earned,
                    end <= length,
                    "branch {r} sealed slots [{lo},{hi}) of block {b}, up to token {end}, but has {length} tokens",
                )
            if not s.seals_partial:
                obey(
                    seal_is_earned,
                    is_whole(s, r, slots),
                    "branch {r} sealed slots [{lo},{hi}) of block {b}, which is not the whole block",
                )
            s.sealed_at[b] = s.spot[r, b]
        s.named[r, b] = s.named[r, b] | slots
    else:
        obey(
            seal_is_earned,
            s.owners[b] > 0 or s.keeps[b] > 0,
            "block {b} was sealed, but no branch owns it and no pin keeps it",
        )
        if not s.seals_partial:
            obey(
                seal_is_earned,
                span(0, s.slots_of[b]) <= slots,
                "slots [{lo},{hi}) of block {b} were sealed, which is not the whole block",
            )
        if s.owners[b] == 0:
            obey(
                seal_is_earned,
                not s.nameless[b],
                "block {b} was sealed without an owner, but was copied from a block that nobody had sealed",
            )
        s.named_all[b] = s.named_all[b] | slots
    s.sealing[s.pool_of[b]] = True
    s.sealer[b] = r
    advise(sealed_twice, s.carried[b, h] == empty(), "block {b} was sealed again under identity {h}")
    if s.carried[b, h] == empty() and slots != empty():
        advise(
            duplicate_full_block,
            s.standing[h] == 0,
            "block {b} was sealed under identity {h}, which another block carries",
        )
        s.standing[h] += 1
        if published is not None:
            s.publishes[b, h] = published
            s.resident[published] += 1
    s.carried[b, h] = s.carried[b, h] | slots
    s.sealed[b] = s.sealed[b] | slots
    if digest is not None:
        s.digests[b, h] = digest


@event
def hit(
    s: Ownership, b: Block, h: Identity, r: Branch | None, lo: Slots | None, hi: Slots | None, digest: Digest | None
) -> None:
    """Identity h is found on block b, which is held from here on; without slots, all that the identity covers."""
    if r is not None:
        after_failure(s, r)
    carried = s.carried[b, h]
    slots = carried if lo is None or hi is None else span(lo, hi)
    obey(
        hit_is_live,
        carried != empty() and slots <= carried,
        "a hit on identity {h} found block {b}, which does not carry it",
    )
    known = s.digests[b, h]
    if digest is not None and known is not None:
        obey(hit_is_live, digest == known, "a hit on identity {h} found block {b}, whose content has another digest")
    if not s.held[b]:
        s.held[b] = True
        s.queued[b] = False
        s.idle_since[b] = s.shortages
        if s.free[s.pool_of[b]] > 0:
            s.free[s.pool_of[b]] -= 1
        if r is not None:
            take(s, r, b)
    s.hits[b] += 1
    s.hit_was_pinned[b] = False
    if r is None:
        s.open_hits[b] += 1
        s.open_slots[b] = s.open_slots[b] | slots
    else:
        s.hitters[b, r] = True
        s.hit_count[r, b] += 1
        s.hit_slots[r, b] = s.hit_slots[r, b] | slots


@event
def evict(s: Ownership, b: Block, h: Identity | None) -> None:
    """Block b stops carrying identity h, or every identity."""
    obey(
        hit_is_live,
        s.hits[b] == 0 or s.keeps[b] > 0 or s.hit_was_pinned[b] or (h is not None and s.carried[b, h] == empty()),
        "block {b} was evicted while a hit on it is not mapped yet",
    )
    s.sealed[b] = empty()
    for g in row(s.carried, b):
        if h is None or g == h:
            end_identity(s, b, g)
        else:
            s.sealed[b] = s.sealed[b] | s.carried[b, g]


@event
def kv_stored(s: Ownership, e: Published) -> None:
    """The published stream says that a hash is cached."""
    s.streaming = True
    s.stored[e] = True


@event
def kv_removed(s: Ownership, e: Published) -> None:
    """The published stream says that a hash is gone."""
    obey(events_match_cache, s.stored[e], "the stream removed hash {e}, which it never stored")
    if s.stored[e]:
        carriers = s.resident[e]
        obey(events_match_cache, carriers == 0, "the stream removed hash {e}, which {carriers} blocks still carry")
    s.streaming = True
    s.stored[e] = False


@event
def kv_cleared(s: Ownership, e: Published) -> None:
    """The published stream says that everything is gone, hash e too."""
    s.stored[e] = False
