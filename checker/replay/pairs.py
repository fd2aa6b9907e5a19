"""The earlier facts of a breach of order: the other access, and the life of the block between the two."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvsan.checker.order.telling import Told
from kvsan.traces import events as ev

from .outcome import Because
from .wording import event_text

if TYPE_CHECKING:
    from .replay import Finding, Replay

Blocks = int | tuple[int | None, ...] | None


class PairWatch:
    """Follows the log up to a breach of order, or the earlier access where the log shows that later, and notes what
    explains the breach."""

    def __init__(self, finding: Finding, told: Told) -> None:
        self.finding, self.told = finding, told
        self.line = max(finding.violation.line, (told.earlier or 0) + 1)
        self.idle = told.earlier == finding.violation.line
        self.earlier: Because | None = None
        self.latest: dict[str, Because] = {}

    @property
    def facts(self) -> tuple[Because, ...]:
        found = [*self.latest.values()] if self.earlier is None else [self.earlier, *self.latest.values()]
        return tuple(sorted(found, key=lambda fact: fact.line))

    def begin(self, replay: Replay) -> None:
        """Nothing is known before the first event, or after a gap."""
        self.earlier = None
        self.latest.clear()

    def look(self, replay: Replay, line: int, event: ev.Event) -> None:
        """The earlier access, and then the latest events that began, ended or emptied the block's life."""
        if line == self.told.earlier:
            note = f" ({self.told.note})" if self.told.note else ""
            self.earlier = Because(line, event_text(event) + note)
            return
        if self.told.earlier is not None and self.earlier is None:
            return
        if self._tells(replay, event):
            kind = type(event).__name__
            self.latest.pop(kind, None)
            self.latest[kind] = Because(line, event_text(event))

    def _tells(self, replay: Replay, event: ev.Event) -> bool:
        feed, block, branch = replay.feed, self.told.block, self.told.branch
        match event:
            case ev.Alloc() | ev.Free() | ev.Invalidate():
                return block is not None and block in feed.several(event.block, event.pool)
            case ev.Map() | ev.Unmap() | ev.Window() if block is None and branch is not None:
                return feed.row(event.branch, event.group) == branch
            case _:
                return False
