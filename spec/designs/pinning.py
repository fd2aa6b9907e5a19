"""The state of `transfers`, and what its steps are made of: pins taken and let go, a transfer begun and closed."""

from __future__ import annotations

from kvsan.spec.lang.surface import (
    Choice,
    Const,
    Ghost,
    Map,
    Set,
    empty,
    excess,
    helper,
    row,
    some,
    span,
)
from kvsan.spec.ownership.blocks import free, pin, unpin
from kvsan.spec.ownership.branches import finish
from kvsan.spec.ownership.contents import invalidate
from kvsan.spec.ownership.identities import seal
from kvsan.spec.ownership.state import (
    TRANSFER,
    Block,
    Branch,
    Count,
    Holder,
    Identity,
    Mode,
    Pos,
    Slot,
    Tokens,
)

from .contents import has_ended
from .handles import (
    INTO,
    Handles,
    moves_nothing,
)
from .prompt_contents import loses_prompt
from .returns import give_back_leaving, release


class Phase(Choice):
    """OUT: no request. FILLING: it collects blocks. LOADING: it waits for a transfer. LEAVING: it has ended, under a
    step."""

    names = ("OUT", "FILLING", "LOADING", "IDLE", "STEPPING", "LEAVING")


class Purpose(Choice):
    """What a transfer does. STORE_DUE, FETCH_DUE: it is decided, its source is pinned, and nothing moves yet."""

    names = ("NOTHING", "LOAD", "SEND", "STORE_DUE", "STORE", "FETCH_DUE", "FETCH")


class Mutant(Choice):
    """The one decision taken wrong; NONE is the right design."""

    names = (
        "NONE",
        "PIN_NOT_TAKEN",  # vllm#32255: nothing holds what a transfer writes but its request
        "PIN_TAKEN_TWICE",  # LMCache#3884
        "NEVER_RELEASED",  # sglang#20049, LMCache#2559
        "RELEASED_TWICE",  # LMCache#2954: retrieve and lookup_unpin both unpin
        "RELEASE_UNHELD",  # bytedance-iaas/sglang#748: an unlock of what was never locked
        "RELEASE_KEEPS_BLOCKS",  # LMCache#1130: the last unpin does not free
        "RELEASE_AT_FIRST_HANDLE",
        "CANCEL_FREES_AT_ONCE",  # vllm#32255, sglang#35049, LMCache#3130
        "FREE_AGAIN_ON_COMPLETION",  # vllm#25067
        "READ_FAILED_LOAD",
        "RESUME_AT_LAST_FAILURE",
        "SEAL_BEFORE_LOAD",  # vllm#49250: others share what has not come, or never will
        "STEP_UNDER_LOAD",
        "END_UNDER_STEP",  # vllm#47728: blocks are free while a step still runs, and a transfer writes them
        "NEVER_TIMES_OUT",  # vllm-ascend#16662, dynamo#3730
        "TIME_OUT_UNDER_LOAD",
        "TIME_OUT_UNDER_SEND",  # Mooncake#850: the lease ends before the transfer
        "LOAD_OVER_HITS",
        "APPEND_UNDER_SEND",
        "SEND_UNDER_STEP",
        "STORE_NOT_PINNED",  # vllm#29870
        "SEAL_STORE_AT_LAUNCH",
        "SEAL_FAILED_STORE",  # sglang#27108
        "LOOKUP_NOT_PINNED",  # vllm#39702
        "SOURCE_FREED_AT_LAUNCH",  # TensorRT-LLM#8813
    )


OUT, FILLING, LOADING = Phase("OUT"), Phase("FILLING"), Phase("LOADING")
IDLE, STEPPING, LEAVING = Phase("IDLE"), Phase("STEPPING"), Phase("LEAVING")

NOTHING, LOAD, SEND = Purpose("NOTHING"), Purpose("LOAD"), Purpose("SEND")
STORE_DUE, STORE = Purpose("STORE_DUE"), Purpose("STORE")
FETCH_DUE, FETCH = Purpose("FETCH_DUE"), Purpose("FETCH")

PIN_NOT_TAKEN = Mutant("PIN_NOT_TAKEN")
PIN_TAKEN_TWICE = Mutant("PIN_TAKEN_TWICE")
NEVER_RELEASED = Mutant("NEVER_RELEASED")
RELEASED_TWICE = Mutant("RELEASED_TWICE")
RELEASE_UNHELD = Mutant("RELEASE_UNHELD")
RELEASE_KEEPS_BLOCKS = Mutant("RELEASE_KEEPS_BLOCKS")
RELEASE_AT_FIRST_HANDLE = Mutant("RELEASE_AT_FIRST_HANDLE")
CANCEL_FREES_AT_ONCE = Mutant("CANCEL_FREES_AT_ONCE")
FREE_AGAIN_ON_COMPLETION = Mutant("FREE_AGAIN_ON_COMPLETION")
READ_FAILED_LOAD = Mutant("READ_FAILED_LOAD")
RESUME_AT_LAST_FAILURE = Mutant("RESUME_AT_LAST_FAILURE")
SEAL_BEFORE_LOAD = Mutant("SEAL_BEFORE_LOAD")
STEP_UNDER_LOAD = Mutant("STEP_UNDER_LOAD")
END_UNDER_STEP = Mutant("END_UNDER_STEP")
NEVER_TIMES_OUT = Mutant("NEVER_TIMES_OUT")
TIME_OUT_UNDER_LOAD = Mutant("TIME_OUT_UNDER_LOAD")
TIME_OUT_UNDER_SEND = Mutant("TIME_OUT_UNDER_SEND")
LOAD_OVER_HITS = Mutant("LOAD_OVER_HITS")
APPEND_UNDER_SEND = Mutant("APPEND_UNDER_SEND")
SEND_UNDER_STEP = Mutant("SEND_UNDER_STEP")
STORE_NOT_PINNED = Mutant("STORE_NOT_PINNED")
SEAL_STORE_AT_LAUNCH = Mutant("SEAL_STORE_AT_LAUNCH")
SEAL_FAILED_STORE = Mutant("SEAL_FAILED_STORE")
LOOKUP_NOT_PINNED = Mutant("LOOKUP_NOT_PINNED")
SOURCE_FREED_AT_LAUNCH = Mutant("SOURCE_FREED_AT_LAUNCH")


class Transfers(Handles):
    """The ledger, the device, the handles, the contents, and what requests and transfers are about to do.

    filled: a request's blocks, of which the first `computed` need not be computed, until its prefill. waits: the
    transfer that it waits for. kept: what a transfer fills or reads, by its place; source: what a copy reads. client:
    the request that it is for. lost: its completion never arrives.
    present, active: requests and transfers. spoiled: a transfer read what is not its request's.
    """

    prompt: Const[Tokens]
    capacity: Const[Tokens]
    tier_blocks: Const[Count]
    mutant: Const[Mutant]

    second_tier: Set[Block]
    prompt_hash: Identity
    phase: Map[Branch, Phase]
    filled: Map[Branch, Count]
    computed: Map[Branch, Count]
    waits: Map[Branch, Holder | None]
    present: Count

    purpose: Map[Holder, Purpose]
    client: Map[Holder, Branch | None]
    kept: Map[Holder, Pos, Block | None]
    source: Map[Holder, Block | None]
    lost: Map[Holder, bool]
    active: Count

    spoiled: Ghost[Map[Holder, bool]]


# --- words ------------------------------------------------------------------------------------------------------------


@helper
def may_start(s: Transfers, h: Holder) -> bool:
    """The transfer is none yet."""
    return s.purpose[h] == NOTHING and moves_nothing(s, h)


@helper
def covers_prompt(s: Transfers, r: Branch) -> bool:
    """The request has blocks for its whole prompt."""
    return s.filled[r] * s.block_size[r] >= s.prompt


@helper
def work_is_pending(s: Transfers, r: Branch) -> bool:
    """The request collects blocks, or waits for a transfer or a step. With all its blocks it waits for nothing: it may
    ask for a transfer, and again as often as one fails."""
    return (
        s.phase[r] == LOADING
        or s.phase[r] == STEPPING
        or s.phase[r] == LEAVING
        or (s.phase[r] == FILLING and not covers_prompt(s, r))
    )


@helper
def looks_up(s: Transfers, r: Branch) -> bool:
    """The request has no block yet, and the first one lies below its last token, which is always computed."""
    return s.phase[r] == FILLING and s.filled[r] == 0 and s.block_size[r] < s.prompt


@helper
def of_prompt(s: Transfers, r: Branch, p: Pos) -> Set[Slot]:
    """The slots of position p that hold the prompt."""
    return span(0, min(s.block_size[r], excess(s.prompt, p * s.block_size[r])))


@helper
def hold(s: Transfers, h: Holder, b: Block, mode: Mode) -> None:
    """The transfer pins a block."""
    if s.mutant != PIN_NOT_TAKEN:
        pin(s, b, h, mode, TRANSFER)
    if s.mutant == PIN_TAKEN_TWICE:
        pin(s, b, h, mode, TRANSFER)


@helper
def let_go(s: Transfers, h: Holder, b: Block) -> None:
    """The transfer pins a block no more."""
    if s.mutant == FREE_AGAIN_ON_COMPLETION and s.pins[b, h] == 0:
        free(s, b)
    elif s.mutant != PIN_NOT_TAKEN and s.mutant != NEVER_RELEASED:
        unpin(s, b, h, None, None)
        if s.mutant == RELEASED_TWICE:
            unpin(s, b, h, None, None)
        if s.mutant != RELEASE_KEEPS_BLOCKS:
            release(s, b)


@helper
def source_has_gone(s: Transfers, h: Holder) -> bool:
    """Under two mutants a fetch does not pin its source yet, or not any more."""
    return (s.purpose[h] == FETCH_DUE and s.mutant == LOOKUP_NOT_PINNED) or (
        s.purpose[h] == FETCH and s.mutant == SOURCE_FREED_AT_LAUNCH
    )


@helper
def still_moves(s: Transfers, h: Holder) -> bool:
    """Under two mutants a time-out does not tear the connection down."""
    return (s.purpose[h] == LOAD and s.mutant == TIME_OUT_UNDER_LOAD) or (
        s.purpose[h] == SEND and s.mutant == TIME_OUT_UNDER_SEND
    )


@helper
def begin(s: Transfers, h: Holder, purpose: Purpose, r: Branch | None) -> None:
    """A transfer is decided, for a request that waits for it where r is named."""
    s.purpose[h], s.client[h] = purpose, r
    s.active += 1


@helper
def close(s: Transfers, h: Holder) -> None:
    """The transfer is over: what it pinned goes, and who waits for it goes on."""
    src, r = s.source[h], s.client[h]
    for p in row(s.kept, h):
        b = some(s.kept[h, p])
        s.kept[h, p] = None
        let_go(s, h, b)
    if src is not None and not source_has_gone(s, h):
        let_go(s, h, src)
    if r is not None and s.waits[r] == h:
        s.waits[r] = None
        s.phase[r] = FILLING
    s.purpose[h], s.client[h], s.source[h] = NOTHING, None, None
    s.lost[h] = False
    s.active = excess(s.active, 1)


@helper
def fail(s: Transfers, h: Holder, p: Pos, b: Block) -> None:
    """What the handle for block b was to bring has not come; its request computes it."""
    r = s.client[h]
    if b in s.moving[INTO, h] and b not in s.past[h]:
        invalidate(s, b, 0, s.slots_of[b])
        loses_prompt(s, b, span(0, s.slots_of[b]))
    if r is not None and s.waits[r] == h and s.mutant != READ_FAILED_LOAD:
        s.computed[r] = p if s.mutant == RESUME_AT_LAST_FAILURE else min(p, s.computed[r])


@helper
def register(s: Transfers, b: Block, r: Branch | None) -> None:
    """A block that holds the first of the prompt is found by its hash from here on."""
    if s.carried[b, s.prompt_hash] == empty():
        seal(s, b, s.prompt_hash, r, 0, s.slots_of[b], None, None)


@helper
def go_away(s: Transfers, r: Branch) -> None:
    """A request is gone, and what nothing else holds is free; a transfer that is only due for it is over too."""
    h = s.waits[r]
    for p in row(s.table, r):
        b = some(s.table[r, p])
        if h is not None and s.pins[b, h] > 0 and s.mutant == FREE_AGAIN_ON_COMPLETION:
            unpin(s, b, h, None, None)
        if s.owners[b] == 1 and (s.keeps[b] == 0 or s.mutant == CANCEL_FREES_AT_ONCE):
            s.leaving[True, p] = b
    has_ended(s, r)
    finish(s, r)
    s.present = excess(s.present, 1)
    give_back_leaving(s)
    if h is not None and s.purpose[h] == FETCH_DUE:
        close(s, h)
