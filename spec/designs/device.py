"""Order in the state: device work that the host does not yet know to be complete, and what it is ordered after.

Work takes effect when it is launched. A branch has at most one copy and one step under way; they keep their names after
the branch has ended, until the host learns of them. A stream's tail is ordered after a set of works, each work after
the works before it, and what the host learns of one work it knows of all those too. A launch that meets a work which is
not ordered before it breaks an order rule there, the same that the order analysis of a log reports at that launch.

What we refused: queues with separate run steps. They have many times the states, and the same verdicts.
"""

from __future__ import annotations

from kvsan.spec.lang.surface import Choice, Map, Set, empty, event, excess, helper, obey, only, row, some, span
from kvsan.spec.ownership.blocks import alloc
from kvsan.spec.ownership.contents import copy, write
from kvsan.spec.ownership.rules import (
    accesses_ordered,
    copy_precedes_use,
    no_reuse_in_flight,
    read_is_initialised,
    source_stable,
)
from kvsan.spec.ownership.state import Block, Branch, Ownership, Pos, Slot, Slots

from .attention import attend


class Work(Choice):
    """What a launch does: copy one block, or write a branch's tokens and attend to all it has."""

    names = ("COPY_WORK", "STEP_WORK")


class Stream(Choice):
    """A device queue."""

    names = ("COMPUTE", "COPIES")


COPY_WORK, STEP_WORK = Work("COPY_WORK"), Work("STEP_WORK")
COMPUTE, COPIES = Stream("COMPUTE"), Stream("COPIES")


class Device(Ownership):
    """The ledger, and the work under way: what each work reads and writes (whole blocks, and some slots of one more; of
    a step that begins within a block and goes on to the next, also its first block, the head), which of these blocks
    have ended the life that it saw, and the works that are ordered before it."""

    running: Map[Work, Branch, bool]
    loads: Map[Work, Branch, Set[Block]]
    loads_part: Map[Work, Branch, Block | None]
    part_loaded: Map[Work, Branch, Set[Slot]]
    stores: Map[Work, Branch, Set[Block]]
    stores_part: Map[Work, Branch, Block | None]
    part_stored: Map[Work, Branch, Set[Slot]]
    stores_head: Map[Branch, Block | None]
    head_stored: Map[Branch, Set[Slot]]
    former: Map[Work, Branch, Set[Block]]

    copies_before: Map[Work, Branch, Set[Branch]]
    steps_before: Map[Work, Branch, Set[Branch]]
    tail_copies: Map[Stream, Set[Branch]]
    tail_steps: Map[Stream, Set[Branch]]


# --- what works under way touch ---------------------------------------------------------------------------------------


@helper
def loaded_by(s: Device, w: Work, q: Branch, b: Block) -> Set[Slot]:
    """The slots of block b that a work reads."""
    return (span(0, s.slots_of[b]) if b in s.loads[w, q] else empty()) | (
        s.part_loaded[w, q] if s.loads_part[w, q] == b else empty()
    )


@helper
def stored_by(s: Device, w: Work, q: Branch, b: Block) -> Set[Slot]:
    """The slots of block b that a work writes."""
    return (
        (span(0, s.slots_of[b]) if b in s.stores[w, q] else empty())
        | (s.part_stored[w, q] if s.stores_part[w, q] == b else empty())
        | (s.head_stored[q] if w == STEP_WORK and s.stores_head[q] == b else empty())
    )


@helper
def meet(s: Device, t: Stream, b: Block, copied: Set[Slot], attended: Set[Slot], stored: Set[Slot]) -> None:
    """A launch on stream t reads slots of block b, for a copy or for attention, and writes slots of it."""
    for q in row(s.running, COPY_WORK):
        if q not in s.tail_copies[t]:
            read, written = loaded_by(s, COPY_WORK, q, b) & stored, stored_by(s, COPY_WORK, q, b)
            used = written & (copied | attended | stored)
            if b not in s.former[COPY_WORK, q]:
                obey(copy_precedes_use, used == empty(), "block {b} is used before the copy for {q} is ordered")
                obey(source_stable, read == empty(), "block {b} is overwritten before the copy for {q} is ordered")
            else:
                obey(
                    no_reuse_in_flight,
                    used | read == empty(),
                    "block {b} is used again while the copy for {q} may still touch it",
                )
    for q in row(s.running, STEP_WORK):
        if q not in s.tail_steps[t]:
            read, written = loaded_by(s, STEP_WORK, q, b) & stored, stored_by(s, STEP_WORK, q, b)
            if b not in s.former[STEP_WORK, q]:
                obey(
                    read_is_initialised,
                    written & attended == empty(),
                    "block {b} is read before the step of {q} that writes it is ordered",
                )
                obey(
                    accesses_ordered,
                    read | (written & (copied | stored)) == empty(),
                    "block {b} is used while the step of {q} may still touch it",
                )
            else:
                obey(
                    no_reuse_in_flight,
                    read | (written & (copied | attended | stored)) == empty(),
                    "block {b} is used again while the step of {q} may still touch it",
                )


@helper
def join_tail(s: Device, w: Work, r: Branch, t: Stream) -> None:
    """The work is under way, at the tail of its stream."""
    s.running[w, r] = True
    if w == COPY_WORK:
        s.tail_copies[t] = s.tail_copies[t] | only(r)
    else:
        s.tail_steps[t] = s.tail_steps[t] | only(r)


@helper
def enqueue(s: Device, w: Work, r: Branch, t: Stream) -> None:
    """The work is the tail of its stream, behind all that was there."""
    s.copies_before[w, r], s.steps_before[w, r] = s.tail_copies[t], s.tail_steps[t]
    join_tail(s, w, r, t)


@event
def hand_out(s: Device, b: Block, r: Branch | None) -> None:
    """The pool hands out block b: for the work under way that touches it, that is another life."""
    alloc(s, b, r)
    for q in row(s.running, COPY_WORK):
        if loaded_by(s, COPY_WORK, q, b) | stored_by(s, COPY_WORK, q, b) != empty():
            s.former[COPY_WORK, q] = s.former[COPY_WORK, q] | only(b)
    for q in row(s.running, STEP_WORK):
        if loaded_by(s, STEP_WORK, q, b) | stored_by(s, STEP_WORK, q, b) != empty():
            s.former[STEP_WORK, q] = s.former[STEP_WORK, q] | only(b)


# --- launches ---------------------------------------------------------------------------------------------------------


@helper
def meet_copy(s: Device, src: Block, dst: Block, slots: Set[Slot], t: Stream) -> None:
    """A copy on stream t meets what is under way."""
    meet(s, t, src, slots, empty(), empty())
    meet(s, t, dst, empty(), empty(), slots)


@helper
def keep_copy(s: Device, r: Branch, src: Block, dst: Block, slots: Set[Slot]) -> None:
    """The copy of branch r is kept in mind."""
    s.loads_part[COPY_WORK, r], s.part_loaded[COPY_WORK, r] = src, slots
    s.stores_part[COPY_WORK, r], s.part_stored[COPY_WORK, r] = dst, slots


@event
def launch_copy(s: Device, r: Branch, src: Block, dst: Block, hi: Slots, t: Stream) -> None:
    """The first `hi` slots of block src are copied to block dst on stream t."""
    copy(s, r, src, dst, 0, hi)
    meet_copy(s, src, dst, span(0, hi), t)
    enqueue(s, COPY_WORK, r, t)
    keep_copy(s, r, src, dst, span(0, hi))


@helper
def step_writes(s: Device, r: Branch, p: Pos, first: int, end: int) -> Set[Slot]:
    """The slots of position p that hold the tokens [first, end)."""
    size = s.block_size[r]
    return span(min(size, excess(first, p * size)), min(size, excess(end, p * size)))


@helper
def write_tokens(s: Device, r: Branch, first: int, end: int) -> None:
    """Branch r writes its tokens [first, end), each at its place."""
    size = s.block_size[r]
    for p in row(s.table, r):
        b = some(s.table[r, p])
        if first < (p + 1) * size and p * size < end:
            lo, hi = min(size, excess(first, p * size)), min(size, excess(end, p * size))
            write(s, r, b, lo, hi, p * size + lo, p * size + hi, None)


@helper
def touch(s: Device, r: Branch, first: int, end: int, upto: int, t: Stream) -> None:
    """The step of branch r on stream t meets what is under way, and is kept in mind itself."""
    size = s.block_size[r]
    for p in row(s.table, r):
        b = some(s.table[r, p])
        attended, stored = span(0, min(size, excess(upto, p * size))), step_writes(s, r, p, first, end)
        meet(s, t, b, empty(), attended, stored)
        whole = span(0, size)
        if attended == whole:
            s.loads[STEP_WORK, r] = s.loads[STEP_WORK, r] | only(b)
        elif attended != empty():
            s.loads_part[STEP_WORK, r], s.part_loaded[STEP_WORK, r] = b, attended
        if stored == whole:
            s.stores[STEP_WORK, r] = s.stores[STEP_WORK, r] | only(b)
        elif stored != empty() and (p + 1) * size < end:
            s.stores_head[r], s.head_stored[r] = b, stored
        elif stored != empty():
            s.stores_part[STEP_WORK, r], s.part_stored[STEP_WORK, r] = b, stored


@event
def launch_step(s: Device, r: Branch, first: int, end: int, upto: int, t: Stream) -> None:
    """On stream t, branch r writes its tokens [first, end) and then attends to its first `upto`."""
    write_tokens(s, r, first, end)
    attend(s, r, upto)
    touch(s, r, first, end, upto, t)
    enqueue(s, STEP_WORK, r, t)


# --- order ------------------------------------------------------------------------------------------------------------


@event
def order_after(s: Device, later: Stream, earlier: Stream) -> None:
    """Stream `later` waits for an event recorded now on stream `earlier`."""
    s.tail_copies[later] = s.tail_copies[later] | s.tail_copies[earlier]
    s.tail_steps[later] = s.tail_steps[later] | s.tail_steps[earlier]


@helper
def forget_footprint(s: Device, w: Work, q: Branch) -> None:
    """What a work touches matters to no later launch."""
    s.loads[w, q], s.stores[w, q] = empty(), empty()
    s.loads_part[w, q], s.part_loaded[w, q] = None, empty()
    s.stores_part[w, q], s.part_stored[w, q] = None, empty()
    if w == STEP_WORK:
        s.stores_head[q], s.head_stored[q] = None, empty()
    s.former[w, q] = empty()


@event
def forget_ordered(s: Device, first: Stream, second: Stream) -> None:
    """The streams in use are these. A launch on either comes after what both are ordered after: no footprint of that
    can break a rule any more, and states that differ in it alone are one."""
    for q in row(s.running, COPY_WORK):
        if q in s.tail_copies[first] and q in s.tail_copies[second]:
            forget_footprint(s, COPY_WORK, q)
    for q in row(s.running, STEP_WORK):
        if q in s.tail_steps[first] and q in s.tail_steps[second]:
            forget_footprint(s, STEP_WORK, q)


@helper
def nothing_runs(s: Device) -> bool:
    """The host knows every work to be complete: each is before the tail of its own stream until then."""
    return s.tail_steps[COMPUTE] == empty() and s.tail_copies[COMPUTE] == empty() and s.tail_copies[COPIES] == empty()


@helper
def retire(s: Device, w: Work, q: Branch) -> None:
    """A work is known to be complete."""
    s.running[w, q] = False
    forget_footprint(s, w, q)
    s.copies_before[w, q], s.steps_before[w, q] = empty(), empty()


@helper
def retire_all(s: Device, copies: Set[Branch], steps: Set[Branch]) -> None:
    """These works are known to be complete."""
    for q in row(s.running, COPY_WORK):
        if q in copies:
            retire(s, COPY_WORK, q)
    for q in row(s.running, STEP_WORK):
        if q in steps:
            retire(s, STEP_WORK, q)
    for q in row(s.running, COPY_WORK):
        s.copies_before[COPY_WORK, q] = s.copies_before[COPY_WORK, q] - copies
        s.steps_before[COPY_WORK, q] = s.steps_before[COPY_WORK, q] - steps
    for q in row(s.running, STEP_WORK):
        s.copies_before[STEP_WORK, q] = s.copies_before[STEP_WORK, q] - copies
        s.steps_before[STEP_WORK, q] = s.steps_before[STEP_WORK, q] - steps
    s.tail_copies[COMPUTE], s.tail_copies[COPIES] = s.tail_copies[COMPUTE] - copies, s.tail_copies[COPIES] - copies
    s.tail_steps[COMPUTE], s.tail_steps[COPIES] = s.tail_steps[COMPUTE] - steps, s.tail_steps[COPIES] - steps


@event
def learn(s: Device, w: Work, r: Branch) -> None:
    """The host learns that a work is complete, and with it every work before it."""
    copies = s.copies_before[w, r] | (only(r) if w == COPY_WORK else empty())
    steps = s.steps_before[w, r] | (only(r) if w == STEP_WORK else empty())
    retire_all(s, copies, steps)
