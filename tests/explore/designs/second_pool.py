"""Requests whose block is sent to a second pool, and comes back: each transfer is complete at once."""

from __future__ import annotations

from kvsan.spec.lang.surface import Const, Map, Set, action, initial, members, only, require, some
from kvsan.spec.ownership.blocks import alloc, free
from kvsan.spec.ownership.branches import admit, map, preempt
from kvsan.spec.ownership.contents import read_outbound, write, write_inbound
from kvsan.spec.ownership.counts import owners_counted, places_counted  # noqa: F401
from kvsan.spec.ownership.state import Block, Branch, Holder, Ownership, Tokens

DISCIPLINE = "paged_cow"
SETTINGS = {"branches": 1, "blocks": 2, "block_size": 1, "positions": 1, "prompt": 1, "holders": 1, "tier_blocks": 1}


class SecondPool(Ownership):
    """second_tier: the blocks of the second pool. away: the block there that has what a request had."""

    prompt: Const[Tokens]
    tier_blocks: Const[Tokens]

    second_tier: Set[Block]
    away: Map[Branch, Block | None]
    there: Map[Branch, bool]


@initial
def all_free(s: SecondPool) -> None:
    """Nobody is there, and the first blocks are those of the second pool."""
    for b in members(Block, s):
        if s.free[s.pool_of[b]] < s.tier_blocks:
            s.second_tier = s.second_tier | only(b)
        s.free[s.pool_of[b]] += 1


@action
def arrive(s: SecondPool, r: Branch, b: Block) -> None:
    """A request comes, and computes its prompt."""
    require(not s.there[r])
    require(not s.held[b] and b not in s.second_tier)

    admit(s, r, 0)
    alloc(s, b, r)
    map(s, r, 0, b)
    write(s, r, b, 0, s.prompt, 0, s.prompt, None)
    s.there[r] = True


@action
def send(s: SecondPool, r: Branch, c: Block, h: Holder) -> None:
    """Its block goes to the second pool, and the request waits."""
    require(s.there[r] and s.away[r] is None and s.length[r] > 0)
    require(not s.held[c] and c in s.second_tier)

    b = some(s.table[r, 0])
    alloc(s, c, None)
    read_outbound(s, h, b)
    write_inbound(s, h, c, 0, s.prompt)
    preempt(s, r)
    free(s, b)
    s.there[r], s.away[r] = True, c  # what is kept of a branch begins again at `preempt`


@action
def fetch(s: SecondPool, r: Branch, b: Block, h: Holder) -> None:
    """It comes back."""
    c = s.away[r]
    require(c is not None)
    require(not s.held[b] and b not in s.second_tier)

    alloc(s, b, r)
    map(s, r, 0, b)
    read_outbound(s, h, c)
    write_inbound(s, h, b, 0, s.prompt)
    free(s, c)
    s.away[r] = None
