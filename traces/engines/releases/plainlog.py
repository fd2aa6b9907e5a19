"""A plain JSON Lines writer with the recorder's shape, until the recorder is there."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec


class Recorder:
    def __init__(self, path: Path, **header: Any) -> None:
        self._file, self._seq = path.open("wb"), 0
        self._write({"ev": "trace", "schema": "kvsan/1", **header})

    def emit(self, ev: str, /, **fields: Any) -> None:
        self._write({"ev": ev, **fields, "seq": self._seq})
        self._seq += 1

    def _write(self, record: dict[str, Any]) -> None:
        self._file.write(msgspec.json.encode(record) + b"\n")

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self._file.close()
