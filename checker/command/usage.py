"""A command that cannot be carried out as it was given."""

from __future__ import annotations

from collections.abc import Iterable


class Refused(Exception):
    """Bad usage: the message says what is wrong and what to do. Exit code 2."""


def refuse_unknown(option: str, given: Iterable[str], known: Iterable[str], what: str) -> None:
    """Raises Refused for the first name that is not known, with the one that is closest, or with all."""
    from kvsan.spec.lang.diagnostics import nearest  # what every command imports starts quickly

    every = list(known)
    for name in given:
        if name not in every:
            close = nearest(name, every)
            hint = f"did you mean {close}?" if close else f"known are {', '.join(every) or 'none'}"
            raise Refused(f"{option} {name}: there is no such {what}: {hint}")
