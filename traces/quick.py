"""Shortcuts to `judge` for the hot path: they pass only what `judge` passes, and say nothing of the rest.

`quick_checks` has one for each kind, for whoever has one event at hand. `scanner` goes through many, with what is most
common written out in one loop: a call for each event would cost as much as decoding it does.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from kvsan.traces import events as ev
from kvsan.traces.events import Event
from kvsan.traces.header import Trace
from kvsan.traces.judge import NOWHERE, Size, size_of

SIZES_MAX = 4096


class Sizes(dict[tuple[str | int | None, str | int | None], Size]):
    """Sizes by (pool, group) as events name them, worked out from the header once each."""

    def __init__(self, header: Trace) -> None:
        super().__init__()
        self.header = header

    def __missing__(self, key: tuple[str | int | None, str | int | None]) -> Size:
        size = size_of(self.header, *key)
        if len(self) < SIZES_MAX:
            self[key] = size
        return size


Check = Callable[[Any], bool]  # Any: each check is called with the one record it is filed under


def quick_checks(header: Trace) -> dict[type[Event], Check]:
    """For every kind of event a cheap check that passes only what `judge` passes."""
    sizes = Sizes(header)

    def placed(event: Event) -> bool:
        return sizes[event.pool, event.group] is not NOWHERE

    def blocks_fit(event: Any) -> bool:
        block, count = event.block, sizes[event.pool, event.group][0]
        if type(block) is int:
            return block < count
        return None not in block and max(block) < count if block else False

    def slots_fit(event: Any) -> bool:
        block, slots, (count, size) = event.block, event.slots, sizes[event.pool, event.group]
        return type(block) is int and block < count and (slots is None or slots[0] < slots[1] <= size)

    def write_fits(event: ev.Write) -> bool:
        tokens = event.tokens
        return (
            (event.branch is None) is not (event.holder is None)
            and (tokens is None or tokens[0] < tokens[1])
            and slots_fit(event)
        )

    def copy_fits(event: ev.Copy) -> bool:
        (lo, hi), (count, size) = event.slots, sizes[event.pool, event.group]
        return (
            event.src_pool is None
            and event.dst_pool is None
            and event.src < count
            and event.dst < count
            and lo < hi <= size
        )

    def step_fits(event: ev.Step) -> bool:
        count, size = sizes[event.pool, event.group]
        copies_fit = all(src < count and dst < count and lo < hi <= size for src, dst, lo, hi in event.copies)
        return count > 0 and copies_fit and all(b < count and lo < hi <= size for _, b, lo, hi in event.writes)

    def branch_reads(event: ev.Read) -> bool:
        plain = event.branch is not None and event.holder is None and event.block is None and event.slots is None
        return plain and placed(event)

    def unsure(event: Event) -> bool:
        return False

    checks: dict[type[Event], Check] = dict.fromkeys(ev.EVENT_TYPES.values(), placed)
    checks |= dict.fromkeys((ev.Free, ev.Map, ev.Unmap, ev.Pin, ev.Unpin, ev.Ref), blocks_fit)
    checks |= dict.fromkeys((ev.Seal, ev.Hit, ev.Evict, ev.Invalidate), slots_fit)
    checks |= {ev.Write: write_fits, ev.Copy: copy_fits, ev.Step: step_fits, ev.Read: branch_reads}
    checks |= {ev.Table: unsure, ev.Sync: unsure}
    return checks


Scanner = Callable[[Sequence[Any]], Iterator[int]]  # Any: events, and what else stands among them

ANYWHERE, IDS, WRITE, OTHER = range(4)
SHAPES: dict[type, int] = (
    dict.fromkeys(ev.EVENT_TYPES.values(), ANYWHERE)
    | dict.fromkeys((ev.Free, ev.Map, ev.Unmap, ev.Pin, ev.Unpin, ev.Ref), IDS)
    | dict.fromkeys((ev.Seal, ev.Hit, ev.Evict, ev.Invalidate, ev.Read, ev.Copy, ev.Step, ev.Table, ev.Sync), OTHER)
    | {ev.Write: WRITE}
)
"""What there is to check: nothing but the place, block ids, a write, or more."""


def scanner(header: Trace) -> Scanner:
    """A function that goes through events and gives the index of each that it cannot pass."""
    checks, shape_of = quick_checks(header), SHAPES.get
    count, size = size_of(header, None, None)

    def unsure(events: Sequence[Any]) -> Iterator[int]:
        for index, event in enumerate(events):
            shape = shape_of(type(event))
            if shape is None:  # a gap, an event of the recorder's own, or a header
                if type(event) is Trace:
                    yield index
                continue
            if event.pool is None and event.group is None:
                if shape == ANYWHERE:
                    continue
                if shape == IDS:
                    block = event.block
                    if type(block) is int and block < count:
                        continue
                elif shape == WRITE:
                    block, (lo, hi), tokens = event.block, event.slots, event.tokens
                    if (
                        type(block) is int
                        and block < count
                        and lo < hi <= size
                        and (tokens is None or tokens[0] < tokens[1])
                        and (event.branch is None) is not (event.holder is None)
                    ):
                        continue
            if not checks[type(event)](event):
                yield index

    return unsure
