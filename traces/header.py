"""The first line of a log: which engine, under which discipline, over how many blocks."""

from typing import Annotated, Literal

from kvsan.traces.fields import BlockSize, Count, Name, Positive, Text, Time
from msgspec import Meta, Struct

SCHEMA = "kvsan/1"

Schema = Annotated[Literal["kvsan/1"], Meta(description='"kvsan/1", the version of the format')]
RefCounts = Annotated[Literal["owners", "owners+pins"], Meta(description='"owners" or "owners+pins"')]
Started = Annotated[Literal["empty", "mid_run"], Meta(description='"empty" or "mid_run"')]
Kinds = Annotated[tuple[str, ...], Meta(description="a list of event kinds")]


class PoolInfo(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A pool beside `gpu`: its number of blocks, and their size in slots (default: the header's)."""

    blocks: Positive
    block_size: BlockSize | None = None


class GroupInfo(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A cache group over the gpu pool: the slots its blocks hold (default: the header's)."""

    block_size: BlockSize | None = None


Pools = Annotated[dict[str, PoolInfo], Meta(description='an object such as {"cpu": {"blocks": 512, "block_size": 16}}')]
Groups = Annotated[dict[str, GroupInfo], Meta(description='an object such as {"1": {"block_size": 64}}')]


class Trace(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="ev", tag="trace"
):
    """The header. `blocks` and `block_size` (slots a block) describe the gpu pool, a null block included."""

    schema: Schema
    engine: Text
    version: Text
    discipline: Text
    block_size: BlockSize
    blocks: Positive
    null_block: Count | None = None
    ref_counts: RefCounts | None = None
    started: Started | None = None
    complete: Kinds | None = None
    pools: Pools | None = None
    groups: Groups | None = None
    legacy_stream: Name | None = None
    rank: Name | None = None
    clock: Text | None = None
    seq: Count | None = None
    t: Time | None = None
    note: Text | None = None
