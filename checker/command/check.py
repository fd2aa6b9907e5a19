"""`kvsan check`: logs in, one report out, the worst exit code."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kvsan.checker.order.said import ORDER_NAMES
from kvsan.checker.order.schedule import NoWitness
from kvsan.checker.order.witness import witness
from kvsan.checker.replay.check import UsageError, check, known
from kvsan.checker.replay.life import Life, life_of_block, life_of_branch
from kvsan.checker.replay.outcome import Outcome
from kvsan.checker.replay.suppress import Suppression, SuppressionError, nearest, read_suppressions
from kvsan.checker.report.formats import Format, render
from kvsan.checker.report.rulebook import rulebook
from kvsan.checker.report.text import total
from kvsan.checker.report.view import View, worst
from kvsan.traces.read import Log, LogProblem, open_logs
from kvsan.traces.write import write_log

from .progress import Progress
from .sink import Color, Sink
from .usage import Refused

INTERRUPTED = 130

WITNESSES = 20
"""Races of one log that get a witness: each takes a reading of the log."""


@dataclass(frozen=True)
class Request:
    """The options of one `kvsan check`."""

    logs: tuple[str, ...]
    format: Format = Format.text
    output: Path | None = None
    until: int | None = None
    block: int | None = None
    pool: str = "gpu"
    branch: str | None = None
    require: tuple[str, ...] = ()
    suppress: tuple[Path, ...] = ()
    quiet: bool = False
    color: Color = Color.auto
    witness: Path | None = None
    order: bool = True

    @property
    def shown_block(self) -> str | None:
        """The block as findings name it."""
        if self.block is None:
            return None
        return str(self.block) if self.pool == "gpu" else f"{self.block} of pool {self.pool}"


def run(request: Request) -> int:
    """Check and report. Returns the exit code. Raises Refused."""
    suppressions = usable(request)
    sink = Sink(request.output, request.format == Format.text, request.color, request.logs)
    views: list[View] = []
    interrupted = False
    streams = request.format == Format.text
    several = False
    try:
        try:
            logs = open_logs(request.logs)
            several = len(logs) > 1
            refuse_unknown_pool(logs, request.pool)
            make_folder(request.witness)
            for view in views_of(logs, request, suppressions):
                views.append(view)
                if streams:
                    sink.write(render(request.format, [view], request.quiet) + "\n" * several)
                if view.outcome.interrupted:
                    break
        except KeyboardInterrupt:
            interrupted = True
        if not streams:
            sink.write(render(request.format, views, request.quiet))
        elif several:
            sink.write(total(views))
    finally:
        sink.close()
    if interrupted or any(view.outcome.interrupted for view in views):
        say(request, f"interrupted: {len(views)} of the logs reported, the last maybe in part")
        return INTERRUPTED
    if request.output is not None:
        say(request, f"wrote {request.output}")
    return worst([view.outcome.exit_code for view in views])


def usable(request: Request) -> list[Suppression]:
    """The suppressions. Raises Refused where one of them or a required rule does not exist."""
    names = [doc.name for doc in rulebook().values() if doc.kind != "lint"]
    try:
        for rule in request.require:
            if rule != "all":
                known(rule, names, "rule")
        return [s for file in request.suppress for s in read_suppressions(file, rulebook())]
    except (UsageError, SuppressionError) as error:
        raise Refused(str(error)) from error


def refuse_unknown_pool(logs: Sequence[Log], pool: str) -> None:
    """Raises Refused where no log has that pool: a block of it would look as if nothing had happened to it."""
    pools = ["gpu", *(str(name) for log in logs if log.header for name in log.header.pools or {})]
    if pool not in pools:
        known_ones = f"known are {', '.join(dict.fromkeys(pools))}"
        raise Refused(f"--pool: there is no pool {pool!r}: {nearest(pool, pools, known_ones)}")


def views_of(logs: Sequence[Log], request: Request, suppressions: Sequence[Suppression]) -> Iterator[View]:
    """Each log, checked."""
    names = Counter[str]()
    for log in logs:
        with Progress(log.name, request.quiet) as progress:
            try:
                outcome = check(
                    log,
                    until=request.until,
                    require=request.require,
                    suppressions=suppressions,
                    progress=progress.tell,
                    interruptible=True,
                    order=request.order,
                )
            except UsageError as error:  # its header names a discipline that there is not
                outcome = refused(log, str(error))
            stem = re.sub(r"\.jsonl(\.gz|\.zst)?$", "", Path(log.name).name)
            names[stem] += 1  # each rank may write its own folder, and all the same file there
            if request.witness is not None and not outcome.interrupted:
                save_witnesses(log, outcome, request, stem if names[stem] == 1 else f"{stem}-{names[stem]}")
            lives = () if outcome.interrupted else tuple(lives_of(log, request))
        yield View(outcome, lives, request.shown_block, request.branch)


def make_folder(folder: Path | None) -> None:
    """The folder of the witnesses, before hours of checking. Raises Refused."""
    try:
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refused(f"--witness {folder} cannot be made: {error.strerror}; name a folder of yours") from error


def save_witnesses(log: Log, outcome: Outcome, request: Request, stem: str) -> None:
    """A log for each breach of order, in which it goes wrong. Raises Refused where one cannot be written."""
    folder = request.witness or Path()
    races = [found for found in outcome.violations if found.rule in ORDER_NAMES]
    if not races:
        say(request, f"--witness: {log.name} shows no breach of order, so there is nothing to write")
    for found in races[:WITNESSES]:
        about = f"block-{found.block}" if found.block is not None else f"branch-{found.branch}"
        name = re.sub(r"[^\w.-]", "-", f"{stem}-line-{found.line}-{about}.jsonl")
        try:
            made = witness(log, found)
        except NoWitness as reason:
            say(request, f"no witness of {found.rule} at line {found.line}: {reason}")
            continue
        try:
            write_log(folder / name, made.header, made.events)
        except OSError as error:
            raise Refused(f"--witness: {folder / name} cannot be written: {error.strerror}") from error
        say(request, f"wrote {folder / name}")
    if len(races) > WITNESSES:
        say(request, f"only the first {WITNESSES} of {len(races)} races got a witness")


def refused(log: Log, what: str) -> Outcome:
    """The outcome on a log that cannot be judged: the others still are."""
    what, _, remedy = what.partition(": ")
    problem = LogProblem("malformed", *log.place(1), "discipline", what, remedy)
    reasons = ("nothing was checked",)
    return Outcome("UNKNOWN", 2, log.header_fields, log.name, 0, 1, (), (), (), {}, reasons, problem)


def lives_of(log: Log, request: Request) -> Iterator[Life]:
    """The lives that were asked for."""
    if request.block is not None:
        yield life_of_block(log, request.block, request.pool, request.until)
    if request.branch is not None:
        yield life_of_branch(log, request.branch, request.until)


def say(request: Request, what: str) -> None:
    """A word on standard error."""
    if not request.quiet:
        print(f"kvsan check: {what}", file=sys.stderr)
