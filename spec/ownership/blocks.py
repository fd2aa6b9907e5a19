"""Events of the pool: blocks leave and enter the free queue, and are pinned."""

from __future__ import annotations

from kvsan.spec.lang.surface import advise, event, obey, reset, row

from .ledger import after_failure, end_hits, end_identity, settle_account, take
from .rules import (
    alloc_from_free,
    entry_is_held,
    free_count_agrees,
    free_once,
    hit_is_live,
    late_release,
    pins_balanced,
    ref_count_agrees,
    reservation_covers,
)
from .state import CACHE, FREEZE, KEEP, Block, Branch, Count, Holder, Kind, Mode, Ownership, Pool


@event
def alloc(s: Ownership, b: Block, r: Branch | None) -> None:
    """The pool hands out block b, on account of branch r where the log says so: a new life begins."""
    if r is not None:
        after_failure(s, r)
    if s.hits[b] > 0 and s.owners[b] == 0 and s.keeps[b] == 0 and not s.hit_was_pinned[b]:
        obey(hit_is_live, False, "block {b} was allocated while a hit on it is not mapped yet")
    elif s.imaginary[b]:
        obey(alloc_from_free, False, "the pool handed out block {b}, which its free queue never holds")
    else:
        obey(alloc_from_free, not s.held[b], "the pool handed out block {b}, which is not free")
    for h in row(s.carried, b):
        end_identity(s, b, h)
    if not s.held[b] and s.free[s.pool_of[b]] > 0:
        s.free[s.pool_of[b]] -= 1
    reset(s, b)
    s.held[b] = True
    s.idle_since[b] = s.shortages
    if r is not None:
        take(s, r, b)


@event
def free(s: Ownership, b: Block) -> None:
    """Block b returns to the free queue; its contents and identities stay until its next life."""
    obey(free_once, s.held[b] and not s.queued[b], "block {b} was freed, but it is already free")
    if s.held[b]:
        owners, pins = s.owners[b], s.keeps[b]
        obey(
            free_once,
            owners == 0 and pins == 0,
            "block {b} was freed with owners ({owners}) or pins ({pins})",
        )
        advise(late_release, s.idle_since[b] == s.shortages, "block {b} lay unused while an allocation failed")
        s.free[s.pool_of[b]] += 1
    s.held[b] = False
    s.queued[b] = True
    settle_account(s, b)
    end_hits(s, b)


@event
def alloc_failed(s: Ownership, r: Branch) -> None:
    """The pool could not serve branch r."""
    promised, taken = s.promised[r], s.taken[r]
    if promised is not None:
        obey(
            reservation_covers,
            False,
            "branch {r} was promised {promised} blocks, took {taken}, and then found the pool empty",
        )
    s.shortages += 1
    s.failing[r] = True


@event
def pin(s: Ownership, b: Block, h: Holder, mode: Mode, kind: Kind) -> None:
    """Holder h keeps block b from being freed, or freezes its contents too."""
    obey(entry_is_held, s.held[b], "{h} pinned block {b}, which is free")
    s.pins[b, h] += 1
    s.keeps[b] += 1
    s.has_pinned[h] = True
    s.hit_was_pinned[b] = s.hits[b] > 0
    if mode == FREEZE:
        s.frozen_by[b, h] += 1
        s.freezes[b] += 1
    if kind == CACHE:
        s.cached_by[b, h] += 1
        s.cache_pins[b] += 1


@event
def unpin(s: Ownership, b: Block, h: Holder, mode: Mode | None, kind: Kind | None) -> None:
    """Holder h lets block b go; a mode or kind left out is that of the pin."""
    obey(pins_balanced, s.pins[b, h] > 0, "{h} unpinned block {b}, which it does not pin")
    if s.pins[b, h] > 0 and s.keeps[b] > 0:
        s.pins[b, h] -= 1
        s.keeps[b] -= 1
        if mode != KEEP and s.frozen_by[b, h] > 0 and s.freezes[b] > 0:
            s.frozen_by[b, h] -= 1
            s.freezes[b] -= 1
        if (kind is None or kind == CACHE) and s.cached_by[b, h] > 0 and s.cache_pins[b] > 0:
            s.cached_by[b, h] -= 1
            s.cache_pins[b] -= 1
        s.idle_since[b] = s.shortages


@event
def ref(s: Ownership, b: Block, count: Count) -> None:
    """The engine says how many references block b has."""
    owners, hits, pins = s.owners[b], s.hits[b], s.keeps[b]
    if s.counts_pins:
        obey(
            ref_count_agrees,
            count == owners + hits + pins,
            "the engine counts {count} references to block {b}: {owners} owners, {hits} unmapped hits, {pins} pins",
        )
    else:
        obey(
            ref_count_agrees,
            count == owners + hits,
            "the engine counts {count} references to block {b}; it has {owners} owners and {hits} unmapped hits",
        )


@event
def pool(s: Ownership, q: Pool, count: Count) -> None:
    """The engine says how many blocks of the pool are free."""
    free_blocks = s.free[q]
    obey(
        free_count_agrees,
        count == free_blocks,
        "the engine counts {count} free blocks in pool {q}; {free_blocks} are free",
    )
