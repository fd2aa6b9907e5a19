"""Small logs for the tests of the reader."""

import io
import json
from pathlib import Path

from kvsan.traces.events import Event, Grow, Trace
from kvsan.traces.read import Item, Log

HEADER = Trace(schema="kvsan/1", engine="toy", version="1", discipline="paged_cow", block_size=4, blocks=8)
HEAD = json.dumps(
    {
        "ev": "trace",
        "schema": "kvsan/1",
        "engine": "toy",
        "version": "1",
        "discipline": "paged_cow",
        "block_size": 4,
        "blocks": 8,
    }
)


def grows(first: int, last: int) -> list[Event]:
    """Events numbered from `first` to `last`."""
    return [Grow(seq=seq, branch="r0", tokens=seq) for seq in range(first, last + 1)]


def grow_lines(first: int, last: int) -> bytes:
    """The same as lines."""
    return b"".join(b'{"ev":"grow","seq":%d,"branch":"r0","tokens":%d}\n' % (n, n) for n in range(first, last + 1))


def toy_log(last: int) -> bytes:
    """A header and so many numbered events."""
    return HEAD.encode() + b"\n" + grow_lines(1, last)


def items_of(log: Log) -> list[tuple[int, Item]]:
    return [item for batch in log.batches() for item in batch]


def events_of(log: Log) -> list[Item]:
    return [event for _, event in items_of(log)]


def stream(data: bytes) -> io.BytesIO:
    return io.BytesIO(data)


def save(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path
