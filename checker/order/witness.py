"""A witness of a race: the events of the log that matter, in an order that all recorded order allows, and in which the
two accesses happen the wrong way round. `run` events mark where launches happen.

The host's events stay in the order of the log; what the earlier access precedes is put behind the later one, or left
out where it is a thread's. Then events are taken out as long as the replay reports the same breach. Where the earlier
access is a thread's own, it comes last in the witness, and the replay reports the block there, or at the other access.
Slots that nobody wrote need no other order: the witness is what of the log is needed to read them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from kvsan.checker.replay.kinds import names_threads, occurring_kinds
from kvsan.checker.replay.outcome import Violation
from kvsan.checker.replay.recorded import recorded_kinds
from kvsan.checker.replay.replay import Replay
from kvsan.checker.replay.wording import event_fields
from kvsan.spec.ownership.accesses import ORDER_RULES
from kvsan.traces import events as ev
from kvsan.traces.read import Gap, Log
from msgspec import structs

ORDER_NAMES = frozenset(rule.name for rule in ORDER_RULES)

TRIALS = 2000
"""Replays that the minimisation may take."""

Events = list[ev.Event]


def witness(log: Log, found: Violation) -> Events | None:
    """The events of a witness of a race that `check` found in the log, the header aside; None where there is none."""
    if log.header is None or found.rule not in ORDER_NAMES:
        return None
    occurring, reads = occurring_kinds(log, lambda _: False)
    recorded = recorded_kinds(occurring, log.header.complete, reads)
    header, one_thread = log.header, not names_threads(log)

    def fresh() -> Replay:
        return Replay(header, recorded, occurring, one_thread=one_thread)

    kept, moved = possible_first(log, found, fresh())
    if not kept:
        return None
    fixed = [kept[-1]] if moved is None else [kept[-1], moved]
    kept += fixed[1:]

    def breaches(events: Events) -> list[tuple[str, str | None, dict[str, object]]]:
        replay = fresh()
        replay.perform([*enumerate(events, 2)])
        return [(f.violation.rule, f.violation.block, f.violation.event) for f in replay.findings]

    wanted = [(found.rule, found.block, event_fields(kept[-1]))]
    told = breaches(kept)
    if (moved is None and told != wanted) or [block for _, block, _ in told] != [found.block]:
        return None
    kept = minimal(kept, lambda events: breaches(events) == told, len(fixed))
    late = found.earlier is not None and moved is None
    made = scheduled(kept, fresh()) if late else in_turn(kept)
    return None if made is None else [structs.replace(event, seq=None) for event in made]


def possible_first(log: Log, found: Violation, replay: Replay) -> tuple[Events, ev.Event | None]:
    """The events up to the later access that need not come after the earlier one, and it; none where that cannot be
    told. And the earlier access, where it is a thread's own: the events are then without it."""
    kept: Events = []
    moved: ev.Event | None = None
    clocks = replay.order.clocks
    number = count = -1
    for batch in log.batches():
        for line, event in batch:
            if line > found.line or isinstance(event, Gap):
                return [], None
            replay.perform([(line, event)])
            host = clocks.thread(event.thread)
            if line == found.earlier:
                number, count, _ = clocks.here
                if number == host.number:
                    moved = event
            after = number == host.number or host.known.get(number, 0) >= count
            if number < 0 or line == found.line or not after:
                kept.append(event)
            if line == found.line:
                return kept, moved
    return [], None


def minimal(events: Events, same: Callable[[Events], bool], stay: int) -> Events:
    """Take out events, in ever smaller pieces, as long as the breach is the same; the last `stay` ones stay."""
    size, trials = max(1, len(events) // 2), 0
    while True:
        at, smaller = 0, False
        while at < len(events) - stay and trials < TRIALS:
            fewer = events[:at] + events[min(at + size, len(events) - stay) :]
            trials += 1
            if same(fewer):
                events, smaller = fewer, True
            else:
                at += size
        if (size == 1 and not smaller) or trials >= TRIALS:
            return events
        size = max(1, size // 2)


def scheduled(events: Events, replay: Replay) -> Events | None:
    """The events with `run` behind each launch; the earlier access of the race, and what follows it, after the last."""
    clocks = replay.order.clocks
    lines = [*enumerate(events, 2)]
    replay.perform(lines)
    told = replay.findings[0].told
    if told is None or told.earlier is None:
        return None
    if told.earlier == lines[-1][0]:
        return exchanged(events)
    earlier = events[told.earlier - 2]
    late = op_of(earlier)
    if late is None:
        return None
    point = clocks.ops[late].point
    out: Events = []
    behind: list[Hashable] = []
    for i, event in enumerate(events):
        out.append(event)
        op = op_of(event)
        if op is None or isinstance(event, ev.Done | ev.Run) or op in map(op_of, events[i + 1 :]):
            continue
        lane, at, known = clocks.ops[op].point
        after = (lane == point.number and at >= point.upto) or known.get(point.number, 0) >= point.upto
        if after:
            behind.append(op)
        else:
            out.append(ev.Run(op=op))  # type: ignore[arg-type]  # a name, as the log has it
    out += [ev.Run(op=op) for op in behind]  # type: ignore[arg-type]  # the same
    return out


def in_turn(events: Events) -> Events:
    """The events with `run` behind the last event of each launch."""
    out: Events = []
    for i, event in enumerate(events):
        out.append(event)
        op = op_of(event)
        if op is not None and not isinstance(event, ev.Done) and op not in map(op_of, events[i + 1 :]):
            out.append(ev.Run(op=op))  # type: ignore[arg-type]  # a name, as the log has it
    return out


def exchanged(events: Events) -> Events | None:
    """Copies of one launch, made in the other order."""
    last = events[-1]
    if not isinstance(last, ev.Step):
        return None
    copies = tuple(reversed(last.copies))
    step = ev.Step(op=last.op, stream=last.stream, copies=copies, writes=last.writes, reads=last.reads)
    return [*events[:-1], step, ev.Run(op=last.op)]


def op_of(event: ev.Event) -> Hashable | None:
    """The op that an access belongs to, or that a `done` is about."""
    op: Hashable | None = getattr(event, "op", None)
    return op


class Impossible(ValueError):
    """A schedule that recorded order forbids."""


def ran(events: Sequence[ev.Event], legacy: Hashable | None = None) -> list[Hashable]:
    """The ops in the order in which their `run` events make them happen.

    Knows queues and what waits for what, and nothing of clocks. Raises Impossible where an op runs before what its
    stream holds before it, or what that waits for, or where the host learns that an op is complete before it ran.
    """
    queues: dict[Hashable, list[tuple[Hashable | None, list[Hashable]]]] = {}
    ahead: dict[Hashable, list[Hashable]] = {}
    records: dict[Hashable, list[Hashable]] = {}
    happened: list[Hashable] = []

    def before(stream: Hashable) -> list[Hashable]:
        """Every op that what is put on the stream now comes after."""
        streams = list(queues) if stream == legacy else [s for s in (stream, legacy) if s in queues]
        return [op for s in streams for own, waits in queues[s] for op in ([own] if own is not None else []) + waits]

    def needed(ops: Sequence[Hashable], by: str) -> None:
        missing = [op for op in ops if op not in happened]
        if missing:
            raise Impossible(f"{by} comes after {', '.join(map(str, missing))}")

    for event in events:
        match event:
            case ev.Write() | ev.Read() | ev.Copy() | ev.Step():
                if event.op is None:
                    needed(before(event.stream) if event.stream is not None else (), "a synchronous access")
                elif event.op not in ahead:
                    ahead[event.op] = before(event.stream) if event.stream is not None else []
                    if event.stream is not None:
                        queues.setdefault(event.stream, []).append((event.op, []))
            case ev.Run():
                if event.op not in ahead:
                    raise Impossible(f"{event.op} runs before it is launched")
                needed(ahead[event.op], f"op {event.op}")
                happened.append(event.op)
            case ev.Record():
                records[event.event] = before(event.stream)
            case ev.Wait():
                queues.setdefault(event.stream, []).append((None, records.get(event.event, [])))
            case ev.Done():
                needed([event.op] if event.op in ahead else [], f"done of {event.op}")
            case ev.Sync():
                streams = list(queues) if event.stream is None else [event.stream]
                ops = [op for s in streams for op in before(s)] if event.event is None else records.get(event.event, [])
                needed(ops, "a sync")
            case _:
                pass
    return happened
