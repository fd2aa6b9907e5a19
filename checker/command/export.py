"""`kvsan export`: a design in a scope, in the form of another tool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kvsan.checker.explore.design import BadDesign, find, scoped
from kvsan.checker.explore.draw import MOST, drawn
from kvsan.checker.explore.explore import prepare
from kvsan.checker.explore.graph import Hairball, NoGraphs, graph
from kvsan.checker.explore.module import NoCompiler
from kvsan.checker.explore.symmetry import SYMMETRIES
from kvsan.spec.lang.diagnostics import SpecError

from .explore import changes
from .export_model import MODELS, ModelRequest, write
from .sink import Color, Sink
from .usage import Refused

FORMS = (*MOST, *MODELS)


@dataclass(frozen=True)
class Request:
    """The options of one `kvsan export`. output: the file of a graph, the folder of a model."""

    design: str
    to: str
    settings: Sequence[str] = ()
    scope: str = ""
    mutant: str = ""
    symmetry: str = "full"
    depth: int | None = None
    output: Path | None = None
    lints: bool = False
    without: Sequence[str] = ()


def run(request: Request) -> int:
    """Write it. Returns the exit code. Raises Refused."""
    if request.to not in FORMS:
        itf = "; kvsan explore --save way.itf.json writes a way in ITF" if request.to == "itf" else ""
        raise Refused(f"--to {request.to}: known are {', '.join(FORMS)}{itf}")
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
    sink = Sink(None if request.to in MODELS else request.output, False, Color.never)
    sink.write(text)
    sink.close()
    return 0


def written(request: Request) -> str:
    """The graph, or what to say about a model's files.

    Raises BadDesign, Hairball, SpecError, NoCompiler, NoGraphs, Refused.
    """
    if request.to in MODELS:
        return write(model_request(request))
    if request.lints or request.without:
        raise Refused(f"--lints and --without are for the models of other checkers: --to {' or '.join(MODELS)}")
    design = find(request.design)
    chosen = scoped(design, changes(request.settings), request.scope, request.mutant)
    prepared = prepare(design, chosen, request.symmetry)
    return drawn(graph(prepared, MOST[request.to], request.depth), request.to)


def model_request(request: Request) -> ModelRequest:
    """The options that a model has. Raises Refused."""
    if request.depth is not None:
        raise Refused(f"--depth cuts a graph: the states that {request.to} describes have no number of steps")
    chosen = request.settings, request.scope, request.mutant, request.symmetry, request.lints, request.without
    return ModelRequest(request.design, request.to, request.output or Path(), *chosen)
