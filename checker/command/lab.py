"""`kvsan lab`: one run of the cyclic working-set lab, as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator

from kvsan.checker.lab import LEFT_OUT, Policy, Run, run

from .usage import Refused

SHOWN = 64
"""Requests drawn one by one; of a longer run the last of them are left out, and the line says so."""


def lab(capacity: int, stride: int, time: float, policy: Policy) -> Run:
    """Run it. Raises Refused."""
    try:
        return run(capacity, stride, time, policy)
    except ValueError as error:
        raise Refused(str(error)) from error


def as_text(done: Run) -> str:
    return "\n".join(_lines(done)) + "\n"


def _lines(done: Run) -> Iterator[str]:
    count, hits = len(done.hits), done.hit_count
    yield f"capacity {done.capacity}, stride {done.stride}: {done.working_set} identities in a cycle, {done.policy}"
    drawn = "".join("+" if hit else "." for hit in done.hits[:SHOWN])
    more = f" ... {count - SHOWN:,} more" if count > SHOWN else ""
    yield f"  requests   {count:,} after {done.time:g} s    {drawn}{more}"
    yield f"  hits       {hits:,} ({hits / count:.0%}), misses {count - hits:,}, evictions {done.evictions:,}"
    yield f"  resident   {_resident(done.resident)}"
    yield f"  because    {_because(done)}"
    yield f"An analogy for capacity only. It leaves out: {', '.join(LEFT_OUT)}."


def _resident(resident: tuple[int, ...]) -> str:
    shown = " ".join(map(str, resident[:SHOWN]))
    more = f" ... {len(resident) - SHOWN:,} more" if len(resident) > SHOWN else ""
    return f"{shown}{more}, the next to go first" if resident else "none"


def _because(done: Run) -> str:
    if done.capacity >= done.working_set:
        return "the cycle fits: every identity misses once, and hits from then on"
    if len(done.hits) <= done.working_set:
        return "the cycle has not come round yet: every identity is new"
    short = done.working_set - done.capacity
    return f"the cycle is {short} too large: each identity is gone just before it comes round again"


def as_json(done: Run) -> str:
    """One object, in a fixed order of fields."""
    found = {
        "capacity": done.capacity,
        "stride": done.stride,
        "time": done.time,
        "policy": done.policy.value,
        "working_set": done.working_set,
        "requests": len(done.hits),
        "hits": done.hit_count,
        "misses": len(done.hits) - done.hit_count,
        "evictions": done.evictions,
        "resident": list(done.resident),
        "left_out": list(LEFT_OUT),
    }
    return json.dumps(found, indent=2) + "\n"
