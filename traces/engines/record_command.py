"""`kvsan record -- CMD…`: run a command with the recorder on, and say what was recorded.

The command is the user's own, unchanged; it must run where kvsan is installed beside the engine (vLLM then finds the
recorder by itself, see `plugin`). One block manager makes one log: a command with several gets `run.jsonl`,
`run.2.jsonl`, and so on.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from kvsan.traces.engines.output import HEADER, PATH
from kvsan.traces.read import open_log

PLUGINS = "VLLM_PLUGINS"
NAME = "kvsan"  # of the entry point
NOT_RECORDED = 2
"""Exit code of a command that succeeded and recorded nothing: a missing log must not look like a success."""
NOT_FOUND = 127


def record(command: Sequence[str], out: Path, *, header: dict[str, str] | None = None) -> int:
    """Run `command` with its events going to `out`; a log that is already there is replaced.

    command: the program and its arguments. header: further header fields, names that start with `x_`.
    Returns the command's exit code; 128 and the signal's number where a signal ended it; 127 where it cannot be
    started; 2 where it succeeded and nothing was recorded. What was written, or why nothing was, goes to stderr.
    """
    for old in logs_at(out):
        old.unlink()
    fields = {"x_command": shlex.join(command)} | (header or {})
    environment = os.environ | {PATH: str(out.absolute()), HEADER: json.dumps(fields)} | _allowed()
    try:
        code = _run(command, environment)
    except OSError as error:
        _say(f"cannot run {command[0]}: {error.strerror}")
        return NOT_FOUND
    if code < 0:
        _say(f"{command[0]} was ended by signal {-code}")
        code = 128 - code
    written = logs_at(out)
    for log in written:
        _say(f"wrote {_described(log)}")
    if written:
        return code
    _say(f"nothing was recorded: {command[0]} created no block manager that kvsan knows")
    _say("kvsan must be installed in the engine's own environment")
    return code or NOT_RECORDED


def _allowed() -> dict[str, str]:
    """Where the user lists the plugins that vLLM may load, the recorder joins the list."""
    listed = os.environ.get(PLUGINS)
    if listed is None or NAME in listed.split(","):
        return {}
    return {PLUGINS: ",".join(filter(None, [listed, NAME]))}


def _run(command: Sequence[str], environment: dict[str, str]) -> int:
    """Run to the end. An interrupt at the terminal reaches the command too: it decides, and its log gets flushed."""
    process = subprocess.Popen(list(command), env=environment)
    while True:
        with contextlib.suppress(KeyboardInterrupt):
            return process.wait()


def logs_at(out: Path) -> list[Path]:
    """The log at `out` and those of further block managers beside it, in order."""
    stem, dot, suffixes = out.name.partition(".")
    found = [out] if out.exists() else []
    number = 2
    while (beside := out.with_name(f"{stem}.{number}{dot}{suffixes}")).exists():
        found.append(beside)
        number += 1
    return found


def _described(path: Path) -> str:
    log = open_log(path)
    events = sum(len(batch) for batch in log.batches())
    header = log.header
    what = f"{header.engine} {header.version}, {header.discipline}" if header is not None else "no header"
    cut = f"; it breaks off: {log.problem.what}" if log.problem is not None else ""
    return f"{path}: {events} events ({what}){cut}"


def _say(what: str) -> None:
    print(f"kvsan record: {what}", file=sys.stderr)
