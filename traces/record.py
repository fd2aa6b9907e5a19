"""The writing half for engine developers: `Recorder` appends events to a log."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Self, cast

import msgspec
import zstandard
from kvsan.traces.header import SCHEMA


class Recorder:
    """Appends events to a log, from any thread."""

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
        import gzip

        path = Path(path)
        self._lock = threading.RLock()
        self._seq = 0
        header = {
            "ev": "trace",
            "schema": SCHEMA,
            "engine": engine,
            "version": version,
            "discipline": discipline,
            "block_size": block_size,
            "blocks": blocks,
            **more,
        }
        if path.suffix == ".gz":
            self._file: IO[bytes] = cast(IO[bytes], gzip.open(path, "wb"))  # noqa: SIM115
        elif path.suffix == ".zst":
            self._file = zstandard.open(path, "wb")
        else:
            self._file = path.open("wb")
        self._encode = msgspec.json.Encoder().encode
        self._file.write(self._encode(header) + b"\n")

    def emit(self, ev: str, **fields: object) -> None:
        """Append one event."""
        with self._lock:
            self._seq += 1
            self._file.write(self._encode({"ev": ev, "seq": self._seq, **fields}) + b"\n")

    @contextmanager
    def group(self) -> Iterator[None]:
        """Keep the events of one engine call together."""
        with self._lock:
            yield

    def flush(self) -> None:
        with self._lock:
            self._file.flush()

    def close(self) -> None:
        with self._lock:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()
