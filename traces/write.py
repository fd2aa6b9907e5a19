"""Whole logs at once, for tests and explorers: a header and its events, in the Recorder's form."""

from collections.abc import Iterable
from pathlib import Path

import msgspec
from kvsan.traces.events import Event
from kvsan.traces.header import Trace
from kvsan.traces.writer import packer

__all__ = ["encode_log", "write_log"]


def encode_log(header: Trace, events: Iterable[Event], *, number: bool = False) -> bytes:
    """The log as JSON Lines. `number`: events without a `seq` get the number of their line, less one."""
    lines = [header, *(numbered(events) if number else events)]
    return msgspec.json.Encoder().encode_lines(lines)


def write_log(path: str | Path, header: Trace, events: Iterable[Event], *, number: bool = False) -> Path:
    """Write a log, compressed as the suffix says, and return its path. Nothing is checked: see `judge`."""
    path = Path(path)
    path.write_bytes(packer(path)(encode_log(header, events, number=number)))
    return path


def numbered(events: Iterable[Event]) -> Iterable[Event]:
    """The events with a `seq` that counts from 1, but for those that have one."""
    for seq, event in enumerate(events, 1):
        yield event if event.seq is not None else msgspec.structs.replace(event, seq=seq)
