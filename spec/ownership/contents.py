"""Events of memory: slots are written, copied, read and lost. Each is judged at its launch."""

from __future__ import annotations

from kvsan.spec.lang.surface import Set, advise, empty, event, excess, helper, obey, span

from .ledger import covered, forget_replaced, join, launch, owns, visible
from .rules import (
    dead_copy,
    entry_is_held,
    exclusive_write,
    needless_copy,
    private_copy_target,
    recomputed_sealed,
    rollback_exact,
    sealed_is_immutable,
    write_within_table,
)
from .state import Block, Branch, Holder, Ownership, Pos, Slot, Slots, Tokens


@helper
def thawed(s: Ownership, b: Block, me: Holder | None) -> bool:
    """Nobody but `me` freezes block b."""
    return s.freezes[b] == 0 or (me is not None and s.freezes[b] == s.frozen_by[b, me])


@helper
def at_its_tokens(s: Ownership, b: Block, lo: Slots, first: Tokens, size: Slots) -> bool:
    """The write is at the tokens that the block's identity covers."""
    p = s.sealed_at[b]
    return p is None or p * size + lo == first


@helper
def drafted(s: Ownership, r: Branch, lo: Slots, hi: Slots, begin: Tokens) -> Set[Slot]:
    """Of the slots [lo, hi), which hold tokens of branch r from `begin` on, those of proposed tokens."""
    return span(min(hi, lo + excess(s.length[r], begin)), hi) if s.proposed[r] > 0 else empty()


@helper
def settle_stale(s: Ownership, r: Branch, first: Tokens, end: Tokens) -> None:
    """Rolled-back tokens [first, end) have been rewritten."""
    if s.stale_to[r] > 0 and first <= s.stale_from[r] and s.stale_from[r] < end:
        s.stale_from[r] = end
    if s.stale_from[r] >= s.stale_to[r]:
        s.stale_from[r] = 0
        s.stale_to[r] = 0


@event
def write(
    s: Ownership,
    r: Branch,
    b: Block,
    lo: Slots,
    hi: Slots,
    first: Tokens | None,
    last: Tokens | None,
    me: Holder | None,
) -> None:
    """Branch r writes slots [lo, hi) of block b, which hold its tokens [first, last)."""
    launch(s, r)
    forget_replaced(s, r)
    holds = s.places[r, b] > 0
    obey(write_within_table, holds, "branch {r} wrote slots [{lo},{hi}) of block {b}, which its table does not hold")
    if holds:
        slots, size = span(lo, hi), s.block_size[r]
        begin = s.spot[r, b] * size + lo if first is None else first
        end = begin + (hi - lo if hi >= lo else 0)
        sealed, again = slots & s.sealed[b], slots & s.written[b]
        earned = sealed == empty() or (sealed <= covered(s, r, b) and at_its_tokens(s, b, lo, begin, size))
        if sealed != empty():
            obey(sealed_is_immutable, earned, "branch {r} wrote sealed slots of block {b} at token {begin}")
            drafts = sealed & drafted(s, r, lo, hi, begin)
            if earned:
                obey(sealed_is_immutable, drafts == empty(), "branch {r} wrote drafts to sealed slots of block {b}")
            if earned and drafts == empty() and s.stale_to[r] == 0:
                advise(recomputed_sealed, sealed & again == empty(), "branch {r} recomputed sealed slots of block {b}")
        elif first is not None and last is not None:
            obey(
                write_within_table,
                s.table[r, first // size] == b and first % size == lo and last == end,
                "branch {r} wrote tokens [{first},{last}) to slots [{lo},{hi}) of block {b}, not their place",
            )
        if earned:
            owners = s.owners[b]
            obey(
                exclusive_write,
                owners == 1 or (slots <= s.agreed[b] and again <= covered(s, r, b)),
                "branch {r} wrote slots [{lo},{hi}) of block {b}, which {owners} branches own",
            )
            obey(
                exclusive_write,
                thawed(s, b, me),
                "branch {r} wrote slots [{lo},{hi}) of block {b}, which another's pin freezes",
            )
        if s.proposed[r] == 0:
            s.length[r] = max(s.length[r], end)
        settle_stale(s, r, begin, end)
        s.written[b] = s.written[b] | slots
        s.hidden[r, b] = s.hidden[r, b] - slots


@event
def write_inbound(s: Ownership, h: Holder, b: Block, lo: Slots, hi: Slots) -> None:
    """A transfer writes slots [lo, hi) of block b."""
    slots = span(lo, hi)
    allowed = s.pins[b, h] > 0 if s.has_pinned[h] else s.held[b] and s.owners[b] <= 1
    obey(write_within_table, allowed, "{h} wrote slots [{lo},{hi}) of block {b}, which it does not hold")
    if allowed:
        sealed, again = slots & s.sealed[b], slots & s.written[b]
        if sealed != empty():
            obey(sealed_is_immutable, sealed & again == empty(), "{h} wrote sealed slots of block {b} a second time")
        if sealed & again == empty():
            owners = s.owners[b]
            obey(
                exclusive_write,
                owners <= 1 or (slots <= s.agreed[b] and again == empty()),
                "{h} wrote slots [{lo},{hi}) of block {b}, which {owners} branches own",
            )
            obey(
                exclusive_write,
                thawed(s, b, h),
                "{h} wrote slots [{lo},{hi}) of block {b}, which another's pin freezes",
            )
    s.nameless[b] = False
    s.written[b] = s.written[b] | slots


@event
def read(s: Ownership, r: Branch, upto: Tokens | None) -> None:
    """Attention of branch r over its first `upto` tokens, or all it has."""
    launch(s, r)
    forget_replaced(s, r)
    end = s.length[r] if upto is None else upto
    start = s.stale_from[r]
    if s.stale_to[r] > 0:
        obey(
            rollback_exact,
            end <= start,
            "branch {r} read {end} tokens; from token {start} on they were rolled back, or were its parent's drafts",
        )


@event
def read_outbound(s: Ownership, h: Holder, b: Block) -> None:
    """A transfer reads block b. As of a copy's source, what is there is passed on: slots may be unwritten, and a freed
    block keeps its contents until its next life. Where a later access may meet the read, their order is judged."""


@helper
def came_from(s: Ownership, r: Branch, src: Block) -> bool:
    """Branch r holds the source, has hit it, or has just replaced it."""
    return owns(s, r, src) or s.account[src] == r or s.hit_slots[r, src] != empty() or r in s.replacers[src]


@helper
def copy_place(s: Ownership, r: Branch, src: Block, dst: Block) -> Pos:
    """The position in the table of r that the copy is about."""
    return (
        s.spot[r, dst] if s.places[r, dst] > 0 else (s.spot[r, src] if s.places[r, src] > 0 else s.replaced_at[r, src])
    )


@helper
def judge_covering(s: Ownership, r: Branch, src: Block, dst: Block, slots: Set[Slot]) -> None:
    """The copy takes every slot that its branch sees in the source."""
    if owns(s, r, src) or r in s.replacers[src]:
        hidden = s.hidden[r, src] if owns(s, r, src) else s.replaced_hidden[r, src]
        obey(
            private_copy_target,
            visible(s, r, src, copy_place(s, r, src, dst)) - hidden <= slots,
            "the copy from block {src} to block {dst} leaves out slots that branch {r} sees in the source",
        )
        lone = (s.owners[src] == 1 and owns(s, r, src)) or (r in s.replacers[src] and s.replaced_sole[r, src])
        advise(
            needless_copy,
            not lone or s.sealed[src] != empty() or s.freezes[src] > 0 or s.pool_of[src] != s.pool_of[dst],
            "branch {r} copied block {src} to block {dst}, but was its only owner",
        )


@helper
def judge_target(s: Ownership, dst: Block, others: int, slots: Set[Slot]) -> None:
    """Nobody else sees what the copy overwrites, and nobody froze it."""
    again = slots & s.written[dst]
    sealed = slots & s.sealed[dst]
    obey(
        private_copy_target,
        others == 0 or slots <= s.agreed[dst],
        "the copy fills block {dst}, which {others} other branches see",
    )
    if others > 0 and slots <= s.agreed[dst]:
        obey(private_copy_target, again == empty(), "the copy overwrites slots of block {dst} that {others} others see")
    if sealed != empty():
        obey(sealed_is_immutable, sealed & again == empty(), "a copy wrote sealed slots of block {dst} a second time")
    obey(exclusive_write, s.freezes[dst] == 0, "a copy wrote block {dst}, which a pin freezes")


@helper
def is_unregistered(s: Ownership, b: Block) -> bool:
    """Nobody has sealed block b in this life, though blocks of its pool are sealed. (An identity may be gone again.)"""
    return s.sealing[s.pool_of[b]] and s.sealed_at[b] is None and s.named_all[b] == empty()


@event
def copy(s: Ownership, r: Branch | None, src: Block, dst: Block, lo: Slots, hi: Slots) -> None:
    """Slots [lo, hi) of block src are copied to block dst, for branch r where the log says so."""
    slots = span(lo, hi)
    obey(entry_is_held, s.held[src] or s.queued[src], "a copy read block {src}, which was never allocated")
    if r is not None:
        launch(s, r)
        obey(
            entry_is_held,
            came_from(s, r, src),
            "branch {r} copied from block {src}, which it neither holds, hit nor just replaced",
        )
    advise(dead_copy, s.held[dst] or s.sealed[dst] != empty(), "a copy filled block {dst}, which is free")
    if s.held[dst]:
        if r is not None:
            mine = owns(s, r, dst)
            others = s.owners[dst] - 1 if mine and s.owners[dst] > 0 else s.owners[dst]
            obey(
                private_copy_target,
                mine or (others == 0 and (s.account[dst] is None or s.account[dst] == r)),
                "branch {r} copied into block {dst}, which it does not hold",
            )
            judge_target(s, dst, others, slots)
            judge_covering(s, r, src, dst, slots)
            if not mine and s.owners[dst] == 0:
                join(s, r, dst, slots)
                s.filling[r, dst] = True
        else:
            others = s.owners[dst] - 1 if s.owners[dst] > 0 else 0
            judge_target(s, dst, others, slots)
            who = s.claimant[dst]
            if who is not None and s.places[who, dst] > 0:
                judge_covering(s, who, src, dst, slots)
                obey(
                    private_copy_target,
                    came_from(s, who, src) or visible(s, who, dst, s.spot[who, dst]) & slots == empty(),
                    "the copy overwrites slots of block {dst} with block {src}, which its branch {who} does not hold",
                )
    whole = span(0, s.slots_of[dst]) <= slots
    s.nameless[dst] = r is None and s.owners[dst] == 0 and whole and is_unregistered(s, src)
    s.written[dst] = (s.written[dst] - slots) | (s.written[src] & slots)


@event
def invalidate(s: Ownership, b: Block, lo: Slots, hi: Slots) -> None:
    """The contents of slots [lo, hi) of block b are lost."""
    s.written[b] = s.written[b] - span(lo, hi)
