"""How a design's first state begins: the pool is full, and a branch has written its prompt into blocks of its own."""

from __future__ import annotations

from kvsan.spec.lang.surface import excess, helper, members
from kvsan.spec.ownership.blocks import alloc
from kvsan.spec.ownership.branches import admit, map
from kvsan.spec.ownership.contents import write
from kvsan.spec.ownership.counts import owners_counted, places_counted  # noqa: F401  # for every design
from kvsan.spec.ownership.state import Block, Branch, Ownership, Tokens


@helper
def fill_pool(s: Ownership) -> None:
    """Every block is in its free queue."""
    for b in members(Block, s):
        s.free[s.pool_of[b]] += 1


@helper
def write_prompt(s: Ownership, root: Branch, prompt: Tokens) -> None:
    """A branch arrives, takes blocks for its prompt and writes it."""
    admit(s, root, 0)
    for b in members(Block, s):
        first = s.length[root]
        if first < prompt:
            last = min(first + s.block_size[root], prompt)
            alloc(s, b, root)
            map(s, root, first // s.block_size[root], b)
            write(s, root, b, 0, excess(last, first), first, last, None)
