"""One engine step for several branches, and what the host holds until it has seen that step complete.

A step is two launches on one stream: the copies that were queued, unordered with each other, and then the forward
pass, which writes the tokens of all its branches before any of them attends. The host may be one step ahead: it builds
the next step while one is under way, so two are under way until the older one's output is processed. A block can be
retained until a step is done: the step is a fence.

Where two steps of one branch are under way, the device remembers the later one only: it attends to all that the former
touched, so whatever conflicts with the former conflicts with it as well.
"""

from __future__ import annotations

from kvsan.spec.lang.surface import Choice, Const, Map, Set, empty, event, helper, obey, only, row, some, span
from kvsan.spec.ownership.blocks import pin, unpin
from kvsan.spec.ownership.contents import copy
from kvsan.spec.ownership.rules import copy_precedes_use, source_stable
from kvsan.spec.ownership.state import KEEP, Block, Branch, Holder, Kind, Slots, Tokens

from .attention import attend
from .device import (
    COPY_WORK,
    STEP_WORK,
    Stream,
    Work,
    join_tail,
    keep_copy,
    meet_copy,
    retire,
    retire_all,
    touch,
    write_tokens,
)
from .returns import Returns


class Step(Choice):
    """BUILT: the step that the scheduler is building. NEWER, OLDER: those under way; one alone is the newer."""

    names = ("BUILT", "NEWER", "OLDER")


BUILT, NEWER, OLDER = Step("BUILT"), Step("NEWER"), Step("OLDER")


class Batches(Returns):
    """What the next step is to do, what the steps under way did, and what they hold.

    ahead: the next step is built while one is under way. scheduled: the branches that the next step computes tokens for
    (from `first` on), and those for which it makes a copy (of `copied` slots, from `source` to `target`). flying: the
    branches of a step under way. retained: the blocks that stay until a step is done; one hold for each step is enough.
    """

    ahead: Const[bool]

    keeper: Holder
    scheduled: Map[Work, Branch, bool]
    first: Map[Branch, Tokens]
    source: Map[Branch, Block | None]
    target: Map[Branch, Block | None]
    copied: Map[Branch, Slots]
    flying: Map[Step, Work, Set[Branch]]
    retained: Map[Step, Block, bool]


# --- words ------------------------------------------------------------------------------------------------------------


@helper
def under_way(s: Batches, k: Step) -> bool:
    """Step k is launched, and its output not processed."""
    return s.flying[k, STEP_WORK] != empty() or s.flying[k, COPY_WORK] != empty()


@helper
def oldest(s: Batches) -> Step:
    """The step whose output comes next."""
    return OLDER if under_way(s, OLDER) else NEWER


@helper
def last_step(s: Batches, r: Branch) -> Step:
    """The last step under way that computes tokens for branch r; BUILT where there is none."""
    return NEWER if r in s.flying[NEWER, STEP_WORK] else OLDER if r in s.flying[OLDER, STEP_WORK] else BUILT


@helper
def may_build(s: Batches) -> bool:
    """The host is not too far ahead to schedule."""
    return not under_way(s, OLDER) and (s.ahead or not under_way(s, NEWER))


# --- holds ------------------------------------------------------------------------------------------------------------


@helper
def retain(s: Batches, k: Step, b: Block, kind: Kind) -> None:
    """Block b stays until step k is done."""
    if not s.retained[k, b]:
        pin(s, b, s.keeper, KEEP, kind)
        s.retained[k, b] = True


@helper
def let_go(s: Batches, k: Step, b: Block) -> None:
    """Step k holds block b no longer."""
    s.retained[k, b] = False
    unpin(s, b, s.keeper, None, None)


@helper
def queue_copy(s: Batches, r: Branch, old_tail: Block, new_tail: Block, slots: Slots) -> None:
    """The next step copies the first slots of one block to another before anything else."""
    s.source[r], s.target[r], s.copied[r] = old_tail, new_tail, slots
    s.scheduled[COPY_WORK, r] = True


# --- a step is launched and seen --------------------------------------------------------------------------------------


@helper
def judge_chains(s: Batches, r: Branch) -> None:
    """No copy of the launch reads or fills what another one fills: nothing orders them."""
    src, dst = some(s.source[r]), some(s.target[r])
    for q in row(s.scheduled, COPY_WORK):
        if q != r:
            obey(source_stable, some(s.target[q]) != src, "block {src} is filled and copied by one launch")
            obey(copy_precedes_use, some(s.target[q]) != dst, "block {dst} is filled by two copies of one launch")


@event
def launch_copies(s: Batches, t: Stream) -> None:
    """The queued copies, in one launch; each is made for the branch whose table shows its target, where one does."""
    for r in row(s.scheduled, COPY_WORK):
        src, dst, hi = some(s.source[r]), some(s.target[r]), s.copied[r]
        copy(s, r if s.places[r, dst] > 0 else None, src, dst, 0, hi)
        meet_copy(s, src, dst, span(0, hi), t)
    for r in row(s.scheduled, COPY_WORK):
        judge_chains(s, r)
    for r in row(s.scheduled, COPY_WORK):
        keep_copy(s, r, some(s.source[r]), some(s.target[r]), span(0, s.copied[r]))
        join_tail(s, COPY_WORK, r, t)
        s.flying[NEWER, COPY_WORK] = s.flying[NEWER, COPY_WORK] | only(r)


@event
def launch_forward(s: Batches, t: Stream) -> None:
    """The forward pass: every branch of the step writes its tokens, then each attends to all it has."""
    for r in row(s.scheduled, STEP_WORK):
        write_tokens(s, r, s.first[r], s.length[r])
    for r in row(s.scheduled, STEP_WORK):
        attend(s, r, s.length[r])
    for r in row(s.scheduled, STEP_WORK):
        if r in s.tail_steps[t]:
            retire(s, STEP_WORK, r)
        touch(s, r, s.first[r], s.length[r], s.length[r], t)
        join_tail(s, STEP_WORK, r, t)
        s.flying[NEWER, STEP_WORK] = s.flying[NEWER, STEP_WORK] | only(r)


@event
def learn_step(s: Batches, k: Step) -> None:
    """The host has the output of step k: what the step did is complete, and so is what it did before that."""
    later = s.flying[NEWER, STEP_WORK] if k == OLDER else empty()
    retire_all(s, s.flying[k, COPY_WORK], s.flying[k, STEP_WORK] - later)
    s.flying[k, COPY_WORK], s.flying[k, STEP_WORK] = empty(), empty()


@helper
def advance(s: Batches) -> None:
    """A step is about to be launched: the one under way becomes the older one, with all it holds."""
    s.flying[OLDER, COPY_WORK], s.flying[OLDER, STEP_WORK] = s.flying[NEWER, COPY_WORK], s.flying[NEWER, STEP_WORK]
    s.flying[NEWER, COPY_WORK], s.flying[NEWER, STEP_WORK] = empty(), empty()
    for b in row(s.retained, NEWER):
        s.retained[NEWER, b], s.retained[OLDER, b] = False, True


@helper
def clear_plan(s: Batches) -> None:
    """Nothing is scheduled any more: it is launched."""
    for r in row(s.scheduled, COPY_WORK):
        s.source[r], s.target[r], s.copied[r] = None, None, 0
        s.scheduled[COPY_WORK, r] = False
    for r in row(s.scheduled, STEP_WORK):
        s.first[r] = 0
        s.scheduled[STEP_WORK, r] = False
