"""`kvsan explore`: a design in a scope, searched to the end, or to the shortest counterexample."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kvsan.checker.explore.coverage import guard_counts
from kvsan.checker.explore.design import BadDesign, find, scoped
from kvsan.checker.explore.explore import Exploration, Prepared, explore, explore_plainly, prepare
from kvsan.checker.explore.module import NoCompiler
from kvsan.checker.explore.search import Limits
from kvsan.checker.explore.search import Progress as Figures
from kvsan.checker.explore.simulate import simulate
from kvsan.checker.explore.symmetry import SYMMETRIES
from kvsan.checker.report.exploration import EXITS, as_json, as_text, walks_json, walks_text
from kvsan.spec.lang.diagnostics import SpecError

from .liveness import judge
from .progress import PATIENCE, escaped, live_line
from .save import check_ending, save
from .sink import Color, Sink
from .usage import Refused, refuse_unknown

if TYPE_CHECKING:
    from rich.status import Status

INTERRUPTED = 130
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True)
class Request:
    """The options of one `kvsan explore`."""

    design: str
    settings: Sequence[str] = ()
    scope: str = ""
    mutant: str = ""
    symmetry: str = "full"
    lints: bool = False
    without: Sequence[str] = ()
    limit_states: int | None = None
    limit_memory: str = "4G"
    limit_depth: int | None = None
    json: bool = False
    save: Path | None = None
    simulate: int | None = None
    depth: int = 50
    seed: int = 0
    quiet: bool = False
    plain: bool = False
    liveness: bool = False
    coverage: bool = False
    threads: int = 0

    @property
    def replay(self) -> str:
        parts = ["kvsan", "explore", self.design]
        parts += [part for s in self.settings for part in ("--set", s)]
        parts += ["--scope", self.scope] if self.scope else []
        parts += ["--mutant", self.mutant] if self.mutant else []
        parts += [] if self.symmetry == "full" else ["--symmetry", self.symmetry]
        parts += ["--lints"] if self.lints else []
        parts += [part for rule in self.without for part in ("--without", rule)]
        return shlex.join(parts)


def run(request: Request) -> int:
    """Explore and report. Returns the exit code. Raises Refused."""
    if request.symmetry not in SYMMETRIES:
        raise Refused(f"--symmetry {request.symmetry}: known are {', '.join(SYMMETRIES)}")
    limits = limits_of(request)
    if request.save is not None:
        check_ending(request.save)
    try:
        design = find(request.design)
        chosen = scoped(design, changes(request.settings), request.scope, request.mutant)
        refuse_unknown("--without", request.without, design.spec.rules, "rule")
        if request.liveness:
            text, code = judge(design, chosen, request.json, request.quiet)
            Sink(None, not request.json, Color.never).write(text)
            return code
        with Live(design.name, request.quiet) as live:
            live.show(f"exploring {design.name}: its steps are prepared and compiled, once for each scope")
            prepared = prepare(design, chosen, request.symmetry, request.lints, request.without)
            found = searched(request, prepared, limits, live) if request.simulate is None else None
        if found is None:
            return walk(request, prepared)
        guards = guard_counts(design, chosen, request.symmetry, limits) if request.coverage else ()
    except BadDesign as error:
        raise Refused(str(error)) from error
    except SpecError as error:
        raise Refused(f"the design is not well formed\n{error}") from error
    except NoCompiler as error:
        raise Refused(f"--coverage counts in compiled code, but {error}: pip install 'kvsan[explore]'") from error
    sink = Sink(None, not request.json, Color.never)
    sink.write(as_json(found, guards) if request.json else as_text(found, request.replay, guards))
    if request.save is not None and found.violations:
        first = found.violations[0]
        save(request.save, design, chosen, first.start, first.steps, first)
    elif request.save is not None:
        print("kvsan explore: there is no counterexample to save", file=sys.stderr)
    return exit_code(found)


def searched(request: Request, prepared: Prepared, limits: Limits, live: Live) -> Exploration:
    """Search by what there is: compiled, or by the interpreter."""
    if not request.plain:
        try:
            return explore(prepared, limits, live.tell, request.threads, partial=True)
        except NoCompiler as error:
            print(f"kvsan explore: {error}, so this search is slow: pip install 'kvsan[explore]'", file=sys.stderr)
    return explore_plainly(prepared, limits, live.tell)


def walk(request: Request, prepared: Prepared) -> int:
    """Random walks. Returns the exit code: without a failure UNKNOWN, for walks prove nothing. Raises Refused."""
    done = simulate(prepared, request.simulate or 0, request.depth, request.seed)
    sink = Sink(None, not request.json, Color.never)
    sink.write(walks_json(done) if request.json else walks_text(done, request.seed))
    if request.save is not None:
        save(request.save, prepared.design, prepared.scoped, done.start, done.last, done.found)
    return 1 if done.found else 3


def exit_code(found: Exploration) -> int:
    return INTERRUPTED if found.stopped == "interrupted" else EXITS[found.verdict]


def changes(settings: Sequence[str]) -> dict[str, str]:
    """`name=value` apart. Raises Refused."""
    out = {}
    for text in settings:
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            raise Refused(f"--set {text}: write --set name=value")
        out[name] = value
    return out


def limits_of(request: Request) -> Limits:
    """The limits. Raises Refused."""
    usual = Limits()
    text = request.limit_memory.upper().removesuffix("B")
    unit = text[-1:] if text[-1:] in UNITS else ""
    digits = text.removesuffix(unit)
    if not digits.isdecimal() or int(digits) == 0:
        raise Refused(f"--limit-memory {request.limit_memory}: write a number with K, M or G, such as 4G")
    return Limits(
        request.limit_states or usual.states,
        int(digits) * UNITS[unit],
        usual.depth if request.limit_depth is None else request.limit_depth,
    )


class Live:
    """The live line of a search, on a terminal's standard error and nowhere else."""

    def __init__(self, name: str, quiet: bool) -> None:
        self.name = name
        self.silent = quiet or not sys.stderr.isatty()
        self.start = time.monotonic()
        self.status: Status | None = None

    def tell(self, figures: Figures) -> None:
        if self.silent or (self.status is None and time.monotonic() - self.start < PATIENCE):
            return
        rate = figures.states / max(figures.seconds, 1e-9)
        self.show(
            f"exploring {self.name}: {figures.transitions:,} states generated, {figures.states:,} distinct,"
            f" {figures.queue:,} on queue, depth {figures.depth}, {rate:,.0f} distinct a second"
        )

    def show(self, text: str) -> None:
        """This is under way now."""
        if self.silent:
            return
        if self.status is None:
            self.status = live_line(text)
        self.status.update(escaped(text))

    def __enter__(self) -> Live:
        return self

    def __exit__(self, *_: object) -> None:
        if self.status is not None:
            self.status.stop()
