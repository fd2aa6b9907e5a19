"""Neighbouring events about single blocks become one event with a list of blocks."""

from __future__ import annotations

from typing import Protocol


class Sink(Protocol):
    """What the group needs of a recorder."""

    def emit(self, ev: str, /, **fields: object) -> None: ...


class Joined:
    """Joins neighbouring `alloc`, `free` and `map` events into one with a list of blocks."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self.held: tuple[str, dict[str, object], list[int]] | None = None

    def emit(self, ev: str, **fields: object) -> None:
        if fields.get("pool") == "gpu":
            del fields["pool"]  # the format's default
        block = fields.get("block")
        if ev not in ("alloc", "free", "map") or not isinstance(block, int):
            self.flush()
            self.sink.emit(ev, **fields)
            return
        rest = {name: value for name, value in fields.items() if name not in ("block", "pos")}
        if self.held is not None and self._continues(ev, fields, rest):
            self.held[2].append(block)
            return
        self.flush()
        self.held = ev, fields, [block]

    def _continues(self, ev: str, fields: dict[str, object], rest: dict[str, object]) -> bool:
        assert self.held is not None
        kind, first, blocks = self.held
        same = kind == ev and rest == {n: v for n, v in first.items() if n not in ("block", "pos")}
        pos, start = fields.get("pos"), first.get("pos")
        if not same or not isinstance(pos, int) or not isinstance(start, int):
            return same
        return pos == start + len(blocks)

    def flush(self) -> None:
        if self.held is None:
            return
        ev, fields, blocks = self.held
        self.held = None
        self.sink.emit(ev, **(fields | {"block": blocks if len(blocks) > 1 else blocks[0]}))
