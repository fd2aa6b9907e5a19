"""What holds between the steps of PagedAttention's copy-on-write, beside what holds of every ledger.

The parameters of a fact stand for every branch, block and position.
"""

from __future__ import annotations

from kvsan.spec.lang.surface import auxiliary, counted, empty, excess, helper, span
from kvsan.spec.ownership.state import Block, Branch, Pos

from .device import COMPUTE, COPIES, COPY_WORK, STEP_WORK
from .ledger_facts import entries_differ  # noqa: F401  # and every fact beside it
from .owned_facts import held_is_owned  # noqa: F401
from .paged_cow import (
    COPYING,
    DOOMED,
    EVENT_WAIT,
    FILLING,
    HOST_WAIT,
    OUT,
    SAME_STREAM,
    WAITING,
    PagedCow,
    copy_stream,
    tail,
    tail_pos,
    tail_slot,
)


@helper
def copies(s: PagedCow, r: Branch) -> bool:
    """The host waits for a copy of branch r."""
    return s.phase[r] == COPYING or s.phase[r] == DOOMED


@helper
def is_computed(s: PagedCow, r: Branch) -> bool:
    """The tokens of branch r have been launched."""
    return s.phase[r] != OUT and s.phase[r] != WAITING and s.phase[r] != FILLING


@counted
def present_counted(s: PagedCow, r: Branch) -> bool:
    """`present` is the number of branches that have come and not gone.

    Source: ours.
    Catches: a pool that settles while somebody is there.
    Except: none.
    Deviates: none.
    """
    return s.phase[r] != OUT


@auxiliary
def entries_reach_tokens(s: PagedCow, r: Branch, p: Pos) -> bool:
    """A branch has an entry for each of its tokens, or while it collects blocks for each that it took.

    Source: PagedAttention (SOSP'23) section 4.3.
    Catches: a table that is too short, or longer than its tokens.
    Except: none.
    Deviates: none.
    """
    return (s.table[r, p] is not None) == (
        p < s.filled[r] if s.phase[r] == FILLING else is_computed(s, r) and p * s.block_size[r] < s.length[r]
    )


@auxiliary
def collects_what_it_needs(s: PagedCow, r: Branch) -> bool:
    """A branch has collected no more blocks than its tokens need, and none unless it collects.

    Source: ours.
    Catches: a block taken past the last token.
    Except: none.
    Deviates: none.
    """
    return s.filled[r] == 0 or (s.phase[r] == FILLING and excess(s.filled[r], 1) * s.block_size[r] < s.length[r])


@auxiliary
def copy_has_ends(s: PagedCow, r: Branch) -> bool:
    """A branch has a source and a target just while the host waits for its copy; the source is its partial tail.

    Source: ours.
    Catches: a copy that outlives its branch, or whose source was replaced.
    Except: none.
    Deviates: none.
    """
    return (
        (s.source[r] is not None) == copies(s, r)
        and (s.target[r] is not None) == copies(s, r)
        and (s.schedule == HOST_WAIT or not copies(s, r))
        and (
            not copies(s, r)
            or (
                s.schedule == HOST_WAIT
                and s.length[r] < s.capacity
                and tail_slot(s, r) != 0
                and s.source[r] == tail(s, r)
            )
        )
    )


@auxiliary
def target_is_private(s: PagedCow, r: Branch, q: Branch, p: Pos) -> bool:
    """The target of a copy is held, in no table, and nobody else's target.

    Source: PagedAttention (SOSP'23) section 4.4.
    Catches: a target that somebody else sees.
    Except: none.
    Deviates: none.
    """
    b = s.target[r]
    return b is None or (s.held[b] and s.table[q, p] != b and (q == r or s.target[q] != b))


@auxiliary
def filled_targets(s: PagedCow, r: Branch, b: Block) -> bool:
    """What a branch fills is the target of its copy.

    Source: ours.
    Catches: an owner by a copy that nobody publishes.
    Except: none.
    Deviates: none.
    """
    return s.filling[r, b] == (s.target[r] == b)


@auxiliary
def collector_is_alone(s: PagedCow, r: Branch, p: Pos) -> bool:
    """A branch that collects blocks for its prefill is their sole owner.

    Source: ours.
    Catches: a fork of a branch whose prompt is not written yet.
    Except: none.
    Deviates: none.
    """
    b = s.table[r, p]
    return b is None or s.phase[r] != FILLING or s.owners[b] == 1


@auxiliary
def tokens_are_written(s: PagedCow, r: Branch, p: Pos) -> bool:
    """The slots of a branch's tokens are written, in its table and in the target of its copy.

    Source: ours.
    Catches: an attention over what a copy left out.
    Except: none.
    Deviates: none.
    """
    b, c = s.table[r, p], s.target[r]
    return (
        b is None
        or not is_computed(s, r)
        or span(0, min(s.block_size[r], excess(s.length[r], p * s.block_size[r]))) <= s.written[b]
    ) and (c is None or span(0, tail_slot(s, r)) <= s.written[c])


@auxiliary
def tokens_are_right(s: PagedCow, r: Branch, p: Pos) -> bool:
    """A branch's tokens lie where its table says, in the target of its copy too.

    Source: ours; what `view_intact` says at rest.
    Catches: a token overwritten or left behind while its branch does not look.
    Except: none.
    Deviates: none.
    """
    b, c = s.table[r, p], s.target[r]
    return (
        b is None
        or not is_computed(s, r)
        or span(0, min(s.block_size[r], excess(s.length[r], p * s.block_size[r]))) <= s.right[b, r] & s.placed[b, p]
    ) and (c is None or p != tail_pos(s, r) or span(0, tail_slot(s, r)) <= s.right[c, r] & s.placed[c, p])


@auxiliary
def work_is_ordered(s: PagedCow, q: Branch) -> bool:
    """Each stream is ordered after every step under way, and after every copy but where the host waits for it.

    Source: CUDA stream and event semantics; vLLM V0 queues copies and steps on one stream.
    Catches: a launch that does not wait for what it touches.
    Except: none.
    Deviates: none.
    """
    return (
        not s.running[STEP_WORK, q]
        or (q in s.tail_steps[COMPUTE] and (s.schedule == SAME_STREAM or q in s.tail_steps[COPIES]))
    ) and (
        not s.running[COPY_WORK, q]
        or (q in s.tail_copies[copy_stream(s)] and (s.schedule != EVENT_WAIT or q in s.tail_copies[COMPUTE]))
    )


@auxiliary
def awaited_copy_is_known(s: PagedCow, q: Branch, b: Block) -> bool:
    """Where the host waits, a copy under way reads its branch's source and writes its target, in this life of both.

    Source: ours.
    Catches: a copy that outlives what it touches.
    Except: none.
    Deviates: none.
    """
    return s.schedule != HOST_WAIT or (
        s.tail_copies[COMPUTE] == empty()
        and s.loads[COPY_WORK, q] == empty()
        and s.stores[COPY_WORK, q] == empty()
        and b not in s.former[COPY_WORK, q]
        and (
            not s.running[COPY_WORK, q]
            or (
                copies(s, q)
                and s.loads_part[COPY_WORK, q] == s.source[q]
                and s.stores_part[COPY_WORK, q] == s.target[q]
            )
        )
    )
