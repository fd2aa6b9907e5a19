"""Small logs for the tests of reports and of the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HEADER = {
    "ev": "trace",
    "schema": "kvsan/1",
    "engine": "vllm",
    "version": "0.3.3",
    "discipline": "paged_cow",
    "block_size": 4,
    "blocks": 16,
}


def write_log(path: Path, *events: dict[str, Any], **header: Any) -> Path:
    """A log with this project's usual header."""
    lines = [{**HEADER, **header}, *events]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def e(ev: str, **fields: Any) -> dict[str, Any]:
    """One event; `from_` is `from`."""
    return {"ev": ev, **{name.rstrip("_"): value for name, value in fields.items()}}
