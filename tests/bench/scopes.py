"""Which scopes of which design fit into a minute, ten minutes, an hour: the rows of `spec/designs/SCOPES.md`.

    python tests/bench/scopes.py [SECONDS] [DESIGN...]     rows to standard output; a search ends after SECONDS

Seconds are those of the processor, of a search in one thread, so that it does not matter what else the machine does;
compiling comes on top, once, and is done anew here. Counts are exact.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

from kvsan.checker.explore.design import find, scoped
from kvsan.checker.explore.explore import Exploration, explore, prepare
from kvsan.checker.explore.module import build
from kvsan.checker.explore.search import Limits, Progress
from kvsan.spec.designs.catalog import DESIGNS

LARGER: dict[str, list[tuple[str, dict[str, int | str], str]]] = {
    "tail_copy": [
        ("", {"branches": 4, "blocks": 7}, "none"),
        ("", {"blocks": 6, "positions": 3}, "none"),
        ("", {"blocks": 6, "positions": 3}, "full"),
        ("", {"branches": 4, "blocks": 8, "positions": 3}, "full"),
        ("", {"branches": 5, "blocks": 8}, "full"),
    ],
    "paged_cow": [
        ("three_writers", {"schedule": "HOST_WAIT"}, "full"),
        ("three_writers", {"schedule": "EVENT_WAIT"}, "full"),
        ("three_positions", {"schedule": "HOST_WAIT"}, "full"),
        ("three_positions", {"schedule": "EVENT_WAIT"}, "full"),
        ("three_writers", {"schedule": "EVENT_WAIT"}, "none"),
        ("three_positions", {"schedule": "EVENT_WAIT"}, "none"),
    ],
}
"""Scopes beyond the named ones, by what they change, and the symmetry."""


@dataclass(frozen=True)
class Row:
    design: str
    scope: str
    changes: dict[str, int | str]
    symmetry: str

    @property
    def what(self) -> str:
        parts = [f"`--scope {self.scope}`" if self.scope else ""]
        parts += [f"`--set {n}={str(v).lower()}`" for n, v in self.changes.items()]
        return " ".join(p for p in parts if p) or "default"


def rows(design: str) -> Iterator[Row]:
    """The default scope, the named ones that are right, and larger ones."""
    for scope in ("", *DESIGNS[design].scopes):
        if scope != "unordered":  # a race, not a scope
            yield Row(design, scope, {}, "full")
    for scope, changes, symmetry in LARGER.get(design, ()):
        yield Row(design, scope, changes, symmetry)


@dataclass(frozen=True)
class Outcome:
    """What a row's search found; the processor seconds that it took, and those of compiling."""

    found: Exploration
    seconds: float
    compiling: float


def searched(row: Row, seconds: float, memory: int = 8 << 30) -> Outcome:
    """The row's search; interrupted after so many seconds."""
    design = find(row.design)
    chosen = scoped(design, {n: str(v) for n, v in row.changes.items()}, scope=row.scope)

    def tell(progress: Progress) -> None:
        if progress.seconds > seconds:
            raise KeyboardInterrupt

    begun = time.process_time()
    prepared = prepare(design, chosen, row.symmetry)
    build(prepared.generated.source)
    ready = time.process_time()
    found = explore(prepared, Limits(memory=memory), tell, threads=1)
    return Outcome(found, time.process_time() - ready, ready - begun)


def told(row: Row, outcome: Outcome) -> str:
    """A line of the table."""
    found, seconds = outcome.found, outcome.seconds
    fits = next((name for most, name in ((60, "a minute"), (600, "ten minutes")) if seconds <= most), "an hour")
    fits = f"no: {found.stopped}" if found.stopped else fits
    size = f"{found.bytes / found.states:.0f}" if found.states >= 1_000_000 else ""
    cells = [
        f"`{row.design}`", row.what, found.symmetry, f"{found.states:,}", f"{found.transitions:,}", str(found.depth),
        f"{seconds:.1f}", f"{outcome.compiling:.0f}", size, fits,
    ]  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def line(row: Row, seconds: float) -> str:
    """The row's line, searched; the machine code is in no cache."""
    os.environ["KVSAN_CACHE"] = tempfile.mkdtemp()
    outcome = searched(row, seconds)
    assert outcome.found.verdict != "VIOLATED", row
    return told(row, outcome)


def main() -> None:
    given = sys.argv[1:]
    seconds = float(given.pop(0)) if given and given[0].isdigit() else 60.0
    alone = ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1)  # memory is told by its peak
    for name in given or DESIGNS:
        for row in rows(name):
            print(alone.submit(line, row, seconds).result(), flush=True)


if __name__ == "__main__":
    main()
