"""The `seq` of a log's events: a number that repeats or goes back is an error, a gap is reported in place."""

from collections.abc import Sequence

from kvsan.traces.decode import Decoded, Line
from kvsan.traces.header import Trace
from kvsan.traces.problem import Fault, Gap

Placed = tuple[Sequence[int], Sequence[Line | Gap]]
"""Lines and what stands in them, in parallel: pairs would cost the hot path as much as decoding does."""


class Numbers:
    """How far a log's numbers have come.

    Events without a number are not counted. A log that starts empty starts at 0 or 1; a larger first number is a gap
    at its head, unless the log starts mid-run, where the past is unknown anyway.
    """

    def __init__(self, header: Trace) -> None:
        self.last = header.seq
        self.last_line: int | None = None if header.seq is None else 1
        self.any_start = header.started == "mid_run"

    def place_gaps(self, decoded: Decoded) -> tuple[Placed, tuple[int, Fault] | None]:
        """The events with gaps in their places, up to the first bad number, and that with its line."""
        if self.follow(decoded):
            return (decoded.lines, decoded.events), None
        lines: list[int] = []
        placed: list[Line | Gap] = []
        for line, event in zip(decoded.lines, decoded.events, strict=True):
            if event.seq is not None:
                fault = self.fault(event.seq)
                if fault:
                    return (lines, placed), (line, fault)
                missing = self.missing(event.seq)
                if missing:
                    lines.append(line)
                    placed.append(Gap(self.last_line, line, missing))
                self.last, self.last_line = event.seq, line
            lines.append(line)
            placed.append(event)
        return (lines, placed), None

    def follow(self, decoded: Decoded) -> bool:
        """The common cases, cheaply: every event has the next number, or none has any."""
        numbers = [event.seq for event in decoded.events]
        if not numbers or numbers.count(None) == len(numbers):
            return True
        if self.last is None or numbers != list(range(self.last + 1, self.last + 1 + len(numbers))):
            return False
        self.last, self.last_line = numbers[-1], decoded.lines[-1]
        return True

    def fault(self, seq: int) -> Fault | None:
        if self.last is None or seq > self.last:
            return None
        how = "twice" if seq == self.last else f"after {self.last}"
        return Fault("seq", f"seq {seq} comes {how}", "keep the order of recording; name segments in their order")

    def missing(self, seq: int) -> int:
        if self.last is None:
            return 0 if self.any_start or seq <= 1 else seq - 1
        return seq - self.last - 1
