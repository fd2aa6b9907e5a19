"""`kvsan review`: everything that is known of a design, as one page and as Markdown."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any  # JSON values

from kvsan.checker.explore.budget import Budget, budget
from kvsan.checker.explore.design import BadDesign, Design, find, scoped
from kvsan.checker.explore.explore import Exploration, explore, prepare
from kvsan.checker.explore.module import NoCompiler
from kvsan.checker.explore.mutants import DEFAULT, catch
from kvsan.checker.explore.search import Limits
from kvsan.checker.report.exploration import EXITS
from kvsan.checker.report.review.content import document, shortfalls, title
from kvsan.checker.report.review.markdown import markdown
from kvsan.checker.report.review.material import Material, Shown, settings
from kvsan.checker.report.review.page import page
from kvsan.checker.report.review.words import without_folders
from kvsan.checker.report.version import version
from kvsan.spec.lang import ir
from kvsan.spec.lang.diagnostics import SpecError

from .line import Line
from .save import way_text
from .usage import Refused


@dataclass(frozen=True)
class Request:
    """The options of one `kvsan review`. limit_states: of each search. proof: whether one is tried; None: where facts
    stand beside the design, without which hardly any step is inductive. mutants: leave them out where false."""

    design: str
    out: Path = Path()
    limit_states: int = 5_000_000
    proof: bool | None = None
    mutants: bool = True
    quiet: bool = False


def run(request: Request) -> int:
    """Gather, write both forms, name them, and say what they do not show. Returns the exit code. Raises Refused."""
    try:
        design = find(request.design)
        _check_folder(request.out)
        with Line("review", request.quiet) as line:
            material = gathered(request, design, line)
    except BadDesign as error:
        raise Refused(str(error)) from error
    except SpecError as error:
        raise Refused(f"the design is not well formed\n{error}") from error
    except NoCompiler as error:
        raise Refused(f"{error}: pip install 'kvsan[explore]'") from error
    blocks = document(material)
    forms = {".html": page(title(material), blocks), ".md": markdown(blocks)}
    for ending, text in forms.items():
        path = request.out / f"{material.design.name}{ending}"
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise Refused(f"{path} cannot be written: {error.strerror}; name a folder of yours") from error
        print(f"kvsan review: wrote {path}", file=sys.stderr)
    short = tuple(shortfalls(material))
    for verdict, why in short:
        print(f"kvsan review: {verdict}: {why}", file=sys.stderr)
    return EXITS[next((v for v in ("VIOLATED", "UNKNOWN") if v in dict(short)), "HOLDS")]


def _check_folder(folder: Path) -> None:
    """Before minutes of work. Raises Refused."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        why = "" if os.access(folder, os.W_OK) else "not yours to write"
    except OSError as error:
        why = str(error.strerror)
    if why:
        raise Refused(f"--out {folder}: the folder cannot be written: {why}; name one of yours")


def gathered(request: Request, design: Design, line: Line) -> Material:
    """Search, prove and measure. Raises BadDesign, NoCompiler."""
    clock = Clock()
    limits = Limits(states=request.limit_states)
    scopes = tuple((scope or DEFAULT, _searched(design, scope, limits, line)) for scope in right_scopes(design))
    took = ", ".join(f"{scope} {found.seconds:.2f}" for scope, found in scopes)
    clock.stop("exploring", f" (searches alone: {took})")
    shown = tuple(_mutants(design, limits, line)) if request.mutants else ()
    clock.stop("wrong decisions")
    proof, facts = proof_of(request, line)
    clock.stop("proving")
    measured = _measured(design, line)
    clock.stop("measuring blocks")
    stamp = datetime.now(UTC).strftime("%Y-%m-%d")
    said = f"kvsan {version()}, {stamp}. Seconds: {'; '.join(clock.parts)}."
    return Material(design, scopes, shown, proof, measured, said, facts, _wrong_scopes(design), _untried(request))


@dataclass
class Clock:
    """The seconds of each part of the work."""

    last: float = field(default_factory=time.perf_counter)
    parts: list[str] = field(default_factory=list)

    def stop(self, part: str, more: str = "") -> None:
        now = time.perf_counter()
        self.parts.append(f"{part} {now - self.last:.0f}{more}")
        self.last = now


def _untried(request: Request) -> str:
    return "The design names no wrong decision, so none was tried." if request.mutants else NO_MUTANTS


NO_MUTANTS = "Its wrong decisions were not tried (--no-mutants)."
WRONG = "UNORDERED"
"""The schedule that no design can have."""


def right_scopes(design: Design) -> list[str]:
    """The scopes in which the design is right: those that change its sizes, or an order that it can have."""
    return ["", *(n for n, changed in design.scopes.items() if WRONG not in changed.values())]


def _wrong_scopes(design: Design) -> tuple[tuple[str, str], ...]:
    """The others, and what they change."""
    right = right_scopes(design)
    return tuple((n, settings(changed)) for n, changed in design.scopes.items() if n not in right)


def _searched(design: Design, scope: str, limits: Limits, line: Line) -> Exploration:
    line.tell(f"exploring {design.name}: {scope or DEFAULT}")
    return explore(prepare(design, scoped(design, scope=scope)), limits)


def _mutants(design: Design, limits: Limits, line: Line) -> list[Shown]:
    out = []
    for caught in catch(design, limits=limits, tell=lambda name: line.tell(f"exploring {design.name}: {name}")):
        diagram = ""
        if caught.finding is not None:
            # the search has the switch of the mutants in its state; a log is written with it as a constant
            scope = "" if caught.scope == DEFAULT else caught.scope
            chosen = scoped(design, scope=scope, mutant=caught.name)
            diagram = way_text(
                Path(f"{caught.name}.mmd"), design, chosen, caught.finding.start, caught.finding.steps, caught.finding
            )
        out.append(Shown(caught, diagram))
    return out


def proof_of(request: Request, line: Line) -> tuple[dict[str, Any] | str, tuple[ir.Step, ...]]:
    """The object of `kvsan prove`, or a sentence that says why there is none; and the facts that it needs."""
    if request.proof is False:
        return "No proof was asked for (--no-proof).", ()
    try:
        from kvsan.checker.prove.prove import prove
        from kvsan.checker.prove.system import system, with_facts
        from kvsan.checker.report.proof import as_object
    except ImportError:
        return "No proof: z3 is not installed (pip install 'kvsan[prove]').", ()
    try:
        told, own = with_facts(request.design), find(request.design).spec.steps
        facts = tuple(s for s in told.spec.of_kind("auxiliary", "counted", "invariant") if s.name not in own)
        if not facts and request.proof is None:
            return "No proof: no facts stand beside the design for an induction to start from (--proof tries it).", ()
        line.tell(f"proving {request.design}")
        proof = prove(system(told), tell=lambda what: line.tell(f"proving {request.design}: {what}"))
        return as_object(proof), facts
    except BadDesign as error:
        return f"No proof: {without_folders(str(error))}.", ()


def _measured(design: Design, line: Line) -> Budget | str:
    line.tell(f"measuring the blocks of {design.name}")
    try:
        return budget(design, {}, tell=lambda pool: line.tell(f"measuring the blocks of {design.name}: {pool}"))
    except BadDesign as error:
        return f"Not measured: {without_folders(str(error))}."
