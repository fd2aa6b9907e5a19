"""Where a recording goes: the path and the header fields that the environment names.

`KVSAN_RECORD`         the log to write; unset means: record nothing
`KVSAN_RECORD_HEADER`  a JSON object of further header fields (`x_command` and the like)
"""

from __future__ import annotations

import atexit
import json
import multiprocessing.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any  # header fields are the Recorder's to check

from kvsan.traces.record import Recorder

PATH = "KVSAN_RECORD"
HEADER = "KVSAN_RECORD_HEADER"


def wanted() -> bool:
    return bool(os.environ.get(PATH))


def open_recorder(**header: Any) -> Recorder:
    """A recorder for one block manager. A process, or manager, that comes later writes beside the first.

    Raises: OSError where the path cannot be written; ValueError where KVSAN_RECORD_HEADER is no JSON object.
    """
    extra = json.loads(os.environ.get(HEADER) or "{}")
    if not isinstance(extra, dict):
        raise ValueError(f"{HEADER} must hold a JSON object")
    recorder = Recorder(_claim(Path(os.environ[PATH])), **header, **extra)
    _open.append(recorder)
    multiprocessing.util.Finalize(None, close_all, exitpriority=100)  # a child process ends without atexit
    return recorder


_open: list[Recorder] = []


@contextmanager
def recording() -> Iterator[None]:
    """Close, at the end, what was opened inside: for one process that makes several recordings."""
    yield
    close_all()


@atexit.register
def close_all() -> None:
    """Close every log of this process."""
    while _open:
        _open.pop().close()


def _claim(path: Path) -> Path:
    """The first of `run.jsonl`, `run.2.jsonl`, … that nobody has written yet, created empty."""
    stem, dot, suffixes = path.name.partition(".")
    for number in range(1, 10_000):
        candidate = path if number == 1 else path.with_name(f"{stem}.{number}{dot}{suffixes}")
        try:
            os.close(os.open(candidate, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
        except FileExistsError:
            continue
        return candidate
    raise FileExistsError(f"{path}: too many logs beside it")
