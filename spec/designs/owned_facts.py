"""A fact that holds between the steps of every design in which a block is an owner's as soon as it is taken.

Where a copy's target waits for its copy without an owner (`tail_copy`), the design says of its own what holds.
"""

from __future__ import annotations

from kvsan.spec.lang.surface import auxiliary
from kvsan.spec.ownership.state import Block, Ownership


@auxiliary
def held_is_owned(s: Ownership, b: Block) -> bool:
    """A held block has an owner: the standing form of `no_leak`.

    Source: vllm#11562.
    Catches: a block that nobody gives back.
    Except: none.
    Deviates: none.
    """
    return not s.held[b] or s.owners[b] > 0
