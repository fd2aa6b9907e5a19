"""`Recorder`: the writing half for engine developers.

    with Recorder("run.jsonl.zst", engine="toy", version="1", discipline="paged_cow", block_size=16, blocks=9) as log:
        log.emit("alloc", block=3, branch="r0")
        with log.group():                               # one engine call: no other thread's event comes between
            log.emit("map", branch="r0", pos=0, block=3)
            log.emit("ref", block=3, count=1)

Every event is checked as the reader would check it, before it is queued: a misspelt field or an impossible id raises
where it is made. That costs about as much as encoding does. A refused event takes its number, so that a caller that
goes on leaves a gap which the checker sees.

Chosen: one lock around numbering and queueing, so that the order of the log is the order of the calls. Refused: a
buffer for each thread, merged later, which would move an event across another that names the same block.
"""

import operator
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
from kvsan.spec.ownership.disciplines import DISCIPLINES
from kvsan.traces import exits
from kvsan.traces.decode import Extension, decode_line
from kvsan.traces.events import EVENT_TYPES
from kvsan.traces.head import parse_header
from kvsan.traces.header import SCHEMA, Trace
from kvsan.traces.judge import judge
from kvsan.traces.problem import Fault
from kvsan.traces.quick import quick_checks
from kvsan.traces.syntax import EXTENSION
from kvsan.traces.writer import LINES_A_FLUSH, LogWriter

LINES_QUEUED_MAX = 1 << 16
"""Beyond this the calling thread waits for the disk: memory stays bounded."""

MAIN_THREAD = threading.main_thread().ident


class RecordError(ValueError):
    """An event or header that no log may hold, or a recorder that can take no more. The text says which and why."""


class Recorder:
    """Appends events to a log, from any thread.

    The suffix of `path` says how it is stored: `.jsonl`, `.jsonl.gz`, `.jsonl.zst`. An existing file is replaced.
    `discipline` is one of `kvsan.spec.ownership.disciplines`. `more` are further fields of the header: `null_block`,
    `pools`, `started`, or your own, whose names start with `x_`.

    Lines reach the file within half a second, at `flush`, `close`, exit, SIGTERM and SIGINT. A forked child does not
    write to its parent's log: it opens a recorder of its own. Raises OSError where the file cannot be written, and
    RecordError for a header that is wrong.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        engine: str,
        version: str,
        discipline: str,
        block_size: int,
        blocks: int,
        **more: object,
    ) -> None:
        given = {"engine": engine, "version": version, "discipline": discipline, "block_size": block_size}
        line = encode({"ev": "trace", "schema": SCHEMA, **given, "blocks": blocks, "x_recorder": "kvsan", **more})
        outcome = parse_header(line, is_open=False)
        if isinstance(outcome, Fault):
            raise refusal("the header", outcome)
        if discipline not in DISCIPLINES:
            near = get_close_matches(discipline, DISCIPLINES, 1) or sorted(DISCIPLINES)
            raise RecordError(f"there is no discipline {discipline!r}; known is {', '.join(near)}")
        self.path = Path(path)
        self.header: Trace = outcome[0]
        self._checks = quick_checks(self.header)
        self._lock = threading.RLock()
        self._seq = 0
        self._ended: str | None = None
        self._writer = LogWriter(self.path, line)
        self._lines = self._writer.lines
        exits.watch(self)

    def emit(self, ev: str, /, **fields: object) -> None:
        """Append one event: its kind and its fields, named as in the format (`from` may be written `from_`).

        `seq` is given by the recorder, and `thread` unless it is named here or this is the main thread. Raises
        RecordError for what is no event, and when the recorder is closed or its disk is full.
        """
        with self._lock:
            if self._ended or self._writer.error:
                raise self._unable()
            self._seq = seq = self._seq + 1
            if threading.get_ident() != MAIN_THREAD and "thread" not in fields:
                fields["thread"] = threading.current_thread().name
            try:
                event = convert({**fields, "seq": seq}, EVENT_TYPES[ev])
                fits = "seq" not in fields and self._checks[type(event)](event)
                line = encode(event) if fits else self._encode_carefully(ev, seq, fields)
            except UNORDINARY:
                line = self._encode_carefully(ev, seq, fields)
            self._lines.append(line)
            if not seq % LINES_A_FLUSH:
                self._make_room()

    @contextmanager
    def group(self) -> Iterator[None]:
        """Keep the events of one engine call together: other threads' events wait until it ends.

        Inside a group do not wait for a thread that records: that thread waits for you.
        """
        with self._lock:
            yield

    def flush(self) -> None:
        """Wait until every event emitted so far is in the file. Raises RecordError when it could not be written."""
        if self._ended:
            return
        self._writer.flush()
        if self._writer.error:
            raise self._unable()

    def close(self) -> None:
        """Write what is left and close the file. Closing again does nothing. Raises as `flush` does."""
        with self._lock:
            if self._ended:
                return
            self._end("the recorder is closed")
        if self._writer.error:
            raise self._unable()

    def _end(self, why: str, timeout: float | None = None) -> None:
        self._ended = why
        self._lines.append(encode({"ev": "x_closed", "seq": self._seq + 1}))
        exits.unwatch(self)
        self._writer.stop(timeout)

    def _make_room(self) -> None:
        """Wake the writer; when it has fallen far behind, wait for it."""
        if len(self._lines) < LINES_QUEUED_MAX:
            self._writer.wake()
        else:
            self._writer.flush()

    def _unable(self) -> RecordError:
        error = self._writer.error
        if error:
            return RecordError(f"{self.path} cannot be written: {error.strerror or error}; events are lost")
        return RecordError(f"{self._ended}: {self.path} takes no more events")

    def _encode_carefully(self, ev: str, seq: int, fields: dict[str, object]) -> bytes:
        """The line of an event out of the ordinary, or the reason why it is none.

        Out of the ordinary: fields of the caller's own, `from_`, numbers of other libraries, a copy between pools.
        """
        if "seq" in fields or "ev" in fields:
            raise RecordError(f"{ev} is refused: seq and ev are the recorder's to write; leave them out")
        if ev == "trace":
            raise RecordError("trace is refused: the recorder has written the header")
        named = {FIELD_NAMES.get(name, name): value for name, value in fields.items()}
        if len(named) < len(fields):
            raise RecordError(f"{ev} is refused: from and from_ are one field; give it once")
        try:
            line = encode({"ev": ev, "seq": seq, **named})
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise RecordError(f"{ev} cannot be written: {error}; give numbers, strings and lists") from error
        outcome = decode_line(line)
        if isinstance(outcome, Fault):
            raise refusal(ev, outcome)
        if isinstance(outcome, Extension | Trace):
            return line
        fault = judge(outcome, self.header)
        if fault:
            raise refusal(ev, fault)
        own = any(name.startswith(EXTENSION) for name in named)
        return line if own else encode(outcome)

    def flush_at_signal(self, timeout: float) -> None:
        """Write what is queued, from a signal handler: without the lock, which the interrupted code may hold."""
        self._writer.flush(timeout)

    def close_at_exit(self) -> None:
        """Write what is queued, however the threads stand that are left."""
        if not self._ended:
            self._end("the process is ending", timeout=exits.FLUSH_SECONDS_MAX)

    def forget_at_fork(self) -> None:
        """In a forked child: this log is the parent's."""
        self._lock = threading.RLock()
        self._ended = "this process was forked from the recorder's"
        self._writer.abandon()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def whole_number(value: Any) -> int:
    """A number of another library (numpy, torch) as Python's own."""
    return operator.index(value)


encode = msgspec.json.Encoder(enc_hook=whole_number).encode
convert = msgspec.convert

UNORDINARY = (KeyError, TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError)
"""What an event out of the ordinary may raise on the quick way; the careful way says whether it is right."""

FIELD_NAMES = {"from_": "from"}
"""Fields that Python cannot name."""


def refusal(what: str, fault: Fault) -> RecordError:
    return RecordError(f"{what} is refused: {fault.what}; {fault.remedy}")
