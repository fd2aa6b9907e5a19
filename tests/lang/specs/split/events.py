"""The events."""

from __future__ import annotations

from kvsan.spec.lang import event, initial, members, obey, settling

from .rules import frozen as is_frozen
from .state import FREEZE as COLD
from .state import Block as Page
from .state import Mode as Heat
from .state import Pool


@event
def freeze(s: Pool, b: Page) -> None:
    """A block is frozen."""
    s.mode[b] = COLD
    obey(is_frozen, s.mode[b] == COLD, "block {b}")


@settling
def thaw(s: Pool) -> None:
    """Nothing runs."""
    for b in members(Page, s):
        s.mode[b] = Heat("KEEP")


@initial
def start(s: Pool) -> None:
    """One frozen block."""
    freeze(s, Page(0))
