"""What holds between the steps of the append-only prefix cache, beside what holds of every ledger.

The parameters of a fact stand for every branch, block, position and identity.
"""

from __future__ import annotations

from kvsan.spec.lang.surface import Set, auxiliary, counted, empty, excess, helper, span
from kvsan.spec.ownership.state import Block, Branch, Identity, Pos, Slot

from .device import COMPUTE, COPY_WORK, STEP_WORK
from .ledger_facts import entries_differ  # noqa: F401  # and every fact beside it
from .owned_facts import held_is_owned  # noqa: F401
from .prefix_append_only import FILLING, IDLE, OUT, STEPPING, PrefixAppendOnly


@helper
def is_computed(s: PrefixAppendOnly, r: Branch) -> bool:
    """The tokens of branch r have been launched."""
    return s.phase[r] == IDLE or s.phase[r] == STEPPING


@helper
def whole(s: PrefixAppendOnly, b: Block) -> Set[Slot]:
    """Every slot of block b."""
    return span(0, s.slots_of[b])


@helper
def used(s: PrefixAppendOnly, r: Branch, p: Pos) -> Set[Slot]:
    """The slots of position p that hold tokens of branch r: while it looks blocks up, those of what it found."""
    tokens = s.length[r] if is_computed(s, r) else s.found[r] * s.block_size[r]
    return span(0, min(s.block_size[r], excess(tokens, p * s.block_size[r])))


@counted
def present_counted(s: PrefixAppendOnly, r: Branch) -> bool:
    """`present` is the number of requests that have come and not gone.

    Source: ours.
    Catches: a pool that settles while somebody is there.
    Except: none.
    Deviates: none.
    """
    return s.phase[r] != OUT


@auxiliary
def entries_reach_tokens(s: PrefixAppendOnly, r: Branch, p: Pos) -> bool:
    """A branch has an entry for each of its tokens, or while it collects blocks for each that it took.

    Source: vLLM 0.9.1 V1 `KVCacheManager.allocate_slots`.
    Catches: a table that is too short, or longer than its tokens.
    Except: none.
    Deviates: none.
    """
    return (s.table[r, p] is not None) == (
        p < s.filled[r] if s.phase[r] == FILLING else is_computed(s, r) and p * s.block_size[r] < s.length[r]
    )


@auxiliary
def prompt_is_had(s: PrefixAppendOnly, r: Branch) -> bool:
    """A branch has its prompt's tokens from its admission on, and nothing before.

    Source: ours.
    Catches: a prefill of other tokens than were admitted, an end that leaves something behind.
    Except: none.
    Deviates: none.
    """
    n = s.length[r]
    return (
        (s.phase[r] == OUT and n == 0 and s.filled[r] == 0)
        or (s.phase[r] == FILLING and n == s.prompt)
        or (is_computed(s, r) and s.prompt <= n and n <= s.capacity)
    )


@auxiliary
def finds_less_than_the_prompt(s: PrefixAppendOnly, r: Branch) -> bool:
    """A branch collects no more blocks than its prompt needs, and finds the first of them, not the last token's.

    Source: vLLM 0.9.1 V1 `KVCacheManager.get_computed_blocks`: the last token is always computed.
    Catches: a prefill that computes nothing, a block taken past the prompt.
    Except: none.
    Deviates: none.
    """
    size = s.block_size[r]
    return (
        s.found[r] <= s.filled[r]
        and (s.found[r] == 0 or s.found[r] * size < s.prompt)
        and excess(s.filled[r], 1) * size < s.prompt
    )


@auxiliary
def work_is_known(s: PrefixAppendOnly, q: Branch) -> bool:
    """A step is under way only for a branch that waits for it or is gone, and the stream is ordered after it; no copy.

    Source: CUDA stream semantics.
    Catches: a launch that does not wait for what it touches, a new request under the old one's name.
    Except: none.
    Deviates: none.
    """
    return not s.running[COPY_WORK, q] and (
        not s.running[STEP_WORK, q] or ((s.phase[q] == STEPPING or s.phase[q] == OUT) and q in s.tail_steps[COMPUTE])
    )


@auxiliary
def no_hit_waits(s: PrefixAppendOnly, r: Branch, b: Block) -> bool:
    """What was hit is mapped at once.

    Source: vLLM 0.9.1 V1 `BlockPool.touch`.
    Catches: a hit that holds nothing yet.
    Except: none.
    Deviates: none.
    """
    return s.hits[b] == 0 and s.hit_count[r, b] == 0 and s.hit_slots[r, b] == empty()


@auxiliary
def hashes_differ(s: PrefixAppendOnly, p: Pos, q: Pos) -> bool:
    """The blocks of the prompt have different identities.

    Source: ours.
    Catches: a cache that finds one block for another.
    Except: none.
    Deviates: none.
    """
    h = s.hash_of[p]
    return h is None or p == q or s.hash_of[q] != h


@auxiliary
def carries_whole_blocks(s: PrefixAppendOnly, b: Block, h: Identity, g: Identity) -> bool:
    """A block carries at most one identity, for all of its slots or for none; those are its sealed slots.

    Source: vLLM 0.9.1 V1 `BlockPool.cache_full_blocks`.
    Catches: a partial block in the cache, an identity that outlives its block.
    Except: none.
    Deviates: none.
    """
    return (s.carried[b, h] == empty() or (s.carried[b, h] == whole(s, b) and s.sealed[b] == whole(s, b))) and (
        h == g or s.carried[b, h] == empty() or s.carried[b, g] == empty()
    )


@auxiliary
def sealed_holds_the_prompt(s: PrefixAppendOnly, b: Block, h: Identity, p: Pos) -> bool:
    """What carries the identity of a prompt's position is full of the prompt's tokens of that position.

    Source: ours.
    Catches: a hit on something else than was asked for.
    Except: none.
    Deviates: none.
    """
    return s.hash_of[p] != h or s.carried[b, h] <= (s.written[b] & s.prompted[b, p])


@auxiliary
def sealed_is_written(s: PrefixAppendOnly, b: Block) -> bool:
    """Sealed slots are written: the seal and the step that fills them are one engine step.

    Source: vLLM 0.9.1 V1 `KVCacheManager.allocate_slots`.
    Catches: a seal whose step never comes.
    Except: none.
    Deviates: none.
    """
    return s.sealed[b] <= s.written[b]


@auxiliary
def shared_is_sealed(s: PrefixAppendOnly, r: Branch, p: Pos, h: Identity) -> bool:
    """A block in a table is sealed, by the identity of its position, or has one owner.

    Source: vLLM 0.9.1 V1: full blocks only are shared.
    Catches: a shared partial block, a block at another place than its tokens'.
    Except: none.
    Deviates: none.
    """
    b = s.table[r, p]
    return b is None or (
        (s.sealed[b] != empty() or s.owners[b] == 1) and (s.carried[b, h] == empty() or s.hash_of[p] == h)
    )


@auxiliary
def sealed_is_full(s: PrefixAppendOnly, r: Branch, p: Pos) -> bool:
    """A sealed block in a table lies below the end of the prompt; before the prefill it was found.

    Source: vLLM 0.9.1 V1 `BlockPool.cache_full_blocks`.
    Catches: a sealed tail.
    Except: none.
    Deviates: none.
    """
    b = s.table[r, p]
    return (
        b is None
        or s.sealed[b] == empty()
        or ((p + 1) * s.block_size[r] <= s.prompt and (s.phase[r] != FILLING or p < s.found[r]))
    )


@auxiliary
def nothing_leaves(s: PrefixAppendOnly, k: bool, p: Pos) -> bool:
    """Between steps nobody is about to give a block back.

    Source: ours.
    Catches: a block that is freed for the request that ended before.
    Except: none.
    Deviates: none.
    """
    return s.leaving[k, p] is None


@auxiliary
def tokens_are_written(s: PrefixAppendOnly, r: Branch, p: Pos) -> bool:
    """The slots of a branch's tokens are written.

    Source: ours.
    Catches: an attention over what nobody computed.
    Except: none.
    Deviates: none.
    """
    b = s.table[r, p]
    return b is None or used(s, r, p) <= s.written[b]


@auxiliary
def tokens_are_right(s: PrefixAppendOnly, r: Branch, p: Pos) -> bool:
    """A branch's tokens lie where its table says: the prompt's, whoever computed them, and its own.

    Source: ours; what `view_intact` says at rest.
    Catches: a token overwritten or left behind while its branch does not look.
    Except: none.
    Deviates: none.
    """
    b = s.table[r, p]
    return b is None or used(s, r, p) <= (s.right[b, r] & s.placed[b, p]) | s.prompted[b, p]
