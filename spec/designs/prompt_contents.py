"""Ghost contents where every request has the same prompt: which slots hold its tokens, whoever wrote them."""

from __future__ import annotations

from kvsan.spec.lang.surface import Ghost, Map, Set, excess, helper, row, some, span
from kvsan.spec.ownership.state import Block, Branch, Pos, Slot

from .contents import Contents, was_copied


class PromptContents(Contents):
    """prompted: the slots of a block that hold the prompt's tokens of a position; every request has the same prompt."""

    prompted: Ghost[Map[Block, Pos, Set[Slot]]]


@helper
def loses_prompt(s: PromptContents, b: Block, slots: Set[Slot]) -> None:
    """What slots of block b held of the prompt is overwritten."""
    for k in row(s.prompted, b):
        s.prompted[b, k] = s.prompted[b, k] - slots


@helper
def holds_prompt(s: PromptContents, b: Block, p: Pos, slots: Set[Slot]) -> None:
    """Slots of block b hold the prompt's tokens of position p."""
    loses_prompt(s, b, slots)
    s.prompted[b, p] = s.prompted[b, p] | slots


@helper
def prompt_was_copied(s: PromptContents, src: Block, dst: Block, slots: Set[Slot]) -> None:
    """Slots of block src were copied to block dst."""
    was_copied(s, src, dst, slots)
    loses_prompt(s, dst, slots)
    for k in row(s.prompted, src):
        s.prompted[dst, k] = s.prompted[dst, k] | (s.prompted[src, k] & slots)


@helper
def shows_right(s: PromptContents, r: Branch, p: Pos, tokens: int) -> bool:
    """What is written of the first `tokens` tokens of branch r at position p is the prompt there, or its own tokens."""
    b = some(s.table[r, p])
    used = span(0, min(s.block_size[r], excess(tokens, p * s.block_size[r])))
    return used & s.written[b] <= (s.right[b, r] & s.placed[b, p]) | s.prompted[b, p]
