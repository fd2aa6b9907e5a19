"""Where a log's bytes come from: files, compressed or not, and streams that can be read only once.

Compression is told from the first bytes, never from the name, so that a renamed file and a pipe read alike. A source
can be opened any number of times: a stream is spooled into an unnamed temporary file as it is read.
"""

import io
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol

from kvsan.traces.problem import Broken


class Source(Protocol):
    """Named bytes that can be read from the start again and again."""

    @property
    def name(self) -> str: ...

    def pieces(self, size: int) -> Iterator[bytes]:
        """The bytes as stored, in pieces of at most `size`. Raises Broken."""
        ...


@dataclass(frozen=True)
class FileSource:
    """A file on disk."""

    path: Path

    @property
    def name(self) -> str:
        return str(self.path)

    def pieces(self, size: int) -> Iterator[bytes]:
        try:
            with self.path.open("rb", buffering=0) as file:
                while piece := file.read(size):
                    yield piece
        except (OSError, ValueError) as error:
            raise unreadable(self.path, error) from error


def unreadable(path: Path, error: OSError | ValueError) -> Broken:
    """What the system says of a file that cannot be read, and what to do about it."""
    match error:
        case FileNotFoundError():
            return Broken.of("unreadable", f"there is no file {path}", "check the name; - reads standard input")
        case IsADirectoryError():
            return Broken.of("unreadable", f"{path} is a directory", f"name the logs in it, such as '{path}/*.jsonl'")
        case PermissionError():
            return Broken.of("unreadable", f"{path} may not be read", "give yourself permission to read it")
    reason = getattr(error, "strerror", None) or str(error)
    return Broken.of("unreadable", f"{path} cannot be read: {reason}", "check the file and the disk it is on")


@dataclass
class StreamSource:
    """A stream that can be read once: kept in a temporary file as far as it has been read."""

    stream: BinaryIO
    name: str
    _spool: BinaryIO | None = None
    _end: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def pieces(self, size: int) -> Iterator[bytes]:
        at = 0
        while piece := self._read(at, size):
            yield piece
            at += len(piece)

    def _read(self, at: int, size: int) -> bytes:
        """Bytes from position `at`: from the spool, else from the stream, which then grows the spool."""
        with self._lock:
            try:
                if self._spool is None:
                    self._spool = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the source
                if at < self._end:
                    self._spool.seek(at)
                    return self._spool.read(min(size, self._end - at))
                piece = read_some(self.stream, size)
                self._spool.seek(self._end)
                self._spool.write(piece)
                self._end += len(piece)
                return piece
            except (OSError, ValueError) as error:
                reason = f"{self.name} cannot be read: {error}"
                raise Broken.of("unreadable", reason, "save the log to a file and name that") from error


def read_some(stream: BinaryIO, size: int) -> bytes:
    """What a pipe has to give now, without waiting until `size` bytes have come."""
    return stream.read1(size) if isinstance(stream, io.BufferedReader) else stream.read(size)
