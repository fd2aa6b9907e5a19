"""The thread that writes a log: lines go into a queue, and one thread compresses and writes them.

One writer, so that no order has to be kept between writers; a thread, so that the engine pays for neither compression
nor the disk, and an idle or hanging engine's last events reach the file. The file has no buffer of its own: a fork
copies nothing that could be written twice. Compressed logs are a sequence of complete frames (zstd) or members (gzip),
one a flush: what precedes a kill is readable.

`deque.append` and `SimpleQueue.put` are the only calls made on behalf of an event or a signal handler: both are atomic
and may interrupt each other, which a lock or a `threading.Event` would turn into a deadlock.
"""

import gzip
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue

import zstandard

FLUSH_SECONDS = 0.5
"""How long a line waits at most before it is in the file."""

LINES_A_FLUSH = 4096


class LogWriter:
    """Writes lines to a file, compressed as its suffix says, from a thread of its own.

    Raises OSError at once where the file cannot be opened; a later failure is kept in `error`, and lines are dropped
    from then on.
    """

    def __init__(self, path: Path, header: bytes) -> None:
        self.lines: deque[bytes] = deque()
        self.error: OSError | None = None
        self._requests: SimpleQueue[threading.Event | None] = SimpleQueue()
        self._stopping = False
        self._pack = packer(path)
        self._file = path.open("wb", buffering=0)
        self._write([header])
        if self.error:
            self._file.close()
            raise self.error
        self._thread = threading.Thread(target=self._run, name=f"kvsan-recorder {path.name}", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Ask for the queued lines to be written soon."""
        self._requests.put(None)

    def flush(self, timeout: float | None = None) -> bool:
        """Wait until the lines queued so far are written. False when that takes longer than `timeout` seconds."""
        written = threading.Event()
        self._requests.put(written)
        return written.wait(timeout)

    def stop(self, timeout: float | None = None) -> None:
        """Write what is queued and end the thread."""
        self._stopping = True
        self._requests.put(None)
        self._thread.join(timeout)

    def abandon(self) -> None:
        """In a forked child, where the thread does not exist: forget what the parent will write."""
        self.lines.clear()
        self._file.close()

    def _run(self) -> None:
        while True:
            written = self._request()
            while self.lines:
                self._write([self.lines.popleft() for _ in range(min(len(self.lines), LINES_A_FLUSH))])
            if written:
                written.set()
            elif self._stopping and self._requests.empty():
                self._file.close()
                return

    def _request(self) -> threading.Event | None:
        try:
            return self._requests.get(timeout=FLUSH_SECONDS)
        except Empty:
            return None

    def _write(self, lines: list[bytes]) -> None:
        """Append lines, as one frame. The first failure is kept, and nothing is written after it."""
        if self.error:
            return
        data = memoryview(self._pack(b"\n".join([*lines, b""])))
        try:
            while data:
                data = data[self._file.write(data) :]
        except OSError as error:
            self.error = error


def packer(path: Path) -> Callable[[bytes], bytes]:
    """How the suffix says that lines are stored."""
    match path.suffix:
        case ".gz":
            return lambda data: gzip.compress(data, mtime=0)
        case ".zst":
            return zstandard.ZstdCompressor(write_checksum=True).compress
    return lambda data: data
