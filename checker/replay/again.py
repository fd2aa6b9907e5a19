"""The command that shows a finding again, alone: a failure's last line."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from .outcome import Violation

STDIN = "<stdin>"


def replay_command(files: Sequence[str], finding: Violation) -> str | None:
    """`kvsan check beam.jsonl --until 42 --block 7`; None where the log is no file that could be named again."""
    if not files or any(file.startswith("<") and file != STDIN for file in files):
        return None
    names = ["-" if file == STDIN else file if not file.startswith("-") else f"./{file}" for file in files]
    until = max(finding.line, finding.earlier or 0)
    return shlex.join(["kvsan", "check", *names, "--until", str(until), *about(finding)])


def about(finding: Violation) -> list[str]:
    """The options that single out the finding's block, or else its branch."""
    if finding.block is not None:
        block, pool = block_and_pool(finding.block)
        return ["--block", block] if pool == "gpu" else ["--block", block, "--pool", pool]
    if finding.branch is not None:
        return ["--branch", branch_alone(finding.branch)]
    return []


def block_and_pool(block: str) -> tuple[str, str]:
    """A block as a finding names it: `7`, or `7 of pool cpu`."""
    number, _, pool = block.partition(" of pool ")
    return number, pool or "gpu"


def branch_alone(branch: str) -> str:
    """A branch as a finding names it, without the cache group of its table: `r1 (group 1)`."""
    return re.sub(r" \(group [^()]*\)$", "", branch)
