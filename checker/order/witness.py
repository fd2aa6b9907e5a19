"""A witness of a race: the events of the log that matter, in an order that all recorded order allows, and in which the
two accesses happen the wrong way round. `run` events mark where launches happen.

The host's events stay in the order of the log; what the earlier access precedes is put behind the later one, or left
out where a thread knows of it. Then events are taken out as long as the replay reports the breach, and no other that it
did not report of the log. Where a thread makes the earlier access, or waits for it at once, it comes last in the
witness, and the replay reports the block there, or at the other access. Where nothing orders the later access behind
the begin of its life either, the two come in one life, under the rule for that. Slots that nobody wrote need no other
order: the witness is what of the log is needed to read them.

What is before a gap is not known at the breach, so the witness begins after it, mid-run. So does that of a long log: it
begins with the life of the block in which the earlier access is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kvsan.checker.replay.again import block_and_pool
from kvsan.checker.replay.check import check
from kvsan.checker.replay.kinds import names_threads, occurring_kinds
from kvsan.checker.replay.outcome import Violation
from kvsan.checker.replay.recorded import recorded_kinds
from kvsan.checker.replay.replay import Finding, Replay
from kvsan.spec.ownership.accesses import ORDER_RULES
from kvsan.spec.ownership.rules import no_reuse_in_flight
from kvsan.traces import events as ev
from kvsan.traces.read import Gap, Log
from msgspec import structs

from .analysis import Order
from .schedule import Events, Impossible, NoWitness, in_turn, op_of, ran, scheduled
from .together import Together

ORDER_NAMES = frozenset(rule.name for rule in ORDER_RULES)

REUSE = no_reuse_in_flight.name

LONG = 200_000
"""Events before a breach; of more, only those since the block's life began are looked at."""

TRIALS, EFFORT = 2000, 2_000_000
"""Replays that the minimisation may take, and events that it may replay."""


@dataclass(frozen=True)
class Witness:
    """A log: its header, and its events."""

    header: ev.Trace
    events: Events


@dataclass(frozen=True)
class Said:
    """What a replay says of a breach; it is the same breach in another log where this is equal.

    races: it is with an earlier access. A read of what was not written in time would break the same rule without one.
    """

    rule: str
    block: str | None
    branch: str | None
    event: str
    races: bool

    @classmethod
    def of(cls, found: Violation) -> Said:
        return cls(found.rule, found.block, found.branch, repr(found.event), found.earlier is not None)


def witness(log: Log, found: Violation) -> Witness:
    """The witness of a breach of an order rule that `check` found in the log. Raises NoWitness."""
    header = log.header
    if header is None or found.rule not in ORDER_NAMES:
        raise NoWitness(f"{found.rule} is not about order")
    occurring, reads = occurring_kinds(log, lambda _: False)
    recorded = recorded_kinds(occurring, header.complete, reads)
    one_thread = not names_threads(log)

    def fresh(begun: ev.Trace = header, hears: Callable[..., Order] = Order) -> Replay:
        return Replay(begun, recorded, occurring, one_thread=one_thread, hears=hears)

    cut = possible_first(log, found, fresh())
    if cut.spread:
        together = Together(log, fresh)
        found = together.found(found)
        cut = possible_first(together, found, fresh())
    late_start = structs.replace(header, started="mid_run", seq=None)
    header = late_start if cut.mid_run else structs.replace(header, seq=None)
    kept, stay = [*cut.kept, *cut.moved], 1 + len(cut.moved)

    def breaches(events: Events) -> list[Finding]:
        replay = fresh(header)
        replay.perform([*enumerate(events, 2)])
        return replay.findings

    def said(events: Events) -> set[Said]:
        return {Said.of(f.violation) for f in breaches(events)}

    told = said(kept)
    aims = [aim := Said.of(found)]
    if cut.moved or (found.rule == REUSE and aim not in told):
        near = [s for s in told if s.block == found.block and s.rule in ORDER_NAMES]
        aims = [s for s in near if cut.moved or (s.event == aim.event and s.races)]
    if len(aims) != 1 or aims[0] not in told:
        begins = "from where its log has to begin, " if cut.mid_run else ""
        raise NoWitness(f"{begins}the other order of the two accesses is not reported as this breach alone")

    def same(events: Events) -> bool:
        now = said(events)
        return aims[0] in now and now <= told

    kept = minimal(kept, same, stay)
    if found.earlier is not None and not cut.moved:
        (aimed,) = (f for f in breaches(kept) if Said.of(f.violation) == aims[0])
        kept = scheduled(kept, fresh(header), aimed)
    else:
        kept = in_turn(kept)
    made = Witness(header, [structs.replace(event, seq=None) for event in kept])
    return confirmed(made, aims[0], fresh())


def confirmed(made: Witness, aim: Said, whole: Replay) -> Witness:
    """The witness, if a check of it finds the breach; if need be its header says what the log records, of which few
    kinds are left. whole: a replay of the log. Raises NoWitness."""
    try:
        ran(made.events, made.header.legacy_stream)
    except Impossible as reason:
        raise NoWitness(f"recorded order forbids the events that show it: {reason}") from reason
    lacking = {kind for kinds in whole.silenced.values() for kind in kinds}
    complete = structs.replace(made.header, complete=tuple(sorted(ev.EVENT_TYPES.keys() - lacking)))
    for header in (made.header, complete):
        found = check([header, *made.events]).violations
        if any((v.rule, v.block, v.branch) == (aim.rule, aim.block, aim.branch) for v in found):
            return Witness(header, made.events)
    raise NoWitness("the few events that show it show too little of the engine to be judged alone")


def beginning(log: Log | Together, found: Violation) -> int:
    """The line from which on the log is looked at: all of it, or since the life of the block that the breach is in."""
    count, first, at = 0, 1, found.earlier or found.line
    for line, event in events_until(log, found.line):
        count += 1
        if line <= at and isinstance(event, ev.Alloc) and found.block is not None and names(event, found.block):
            first = line
    return 1 if count <= LONG else first if first > 1 else at


def events_until(log: Log | Together, last: int) -> Iterator[tuple[int, ev.Event | Gap]]:
    for batch in log.batches():
        for line, event in batch:
            if line > last:
                return
            yield line, event


def names(event: ev.Alloc, block: str) -> bool:
    number, pool = block_and_pool(block)
    ids = (event.block,) if isinstance(event.block, int) else event.block
    return int(number) in ids and pool == (event.pool or "gpu")


@dataclass
class Cut:
    """The events up to the later access that need not come after the earlier one, and it.

    moved: the earlier access, where its thread makes it or waits for it: `kept` is without it. mid_run: there were
    others before. spread: the log has to be read with the events of its launches together.
    """

    kept: Events
    moved: Events
    mid_run: bool
    spread: bool = False


def possible_first(log: Log | Together, found: Violation, replay: Replay) -> Cut:
    """What of the log can come first. Raises NoWitness."""
    first = beginning(log, found)
    cut = Cut([], [], first > 1)
    number = count = -1
    for line, event in events_until(log, found.line):
        replay.perform([(line, event)])
        if isinstance(event, Gap):
            cut, number = Cut([], [], True), -1
            continue
        clocks = replay.order.clocks
        host = clocks.thread(event.thread)
        if line == found.earlier:
            number, count, _ = clocks.here
            if number == host.number or op_of(event) is None:
                cut.moved.append(event)
        lanes = [host]
        if cut.moved and getattr(event, "stream", None) is not None:
            lanes.append(clocks.stream(event.stream))  # type: ignore[union-attr]  # those that name one
        after = any(lane.number == number or lane.known.get(number, 0) >= count for lane in lanes)
        if line >= first and (number < 0 or line == found.line or not after):
            cut.kept.append(event)
        if line == found.line:
            cut.spread = replay.misjudged or line < (found.earlier or 0)
            return cut
    raise NoWitness("the log does not come so far")


def minimal(events: Events, same: Callable[[Events], bool], stay: int) -> Events:
    """Take out events, in ever smaller pieces, as long as the breach is the same; the last `stay` ones stay."""
    size, trials, effort = max(1, len(events) // 2), 0, 0
    while True:
        at, smaller = 0, False
        while at < len(events) - stay and trials < TRIALS and effort < EFFORT:
            fewer = events[:at] + events[min(at + size, len(events) - stay) :]
            trials, effort = trials + 1, effort + len(fewer)
            if same(fewer):
                events, smaller = fewer, True
            else:
                at += size
        if (size == 1 and not smaller) or trials >= TRIALS or effort >= EFFORT:
            return events
        size = max(1, size // 2)
