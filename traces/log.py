"""One log: its header, and its events in batches, as often as they are asked for."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import cast

from kvsan.traces.decode import Extension, Line, decode_block
from kvsan.traces.events import Event
from kvsan.traces.head import parse_header, same_log, split_first_line
from kvsan.traces.header import Trace
from kvsan.traces.judge import judge
from kvsan.traces.lines import Block, blocks
from kvsan.traces.problem import Broken, Fault, Gap, LogProblem
from kvsan.traces.quick import Scanner, scanner
from kvsan.traces.sequence import Numbers
from kvsan.traces.sources import Source
from kvsan.traces.syntax import JsonObject
from kvsan.traces.unpack import Limits, plain_bytes

Item = Event | Gap

OTHER_HEADER = Fault(
    "", "a header of another log", "segments of one log repeat its header or have none; give another log its own file"
)


CLOSED = b'"ev":"x_closed"'
"""The last line of a log whose recorder came to its end. Our recorders say in their header that they write it."""

NO_END = Fault(
    "",
    "its last line is not the one that the recorder writes when it closes: the process was killed, or still records",
    "what the log holds is checked; check again when the recorder has closed",
    "cut",
)


class Log:
    """A log in one or several files, its segments.

    `header`: the first line, None where that is broken. `header_fields`: the same as written, with the fields of the
    recorder's own (`x_command`, say). `problem`: why the latest reading stopped before the end, or None. A log whose
    header is broken has its problem from the start; opening never raises.

    Lines are counted from 1 through all segments; `place` gives a line's file and its number there. `lines`: how many
    the latest reading has gone through, those of the batch at hand included.
    """

    def __init__(self, sources: Sequence[Source], limits: Limits) -> None:
        self.sources, self.limits = tuple(sources), limits
        self.header: Trace | None = None
        self.header_fields: JsonObject = {}
        self.problem: LogProblem | None = None
        self.lines = 0
        self._latest: bytes = b""
        self._starts = [0]  # lines before each segment that has been begun
        self._unsure: Scanner = lambda events: iter(())  # there is nothing to go through without a header
        try:
            self._read_header()
        except Broken as broken:
            self.problem = self._problem(broken, 0)

    @property
    def name(self) -> str:
        """The log's files, as errors name them."""
        return ", ".join(source.name for source in self.sources)

    def place(self, line: int) -> tuple[str, int]:
        """The file of a line that has been read, and the line's number in it."""
        index = max((i for i, (_, start) in enumerate(self.segments) if start < line), default=0)
        return self.sources[index].name, line - self._starts[index]

    @property
    def segments(self) -> tuple[tuple[str, int], ...]:
        """The files that the latest reading has begun, each with the lines before it."""
        return tuple((source.name, start) for source, start in zip(self.sources, self._starts, strict=False))

    def batches(self) -> Iterator[list[tuple[int, Item]]]:
        """The events as (line, event), a few thousand at a time; a Gap stands where events are missing.

        Everything before a break is yielded; then the iteration ends and `problem` is set. It is None again when a new
        iteration begins. Two iterations at the same time are not supported.
        """
        if self.header is None:
            return
        self.problem, self.lines, self._starts, self._latest = None, 0, [], b""
        numbers = Numbers(self.header)
        index = 0
        try:
            for index in range(len(self.sources)):
                yield from self._segment(index, self.header, numbers)
            if "x_recorder" in self.header_fields and CLOSED not in self._latest[-100:]:
                raise Broken(NO_END, None)
        except Broken as broken:
            self.problem = self._problem(broken, index)

    def _segment(self, index: int, header: Trace, numbers: Numbers) -> Iterator[list[tuple[int, Item]]]:
        """The batches of one file. Raises Broken, with the line as the file counts."""
        offset, end = self.lines, 0
        self._starts.append(offset)
        try:
            for block in blocks(plain_bytes(self.sources[index], self.limits), self.limits.line_bytes):
                self.lines = offset + block.first + block.count - 1
                body = split_first_line(block)[1] if index == 0 and block.first == 1 else block
                if body.data:
                    self._latest = body.data
                    batch, fault = self._judged(replace(body, first=body.first + offset), header, numbers)
                    if batch:
                        yield batch
                    if fault:
                        raise Broken(fault[1], fault[0] - offset)
                end = block.first + block.count - 1
        except Broken as broken:
            broken.line = broken.line or (None if broken.fault.kind == "unreadable" and end == 0 else end + 1)
            self.lines = offset + (broken.line or 0)
            raise

    def _judged(
        self, block: Block, header: Trace, numbers: Numbers
    ) -> tuple[list[tuple[int, Item]], tuple[int, Fault] | None]:
        """A block's events with gaps in their places, up to its first fault, and that with its line."""
        decoded = decode_block(block)
        (lines, events), number_fault = numbers.place_gaps(decoded)
        fault, end = number_fault or decoded.fault, len(events)
        wrong = self._first_wrong(events, header)
        if wrong:
            end, fault = wrong[0], (lines[wrong[0]], wrong[1])
        return events_only(lines[:end], events[:end]), fault

    def _first_wrong(self, events: Sequence[Line | Gap], header: Trace) -> tuple[int, Fault] | None:
        """The index of the first event that breaks what a type cannot say, with its fault."""
        for index in self._unsure(events):
            event = events[index]
            if isinstance(event, Trace):
                fault = None if same_log(event, header) else OTHER_HEADER
            else:
                fault = None if isinstance(event, Gap | Extension) else judge(event, header)
            if fault:
                return index, fault
        return None

    def _read_header(self) -> None:
        """Sets the header. Raises Broken where there is none."""
        if not self.sources:
            raise Broken(Fault("", "no log is named", "name a file, or - for standard input", "unreadable"))
        block = next(blocks(plain_bytes(self.sources[0], self.limits), self.limits.line_bytes), None)
        line, rest = split_first_line(block) if block else (b"", None)
        if not block or not rest or not line:
            raise Broken(Fault("", "the log is empty", "record again: even an idle run has a header", "cut"))
        outcome = parse_header(line, is_open=block.last_is_open and not rest.count)
        if isinstance(outcome, Fault):
            raise Broken(outcome, rest.first - 1)
        self.header, self.header_fields = outcome
        self._unsure = scanner(self.header)

    def _problem(self, broken: Broken, index: int) -> LogProblem:
        """The break as data. `index`: of the segment it is in."""
        fault, name = broken.fault, self.sources[index].name if self.sources else ""
        return LogProblem(fault.kind, name, broken.line, fault.path, fault.what, fault.remedy)


def events_only(lines: Sequence[int], events: Sequence[Line | Gap]) -> list[tuple[int, Item]]:
    """The pairs of line and event, without what means nothing to a checker."""
    if {Extension, Trace}.isdisjoint(map(type, events)):
        return list(zip(lines, cast(Sequence[Item], events), strict=True))
    pairs = zip(lines, events, strict=True)
    return [(line, event) for line, event in pairs if not isinstance(event, Extension | Trace)]
