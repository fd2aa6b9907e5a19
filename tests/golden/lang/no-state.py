"""Bad on purpose: no state class."""

from __future__ import annotations

from kvsan.spec.lang import Sort


class Block(Sort):
    """A physical block."""
