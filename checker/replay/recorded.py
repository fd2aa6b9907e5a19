"""Which facts a log can show at all, from the event kinds that it records (`kvsan.spec.ownership.evidence`)."""

from __future__ import annotations

from collections.abc import Iterable

from kvsan.spec.ownership.evidence import EVIDENCE, POOLS_AND_TABLES

PERFORMED_BY: dict[str, tuple[str, ...]] = {
    "map_null": ("map",),
    "unmap_null": ("unmap",),
    "finish": ("finish", "cancel"),
    "view_entry": ("table",),
    "view_null": ("table",),
    "view_end": ("table",),
    "write_inbound": ("write",),
    "read_outbound": ("read",),
}
"""The event kinds of a log that perform an event of the discipline, where the names differ."""


def kinds_of(event: str) -> tuple[str, ...]:
    """The event kinds of a log by which an event of the discipline comes about. A step's parts count as theirs."""
    return PERFORMED_BY.get(event, (event,))


def recorded_kinds(occurring: frozenset[str], complete: Iterable[str] | None, reads_branches: bool) -> frozenset[str]:
    """The kinds that the log records without gaps.

    occurring: kinds of the whole file. complete: the header's own list. A log that shows branch reads is taken to show
    writes, unless its header says otherwise.
    """
    if complete is not None:
        parts = {"write", "copy", "read"} if "step" in complete else set()
        return frozenset(complete) | parts
    return occurring | {"write"} if reads_branches else occurring


def unknown_variables(
    recorded: frozenset[str], occurring: frozenset[str], declared: bool
) -> dict[str, tuple[str, ...]]:
    """Each variable that the log cannot show, with the event kinds that would show it.

    declared: the header lists what it records completely; then a kind that occurs without being listed has gaps, and
    what it feeds is unknown too.
    """
    missing: dict[str, tuple[str, ...]] = {}
    declared = declared or not occurring & set(POOLS_AND_TABLES)
    for evidence in EVIDENCE:
        if not (evidence.often_left_out or declared):
            continue
        for group in evidence.shown_by:
            absent = not recorded & set(group)
            gappy = declared and bool((occurring - recorded) & set(group))
            if absent or gappy:
                missing = dict.fromkeys(evidence.variables, group) | missing
    return missing
