"""`kvsan export`: a design in a scope, in the form of another tool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kvsan.checker.explore.design import BadDesign, find, scoped
from kvsan.checker.explore.draw import MOST, drawn
from kvsan.checker.explore.explore import SYMMETRIES, prepare
from kvsan.checker.explore.graph import Hairball, NoGraphs, graph
from kvsan.checker.explore.module import NoCompiler
from kvsan.spec.lang.diagnostics import SpecError

from .explore import changes
from .sink import Color, Sink
from .usage import Refused

FORMS = (*MOST,)


@dataclass(frozen=True)
class Request:
    """The options of one `kvsan export`."""

    design: str
    to: str
    settings: Sequence[str] = ()
    scope: str = ""
    mutant: str = ""
    symmetry: str = "full"
    depth: int | None = None
    output: Path | None = None


def run(request: Request) -> int:
    """Write it. Returns the exit code. Raises Refused."""
    if request.to not in FORMS:
        raise Refused(f"--to {request.to}: known are {', '.join(FORMS)}")
    if request.symmetry not in SYMMETRIES:
        raise Refused(f"--symmetry {request.symmetry}: known are {', '.join(SYMMETRIES)}")
    try:
        text = written(request)
    except (BadDesign, Hairball) as error:
        raise Refused(str(error)) from error
    except SpecError as error:
        raise Refused(f"the design is not well formed\n{error}") from error
    except NoCompiler as error:
        raise Refused("llvmlite and numpy are not installed: pip install 'kvsan[explore]'") from error
    except NoGraphs as error:
        raise Refused("networkx is not installed: pip install 'kvsan[graph]'") from error
    sink = Sink(request.output, False, Color.never)
    sink.write(text)
    sink.close()
    return 0


def written(request: Request) -> str:
    """The text. Raises BadDesign, Hairball, SpecError, NoCompiler, NoGraphs."""
    design = find(request.design)
    chosen = scoped(design, changes(request.settings), request.scope, request.mutant)
    prepared = prepare(design, chosen, request.symmetry)
    return drawn(graph(prepared, MOST[request.to], request.depth), request.to)
