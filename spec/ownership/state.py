"""What the discipline knows: blocks, branches, pins and identities, and nothing about any engine."""

from __future__ import annotations

from typing import Annotated

from kvsan.spec.lang.surface import Below, Choice, Const, Derived, Map, Set, Sort, State, UpTo


class Block(Sort):
    """A physical block of one pool."""


class Branch(Sort):
    """One row of a block table: a sequence, and in a hybrid model one of its cache groups."""


class Holder(Sort):
    """Whoever pins a block: a transfer, a copy, a step, a prefix cache."""


class Identity(Sort):
    """A hash within its namespace."""


class Digest(Sort):
    """A digest of the content that an identity stands for."""


class Published(Sort):
    """A hash of the published KV stream, within its medium."""


class Pool(Sort):
    """A set of blocks with one free queue."""


class Mode(Choice):
    """How a pin holds its block: KEEP (may not be freed) or FREEZE (may not be written either)."""

    names = ("KEEP", "FREEZE")


class Kind(Choice):
    """What a pin is for."""

    names = ("COPY", "TRANSFER", "STEP", "CACHE")


KEEP, FREEZE = Mode("KEEP"), Mode("FREEZE")
COPY, TRANSFER, STEP, CACHE = Kind("COPY"), Kind("TRANSFER"), Kind("STEP"), Kind("CACHE")

Pos = Annotated[int, Below("positions")]
Slot = Annotated[int, Below("block_size")]
Slots = Annotated[int, UpTo("block_size")]
Tokens = Annotated[int, UpTo("tokens")]
Owners = Annotated[int, UpTo("branches")]
Count = Annotated[int, UpTo("count")]


class Ownership(State):
    """The ledger of one log or of one design."""

    # what the discipline and the header say
    block_size: Const[Map[Branch, Slots]]
    slots_of: Const[Map[Block, Slots]]
    pool_of: Const[Map[Block, Pool]]
    imaginary: Const[Map[Block, bool]]
    append_only: Const[bool]
    seals_partial: Const[bool]
    returns_lookahead: Const[bool]
    counts_pins: Const[bool]

    # a block's life
    held: Map[Block, bool]
    queued: Map[Block, bool]
    account: Map[Block, Branch | None]
    claimant: Map[Block, Branch | None]
    free: Derived[Map[Pool, Count]]
    shortages: Count
    idle_since: Map[Block, Count]

    # owners and what they agree on
    table: Map[Branch, Pos, Block | None]
    skipped: Map[Branch, Pos, bool]
    places: Derived[Map[Branch, Block, Count]]
    spot: Map[Branch, Block, Pos]
    filling: Map[Branch, Block, bool]
    owners: Derived[Map[Block, Owners]]
    agreed: Map[Block, Set[Slot]]
    replaced: Map[Branch, Block, bool]
    replaced_at: Map[Branch, Block, Pos]
    replaced_sole: Map[Branch, Block, bool]
    replaced_hidden: Map[Branch, Block, Set[Slot]]
    replacers: Map[Block, Set[Branch]]

    # a branch's tokens
    length: Map[Branch, Tokens]
    proposed: Map[Branch, Tokens]
    stale_from: Map[Branch, Tokens]
    stale_to: Map[Branch, Tokens]
    rolled_back: Map[Branch, bool]
    window_from: Map[Branch, Count]

    # contents
    written: Map[Block, Set[Slot]]
    hidden: Map[Branch, Block, Set[Slot]]
    nameless: Map[Block, bool]

    # identities
    carried: Map[Block, Identity, Set[Slot]]
    digests: Map[Block, Identity, Digest | None]
    publishes: Map[Block, Identity, Published | None]
    sealing: Map[Pool, bool]
    sealed: Map[Block, Set[Slot]]
    sealer: Map[Block, Branch | None]
    sealed_at: Map[Block, Pos | None]
    named: Map[Branch, Block, Set[Slot]]
    named_all: Map[Block, Set[Slot]]
    hits: Map[Block, Count]
    hit_count: Derived[Map[Branch, Block, Count]]
    hit_slots: Map[Branch, Block, Set[Slot]]
    hitters: Derived[Map[Block, Branch, bool]]
    hit_was_pinned: Map[Block, bool]
    open_hits: Map[Block, Count]
    open_slots: Map[Block, Set[Slot]]
    standing: Derived[Map[Identity, Count]]
    resident: Derived[Map[Published, Count]]
    streaming: bool
    stored: Map[Published, bool]

    # pins
    pins: Map[Block, Holder, Count]
    frozen_by: Map[Block, Holder, Count]
    cached_by: Map[Block, Holder, Count]
    keeps: Derived[Map[Block, Count]]
    freezes: Derived[Map[Block, Count]]
    cache_pins: Derived[Map[Block, Count]]
    has_pinned: Map[Holder, bool]

    # promises
    promised: Map[Branch, Count | None]
    taken: Map[Branch, Count]
    loose: Map[Branch, Count]
    failing: Map[Branch, bool]
