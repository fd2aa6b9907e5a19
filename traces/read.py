"""Reading logs."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import msgspec
from kvsan.traces.decode import Extension, decode_block
from kvsan.traces.events import Event
from kvsan.traces.header import Trace
from kvsan.traces.lines import Block, blocks
from kvsan.traces.problem import Broken, Fault, Gap, LogProblem
from kvsan.traces.sources import FileSource, Source, StreamSource
from kvsan.traces.unpack import Limits, plain_bytes

Item = Event | Gap


class Log:
    """One log: its header, and its events as often as they are asked for."""

    def __init__(self, sources: Sequence[Source], limits: Limits) -> None:
        self.sources, self.limits = sources, limits
        self.header: Trace | None = None
        self.problem: LogProblem | None = None
        for _ in self.batches():
            break

    def batches(self) -> Iterator[list[tuple[int, Item]]]:
        """(line, event) in batches. On a break it stops, and `problem` says why."""
        self.problem = None
        for source in self.sources:
            try:
                for block in blocks(plain_bytes(source, self.limits), self.limits.line_bytes):
                    body = block
                    if block.first == 1:
                        first, _, rest = block.data.partition(b"\n")
                        raw = {k: v for k, v in msgspec.json.decode(first).items() if not k.startswith("x_")}
                        self.header = msgspec.convert(raw, Trace)
                        body = replace(block, data=rest, first=2, count=block.count - 1)
                    if body.data:
                        decoded = decode_block(body)
                        yield [(n, e) for n, e in decoded.items if not isinstance(e, Extension)]
                        if decoded.fault:
                            line, fault = decoded.fault
                            self.problem = LogProblem(
                                fault.kind, source.name, line, fault.path, fault.what, fault.remedy
                            )
                            return
            except (Broken, msgspec.MsgspecError) as error:
                fault = error.fault if isinstance(error, Broken) else Fault("", str(error), "see the format")
                self.problem = LogProblem(fault.kind, source.name, None, fault.path, fault.what, fault.remedy)
                return


def open_log(source: str | Path | BinaryIO | Sequence[str | Path | BinaryIO], limits: Limits | None = None) -> Log:
    """Open one log: a path, `-`, a stream, or the list of its segments."""
    parts = [source] if isinstance(source, str | Path) or not isinstance(source, Sequence) else source
    return Log([as_source(part) for part in parts], limits or Limits())


def as_source(part: str | Path | BinaryIO) -> Source:
    import sys

    if part == "-":
        return StreamSource(sys.stdin.buffer, "<stdin>")
    return FileSource(Path(part)) if isinstance(part, str | Path) else StreamSource(part, "<stream>")


__all__ = ["Block", "Gap", "Item", "Limits", "Log", "LogProblem", "open_log"]
