"""A way through a design in a file, in the form that the file's ending names."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from kvsan.checker.explore.design import Design, Scoped
from kvsan.checker.explore.explore import Finding
from kvsan.checker.explore.itf import itf
from kvsan.checker.explore.lines import NoLog
from kvsan.checker.explore.log import log_of, written
from kvsan.checker.explore.replay import Step
from kvsan.checker.explore.sequence import sequence
from kvsan.spec.designs.settings import as_set
from kvsan.spec.lang.interpret import Plain

from .usage import Refused

LOG, ITF, MERMAID = ".jsonl", ".itf.json", ".mmd"
ENDINGS = {LOG: "a log for kvsan check", ITF: "an ITF trace", MERMAID: "a Mermaid sequence diagram"}


def check_ending(path: Path) -> None:
    """Raises Refused where nothing is written under this ending."""
    if not path.name.endswith(tuple(ENDINGS)):
        known = ", ".join(f"{ending} ({what})" for ending, what in ENDINGS.items())
        raise Refused(f"--save {path}: the ending says in which form; known are {known}")
    if not path.parent.is_dir():  # said before the search, not after it
        raise Refused(f"--save {path}: there is no folder {path.parent}; make it, or name another")


def save(
    path: Path, design: Design, scoped: Scoped, start: Plain, steps: Sequence[Step], found: Finding | None = None
) -> None:
    """Write a way; found: what its last step breaks. Raises Refused."""
    try:
        path.write_text(way_text(path, design, scoped, start, steps, found), encoding="utf-8")
    except NoLog as error:
        raise Refused(f"--save: {error}") from error
    except OSError as error:
        raise Refused(f"--save {path} cannot be written: {error.strerror}; name a file in a folder of yours") from error
    then = f"; kvsan check {shlex.quote(str(path))}" if path.name.endswith(LOG) else ""
    print(f"kvsan explore: wrote {path}{then}", file=sys.stderr)


def way_text(
    path: Path, design: Design, scoped: Scoped, start: Plain, steps: Sequence[Step], found: Finding | None
) -> str:
    """What is written. Raises NoLog."""
    if path.name.endswith(LOG):
        return written(log_of(design, scoped, start, steps))
    verdict = f"{'lint' if found.kind == 'lint' else 'violated'} {found.rule}: {found.message}" if found else ""
    if path.name.endswith(ITF):
        said = f"{design.name}: {verdict or 'a walk; nothing is violated'}"
        return itf(design.spec, scoped, start, steps, said)
    title = f"{design.name}  {as_set(scoped.settings)}"
    return sequence(design.spec, steps, title, events(design, scoped, start, steps), verdict)


def events(design: Design, scoped: Scoped, start: Plain, steps: Sequence[Step]) -> list[dict[str, object]]:
    """The ownership events of a way, none where it cannot be written as a log."""
    try:
        return log_of(design, scoped, start, steps)[1:]
    except NoLog:
        return []
