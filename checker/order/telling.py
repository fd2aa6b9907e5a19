"""Breaches of order in words: one a root cause, with the call that would add the missing edge."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kvsan.spec.ownership.accesses import ORDER_RULES, Use

from .analysis import INITIALISED, Breach, Order, Unwritten, slots_of
from .clocks import APART
from .history import Access, Race

DEEDS = {
    Use.COPY_SOURCE: ("copies from", "the copy from it"),
    Use.COPY_TARGET: ("copies into", "the copy into it"),
    Use.WRITE: ("writes", "the write"),
    Use.ATTENTION: ("reads", "the attention"),
    Use.TRANSFER: ("reads", "the transfer's read"),
}
"""What a use does, and what it is called afterwards."""

NO_REUSE = 0


@dataclass(frozen=True)
class Told:
    """One root cause. block, branch: dense ids. tainted: every block it touches. earlier: the line of the access that
    was launched first, None where nothing was. note: what order there is between the two."""

    rule: str
    message: str
    missing: str
    block: int | None
    branch: int | None
    tainted: tuple[int, ...]
    blocks: tuple[int, ...] = ()
    earlier: int | None = None
    note: str = ""


def tell(order: Order, breaches: Iterable[Breach], silent: Iterable[int]) -> list[Told]:
    """The root causes among the breaches of one event, those of `silent` blocks left out, by precedence of rules."""
    mute = set(silent)
    worst: dict[int, Breach] = {}
    holes: dict[int, Unwritten] = {}
    for breach in breaches:
        if breach.block is None:
            assert isinstance(breach, Unwritten)
            holes.setdefault(breach.branch, breach)
        elif breach.block not in mute and (breach.block not in worst or worse(breach, worst[breach.block])):
            worst[breach.block] = breach
    passed_on = spread({b for b, breach in worst.items() if isinstance(breach, Race)} | mute, order.copies)
    worst = {b: breach for b, breach in worst.items() if isinstance(breach, Race) or b not in passed_on}
    groups: dict[tuple[int, ...], list[Breach]] = {}
    for breach in worst.values():
        groups.setdefault(root(breach), []).append(breach)
    told = [of_group(order, min(group, key=rank), group) for _, group in sorted(groups.items())]
    if told and passed_on - worst.keys() - mute:
        more = tuple(sorted(passed_on - worst.keys() - mute))
        told[0] = replace(told[0], tainted=told[0].tainted + more)
    return told + [no_entry(order, hole) for hole in holes.values()]


def spread(bad: set[int], copied: Sequence[tuple[int, int]]) -> set[int]:
    """A copy passes on what is wrong with its source. The copies of one event, in the order listed and again."""
    reached = set(bad)
    for _ in copied:
        more = {dst for src, dst in copied if src in reached} - reached
        if not more:
            break
        reached |= more
    return reached


def worse(breach: Breach, other: Breach) -> bool:
    """Whether it is to be told instead of one that was judged before it.

    A launch that races with an access by what it writes, and then reads what it wrote, is told by the write.
    """
    again = isinstance(breach, Race) and isinstance(other, Race) and breach.earlier == other.earlier
    return not again and rank(breach) < rank(other)


def rank(breach: Breach) -> tuple[int, int]:
    """The first rule that fits; of several pairs the one whose order would bring that of the others."""
    return (INITIALISED, 1) if isinstance(breach, Unwritten) else (breach.rule, -breach.earlier.at)


def root(breach: Breach) -> tuple[int, ...]:
    """Breaches with the same root cause: no edge between two timelines, one launch's copies, one branch's tokens."""
    if isinstance(breach, Unwritten):
        return INITIALISED, 1, breach.branch
    if within(breach):
        return breach.rule, 2, breach.block
    return breach.rule, 0, breach.earlier.lane


def within(race: Race) -> bool:
    return (race.earlier.lane, race.earlier.at) == (race.later.lane, race.later.at)


def of_group(order: Order, breach: Breach, group: Sequence[Breach]) -> Told:
    blocks = tuple(sorted(b.block for b in group if b.block is not None))
    more = f", and {len(blocks) - 1} more" if len(blocks) > 1 else ""
    if isinstance(breach, Unwritten):
        return unwritten(order, breach, blocks, more)
    return race_between(order, breach, blocks, more)


def race_between(order: Order, race: Race, blocks: tuple[int, ...], more: str) -> Told:
    name, slots = order.feed.describe("Block", race.block), slots_of(race.later.mask)
    earlier, later = lane_name(order, race.earlier), lane_name(order, race.later)
    does, called = DEEDS[Use(race.later.use)][0], DEEDS[Use(race.earlier.use)][1]
    rule = ORDER_RULES[race.rule].name
    if within(race):
        return Told(
            rule=rule,
            message=f"one copy of a launch {does} slots {slots} of block {name}, another "
            f"{DEEDS[Use(race.earlier.use)][0]} them{more}: copies of one launch are unordered",
            missing=f"a launch of its own for each of the two copies, or another target than block {name}",
            block=race.block,
            branch=None,
            tainted=blocks,
            blocks=blocks,
            earlier=race.earlier.line,
        )
    former = ", in a former life of the block" if race.rule == NO_REUSE else ""
    alone = apart(order, race.earlier)
    seen = 0 if alone else race.known.get(race.earlier.lane, 0)
    order_there_is = f"only what {earlier} did before it comes before {later}" if seen else f"nothing of {earlier} does"
    return Told(
        rule=rule,
        message=f"{later} {does} slots {slots} of block {name}{more}{launched(order, race.later.line)}, not ordered "
        f"after {called} {'of' if alone else 'on'} {earlier}{launched(order, race.earlier.line)}{former}",
        missing=edge(order, race, earlier, later),
        block=race.block,
        branch=race.branch if race.later.use == Use.ATTENTION else None,
        tainted=blocks,
        blocks=blocks,
        earlier=race.earlier.line,
        note=order_there_is if seen else f"nothing of {earlier} comes before {later}",
    )


def launched(order: Order, line: int) -> str:
    """Where the launch of an event stands in the order, if not at the event's own line."""
    begun = order.begun(line)
    return "" if begun == line else f", launched at line {begun}"


def before(order: Order, line: int) -> str:
    """Before that."""
    begun = order.begun(line)
    return "before this line" if begun == line else f"before line {begun}"


def edge(order: Order, race: Race, earlier: str, later: str) -> str:
    """The call that would order the two."""
    in_time = before(order, race.later.line)
    op = f"op {race.earlier.op}" if race.earlier.op is not None else "it"
    reuse = f", and block {order.feed.describe('Block', race.block)} pinned until then" if race.rule == NO_REUSE else ""
    if earlier.startswith("thread"):
        return f"a signal by {earlier} after it, and an await {in_time}"
    known = f"`done` of {op}" if race.earlier.op is not None else "a sync"
    if later.startswith("thread") or apart(order, race.earlier) or apart(order, race.later):
        wait = "" if apart(order, race.earlier) else f" (or a sync of {earlier})"
        return f"{known}{wait} {in_time}{reuse}"
    return f"a record on {earlier} after {op} and a wait for it on {later}, or {known}, {in_time}{reuse}"


def unwritten(order: Order, breach: Unwritten, blocks: tuple[int, ...], more: str) -> Told:
    assert breach.block is not None
    name, slots = order.feed.describe("Block", breach.block), slots_of(breach.mask)
    branch = order.feed.describe("Branch", breach.branch)
    return Told(
        rule=ORDER_RULES[INITIALISED].name,
        message=f"branch {branch} reads slots {slots} of block {name}{more}{launched(order, order.line)}, which were "
        "not written in this life",
        missing=f"a write of slots {slots} of block {name}, or a copy that brings them, {before(order, order.line)}",
        block=breach.block,
        branch=breach.branch,
        tainted=blocks,
        blocks=blocks,
    )


def no_entry(order: Order, breach: Unwritten) -> Told:
    branch = order.feed.describe("Branch", breach.branch)
    return Told(
        rule=ORDER_RULES[INITIALISED].name,
        message=f"branch {branch} reads tokens at position {breach.pos}, where its table has no entry",
        missing=f"a map of position {breach.pos}, or a window above it, before this line",
        block=None,
        branch=breach.branch,
        tainted=(),
    )


def apart(order: Order, access: Access) -> bool:
    """It is on no stream."""
    return order.clocks.timelines[access.lane].name == APART


def lane_name(order: Order, access: Access) -> str:
    """The thread or stream of an access; an op on no stream stands for itself."""
    return f"op {access.op}" if apart(order, access) else order.clocks.timelines[access.lane].name
