"""What holds between the steps of the reference machine, beside what holds of every ledger.

The parameters of a fact stand for every branch, position and token.
"""

from __future__ import annotations

from kvsan.spec.lang.surface import auxiliary, excess, span
from kvsan.spec.ownership.state import Block, Branch, Pos, Slot

from .ledger_facts import entries_differ  # noqa: F401  # and every fact beside it
from .tail_copy import COPIED, COPYING, IDLE, WRITING, TailCopy, Token, tail, tail_slot


@auxiliary
def only_the_living_hold(s: TailCopy, r: Branch) -> bool:
    """A branch that is not alive is idle and has no tokens.

    Source: ours.
    Catches: an end that leaves something behind.
    Except: none.
    Deviates: none.
    """
    return s.alive[r] or (s.phase[r] == IDLE and s.length[r] == 0)


@auxiliary
def entries_reach_length(s: TailCopy, r: Branch, p: Pos) -> bool:
    """A branch has an entry for each of its tokens, and while it writes for the next one.

    Source: PagedAttention (SOSP'23) section 4.3.
    Catches: a table that is too short, or longer than its tokens.
    Except: none.
    Deviates: none.
    """
    start = p * s.block_size[r]
    return (s.table[r, p] is not None) == (start < s.length[r] or (s.phase[r] == WRITING and start == s.length[r]))


@auxiliary
def room_to_write(s: TailCopy, r: Branch) -> bool:
    """A branch that appends has room for the token, and holds its prompt.

    Source: ours.
    Catches: an append past capacity.
    Except: none.
    Deviates: none.
    """
    return (s.phase[r] == IDLE or s.length[r] < s.capacity) and (not s.alive[r] or s.length[r] >= s.prompt)


@auxiliary
def copy_has_ends(s: TailCopy, r: Branch) -> bool:
    """A branch has a source and a target just while it copies; the source is its partial tail.

    Source: ours.
    Catches: a copy that outlives its branch, or whose source was replaced.
    Except: none.
    Deviates: none.
    """
    copying = s.phase[r] == COPYING or s.phase[r] == COPIED
    return (
        (s.source[r] is not None) == copying
        and (s.target[r] is not None) == copying
        and (not copying or (tail_slot(s, r) != 0 and s.source[r] == tail(s, r)))
    )


@auxiliary
def target_is_private(s: TailCopy, r: Branch, q: Branch, p: Pos) -> bool:
    """The target of a copy is held, in no table, on the account of its branch, and nobody else's target.

    Source: PagedAttention (SOSP'23) section 4.4.
    Catches: a target that somebody else sees.
    Except: none.
    Deviates: none.
    """
    b = s.target[r]
    return b is None or (s.held[b] and s.account[b] == r and s.table[q, p] != b and (q == r or s.target[q] != b))


@auxiliary
def filled_targets(s: TailCopy, r: Branch, b: Block) -> bool:
    """What a branch fills is the target of its finished copy.

    Source: ours.
    Catches: an owner by a copy that nobody publishes.
    Except: none.
    Deviates: none.
    """
    return s.filling[r, b] == (s.target[r] == b and s.phase[r] == COPIED)


@auxiliary
def held_is_owned(s: TailCopy, b: Block) -> bool:
    """A held block has an owner, or is the target of the copy of the branch that took it.

    Source: ours; the standing form of `no_leak`, for a machine that never says that nothing is running.
    Catches: a block that nobody gives back.
    Except: none.
    Deviates: none.
    """
    r = s.account[b]
    return not s.held[b] or s.owners[b] > 0 or (r is not None and s.target[r] == b)


@auxiliary
def writer_is_alone(s: TailCopy, r: Branch) -> bool:
    """A branch that writes is the sole owner of its tail; the standing form of `exclusive_write`.

    Source: PagedAttention (SOSP'23) section 4.4.
    Catches: an append that became one into a shared tail after it was decided.
    Except: none.
    Deviates: none.
    """
    return s.phase[r] != WRITING or s.owners[tail(s, r)] == 1


@auxiliary
def tokens_are_written(s: TailCopy, r: Branch, p: Pos) -> bool:
    """The slots of a branch's tokens are written, in its table and in its finished copy.

    Source: ours.
    Catches: an attention over what a copy left out.
    Except: none.
    Deviates: none.
    """
    b = s.table[r, p]
    c = s.target[r]
    return (b is None or span(0, min(s.block_size[r], excess(s.length[r], p * s.block_size[r]))) <= s.written[b]) and (
        c is None or s.phase[r] != COPIED or span(0, tail_slot(s, r)) <= s.written[c]
    )


@auxiliary
def tokens_have_authors(s: TailCopy, r: Branch, t: Token) -> bool:
    """Each token of a branch lies where its table says; the prompt has no author.

    Source: ours; what `view_intact` says at rest.
    Catches: a token overwritten or left behind while its branch does not look.
    Except: none.
    Deviates: none.
    """
    size = s.block_size[r]
    b = s.table[r, t // size]
    return b is None or (
        (t >= s.length[r] or s.author[b, t % size] == s.expected[r, t])
        and (t >= s.prompt or s.author[b, t % size] is None)
    )


@auxiliary
def expected_is_had(s: TailCopy, r: Branch, t: Token) -> bool:
    """A token is expected of a branch only below its length.

    Source: ours.
    Catches: an expectation that outlives its branch.
    Except: none.
    Deviates: none.
    """
    return s.expected[r, t] is None or t < s.length[r]


@auxiliary
def copies_have_authors(s: TailCopy, r: Branch, i: Slot) -> bool:
    """A target has no authors before its copy is complete, and then those of its source.

    Source: ours.
    Catches: a copy that mixes two lives of a block.
    Except: none.
    Deviates: none.
    """
    b, c = s.source[r], s.target[r]
    return (
        b is None or c is None or (s.author[c, i] == s.author[b, i] if s.phase[r] == COPIED else s.author[c, i] is None)
    )
