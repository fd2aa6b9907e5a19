"""The checker: what the specification is used for.

replay   a recorded log against the rules: `check`
report   outcomes as text, JSON, SARIF, JUnit, HTML
cli      the `kvsan` command
"""

from kvsan.checker.replay.check import check
from kvsan.checker.replay.outcome import Outcome, RuleCoverage, Violation

__all__ = ["Outcome", "RuleCoverage", "Violation", "check"]
