"""`kvsan budget`: how many blocks a design needs, as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any  # JSON values

from kvsan.checker.explore.budget import MOST, Budget, Figures, budget
from kvsan.checker.explore.design import BadDesign, find
from kvsan.checker.explore.module import NoCompiler
from kvsan.checker.explore.symmetry import SYMMETRIES
from kvsan.spec.designs.settings import as_set
from kvsan.spec.lang.diagnostics import SpecError

from .explore import changes
from .line import Line
from .sink import Color, Sink
from .usage import Refused

UNKNOWN = 3


@dataclass(frozen=True)
class Request:
    """The options of one `kvsan budget`."""

    design: str
    settings: Sequence[str] = ()
    scope: str = ""
    symmetry: str = "full"
    json: bool = False
    quiet: bool = False


def run(request: Request) -> int:
    """Measure and report. Returns the exit code: 3 where a limit was reached. Raises Refused."""
    if request.symmetry not in SYMMETRIES:
        raise Refused(f"--symmetry {request.symmetry}: known are {', '.join(SYMMETRIES)}")
    try:
        design = find(request.design)
        with Line(f"budget of {design.name}", request.quiet) as line:
            found = budget(design, changes(request.settings), request.scope, request.symmetry, line.tell)
    except BadDesign as error:
        raise Refused(str(error)) from error
    except SpecError as error:
        raise Refused(f"the design is not well formed\n{error}") from error
    except NoCompiler as error:
        raise Refused("llvmlite and numpy are not installed: pip install 'kvsan[explore]'") from error
    Sink(None, not request.json, Color.never).write((as_json if request.json else as_text)(found))
    return UNKNOWN if found.figures.stopped else 0


def as_text(found: Budget) -> str:
    return "\n".join(_lines(found)) + "\n"


def _lines(found: Budget) -> Iterator[str]:
    f = found.figures
    yield f"{found.design}  {as_set(found.scoped.settings)}"
    note = f"; UNKNOWN: stopped by {f.stopped}, the figures are lower bounds" if f.stopped else ""
    yield f"  states        {f.states:,}, symmetry {f.symmetry}{note}"
    yield f"  peak          {f.peak} blocks held at most, {f.tables} of them in tables at most"
    yield f"  transient     {f.transient} at most held outside every table: targets of copies, pins, frees that wait"
    yield f"  steady        {f.steady} at most while none is"
    yield f"  copies        {_copies(found)}"
    yield f"  pool          {_pool(found)}"
    for blocks, pool in found.pools:
        yield f"    {blocks:>3} blocks  {'unknown' if pool.stopped else _waiting(pool)}"


def _waiting(pool: Figures) -> str:
    match pool.stuck:
        case None:
            return "never stuck"
        case ():
            return "no step leads on from the start"
        case steps:
            return f"every branch can wait: {', '.join(steps)}"


def _copies(found: Budget) -> str:
    branches = found.scoped.settings.get("branches")
    if found.figures.copies is None:
        return "without bound on a way that gives no branch up"
    most = f"{found.figures.copies} blocks at most on a way that gives no branch up, {branches} branches"
    return (
        most
        if found.full_copies is None
        else f"{most}; a copy of the prompt for each but one takes {found.full_copies}"
    )


def _pool(found: Budget) -> str:
    if found.smallest is None:
        return "no pool searched is never stuck: raise --set blocks"
    return f"{found.smallest} blocks are the fewest that are never stuck"


def as_json(found: Budget) -> str:
    """One object, indented, in a fixed order of fields."""
    made = {
        "design": found.design,
        "scope": found.scoped.settings,
        **_figures(found.figures),
        "full_prompt_copies": found.full_copies if found.full_copies is not None else "unknown",
        "smallest_pool": found.smallest if found.smallest is not None else "unknown",
        "pools": [{"blocks": blocks, **_figures(figures)} for blocks, figures in found.pools],
        "states_at_most": MOST,
    }
    return json.dumps(made, indent=2) + "\n"


def _figures(f: Figures) -> dict[str, Any]:
    return {
        "states": f.states,
        "symmetry": f.symmetry,
        "stopped": f.stopped,
        "peak_blocks": f.peak,
        "table_blocks": f.tables,
        "transient_blocks": f.transient,
        "steady_blocks": f.steady,
        "copies": "unbounded" if f.copies is None else f.copies,
        "never_stuck": f.stuck is None,
        "stuck": list(f.stuck or ()),
    }
