"""Launches whose events are spread over the log, with something between them that may have been ordered behind them.

A launch stands in the order where its first event is. While more of it is to come, what is ordered behind it is judged
too early: a race may be hidden, or seen where there is none. So a log with such a launch is read again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any  # what `Order` takes

from kvsan.traces import events as ev

from .analysis import Order

Access = ev.Write | ev.Read | ev.Copy | ev.Step


@dataclass
class Spread:
    """What a survey found: the line where the first of such launches begins, its op, and where it goes on."""

    begins: int = 0
    op: str = ""
    goes_on: int = 0

    def found(self, begins: int, op: object, goes_on: int) -> None:
        if not self.begins or begins < self.begins:
            self.begins, self.op, self.goes_on = begins, str(op), goes_on

    @property
    def reason(self) -> str:
        """Why the order was not judged to the end."""
        return (
            f"the order of device work was judged before line {self.begins} alone: op {self.op}, launched there, goes "
            f"on at line {self.goes_on}, after what may come behind it; write the events of a launch together"
        )


class Survey(Order):
    """Judges nothing: notes which launches are spread."""

    def __init__(self, spread: Spread, *args: Any) -> None:
        super().__init__(*args)
        self.spread = spread

    def _hear(self, e: Access) -> None:
        self.plain[type(e)](e)
        clocks = self.clocks
        clocks.spread = False
        clocks.launch(e.thread, e.op, e.stream)
        if e.op is None:
            return
        launch = clocks.ops[e.op]
        launch.line = launch.line or self.line
        launch.apart |= clocks.spread
        if launch.apart:
            self.spread.found(launch.line, e.op, self.line)

    on_write = on_read = on_copy = on_step = _hear


class Until(Order):
    """Judges no access from that line on where the first spread launch begins."""

    def __init__(self, spread: Spread, *args: Any) -> None:
        super().__init__(*args)
        self.end = spread.begins

    def _hear(self, e: Access) -> None:
        if self.line < self.end:
            JUDGED[type(e)](self, e)
        else:
            self.feed.handlers.update(self.plain)
            self.plain[type(e)](e)

    on_write = on_read = on_copy = on_step = _hear


JUDGED: dict[type, Callable[[Order, Any], None]] = {
    ev.Write: Order.on_write,
    ev.Read: Order.on_read,
    ev.Copy: Order.on_copy,
    ev.Step: Order.on_step,
}
