"""Generated modules, kept in a folder of the user's so that a second run need not compile.

The folder is `$KVSAN_CACHE`, else `kvsan` below the user's cache folder; where it cannot be written, a temporary one.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from types import ModuleType


class NoCompiler(Exception):
    """numba is not installed: `pip install kvsan[explore]`."""


def folder() -> Path:
    """Where generated modules lie."""
    given = os.environ.get("KVSAN_CACHE")
    base = Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kvsan"
    target = base / "explore"
    try:
        target.mkdir(parents=True, exist_ok=True)
        if os.access(target, os.W_OK):
            return target
    except OSError:
        pass
    return Path(tempfile.mkdtemp(prefix="kvsan-explore-"))


def build(source: str) -> ModuleType:
    """The module of this text. Raises NoCompiler."""
    try:
        compiler = version("numba")
    except ModuleNotFoundError as error:
        raise NoCompiler("numba is not installed") from error
    digest = hashlib.sha256(f"{compiler} {sys.version}\n{source}".encode()).hexdigest()[:20]
    name = f"kvsan_explore_{digest}"
    path = folder() / f"{name}.py"
    if not path.exists() or path.read_text(encoding="utf-8") != source:
        written = path.with_suffix(f".{os.getpid()}.tmp")
        written.write_text(source, encoding="utf-8")
        written.replace(path)  # never half a file, whoever else writes it
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # the compiler's cache looks it up by its name
    spec.loader.exec_module(module)
    return module
