"""What is shown of an outcome: all of it, or only what is about one block or one branch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kvsan.checker.replay.again import branch_alone
from kvsan.checker.replay.life import Life
from kvsan.checker.replay.outcome import Outcome, Violation

WORST = (1, 2, 3)
"""Exit codes, the worst first: a violation is a fact, whatever could not be read besides."""


@dataclass(frozen=True)
class View:
    """One outcome as it is shown. Verdict and coverage are always those of the whole log.

    lives: of the block and branch asked for. block: as findings name it, `7` or `7 of pool cpu`. Where neither block
    nor branch is given, every finding is shown.
    """

    outcome: Outcome
    lives: tuple[Life, ...] = ()
    block: str | None = None
    branch: str | None = None

    @property
    def violations(self) -> tuple[Violation, ...]:
        return self._shown(self.outcome.violations)

    @property
    def lints(self) -> tuple[Violation, ...]:
        return self._shown(self.outcome.lints)

    @property
    def suppressed(self) -> tuple[Violation, ...]:
        return self._shown(self.outcome.suppressed)

    @property
    def hidden(self) -> int:
        """Findings that are not shown, being about others."""
        whole = self.outcome
        every = len(whole.violations) + len(whole.lints) + len(whole.suppressed)
        return every - len(self.violations) - len(self.lints) - len(self.suppressed)

    def _shown(self, findings: tuple[Violation, ...]) -> tuple[Violation, ...]:
        if self.block is None and self.branch is None:
            return findings
        return tuple(f for f in findings if is_about(f, self.block, self.branch))


def is_about(finding: Violation, block: str | None, branch: str | None) -> bool:
    """Whether it is about the block, or about the branch."""
    if block is not None and finding.block == block:
        return True
    return branch is not None and finding.branch is not None and branch_alone(finding.branch) == branch


def worst(codes: Sequence[int]) -> int:
    """The exit code of several checks: 1 over 2 over 3 over 0."""
    return next((code for code in WORST if code in codes), 0)


def verdict_of(views: Sequence[View]) -> str:
    """The verdict on several logs together."""
    verdicts = {view.outcome.verdict for view in views}
    return next((v for v in ("VIOLATED", "UNKNOWN") if v in verdicts), "HOLDS")
