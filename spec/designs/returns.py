"""How blocks return to a pool with a prefix cache: one by one where nothing holds them, or all of a request that ends.

A block that carries an identity keeps its contents in the free queue, where the cache may still find it; any other is
wiped, so that states do not remember what nobody can read.
"""

from __future__ import annotations

from kvsan.spec.lang.surface import Map, empty, helper, reset, row, some
from kvsan.spec.ownership.blocks import free
from kvsan.spec.ownership.state import Block, Pos

from .prompt_contents import PromptContents


class Returns(PromptContents):
    """leaving: what a request that ends gives back."""

    leaving: Map[bool, Pos, Block | None]


@helper
def give_back(s: Returns, b: Block) -> None:
    """A block returns to the pool, wiped unless the cache may find it."""
    free(s, b)
    if s.sealed[b] == empty():
        reset(s, b)


@helper
def release(s: Returns, b: Block) -> None:
    """A block that nobody owns or pins any more returns to the pool."""
    if s.owners[b] == 0 and s.keeps[b] == 0:
        give_back(s, b)


@helper
def give_back_leaving(s: Returns) -> None:
    """The request is gone, and what it was to give back returns to the pool."""
    for p in row(s.leaving, True):
        b = some(s.leaving[True, p])
        s.leaving[True, p] = None
        give_back(s, b)
