"""Which events show that a log records a fact at all: a fact that no event shows is unknown, not absent.

A log of the control plane alone shows no writes, so that nothing was written is no news; but a log that shows no pin
says that there was none. A log without one event of pools and tables, such as one of launches alone, says nothing of
them either. A header that lists what it records completely is taken at its word for every fact here.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Evidence:
    """`shown_by`: from each group one event kind must be recorded, or the variables are unknown.

    often_left_out: recorders exist that leave the fact out without saying so, so that a log without such events is not
    taken to say that there were none.
    """

    variables: tuple[str, ...]
    shown_by: tuple[tuple[str, ...], ...]
    often_left_out: bool = False


POOLS_AND_TABLES = ("alloc", "free", "map", "fork")
"""Where not one of these kinds occurs, a log says only what its other kinds show."""

TABLE = (("map",), ("unmap",), ("fork",), ("finish",), ("cancel",), ("preempt",))
"""Every kind that changes a table: one that is left out leaves entries standing, or missing."""

EVIDENCE = (
    Evidence(("written",), (("write",),), often_left_out=True),
    Evidence(("length",), (("admit", "grow", "write", "accept"),), often_left_out=True),
    Evidence(("written",), (("write",), ("copy",))),
    Evidence(("length",), (("admit",), ("grow",), ("propose",), ("accept",))),
    Evidence(("proposed",), (("propose",), ("accept",))),
    Evidence(("stale_from", "stale_to"), (("propose",), ("accept",), ("map",), ("write",))),
    Evidence(("resident",), (("seal",), ("evict",))),
    Evidence(("stored",), (("kv_stored",), ("kv_removed",), ("kv_cleared",))),
    Evidence(("held", "queued", "free"), (("alloc",), ("free",), ("hit",))),
    Evidence(("table", "places", "owners"), TABLE),
    Evidence(("hits", "hit_slots", "open_slots"), (("hit",), ("map",), ("finish",), ("cancel",), ("preempt",))),
    Evidence(("carried", "sealed", "standing"), (("seal",), ("evict",))),
    Evidence(("pins", "keeps", "freezes"), (("pin",), ("unpin",))),
    Evidence(("promised", "taken"), (("reserve",), ("alloc",), ("hit",))),
    Evidence(("loose",), (("alloc",), ("hit",), ("map",), ("free",))),
)
