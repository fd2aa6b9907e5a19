"""The cyclic working-set lab: what capacity alone does to a cache that is visited round and round.

An analogy for capacity, kept apart from ownership on purpose: it imports nothing of the specification, and nothing of
the specification imports it. The closed form is the old result that least-recently-used (and first-in-first-out) fail
on a loop one larger than the cache (Belady 1966; Denning 1968 for the working set): all or nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from enum import StrEnum
from math import floor

FIRST, A_SECOND, MOST = 16, 2, 4096
CYCLE = 4
"""Identities per unit of stride."""

LEFT_OUT = ("branches", "aliases", "copy-on-write", "completion")
"""What this analogy has no word for: a block here has one user, no second name, no private copy, and is always done."""


class Policy(StrEnum):
    """Which resident identity makes room: the one used longest ago, or the one that came first."""

    lru = "lru"
    fifo = "fifo"


@dataclass(frozen=True)
class Run:
    """One run from an empty cache. hits: for each request whether its identity was resident. resident: at the end, the
    next to go first."""

    capacity: int
    stride: int
    time: float
    policy: Policy
    hits: tuple[bool, ...]
    evictions: int
    resident: tuple[int, ...]

    @property
    def working_set(self) -> int:
        return CYCLE * self.stride

    @property
    def hit_count(self) -> int:
        return sum(self.hits)


def requests(time: float) -> int:
    """How many requests there have been after so many seconds: min(4096, 16 + floor(2 t)). Raises ValueError."""
    if not 0 <= time < float("inf"):
        raise ValueError(f"time is {time}: it must be a finite number of seconds, zero or more")
    return min(MOST, FIRST + floor(A_SECOND * min(time, MOST)))


def run(capacity: int, stride: int, time: float = 0.0, policy: Policy = Policy.lru) -> Run:
    """Visit the identities 0 .. 4 stride - 1 in a cycle. Nothing is kept from an earlier run. Raises ValueError."""
    if capacity < 0 or stride < 1:
        raise ValueError("the capacity is a natural number, the stride at least 1")
    resident: OrderedDict[int, None] = OrderedDict()
    hits, evictions = list[bool](), 0
    for n in range(requests(time)):
        identity = n % (CYCLE * stride)
        hits.append(identity in resident)
        if hits[-1]:
            if policy is Policy.lru:
                resident.move_to_end(identity)
            continue
        if not capacity:
            continue
        if len(resident) == capacity:
            resident.popitem(last=False)
            evictions += 1
        resident[identity] = None
    return Run(capacity, stride, time, policy, tuple(hits), evictions, tuple(resident))


def expected_hits(capacity: int, stride: int, count: int) -> int:
    """The closed form for `count` requests: all but the first round where the cycle fits, else none at all."""
    return max(0, count - CYCLE * stride) if capacity >= CYCLE * stride else 0
