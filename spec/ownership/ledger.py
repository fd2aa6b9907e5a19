"""The moves that several events share: joining and leaving a block, taking from the free queue, ending an identity."""

from __future__ import annotations

from kvsan.spec.lang.surface import Set, advise, empty, excess, helper, obey, only, row, span

from .rules import full_block_unsealed, reservation_covers, rollback_exact, seal_is_earned
from .state import Block, Branch, Identity, Ownership, Pos, Slot


@helper
def owns(s: Ownership, r: Branch, b: Block) -> bool:
    """An owner is a branch whose table holds the block, or whose pending copy fills it."""
    return s.places[r, b] > 0 or s.filling[r, b]


@helper
def is_whole(s: Ownership, r: Branch, slots: Set[Slot]) -> bool:
    """The slots are a whole block of this branch's table."""
    return span(0, s.block_size[r]) <= slots


@helper
def covered(s: Ownership, r: Branch, b: Block) -> Set[Slot]:
    """The sealed slots that branch r holds by their identity."""
    return (s.named[r, b] | s.named_all[b]) & s.sealed[b]


@helper
def join(s: Ownership, r: Branch, b: Block, shared: Set[Slot]) -> None:
    """Branch r becomes an owner that agrees with the others on the slots `shared`."""
    if owns(s, r, b):
        s.agreed[b] = s.agreed[b] & shared
    else:
        if s.owners[b] == 0:
            s.agreed[b] = empty()
        else:
            s.agreed[b] = shared if s.owners[b] == 1 else s.agreed[b] & shared
        s.owners[b] += 1


@helper
def disown(s: Ownership, b: Block) -> None:
    """One owner fewer; a last owner has nobody left to agree with."""
    if s.owners[b] > 0:
        s.owners[b] -= 1
    if s.owners[b] <= 1:
        s.agreed[b] = empty()
    s.idle_since[b] = s.shortages


@helper
def leave(s: Ownership, r: Branch, p: Pos) -> None:
    """The entry goes; with the last entry for a block its branch stops owning it."""
    b = s.table[r, p]
    if b is not None:
        s.table[r, p] = None
        if s.places[r, b] > 0:
            s.places[r, b] -= 1
        if s.places[r, b] == 0:
            s.spot[r, b] = 0
            s.named[r, b] = empty()
            s.hidden[r, b] = empty()
            if not s.filling[r, b]:
                disown(s, b)


@helper
def enter(s: Ownership, r: Branch, p: Pos, b: Block) -> None:
    """The entry stands; what filled the block for this branch is no longer pending."""
    s.table[r, p] = b
    s.places[r, b] += 1
    s.spot[r, b] = p
    s.filling[r, b] = False
    s.skipped[r, p] = False


@helper
def forget_replaced(s: Ownership, r: Branch) -> None:
    """What branch r has replaced is no longer a copy source of its own."""
    for b in row(s.replaced, r):
        s.replaced[r, b] = False
        s.replaced_at[r, b] = 0
        s.replaced_sole[r, b] = False
        s.replaced_hidden[r, b] = empty()
        s.replacers[b] = s.replacers[b] - only(r)


@helper
def drop_entries(s: Ownership, r: Branch) -> None:
    """Every hold that branch r has through its table, its pending copies and its hits ends."""
    for p in row(s.table, r):
        leave(s, r, p)
    for b in row(s.filling, r):
        s.filling[r, b] = False
        disown(s, b)
    for b in row(s.hit_count, r):
        s.hits[b] = excess(s.hits[b], s.hit_count[r, b])
        s.hitters[b, r] = False
    forget_replaced(s, r)


@helper
def take(s: Ownership, r: Branch, b: Block) -> None:
    """Branch r takes a block from the free queue: its promise pays for it."""
    s.account[b] = r
    s.loose[r] += 1
    pay(s, r)


@helper
def pay(s: Ownership, r: Branch) -> None:
    """One block more on the account of branch r, where it has a promise."""
    promised = s.promised[r]
    if promised is not None:
        s.taken[r] += 1
        taken = s.taken[r]
        obey(
            reservation_covers,
            taken <= promised,
            "branch {r} has taken {taken} blocks, but was promised {promised}",
        )


@helper
def settle_account(s: Ownership, b: Block) -> None:
    """A taken block is placed or given back."""
    r = s.account[b]
    if r is not None:
        if s.loose[r] > 0:
            s.loose[r] -= 1
        s.account[b] = None


@helper
def after_failure(s: Ownership, r: Branch) -> None:
    """At the next event of a branch whose allocation failed, what the failing call took is back."""
    if s.failing[r]:
        loose = s.loose[r]
        obey(
            reservation_covers,
            loose == 0,
            "branch {r} goes on after a failed allocation with {loose} blocks that the failing call took",
        )
        s.failing[r] = False
        s.loose[r] = 0


@helper
def settle_rollback(s: Ownership, r: Branch) -> None:
    """The first launch after an accept sees exactly the blocks that the kept tokens need."""
    if s.rolled_back[r]:
        size, length = s.block_size[r], s.length[r]
        spare = s.table[r, (length + s.proposed[r] + excess(size, 1)) // size]
        if s.returns_lookahead and spare is not None:
            obey(
                rollback_exact,
                False,
                "branch {r} still maps lookahead block {spare} after its rollback to {length} tokens",
            )
        if length > 0:
            p = (length - 1) // size
            obey(
                rollback_exact,
                s.table[r, p] is not None or s.skipped[r, p] or p < s.window_from[r],
                "branch {r} keeps {length} tokens but has no block at position {p}",
            )
        s.rolled_back[r] = False


@helper
def launch(s: Ownership, r: Branch) -> None:
    """Device work of a branch starts."""
    after_failure(s, r)
    settle_rollback(s, r)


@helper
def end_dues(s: Ownership, r: Branch) -> None:
    """What a branch owes when it ends: the tokens that its seals promised."""
    for p in row(s.table, r):
        b = s.table[r, p]
        if b is not None:
            if s.sealer[b] == r:
                obey(
                    seal_is_earned,
                    s.sealed[b] <= s.written[b],
                    "branch {r} ended, but slots of block {b} that it sealed were never written",
                )
                s.sealer[b] = None
            if s.sealing[s.pool_of[b]] and is_whole(s, r, s.written[b]) and (p + 1) * s.block_size[r] <= s.length[r]:
                advise(
                    full_block_unsealed,
                    s.sealed[b] != empty(),
                    "branch {r} ended with full block {b} at position {p}, which nobody sealed",
                )


@helper
def end_identity(s: Ownership, b: Block, h: Identity) -> None:
    """Block b stops carrying identity h."""
    if s.carried[b, h] != empty():
        s.carried[b, h] = empty()
        s.digests[b, h] = None
        if s.standing[h] > 0:
            s.standing[h] -= 1
        e = s.publishes[b, h]
        if e is not None:
            if s.resident[e] > 0:
                s.resident[e] -= 1
            s.publishes[b, h] = None


@helper
def end_hits(s: Ownership, b: Block) -> None:
    """No hit holds block b any more, and nobody may map it by a hit of before."""
    s.hits[b] = 0
    s.hit_was_pinned[b] = False
    s.open_hits[b] = 0
    s.open_slots[b] = empty()
    for r in row(s.hitters, b):
        s.hitters[b, r] = False
        s.hit_count[r, b] = 0
        s.hit_slots[r, b] = empty()


@helper
def visible(s: Ownership, r: Branch, b: Block, p: Pos) -> Set[Slot]:
    """The slots that branch r sees in a block at position p: written, below its length, not rolled back."""
    seen = s.length[r] if s.stale_to[r] == 0 else min(s.length[r], s.stale_from[r])
    return s.written[b] & span(0, excess(seen, p * s.block_size[r]))


@helper
def shares(s: Ownership, r: Branch, p: Pos, reach: int) -> Set[Slot]:
    """The slots of position p below a branch's token `reach`."""
    return span(0, min(s.block_size[r], excess(reach, p * s.block_size[r])))
