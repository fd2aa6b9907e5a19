"""The events of the trace format, version 1: one record a kind, one kind a meaning.

An attribute is a field of the line (`from` is `from_`); an absent optional field is None. `thread`, `pool` and `group`
are None where the line leaves them out, which means `main`, `gpu` and `0`. The records are strict: a field that is not
listed is refused, unless its name starts with `x_` (the reader takes those out before).

The records do not check themselves when built in Python; `judge.py` says what a type cannot (`lo < hi`, ids in range).
"""

from typing import Final, Union, get_args

from kvsan.traces.fields import (
    Blocks,
    Claim,
    Copies,
    Count,
    Device,
    Entries,
    Flag,
    Hashes,
    Name,
    PinKind,
    PinMode,
    Reads,
    Row,
    Slots,
    Span,
    Text,
    Time,
    Writes,
)
from kvsan.traces.header import SCHEMA, GroupInfo, PoolInfo, Trace
from msgspec import Struct

__all__ = ["EVENT_TYPES", "SCHEMA", "Event", "GroupInfo", "PoolInfo", "Trace"]


def tag_of(class_name: str) -> str:
    """`AllocFailed` -> `alloc_failed`: the `ev` of a record's class."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in class_name).lstrip("_")


class Common(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    gc=False,
    tag_field="ev",
    tag=tag_of,
    rename={"from_": "from"},
):
    """What every event may carry: its number, evidence of its time, its host thread, pool and cache group."""

    seq: Count | None = None
    t: Time | None = None
    thread: Name | None = None
    pool: Name | None = None
    group: Name | None = None
    note: Text | None = None


class Alloc(Common, frozen=True, kw_only=True):
    """Blocks leave the free queue, on account of `branch`, else of the branch that first maps them."""

    block: Blocks
    branch: Name | None = None


class Free(Common, frozen=True, kw_only=True):
    """Blocks are returned to the free queue."""

    block: Blocks
    branch: Name | None = None


class AllocFailed(Common, frozen=True, kw_only=True):
    """The engine could not serve an allocation of so many blocks."""

    branch: Name
    blocks: Count | None = None


class Admit(Common, frozen=True, kw_only=True):
    """A new branch, with an empty table; `tokens` of it are scheduled at once."""

    branch: Name
    tokens: Count | None = None


class Grow(Common, frozen=True, kw_only=True):
    """So many more tokens of the branch are scheduled or sampled (default 1)."""

    branch: Name
    tokens: Count | None = None


class Fork(Common, frozen=True, kw_only=True):
    """A child shares the parent's entries that hold its first `upto` tokens (default: every entry)."""

    branch: Name
    parent: Name
    upto: Count | None = None


class Map(Common, frozen=True, kw_only=True):
    """Entries of the branch's table from `pos` on are set; what was there leaves."""

    branch: Name
    pos: Count
    block: Entries


class Unmap(Common, frozen=True, kw_only=True):
    """Entries of the branch's table from `pos` on, which held these blocks, are removed."""

    branch: Name
    pos: Count
    block: Entries


class Window(Common, frozen=True, kw_only=True):
    """Positions below `from` are out of the branch's sliding window."""

    branch: Name
    from_: Count


class Finish(Common, frozen=True, kw_only=True):
    """The branch ends: its remaining entries are dropped. Its name may be used again."""

    branch: Name


class Cancel(Common, frozen=True, kw_only=True):
    """The branch is cancelled: its remaining entries are dropped. Its name may be used again."""

    branch: Name


class Preempt(Common, frozen=True, kw_only=True):
    """The branch waits with an empty table: its remaining entries are dropped."""

    branch: Name


class Pin(Common, frozen=True, kw_only=True):
    """A hold that is not a table entry: the blocks may not be freed, and not be written either if it freezes."""

    block: Blocks
    holder: Name
    mode: PinMode | None = None
    kind: PinKind | None = None


class Unpin(Common, frozen=True, kw_only=True):
    """A holder's hold ends."""

    block: Blocks
    holder: Name
    mode: PinMode | None = None
    kind: PinKind | None = None


class Seal(Common, frozen=True, kw_only=True):
    """Slots (default: the whole block) are registered under an identity, by `branch`, else by the block's owners."""

    block: Blocks
    hash: Name
    branch: Name | None = None
    namespace: Name | None = None
    slots: Slots | None = None
    parent: Name | None = None
    digest: Name | None = None
    published: Name | None = None


class Hit(Common, frozen=True, kw_only=True):
    """An identity was found in the prefix cache, and its block is held from now on."""

    block: Blocks
    hash: Name
    branch: Name | None = None
    namespace: Name | None = None
    slots: Slots | None = None
    parent: Name | None = None
    digest: Name | None = None
    published: Name | None = None


class Evict(Common, frozen=True, kw_only=True):
    """An identity is dropped from the prefix cache; `published` is its hash in the KV stream."""

    block: Blocks
    hash: Name
    branch: Name | None = None
    namespace: Name | None = None
    slots: Slots | None = None
    parent: Name | None = None
    digest: Name | None = None
    published: Name | None = None


class Ref(Common, frozen=True, kw_only=True):
    """The engine's own reference count of the blocks."""

    block: Blocks
    count: Claim


class Pool(Common, frozen=True, kw_only=True):
    """The engine's own count of free blocks in the pool."""

    free: Claim


class Table(Common, frozen=True, kw_only=True):
    """The engine's second view of a branch's table (a worker's copy of it, say)."""

    branch: Name
    blocks: Row
    view: Name | None = None


class Propose(Common, frozen=True, kw_only=True):
    """So many speculative tokens of the branch are scheduled."""

    branch: Name
    tokens: Count
    step: Name | None = None


class Accept(Common, frozen=True, kw_only=True):
    """So many of the branch's proposed tokens are kept, the others rolled back."""

    branch: Name
    tokens: Count
    step: Name | None = None


class Reserve(Common, frozen=True, kw_only=True):
    """An admission promises so many blocks to the branch; may come before its `admit`."""

    branch: Name
    blocks: Count


class Copy(Common, frozen=True, kw_only=True):
    """Slots of `src` are copied to the same slots of `dst`, on a device stream or by the host."""

    src: Count
    dst: Count
    slots: Slots
    op: Name | None = None
    branch: Name | None = None
    stream: Name | None = None
    src_pool: Name | None = None
    dst_pool: Name | None = None


class Write(Common, frozen=True, kw_only=True):
    """Slots are written, by a branch (`tokens` are their places in it) or by an inbound transfer, the holder."""

    block: Blocks
    slots: Slots
    op: Name | None = None
    branch: Name | None = None
    holder: Name | None = None
    tokens: Span | None = None
    stream: Name | None = None


class Read(Common, frozen=True, kw_only=True):
    """Attention over a branch's first `upto` tokens (default: all), or an outbound transfer of a holder's block."""

    op: Name | None = None
    branch: Name | None = None
    upto: Count | None = None
    holder: Name | None = None
    block: Blocks | None = None
    slots: Slots | None = None
    stream: Name | None = None


class Step(Common, frozen=True, kw_only=True):
    """One launch of a batch: copies, unordered with each other, then writes, then reads."""

    op: Name
    stream: Name
    copies: Copies = ()
    writes: Writes = ()
    reads: Reads = ()


class Invalidate(Common, frozen=True, kw_only=True):
    """The contents of slots (default: all) are lost, as after a failed load."""

    block: Blocks
    slots: Slots | None = None


class Done(Common, frozen=True, kw_only=True):
    """The host has learned that the op is complete, or, with `ok` false, that it failed."""

    op: Name
    ok: Flag | None = None


class Record(Common, frozen=True, kw_only=True):
    """A CUDA event captures the stream's work at call time; recording it again overwrites it."""

    event: Name
    stream: Name


class Wait(Common, frozen=True, kw_only=True):
    """Later work of the stream is ordered behind the latest record of the event."""

    event: Name
    stream: Name


class Sync(Common, frozen=True, kw_only=True):
    """The host thread waits for a stream, an event, or (device) every stream of the rank."""

    stream: Name | None = None
    event: Name | None = None
    device: Device | None = None


class Signal(Common, frozen=True, kw_only=True):
    """Host order between threads or ranks: what precedes this precedes the channel's later awaits."""

    channel: Name


class Await(Common, frozen=True, kw_only=True):
    """Host order between threads or ranks: this follows the channel's signals before it."""

    channel: Name


class Run(Common, frozen=True, kw_only=True):
    """The op's accesses happen here. Written by explorers and witnesses only."""

    op: Name


class KvStored(Common, frozen=True, kw_only=True):
    """The engine's published KV stream says that these hashes are stored."""

    hash: Hashes
    parent: Name | None = None
    medium: Name | None = None
    namespace: Name | None = None
    stream_seq: Count | None = None


class KvRemoved(Common, frozen=True, kw_only=True):
    """The engine's published KV stream says that these hashes are gone."""

    hash: Hashes
    parent: Name | None = None
    medium: Name | None = None
    namespace: Name | None = None
    stream_seq: Count | None = None


class KvCleared(Common, frozen=True, kw_only=True):
    """The engine's published KV stream says that every hash of the medium is gone."""

    medium: Name | None = None
    namespace: Name | None = None
    stream_seq: Count | None = None


class Quiescent(Common, frozen=True, kw_only=True):
    """Nothing is running: what is still held now has leaked."""


Event = Union[  # noqa: UP007 - a union of forty reads better one a line
    Alloc, Free, AllocFailed, Admit, Grow, Fork, Map, Unmap, Window, Finish, Cancel, Preempt, Pin, Unpin, Seal, Hit,
    Evict, Ref, Pool, Table, Propose, Accept, Reserve, Copy, Write, Read, Step, Invalidate, Done, Record, Wait, Sync,
    Signal, Await, Run, KvStored, KvRemoved, KvCleared, Quiescent,
]  # fmt: skip

EVENT_TYPES: Final[dict[str, type[Event]]] = {tag_of(kind.__name__): kind for kind in get_args(Event)}
"""From `ev` to the record's class, in the order of the format's table. The header is not among them."""

__all__ += [kind.__name__ for kind in get_args(Event)]
