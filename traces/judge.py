"""What a type cannot say of an event: ids within their pool, `lo < hi`, one of two fields.

`judge` is the whole truth and names the fault; `quick.py` has its shortcuts.

An id that `alloc` hands out may be impossible: then the engine's allocator is at fault, not the log, and the rule
`alloc_from_free` says so.
"""

from collections.abc import Iterator

from kvsan.traces import events as ev
from kvsan.traces.events import Event
from kvsan.traces.header import Trace
from kvsan.traces.problem import Fault

Size = tuple[int, int]
"""Of a pool as a group sees it: how many blocks, and slots a block."""

NOWHERE: Size = (0, 0)
"""The size of a pool that the header does not know: nothing fits into it."""


def size_of(header: Trace, pool: str | int | None, group: str | int | None) -> Size:
    """The size of a pool as a group sees it: a group's block size goes before the pool's in the gpu pool."""
    blocks, block_size = header.blocks, header.block_size
    groups = header.groups or {}
    if group is not None and header.groups and str(group) not in {"0", *groups}:
        return NOWHERE
    if pool is not None and str(pool) != "gpu":
        info = (header.pools or {}).get(str(pool))
        return (info.blocks, info.block_size or block_size) if info else NOWHERE
    view = groups.get("0" if group is None else str(group))
    return blocks, view.block_size or block_size if view else block_size


def judge(event: Event, header: Trace) -> Fault | None:
    """The first thing wrong with a well-typed event, or None."""
    return next(faults(event, header), None)


def faults(event: Event, header: Trace) -> Iterator[Fault]:
    """Everything wrong with a well-typed event."""
    if size_of(header, event.pool, event.group) == NOWHERE:
        yield unknown_place(event, header)
        return
    size = size_of(header, event.pool, event.group)
    match event:
        case ev.Alloc():
            pass
        case ev.Copy():
            yield from copy_faults(event, header)
        case ev.Step():
            yield from step_faults(event, size)
        case ev.Table():
            yield from id_faults(event.blocks, "blocks", size)
        case _:
            block, slots = getattr(event, "block", None), getattr(event, "slots", None)
            yield from id_faults(block, "block", size)
            if slots is not None:
                yield from slot_faults(slots[0], slots[1], "slots", size)
    match event:
        case ev.Write():
            yield from one_of(event, "branch", "holder")
            if event.tokens is not None and event.tokens[0] >= event.tokens[1]:
                yield empty_range(*event.tokens, "tokens")
            elif event.tokens is not None and isinstance(event.block, tuple) and len(event.block) > 1:
                what = "a write of several blocks has tokens, and no two blocks hold the same tokens"
                yield Fault("tokens", what, "write one event a block, each with its tokens, or leave them out")
        case ev.Read():
            yield from one_of(event, "branch", "holder")
            yield from read_faults(event)
        case ev.Sync():
            yield from one_of(event, "stream", "event", "device")
            if event.device is False:
                yield Fault("device", "device is false", "write device: true, or leave it out")


def unknown_place(event: Event, header: Trace) -> Fault:
    """The pool or group that the header does not know."""
    pools = ["gpu", *(header.pools or {})]
    if event.pool is not None and str(event.pool) not in pools:
        return unknown_pool("pool", event.pool, header)
    what = f"group {event.group} is not in the header, whose groups are {', '.join(['0', *(header.groups or {})])}"
    return Fault("group", what, 'add it to the header\'s "groups", or correct the name')


def unknown_pool(path: str, pool: str | int, header: Trace) -> Fault:
    pools = ", ".join(["gpu", *(header.pools or {})])
    what = f"pool {pool} is not in the header, whose pools are {pools}"
    return Fault(path, what, 'add it to the header\'s "pools" with its number of blocks, or correct the name')


def id_faults(value: object, path: str, size: Size) -> Iterator[Fault]:
    """Block ids, one or many, that the pool does not have."""
    many = isinstance(value, tuple | list)
    for index, block in enumerate(value if isinstance(value, tuple | list) else [value]):
        if block is not None and block >= size[0]:
            yield impossible_id(block, f"{path}[{index}]" if many else path, size)


def impossible_id(block: int, path: str, size: Size) -> Fault:
    what = f"{path} is {block}, and the pool has blocks 0 to {size[0] - 1}"
    return Fault(path, what, "correct the id, or the number of blocks in the header")


def slot_faults(lo: int, hi: int, path: str, size: Size) -> Iterator[Fault]:
    """A range of slots that is empty, or ends past the block."""
    if lo >= hi:
        yield empty_range(lo, hi, path)
    elif hi > size[1]:
        what = f"{path} ends at {hi}, and a block has {size[1]} slots"
        yield Fault(path, what, "correct the range, or the block size in the header")


def empty_range(lo: int, hi: int, path: str) -> Fault:
    return Fault(path, f"{path} is [{lo}, {hi}), an empty range", "write [lo, hi] with lo < hi; hi is not included")


def copy_faults(event: ev.Copy, header: Trace) -> Iterator[Fault]:
    """A copy's two ends may lie in two pools; its slots fit both."""
    smallest = None
    for path, pool, block in (("src", event.src_pool, event.src), ("dst", event.dst_pool, event.dst)):
        size = size_of(header, event.pool if pool is None else pool, event.group)
        if size == NOWHERE:
            yield unknown_pool(f"{path}_pool", pool or "", header)
            return
        yield from id_faults(block, path, size)
        smallest = size if smallest is None or size[1] < smallest[1] else smallest
    if smallest:
        yield from slot_faults(*event.slots, "slots", smallest)


def step_faults(event: ev.Step, size: Size) -> Iterator[Fault]:
    """The rows of a launch."""
    for index, (src, dst, lo, hi) in enumerate(event.copies):
        path = f"copies[{index}]"
        yield from id_faults(src, f"{path}[0]", size)
        yield from id_faults(dst, f"{path}[1]", size)
        yield from slot_faults(lo, hi, path, size)
    for index, (_, block, lo, hi) in enumerate(event.writes):
        path = f"writes[{index}]"
        yield from id_faults(block, f"{path}[1]", size)
        yield from slot_faults(lo, hi, path, size)


def one_of(event: Event, *names: str) -> Iterator[Fault]:
    """Exactly one of these fields is given."""
    given = [name for name in names if getattr(event, name) is not None]
    kind, choice = ev.tag_of(type(event).__name__), " or ".join(names)
    if not given:
        yield Fault(names[0], f"{kind} names neither {' nor '.join(names)}", f"write one of {choice}")
    elif len(given) > 1:
        yield Fault(given[1], f"{kind} names both {' and '.join(given)}", f"write only one of {choice}")


def read_faults(event: ev.Read) -> Iterator[Fault]:
    """A branch's read covers its table up to `upto`; a holder's names one block."""
    if event.holder is not None:
        if event.block is None:
            yield Fault("block", "a holder's read lacks block", "add the block that the transfer reads")
        if event.upto is not None:
            yield Fault("upto", "a holder's read has upto", "upto goes with branch; name slots instead")
    elif event.block is not None or event.slots is not None:
        path = "block" if event.block is not None else "slots"
        yield Fault(path, f"a branch's read has {path}", "a branch reads its table up to upto; leave it out")
