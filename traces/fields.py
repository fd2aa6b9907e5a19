"""The field types of the trace format, version 1: what one value on a line may be.

Every type carries its description, which is both the text in the published JSON Schema and the remedy in an error.
Sequences are tuples, so that an event is immutable and hashable and the collector need not track it.
"""

from typing import Annotated, Literal

from msgspec import Meta

MAX_NAT = 2**63 - 1
"""The largest count, id or position: what a signed 64-bit column can hold. Names may be larger (256-bit hashes)."""

Nat = Annotated[int, Meta(ge=0, le=MAX_NAT)]
"""A count, position or block id. A float (`3.0`) or a bool is none."""

Positive = Annotated[int, Meta(ge=1, le=MAX_NAT, description="a whole number from 1")]

SLOTS_MAX = 2**24
"""The most slots a block may have: a set of them takes a bit each. Blocks of state models span a whole context."""

BlockSize = Annotated[int, Meta(ge=1, le=SLOTS_MAX, description=f"a number of slots, from 1 to {SLOTS_MAX}")]

Name = Annotated[str | int, Meta(description="a name: a string or a whole number")]
"""Branches, holders, ops, streams, channels, hashes: compared for equality only. `1` and `"1"` are two names,
except for pools and groups, whose names are also keys of header objects and hence compared as strings."""

Count = Annotated[Nat, Meta(description="a whole number from 0")]

Claim = Annotated[int, Meta(description="a whole number, as the engine counts; may be negative")]
"""A count of the engine's own. It may be wrong, even negative (a null block's was seen at -3): rules judge it."""

Blocks = Annotated[
    Nat | Annotated[tuple[Nat, ...], Meta(min_length=1)],
    Meta(description="one block id (a whole number from 0) or a list of at least one"),
]

Entries = Annotated[
    Nat | Annotated[tuple[Nat | None, ...], Meta(min_length=1)] | None,
    Meta(description="one table entry (a block id, or null for none) or a list of at least one"),
]
"""What a table holds at consecutive positions. `null` is an entry without a block, the same as the null block."""

Row = Annotated[tuple[Nat | None, ...], Meta(description="a list of block ids, null where there is no block")]

Slots = Annotated[tuple[Nat, Nat], Meta(description="a pair [lo, hi] of whole numbers, lo < hi: slots lo to hi - 1")]

Span = Annotated[tuple[Nat, Nat], Meta(description="a pair [lo, hi] of whole numbers, lo < hi: tokens lo to hi - 1")]

Hashes = Annotated[
    str | int | Annotated[tuple[str | int, ...], Meta(min_length=1)],
    Meta(description="one hash (a string or a whole number) or a list of at least one"),
]

CopyRow = tuple[Nat, Nat, Nat, Nat]
WriteRow = tuple[str | int, Nat, Nat, Nat]
ReadRow = str | int | tuple[str | int, Nat]

Copies = Annotated[tuple[CopyRow, ...], Meta(description="a list of [src, dst, lo, hi], blocks and slots")]
Writes = Annotated[tuple[WriteRow, ...], Meta(description="a list of [branch, block, lo, hi], block and slots")]
Reads = Annotated[tuple[ReadRow, ...], Meta(description="a list of branch, or [branch, upto]")]

PinMode = Annotated[Literal["keep", "freeze"], Meta(description='"keep" or "freeze"')]
PinKind = Annotated[
    Literal["copy", "transfer", "step", "cache"], Meta(description='"copy", "transfer", "step" or "cache"')
]

Time = Annotated[int, Meta(description="nanoseconds, a whole number: evidence only, never an order")]
Text = Annotated[str, Meta(description="a string")]
Flag = Annotated[bool, Meta(description="true or false")]
Device = Annotated[bool, Meta(description="true, when the host waits for every stream of its rank")]
