"""Opening logs: names, globs, `-` and streams, grouped into logs.

How segments and logs are told apart, in the order the files are named (a glob in natural order, `run.2` before
`run.10`): a file that starts without a header goes on the log before it. A file whose header differs from that log's
(but for `seq`, `t`, `note`) starts another log. So does one with an equal header, unless its first number is larger
than the first number of the file before it, as in a log that its recorder rotated. Refused: guessing from file names,
which recorders choose freely. `open_log` takes a list as the segments of one log, whatever their headers say.
"""

import re
import sys
from collections.abc import Iterable, Sequence
from glob import glob, has_magic
from pathlib import Path
from typing import BinaryIO

from kvsan.traces.decode import decode_block
from kvsan.traces.head import names_header, parse_header, same_log, split_first_line
from kvsan.traces.header import Trace
from kvsan.traces.lines import blocks
from kvsan.traces.log import Item, Log
from kvsan.traces.problem import Broken, Fault, Gap, LogProblem, render_problem
from kvsan.traces.sources import FileSource, Source, StreamSource
from kvsan.traces.unpack import Limits, plain_bytes

__all__ = ["Gap", "Item", "Limits", "Log", "LogProblem", "open_log", "open_logs", "render_problem"]

Place = str | Path | BinaryIO
"""A file name, a glob, `-` for standard input, or a binary stream (read once, spooled)."""


def open_log(place: Place | Sequence[Place], limits: Limits | None = None) -> Log:
    """One log: a file, or a glob or list of its segments in their order. Never raises; see `Log.problem`."""
    places = [place] if isinstance(place, str | Path) or not isinstance(place, Sequence) else place
    return Log([source for one in places for source in sources_of(one)], limits or Limits())


def open_logs(places: Iterable[Place], limits: Limits | None = None) -> list[Log]:
    """The logs that these files hold, grouped as the module says."""
    limits, groups = limits or Limits(), list[list[Source]]()
    before: Head | None = None
    for source in (source for place in places for source in sources_of(place)):
        head = read_head(source, limits)
        if head and before and groups and continues(head, before):
            groups[-1].append(source)
            before = (before[0], before[1] if head[1] is None else head[1])
        else:
            groups.append([source])
            before = head
    return [Log(group, limits) for group in groups]


Head = tuple[Trace | None, int | None]
"""A file's header, None where it starts with an event, and the first number after it."""


def continues(head: Head, before: Head) -> bool:
    """Whether a file goes on the log whose latest file began with `before`."""
    (header, number), (header_before, number_before) = head, before
    if header is None or header_before is None:
        return header is None
    renewed = same_log(header, header_before)
    return renewed and number is not None and number_before is not None and number > number_before


def read_head(source: Source, limits: Limits) -> Head | None:
    """How a file begins; None where that cannot be read, so that it is a log by itself, with a problem."""
    try:
        block = next(blocks(plain_bytes(source, limits), limits.line_bytes), None)
    except Broken:
        return None
    if block is None:
        return None
    line, rest = split_first_line(block)
    outcome = parse_header(line, is_open=False) if names_header(line) else None
    if isinstance(outcome, Fault):
        return None
    body = rest if outcome else block
    events = decode_block(body).events if body.data else []
    return outcome[0] if outcome else None, next((event.seq for event in events if event.seq is not None), None)


def sources_of(place: Place) -> list[Source]:
    """The files a place names: a glob that matches none stands for itself, and is then missing."""
    if place == "-":
        return [StreamSource(sys.stdin.buffer, "<stdin>")]
    if not isinstance(place, str | Path):
        return [StreamSource(place, str(getattr(place, "name", "<stream>")))]
    text = str(place)
    if has_magic(text) and not Path(text).exists():
        names = glob(text, recursive=True)  # noqa: PTH207 - a pattern may be absolute, which Path.glob refuses
        return [file_source(Path(name)) for name in sorted(names, key=natural) or [text]]
    return [file_source(Path(text))]


def file_source(path: Path) -> Source:
    """A file; a pipe with a name, as a shell's `<(…)` gives, can be read only once."""
    try:
        if path.is_fifo():
            return StreamSource(path.open("rb"), str(path))
    except (OSError, ValueError):
        pass  # reading it will say what is wrong
    return FileSource(path)


def natural(name: str) -> list[tuple[int, str]]:
    """A sort key under which `run.2` comes before `run.10`."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]
