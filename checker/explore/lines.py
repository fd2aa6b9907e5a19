"""How an event of a design is written in the trace format.

Launches, and what the host learns of them, have the design's own events; one of these stands for the ownership events
that it performs within. All other lines are ownership events that are performed outside the ledger.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any  # arguments of events are values of every declared type

from kvsan.spec.lang.surface import REGISTRY, Choice, Judgement, Map, Performed, Sort, State

Line = dict[str, Any]

FIELDS: dict[str, dict[str, str]] = {
    "alloc": {"block": "b", "branch": "r"},
    "free": {"block": "b"},
    "alloc_failed": {"branch": "r"},
    "pin": {"block": "b", "holder": "h", "mode": "mode", "kind": "kind"},
    "unpin": {"block": "b", "holder": "h", "mode": "mode", "kind": "kind"},
    "admit": {"branch": "r", "tokens": "tokens"},
    "grow": {"branch": "r", "tokens": "tokens"},
    "reserve": {"branch": "r", "blocks": "blocks"},
    "fork": {"branch": "c", "parent": "r", "upto": "upto"},
    "map": {"branch": "r", "pos": "p", "block": "b"},
    "unmap": {"branch": "r", "pos": "p", "block": "b"},
    "window": {"branch": "r", "from": "start"},
    "finish": {"branch": "r"},
    "preempt": {"branch": "r"},
    "propose": {"branch": "r", "tokens": "tokens"},
    "accept": {"branch": "r", "tokens": "tokens"},
    "write": {"branch": "r", "block": "b", "slots": "lo hi", "tokens": "first last"},
    "read": {"branch": "r", "upto": "upto"},
    "copy": {"branch": "r", "src": "src", "dst": "dst", "slots": "lo hi"},
    "invalidate": {"block": "b", "slots": "lo hi"},
    "seal": {"block": "b", "hash": "h", "branch": "r", "slots": "lo hi"},
    "hit": {"block": "b", "hash": "h", "branch": "r", "slots": "lo hi"},
    "evict": {"block": "b", "hash": "h"},
    "quiescent": {},
}
"""Each ownership event's fields, with the parameters that give them."""

LAUNCHES = frozenset({"launch_copy", "launch_step", "order_after", "learn"}) | {
    "load_block", "send_block", "move_block", "learn_handle", "launch_copies", "launch_forward", "learn_step",
}  # fmt: skip
"""The events of `kvsan.spec.designs.device`, `handles` and `batches`; each stands for all that it performs."""

SECOND_TIER = "cpu"
"""The pool of the blocks that a design has in its `second_tier`."""


class NoLog(Exception):
    """The way cannot be written as a log: the message says why."""


def ledger() -> dict[str, list[str]]:
    """The ownership events, with their parameters. Known once a design has been imported."""
    return {
        f.__name__: list(inspect.signature(f).parameters)[1:]
        for module, functions in REGISTRY.items()
        if module.startswith("kvsan.spec.ownership.")
        for f in functions
        if f.__dict__["spec_kind"] in ("event", "settling")
    }


@dataclass
class Writer:
    """Turns what the steps of one design perform into lines. broken: what its rules said, with the line at fault.

    ops: the op of each work under way, by what the design calls the work. named: how many ops and events have a name.
    copies: the op of the copies that the next forward pass comes behind. steps: the ops of each step under way.
    """

    state: State
    lines: list[Line]
    broken: list[tuple[str, int]] = field(default_factory=list)
    ops: dict[object, str] = field(default_factory=dict)
    named: int = 0
    copies: list[str] = field(default_factory=list)
    steps: list[list[str]] = field(default_factory=list)

    @cached_property
    def ledger(self) -> dict[str, list[str]]:
        return ledger()

    def write(self, done: Sequence[Performed | Judgement], note: str) -> None:
        """The lines of one step. Raises NoLog."""
        for event, within in self._outermost(done):
            inner, before = [item for item in within if isinstance(item, Performed)], len(self.lines)
            self.lines += ({**line, "note": note} for line in self._line(event, inner))
            for item in within:
                before += event.event == "launch_copies" and isinstance(item, Performed) and item.event == "copy"
                if isinstance(item, Judgement) and not item.holds and item.rule.kind != "lint":
                    at = before if event.event == "launch_copies" else len(self.lines)
                    self.broken.append((item.rule.name, at))

    def _outermost(
        self, done: Sequence[Performed | Judgement]
    ) -> Iterator[tuple[Performed, list[Performed | Judgement]]]:
        """Each event that has a line of its own, with all that comes before the next such event."""
        found: list[tuple[Performed, list[Performed | Judgement]]] = []
        depth = sys.maxsize
        for item in done:
            if isinstance(item, Performed) and item.depth <= depth:
                depth = sys.maxsize
                if item.event in LAUNCHES or item.event in self.ledger:
                    depth = item.depth
                    found.append((item, []))
            elif found:
                found[-1][1].append(item)
        yield from found

    def _line(self, outer: Performed, inner: Sequence[Performed]) -> list[Line]:
        match (outer.event, *outer.arguments):
            case ("launch_copy", r, src, dst, hi, t):
                op = self._launch("copy", "COPY_WORK", r)
                pair = {"branch": plain(r), "src": plain(src), "dst": plain(dst), "slots": [0, hi]}
                return [{"ev": "copy", "op": op, **pair, "stream": plain(t)}]
            case ("launch_step", r, _, _, upto, t):
                op = self._launch("step", "STEP_WORK", r)
                writes = [[plain(x) for x in e.arguments[:4]] for e in inner if e.event == "write"]
                work = {"copies": [], "writes": writes, "reads": [[plain(r), upto]]}
                return [{"ev": "step", "op": op, "stream": plain(t), **work}]
            case ("launch_copies", t):
                copies = [e for e in inner if e.event == "copy"]
                self.copies = [self._name("copies")] if copies else []
                shared = {"op": self.copies[0], "stream": plain(t)} if copies else {}
                return [{**self._called(e), **shared} for e in copies]
            case ("launch_forward", t):
                op = self._name("step")
                self.steps.append([*self.copies, op])
                self.copies = []
                writes = [[plain(x) for x in e.arguments[:4]] for e in inner if e.event == "write"]
                reads = [[plain(x) for x in e.arguments] for e in inner if e.event == "attend"]
                return [{"ev": "step", "op": op, "stream": plain(t), "copies": [], "writes": writes, "reads": reads}]
            case ("learn_step", _):
                return [{"ev": "done", "op": op} for op in self.steps.pop(0)]
            case ("order_after", later, earlier):
                event = self._name("event")
                return [
                    {"ev": "record", "event": event, "stream": plain(earlier)},
                    {"ev": "wait", "event": event, "stream": plain(later)},
                ]
            case ("learn", Choice(work), r):
                return [{"ev": "done", "op": self.ops[work, r]}]
            case ("load_block", h, b):
                moved = {"holder": plain(h), "block": plain(b), "slots": self._whole(b)}
                return [{"ev": "write", "op": self._launch("load", h, b), **moved}]
            case ("send_block", h, b):
                moved = {"holder": plain(h), "block": plain(b), "slots": self._whole(b)}
                return [{"ev": "read", "op": self._launch("send", h, b), **moved}]
            case ("move_block", h, src, dst):
                pools = {**self._pool(src, "src_pool"), **self._pool(dst, "dst_pool")}
                pair = {"src": plain(src), "dst": plain(dst), "slots": self._whole(dst)}
                return [{"ev": "copy", "op": self._launch("move", h, dst), **pair, **pools}]
            case ("write_inbound", h, b, lo, hi):
                moved = {"holder": plain(h), "block": plain(b), "slots": [lo, hi]}
                return [{"ev": "write", **moved, **self._pool(b, "pool")}]
            case ("read_outbound", h, b):
                return [{"ev": "read", "holder": plain(h), "block": plain(b), **self._pool(b, "pool")}]
            case ("learn_handle", h, b, bool(ok)):
                return [{"ev": "done", "op": self.ops[h, b], **({} if ok else {"ok": False})}]
            case (name, *_) if name in FIELDS:
                return [self._called(outer)]
        raise NoLog(f"the event {outer.event} is not written to logs yet")

    def _called(self, done: Performed) -> Line:
        arguments = dict(zip(self.ledger[done.event], done.arguments, strict=True))
        line: Line = {"ev": done.event}
        for name, parameters in FIELDS[done.event].items():
            values = [plain(arguments[n]) for n in parameters.split()]
            if None not in values:
                line[name] = values if len(values) > 1 else values[0]
        return {**line, **self._pool(arguments.get("b"), "pool")}

    def _pool(self, block: object, name: str) -> Line:
        """The pool of a block, where it is not the first."""
        tier = getattr(self.state, "second_tier", ())
        return {name: SECOND_TIER} if block in tier else {}

    def _whole(self, block: object) -> list[int]:
        """All slots of a block."""
        slots: Map[object, int] = self.state.__dict__["slots_of"]
        return [0, slots[block]]

    def _name(self, what: str) -> str:
        self.named += 1
        return f"{what}{self.named}"

    def _launch(self, what: str, *work: object) -> str:
        self.ops[work] = self._name(what)
        return self.ops[work]


def plain(value: Any) -> Any:
    """A block as its number, other members by name, choices in small letters."""
    match value:
        case Sort(index):
            kind = type(value).__name__
            return index if kind == "Block" else f"{'r' if kind == 'Branch' else kind.lower()}{index}"
        case Choice(name):
            return name.lower()
        case _:
            return value
