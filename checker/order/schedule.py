"""Schedules: where in a witness each launch happens, as `run` events say it, and whether recorded order allows that."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from kvsan.checker.replay.replay import Finding, Replay
from kvsan.traces import events as ev

Events = list[ev.Event]


class NoWitness(Exception):
    """There is none; the message says why."""


def scheduled(events: Events, replay: Replay, aimed: Finding) -> Events:
    """The events with `run` behind each launch; the earlier access of the race, and what follows it, after the last.

    aimed: the race there. Raises NoWitness.
    """
    replay.perform([*enumerate(events, 2)])
    clocks = replay.order.clocks
    earlier = aimed.violation.earlier or 0
    op = op_of(events[earlier - 2])
    if op is not None and op == op_of(events[-1]):
        return exchanged(events, earlier - 2)
    if op not in clocks.ops:
        raise NoWitness("the few events that show it show another race, too")
    point = clocks.ops[op].point
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


def exchanged(events: Events, first: int) -> Events:
    """Copies of one launch, made in the other order: those of one event, or of the first of two and the last."""
    last, before = events[-1], events[:first]
    if first < len(events) - 1:
        return in_turn([*before, *events[first + 1 :], events[first]])
    assert isinstance(last, ev.Step)  # the one event that makes several copies
    step = ev.Step(op=last.op, stream=last.stream, copies=last.copies[::-1], writes=last.writes, reads=last.reads)
    return in_turn([*before, step])


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
