"""Order in the state for transfers: what their handles touch until the host learns that they are complete.

A transfer is a holder, and each of its handles moves one whole block: into a block (from elsewhere), out of one, or, as
a copy between two tiers, both; such a transfer has one handle. A handle is on no stream: it comes after what the host
knew at its launch, and before what the host launches once it has learned of it. A launch that meets a handle under way
breaks an order rule there, the same that the order analysis of a log reports at that launch.
"""

from __future__ import annotations

from kvsan.spec.lang.surface import Choice, Map, Set, empty, event, excess, helper, obey, only, row, some, span
from kvsan.spec.ownership.contents import copy, read_outbound, write_inbound
from kvsan.spec.ownership.rules import (
    accesses_ordered,
    copy_precedes_use,
    no_reuse_in_flight,
    read_is_initialised,
    source_stable,
)
from kvsan.spec.ownership.state import Block, Branch, Holder

from .device import COMPUTE, COPIES, hand_out, launch_step, meet, step_writes
from .returns import Returns


class Way(Choice):
    """What a handle does to a block."""

    names = ("INTO", "OUT_OF")


INTO, OUT_OF = Way("INTO"), Way("OUT_OF")


class Handles(Returns):
    """moving: the blocks of a transfer's handles under way. copies: they are copies between tiers. past: which of these
    blocks have ended the life that the handle saw."""

    moving: Map[Way, Holder, Set[Block]]
    copies: Map[Holder, bool]
    past: Map[Holder, Set[Block]]


@helper
def is_moving(s: Handles, h: Holder, b: Block) -> bool:
    """A handle of the transfer for block b is under way."""
    return b in s.moving[INTO, h] or b in s.moving[OUT_OF, h]


@helper
def moves_nothing(s: Handles, h: Holder) -> bool:
    """The host knows every handle of the transfer to be complete."""
    return s.moving[INTO, h] == empty() and s.moving[OUT_OF, h] == empty()


@helper
def meet_handles(s: Handles, b: Block, reads: bool, attends: bool, writes: bool) -> None:
    """A launch reads block b, for a transfer or for attention, or writes it."""
    for h in row(s.moving, INTO):
        if b in s.moving[INTO, h]:
            if b in s.past[h]:
                obey(
                    no_reuse_in_flight,
                    not (reads or attends or writes),
                    "block {b} is used again while a handle of {h} may still write it",
                )
            elif s.copies[h]:
                obey(
                    copy_precedes_use,
                    not (reads or attends or writes),
                    "block {b} is used before the copy by {h} is ordered",
                )
            else:
                obey(read_is_initialised, not attends, "block {b} is read while a handle of {h} may still write it")
                obey(
                    accesses_ordered,
                    not (reads or writes),
                    "block {b} is used while a handle of {h} may still write it",
                )
    for h in row(s.moving, OUT_OF):
        if b in s.moving[OUT_OF, h]:
            if b in s.past[h]:
                obey(no_reuse_in_flight, not writes, "block {b} is used again while a handle of {h} may still read it")
            elif s.copies[h]:
                obey(source_stable, not writes, "block {b} is overwritten before the copy by {h} is ordered")
            else:
                obey(accesses_ordered, not writes, "block {b} is written while a handle of {h} may still read it")


@event
def take_out(s: Handles, b: Block, r: Branch | None) -> None:
    """The pool hands out block b: for what is under way and touches it, that is another life."""
    hand_out(s, b, r)
    for h in row(s.moving, INTO):
        if b in s.moving[INTO, h]:
            s.past[h] = s.past[h] | only(b)
    for h in row(s.moving, OUT_OF):
        if b in s.moving[OUT_OF, h]:
            s.past[h] = s.past[h] | only(b)


# --- launches ---------------------------------------------------------------------------------------------------------


@event
def load_block(s: Handles, h: Holder, b: Block) -> None:
    """A handle of transfer h starts to write block b."""
    write_inbound(s, h, b, 0, s.slots_of[b])
    meet(s, COPIES, b, empty(), empty(), span(0, s.slots_of[b]))
    meet_handles(s, b, False, False, True)
    s.moving[INTO, h] = s.moving[INTO, h] | only(b)


@event
def send_block(s: Handles, h: Holder, b: Block) -> None:
    """A handle of transfer h starts to read block b."""
    read_outbound(s, h, b)
    meet(s, COPIES, b, span(0, s.slots_of[b]), empty(), empty())
    meet_handles(s, b, True, False, False)
    s.moving[OUT_OF, h] = s.moving[OUT_OF, h] | only(b)


@event
def move_block(s: Handles, h: Holder, src: Block, dst: Block) -> None:
    """A handle of transfer h starts to copy block src to block dst of the other tier."""
    copy(s, None, src, dst, 0, s.slots_of[dst])
    meet(s, COPIES, src, span(0, s.slots_of[src]), empty(), empty())
    meet_handles(s, src, True, False, False)
    meet(s, COPIES, dst, empty(), empty(), span(0, s.slots_of[dst]))
    meet_handles(s, dst, False, False, True)
    s.moving[OUT_OF, h], s.moving[INTO, h], s.copies[h] = only(src), only(dst), True


@event
def compute(s: Handles, r: Branch, first: int, end: int) -> None:
    """One step writes the tokens [first, end) of branch r and attends to all up to there.

    What it writes itself it attends to in order, whatever was there before.
    """
    size = s.block_size[r]
    launch_step(s, r, first, end, end, COMPUTE)
    for p in row(s.table, r):
        attended, stored = span(0, min(size, excess(end, p * size))), step_writes(s, r, p, first, end)
        meet_handles(s, some(s.table[r, p]), False, attended - stored != empty(), stored != empty())


# --- ends -------------------------------------------------------------------------------------------------------------


@event
def learn_handle(s: Handles, h: Holder, b: Block, ok: bool) -> None:
    """The host learns that the handle for block b is complete, or, where it is not `ok`, that it moves nothing any
    more."""
    s.moving[INTO, h] = s.moving[INTO, h] - only(b)
    s.moving[OUT_OF, h] = empty() if s.copies[h] else s.moving[OUT_OF, h] - only(b)
    s.past[h] = empty() if s.copies[h] else s.past[h] - only(b)
    s.copies[h] = False
