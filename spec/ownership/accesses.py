"""What device work accesses, and which order rule two accesses break that nothing orders.

Stated once: the order analysis of a log and a design's model of device work both go by it. A launch makes its copies,
unordered with each other, then its writes, then its reads. Two accesses to the same slots of one block conflict when
one of them writes; the one that was launched later is the later one.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

from kvsan.spec.lang.surface import Rule

from .rules import accesses_ordered, copy_precedes_use, no_reuse_in_flight, read_is_initialised, source_stable


class Use(IntEnum):
    """How an access uses its slots."""

    COPY_SOURCE = 0
    COPY_TARGET = 1
    WRITE = 2
    ATTENTION = 3
    TRANSFER = 4
    """An outbound read by a holder."""


WRITING = frozenset({Use.COPY_TARGET, Use.WRITE})
COPYING = frozenset({Use.COPY_SOURCE, Use.COPY_TARGET})

ORDER_RULES: tuple[Rule, ...] = (
    no_reuse_in_flight,
    copy_precedes_use,
    source_stable,
    read_is_initialised,
    accesses_ordered,
)
"""By precedence: a pair of accesses is reported under the first that fits."""

SHOWN_BY: dict[str, tuple[tuple[str, ...], ...]] = {
    "no_reuse_in_flight": (("alloc",), ("write", "copy")),
    "copy_precedes_use": (("copy",),),
    "source_stable": (("copy",),),
    "read_is_initialised": (("read",), ("write",)),
    "accesses_ordered": (("write", "copy"),),
}
"""From each group one event kind must occur, or the rule cannot be judged."""


def conflicting(one: Use, other: Use) -> bool:
    """Two accesses to the same slots conflict when one of them writes."""
    return one in WRITING or other in WRITING


def rule_between(earlier: Use, later: Use, same_life: bool) -> Rule | None:
    """The rule that two accesses of different launches break when nothing orders them; None: they do not conflict."""
    if not conflicting(earlier, later):
        return None
    if not same_life:
        return no_reuse_in_flight
    if earlier is Use.COPY_TARGET:
        return copy_precedes_use
    if earlier is Use.COPY_SOURCE:
        return source_stable
    return read_is_initialised if later is Use.ATTENTION else accesses_ordered


def rule_within(earlier: Use, later: Use) -> Rule | None:
    """The rule that two accesses of one launch break: only its copies are unordered, those of one copy aside."""
    if not (earlier in COPYING and later in COPYING and conflicting(earlier, later)):
        return None
    return copy_precedes_use if earlier is later else source_stable


def attended(size: int, upto: int, start: int) -> Iterator[tuple[int, int]]:
    """What attention over a branch's first `upto` tokens covers: each position from `start` on, and how many slots.

    size: slots of one block. start: positions below are out of the sliding window.
    """
    return ((p, slots_attended(size, upto, p)) for p in range(start, -(-upto // size)))


def slots_attended(size: int, upto: int, p: int) -> int:
    """How many slots of position p attention over the first `upto` tokens covers: the first ones."""
    return max(0, min(size, upto - p * size))
