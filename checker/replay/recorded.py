"""Which facts a log can show at all: a variable that no recorded event feeds is unknown, and rules that read it wait.

Derived from the read and write sets of the lowered specification; nothing here names a rule.
"""

from __future__ import annotations

from collections.abc import Iterable

KINDS: dict[str, tuple[str, ...]] = {
    "map_null": ("map",),
    "unmap_null": ("unmap",),
    "finish": ("finish", "cancel"),
    "view_entry": ("table",),
    "view_null": ("table",),
    "view_end": ("table",),
    "write": ("write", "step"),
    "write_inbound": ("write",),
    "read": ("read", "step"),
    "read_outbound": ("read",),
    "copy": ("copy", "step"),
}
"""The event kinds of a log that perform an event of the discipline, where the names differ."""


def kinds_of(event: str) -> tuple[str, ...]:
    """The event kinds of a log by which an event of the discipline comes about."""
    return KINDS.get(event, (event,))


def kinds_of_all(events: Iterable[str]) -> frozenset[str]:
    return frozenset(kind for event in events for kind in kinds_of(event))


def recorded_kinds(occurring: frozenset[str], complete: Iterable[str] | None, reads_branches: bool) -> frozenset[str]:
    """The kinds that the log records without gaps.

    occurring: kinds of the whole file. complete: the header's own list. A log that shows branch reads is taken to show
    writes, unless its header says otherwise.
    """
    if complete is not None:
        return frozenset(complete)
    return occurring | {"write"} if reads_branches else occurring


def unreliable(
    feeders: dict[str, frozenset[str]],
    drainers: dict[str, frozenset[str]],
    recorded: frozenset[str],
    occurring: frozenset[str],
    declared: bool,
) -> dict[str, frozenset[str]]:
    """Each variable that the log cannot show, with the event kinds that would.

    feeders / drainers: per variable the kinds that set it to something, and that set it back. Without a feeder a
    variable is unknown. Where the header declares what is complete, so it is without a drainer, and where a kind that
    changes it occurs with gaps.
    """
    missing: dict[str, frozenset[str]] = {}
    for variable, feeding in feeders.items():
        draining = drainers.get(variable, frozenset())
        gappy = (feeding | draining) & occurring - recorded
        if not feeding & recorded:
            missing[variable] = feeding
        elif declared and gappy:
            missing[variable] = gappy
        elif declared and draining and not draining & recorded:
            missing[variable] = draining
    return missing
