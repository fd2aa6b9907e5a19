"""The workload's log with its device work on sixteen streams: each round one launch a stream, known complete after it.

Its bookkeeping is the workload's; the log it writes is legal, which the benchmark asserts.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from workload import BRANCHES, HEADER, Engine, Sequence

STREAMS = 16


class Streams(Engine):
    """The workload with launches and completions: each branch on a stream, a fork on its parent's."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.streams: dict[str, int] = {}

    def events(self) -> Iterator[dict[str, Any]]:
        rounds = 0
        while True:
            rounds += 1
            while len(self.running) < BRANCHES:
                yield from self.launched(self.admit(), self.running, rounds)
            for r in self.running:
                yield from self.launched(self.decode(r), [r], rounds)
            for stream in range(STREAMS):
                yield {"ev": "done", "op": f"{rounds}.{stream}"}
            for r in self.random.sample(self.running, 3):
                self.running.remove(r)
                self.streams.pop(r.name, None)
                yield from self.end(r)

    def fork(self, r: Sequence, parent: Sequence) -> Iterator[dict[str, Any]]:
        self.streams[r.name] = self.stream_of(parent)
        return super().fork(r, parent)

    def stream_of(self, r: Sequence) -> int:
        return self.streams.setdefault(r.name, int(r.name[1:]) % STREAMS)

    def launched(self, events: Iterator[dict[str, Any]], who: list[Sequence], rounds: int) -> Iterator[dict[str, Any]]:
        """The accesses of a branch, the last of `who`, are part of its stream's launch."""
        for event in events:
            if "stream" in event:
                stream = self.stream_of(who[-1])
                event |= {"op": f"{rounds}.{stream}", "stream": f"s{stream}"}
            yield event


def write_streams(path: Path, events: int, seed: int = 0) -> None:
    """A log of so many events."""
    encode = msgspec.json.Encoder().encode
    with path.open("wb") as file:
        file.write(encode(HEADER) + b"\n")
        for seq, event in zip(range(1, events + 1), Streams(seed).events(), strict=False):
            file.write(encode({"ev": event.pop("ev"), "seq": seq, **event}) + b"\n")
