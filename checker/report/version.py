"""The version of this installation."""

from __future__ import annotations

from functools import cache


@cache
def version() -> str:
    """As installed; `unknown` where the package runs from a folder that was never installed."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed("kvsan")
    except PackageNotFoundError:
        return "unknown"
