"""Schedules: where in a witness each launch happens, as `run` events say it, and whether recorded order allows that."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from kvsan.traces import events as ev

Line = tuple[int, ev.Event]
"""An event, and its line in the log that it is from."""


class NoWitness(Exception):
    """There is none; the message says why."""


def scheduled(lines: Sequence[Line], behind: Sequence[Hashable]) -> list[Line]:
    """The events, with `run` (of line 0) behind each launch; for those of the ops `behind`, in their order, at the end.

    A launch whose events are spread runs behind the first of them: the later ones say more of what it did.
    """
    out: list[Line] = []
    runs: list[Hashable] = []
    launched = set()
    for i, (line, event) in enumerate(lines):
        out.append((line, event))
        op = op_of(event)
        if op is None or isinstance(event, ev.Done):
            continue
        launched.add(op)
        goes_on = i + 1 < len(lines) and op_of(lines[i + 1][1]) == op and not isinstance(lines[i + 1][1], ev.Done)
        if op not in runs and op not in behind and not goes_on:
            runs.append(op)
            out.append((0, run(op)))
    return out + [(0, run(op)) for op in behind if op in launched]


def run(op: Hashable) -> ev.Run:
    return ev.Run(op=op)  # type: ignore[arg-type]  # a name, as the log has it


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
