"""Ghost contents: for which branches a slot holds the right token, and at which place of a table.

A slot is right for a branch when it holds what an isolated recomputation of that branch would put there. No array of
expected tokens is needed: a write is right for its writer, a fork inherits, a copy carries both facts along, and the
end of a block's life wipes them.
"""

from __future__ import annotations

from kvsan.spec.lang.surface import Ghost, Map, Set, helper, members, row, span
from kvsan.spec.ownership.state import Block, Branch, Pos, Slot

from .device import Device


class Contents(Device):
    """right: the slots of a block that hold the right token for a branch. placed: those of a table position."""

    right: Ghost[Map[Block, Branch, Set[Slot]]]
    placed: Ghost[Map[Block, Pos, Set[Slot]]]


@helper
def was_written(s: Contents, r: Branch, b: Block, p: Pos, slots: Set[Slot]) -> None:
    """Branch r wrote slots of block b, the tokens of position p."""
    for q in row(s.right, b):
        s.right[b, q] = s.right[b, q] - slots
    for k in row(s.placed, b):
        s.placed[b, k] = s.placed[b, k] - slots
    s.right[b, r] = s.right[b, r] | slots
    s.placed[b, p] = s.placed[b, p] | slots


@helper
def serves_all(s: Contents, b: Block, slots: Set[Slot]) -> None:
    """What was written of block b is right for every owner who agrees on it, as the prefill of a group is."""
    for q in members(Branch, s):
        if s.places[q, b] > 0:
            s.right[b, q] = s.right[b, q] | (slots & s.agreed[b])


@helper
def was_copied(s: Contents, src: Block, dst: Block, slots: Set[Slot]) -> None:
    """Slots of block src were copied to block dst."""
    for q in row(s.right, dst):
        s.right[dst, q] = s.right[dst, q] - slots
    for k in row(s.placed, dst):
        s.placed[dst, k] = s.placed[dst, k] - slots
    for q in row(s.right, src):
        s.right[dst, q] = s.right[dst, q] | (s.right[src, q] & slots)
    for k in row(s.placed, src):
        s.placed[dst, k] = s.placed[dst, k] | (s.placed[src, k] & slots)


@helper
def was_forked(s: Contents, r: Branch, c: Branch) -> None:
    """What is right for branch r is right for its child c."""
    for b in members(Block, s):
        s.right[b, c] = s.right[b, r]


@helper
def has_ended(s: Contents, r: Branch) -> None:
    """Nothing is right for a branch that is gone."""
    for b in members(Block, s):
        s.right[b, r] = span(0, 0)
