"""A walk of a design as a log in the trace format, made from the events that its steps perform as ordinary Python."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any  # arguments of events of every declared type

from kvsan.spec.designs.catalog import Design
from kvsan.spec.designs.settings import Settings
from kvsan.spec.lang.surface import Judgement, Performed, Sort, performed
from plain_search import Model, short

Line = dict[str, Any]
STREAMS = {"COMPUTE": "compute", "COPIES": "copies"}


@dataclass
class Log:
    """lines: the header first. broken: each rule broken, with the line number of its event."""

    lines: list[Line]
    broken: list[tuple[str, int]] = field(default_factory=list)
    ops: dict[tuple[str, str], str] = field(default_factory=dict)
    launches: int = 0


def begin(design: Design, settings: Settings) -> Log:
    header = {
        "ev": "trace",
        "schema": "kvsan/1",
        "engine": "design",
        "version": design.name,
        "discipline": design.discipline,
        "block_size": settings["block_size"],
        "blocks": settings["blocks"],
    }
    return Log([header])


def walk(model: Model, log: Log, steps: list[str]) -> Log:
    """Perform the initial step and then the named steps; their events are added to the log."""
    (initial,) = model.initial
    record(log, performed(initial, model.state))
    moves = {f"{action.__name__}({', '.join(map(short, args))})": (action, args) for action, args in model.moves}
    for name in steps:
        action, args = moves[name]
        record(log, performed(action, model.state, *args))
    return log


def record(log: Log, what: list[Performed | Judgement]) -> None:
    """The events of one step, each at the outermost call one or more lines, and what it broke."""
    groups: list[list[Performed | Judgement]] = []
    for item in what:
        if isinstance(item, Performed) and item.depth == 0:
            groups.append([])
        groups[-1].append(item)
    for group in groups:
        outer, *inner = (item for item in group if isinstance(item, Performed))
        for line in lines_of(log, outer, inner):
            log.lines.append({k: v for k, v in line.items() if v is not None})
        for item in group:
            if isinstance(item, Judgement) and not item.holds and item.rule.kind != "lint":
                log.broken.append((item.rule.name, len(log.lines)))


def plain(value: Any) -> Any:
    """Blocks as numbers, branches by name, choices by name."""
    if isinstance(value, Sort):
        return value.index if type(value).__name__ == "Block" else short(value)
    return getattr(value, "name", value)


def launch(log: Log, work: str, r: str) -> str:
    log.launches += 1
    log.ops[work, r] = f"{work[:4].lower()}{log.launches}"
    return log.ops[work, r]


def lines_of(log: Log, outer: Performed, inner: list[Performed]) -> list[Line]:
    match (outer.event, *map(plain, outer.arguments)):
        case ("alloc" | "hand_out", b, r):
            return [{"ev": "alloc", "block": b, "branch": r}]
        case ("free", b):
            return [{"ev": "free", "block": b}]
        case ("admit", r, tokens):
            return [{"ev": "admit", "branch": r, "tokens": tokens}]
        case ("fork", c, r, upto):
            return [{"ev": "fork", "branch": c, "parent": r, "upto": upto}]
        case ("map" | "unmap" as ev, r, p, b):
            return [{"ev": ev, "branch": r, "pos": p, "block": b}]
        case ("hit", b, h, r, None, None, None):
            return [{"ev": "hit", "block": b, "hash": h, "branch": r}]
        case ("seal", b, h, r, lo, hi, None, None):
            return [{"ev": "seal", "block": b, "hash": h, "branch": r, "slots": [lo, hi]}]
        case ("finish" | "preempt" as ev, r):
            return [{"ev": ev, "branch": r}]
        case ("copy", r, src, dst, lo, hi):
            return [{"ev": "copy", "branch": r, "src": src, "dst": dst, "slots": [lo, hi]}]
        case ("write", r, b, lo, hi, first, last, None):
            return [{"ev": "write", "branch": r, "block": b, "slots": [lo, hi], "tokens": [first, last]}]
        case ("attend", r, upto):
            return [{"ev": "read", "branch": r, "upto": upto}]
        case ("launch_copy", r, src, dst, hi, t):
            op = launch(log, "COPY_WORK", r)
            stream = STREAMS[t]
            return [{"ev": "copy", "op": op, "branch": r, "src": src, "dst": dst, "slots": [0, hi], "stream": stream}]
        case ("launch_step", r, _, _, upto, t):
            op = launch(log, "STEP_WORK", r)
            wrote = [tuple(map(plain, i.arguments)) for i in inner if i.event == "write"]
            writes = [[r, b, lo, hi] for _, b, lo, hi, *_ in wrote]
            reads = [[r, upto]]
            return [{"ev": "step", "op": op, "stream": STREAMS[t], "copies": [], "writes": writes, "reads": reads}]
        case ("order_after", later, earlier):
            log.launches += 1
            event = f"event{log.launches}"
            return [
                {"ev": "record", "event": event, "stream": STREAMS[earlier]},
                {"ev": "wait", "event": event, "stream": STREAMS[later]},
            ]
        case ("learn", work, r):
            return [{"ev": "done", "op": log.ops[work, r]}]
        case ("quiescent",):
            return [{"ev": "quiescent"}]
        case _:
            raise AssertionError(f"no line for {outer}")
