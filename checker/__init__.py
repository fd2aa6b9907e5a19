"""The checker: what the specification is used for.

replay   a recorded log against the rules: `check`
order    what its synchronisation allows besides what happened, and a witness of it
report   outcomes as text, JSON, SARIF, JUnit, HTML
command  what the `kvsan` commands do; `cli` is how they are called

The names below are imported on first use, so that `kvsan --help` does not read the specification.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kvsan.checker.replay.check import check
    from kvsan.checker.replay.outcome import Outcome, RuleCoverage, Violation

__all__ = ["Outcome", "RuleCoverage", "Violation", "check"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = "check" if name == "check" else "outcome"
    return getattr(import_module(f"kvsan.checker.replay.{module}"), name)
