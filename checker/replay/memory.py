"""A log that is already in memory: the events an engine's own test has collected."""

from __future__ import annotations

from collections.abc import Iterable
from io import BytesIO
from typing import Any  # dicts, as a test writes them

import msgspec
from kvsan.traces.read import Log, open_log


def memory_log(source: Iterable[Any]) -> Log:
    """The events, header first, as a log. They are encoded, so that they are judged as a file's lines are."""
    encoder = msgspec.json.Encoder()
    lines = (encoder.encode(item) for item in source)
    return open_log(BytesIO(b"\n".join(lines) + b"\n"))
