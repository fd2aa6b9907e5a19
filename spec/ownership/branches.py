"""Events of a branch: it comes, grows, forks, speculates and ends, and its table changes."""

from __future__ import annotations

from kvsan.spec.lang.surface import Set, empty, event, helper, obey, only, reset, row

from .ledger import (
    after_failure,
    drop_entries,
    end_dues,
    enter,
    is_whole,
    join,
    leave,
    owns,
    pay,
    settle_account,
    shares,
)
from .rules import append_only_table, entry_is_held, rollback_exact, tables_agree
from .state import Block, Branch, Count, Ownership, Pos, Slot, Tokens


@event
def admit(s: Ownership, r: Branch, tokens: Tokens) -> None:
    """Branch r arrives with an empty table and so many tokens."""
    s.length[r] = max(s.length[r], tokens)


@event
def grow(s: Ownership, r: Branch, tokens: Tokens) -> None:
    """Branch r gets so many tokens more."""
    after_failure(s, r)
    s.length[r] += tokens


@event
def reserve(s: Ownership, r: Branch, blocks: Count) -> None:
    """Branch r is promised so many blocks from here on."""
    after_failure(s, r)
    s.promised[r] = blocks
    s.taken[r] = 0


@helper
def disclaim(s: Ownership, c: Branch, r: Branch, end: int) -> None:
    """What the slots past the length of r hold, up to token `end`, is no token of c until c writes it again."""
    if end > s.length[r]:
        s.stale_from[c] = s.length[r] if s.stale_to[r] == 0 else min(s.stale_from[r], s.length[r])
        s.stale_to[c] = max(end, s.stale_to[r])


@event
def fork(s: Ownership, c: Branch, r: Branch, upto: Tokens | None) -> None:
    """Branch c shares the entries of r that hold its first `upto` tokens; they agree below the length of r."""
    after_failure(s, r)
    reach = s.length[r] if upto is None else min(upto, s.length[r])
    s.length[c] = reach
    s.stale_from[c], s.stale_to[c] = s.stale_from[r], s.stale_to[r]
    disclaim(s, c, r, s.length[r] + s.proposed[r])
    s.window_from[c] = s.window_from[r]
    for p in row(s.skipped, r):
        s.skipped[c, p] = True
    for p in row(s.table, r):
        b = s.table[r, p]
        if b is not None and (upto is None or p * s.block_size[r] < upto):
            obey(entry_is_held, s.held[b], "branch {c} forked block {b} from {r}, but the block is free")
            leave(s, c, p)
            join(s, c, b, shares(s, r, p, reach))
            enter(s, c, p, b)
            s.named[c, b] = s.named[r, b]
            s.hidden[c, b] = s.hidden[r, b]


@helper
def may_be_replaced(s: Ownership, r: Branch, p: Pos, old: Block) -> bool:
    """The entry lies below the window, or is a partial tail."""
    return (
        p < s.window_from[r]
        or (p + 1) * s.block_size[r] > s.length[r]
        or (s.sealed[old] != empty() and not is_whole(s, r, s.sealed[old]))
    )


@helper
def replace(s: Ownership, r: Branch, p: Pos, old: Block) -> None:
    """The entry makes room for another block, which may be its copy."""
    if s.append_only:
        obey(
            append_only_table,
            may_be_replaced(s, r, p, old),
            "branch {r} replaced block {old} at position {p}, which is not a partial tail",
        )
    s.replaced[r, old] = True
    s.replaced_at[r, old] = p
    s.replaced_sole[r, old] = s.owners[old] == 1
    s.replaced_hidden[r, old] = s.hidden[r, old]
    s.replacers[old] = s.replacers[old] | only(r)
    leave(s, r, p)


@helper
def found(s: Ownership, r: Branch, b: Block) -> Set[Slot]:
    """The slots by which branch r has hit block b and not mapped it yet."""
    return s.hit_slots[r, b] if s.hit_slots[r, b] != empty() else s.open_slots[b]


@event
def map(s: Ownership, r: Branch, p: Pos, b: Block) -> None:
    """Position p of the table of r names block b; what was there leaves."""
    after_failure(s, r)
    old = s.table[r, p]
    if old is None or old != b:
        shared = found(s, r, b)
        obey(entry_is_held, s.held[b], "the table of branch {r} names block {b}, which is free")
        if s.held[b] and s.owners[b] > 0 and not owns(s, r, b):
            owners = s.owners[b]
            obey(
                entry_is_held,
                shared != empty(),
                "block {b}, which {owners} branches own, entered the table of {r} without a fork or a hit",
            )
        if old is not None:
            replace(s, r, p, old)
        if s.account[b] is None and s.claimant[b] is None:
            pay(s, r)
        settle_account(s, b)
        s.claimant[b] = r
        if not owns(s, r, b):
            join(s, r, b, shared)
            if shared != empty():
                s.hidden[r, b] = s.written[b] - shared  # another's tokens, past what was found
        enter(s, r, p, b)
        if shared != empty():
            s.named[r, b] = s.named[r, b] | shared
            if s.hits[b] > 0:
                s.hits[b] -= 1
            if s.hit_count[r, b] > 0:
                s.hit_count[r, b] -= 1
                if s.hit_count[r, b] == 0:
                    s.hit_slots[r, b] = empty()
                    s.hitters[b, r] = False
            elif s.open_hits[b] > 0:
                s.open_hits[b] -= 1
                if s.open_hits[b] == 0:
                    s.open_slots[b] = empty()
    s.held[b] = True  # where the past is unknown, the entry is what shows it


@event
def map_null(s: Ownership, r: Branch, p: Pos) -> None:
    """Position p of the table of r names the null block."""
    after_failure(s, r)
    leave(s, r, p)
    s.skipped[r, p] = True


@event
def unmap(s: Ownership, r: Branch, p: Pos, b: Block) -> None:
    """The entry at position p goes."""
    obey(tables_agree, s.table[r, p] == b, "branch {r} unmapped block {b} from position {p}, which does not name it")
    if s.table[r, p] == b:
        if s.append_only:
            obey(
                append_only_table,
                p < s.window_from[r] or p * s.block_size[r] >= s.length[r],
                "branch {r} unmapped block {b} at position {p}, which holds tokens that the branch keeps",
            )
        leave(s, r, p)


@event
def unmap_null(s: Ownership, r: Branch, p: Pos) -> None:
    """The null entry at position p goes."""
    s.skipped[r, p] = False


@event
def window(s: Ownership, r: Branch, start: Count) -> None:
    """Positions below `start` are out of the sliding window; a rollback may move it back."""
    s.window_from[r] = start


@event
def finish(s: Ownership, r: Branch) -> None:
    """Branch r ends, done or cancelled: its remaining entries are dropped."""
    end_dues(s, r)
    drop_entries(s, r)
    reset(s, r)


@event
def preempt(s: Ownership, r: Branch) -> None:
    """Branch r waits with an empty table; it keeps its tokens."""
    tokens = s.length[r]
    drop_entries(s, r)
    reset(s, r)
    s.length[r] = tokens


@event
def propose(s: Ownership, r: Branch, tokens: Tokens) -> None:
    """Branch r speculates so many tokens past its length."""
    after_failure(s, r)
    s.proposed[r] += tokens


@event
def accept(s: Ownership, r: Branch, tokens: Tokens) -> None:
    """Of the proposed tokens of r the first `tokens` are kept."""
    after_failure(s, r)
    proposed = s.proposed[r]
    obey(rollback_exact, tokens <= proposed, "branch {r} accepted {tokens} tokens of {proposed} proposed")
    end = s.length[r] + proposed
    s.length[r] += min(tokens, proposed)
    s.proposed[r] = 0
    s.rolled_back[r] = True
    disclaim(s, r, r, end)


@event
def view_entry(s: Ownership, r: Branch, p: Pos, b: Block) -> None:
    """A second view of the table of r names block b at position p."""
    obey(tables_agree, s.table[r, p] == b, "a second view of the table of {r} names block {b} at position {p}")


@event
def view_null(s: Ownership, r: Branch, p: Pos) -> None:
    """A second view of the table of r names the null block at position p."""
    obey(tables_agree, s.table[r, p] is None, "a second view of the table of {r} names the null block at position {p}")


@event
def view_end(s: Ownership, r: Branch, p: Pos) -> None:
    """A second view of the table of r has no entry from position p on."""
    spare = s.table[r, p]
    obey(
        tables_agree,
        spare is None,
        "a second view of the table of {r} ends at position {p}, where the table names {spare}",
    )
