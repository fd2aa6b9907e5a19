"""The rules."""

from __future__ import annotations

from kvsan.spec.lang import rule


@rule
def frozen() -> None:
    """A frozen block stays so.

    Source: ours,
        and nobody else's.
    Catches: a thaw.
    Except: never.
    Deviates: no.
    """
