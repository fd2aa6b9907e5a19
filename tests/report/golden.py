"""Golden files: the text a test made must be the bytes that are kept. KVSAN_GOLDEN=write keeps the new ones."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "golden" / "report"


def check_golden(name: str, made: str) -> None:
    """Fails where the kept file differs; a missing file is a failure too."""
    path = FOLDER / name
    if os.environ.get("KVSAN_GOLDEN") == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(made.encode())
    assert path.read_bytes().decode() == made, f"{path} differs; KVSAN_GOLDEN=write keeps the new text"
