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

EVIDENCE = (
    Evidence(("written",), (("write",),), often_left_out=True),
    Evidence(("length",), (("admit", "grow", "write", "accept"),), often_left_out=True),
    Evidence(("resident",), (("seal",),)),
    Evidence(("stored",), (("kv_stored",), ("kv_removed",))),
    Evidence(("held", "queued"), (("alloc",), ("free",))),
    Evidence(("table", "places", "owners"), (("map",), ("unmap", "finish", "cancel", "preempt"))),
    Evidence(("carried", "sealed", "standing"), (("seal",),)),
    Evidence(("pins", "keeps", "freezes"), (("pin",), ("unpin",))),
)
