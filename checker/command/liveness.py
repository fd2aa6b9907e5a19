"""`kvsan explore --liveness`: whether whatever has begun ends."""

from __future__ import annotations

import json
from collections.abc import Iterator

from kvsan.checker.explore.design import Design, Scoped
from kvsan.checker.explore.graph import NoGraphs
from kvsan.checker.explore.liveness import Liveness, TooLarge, liveness
from kvsan.checker.explore.module import NoCompiler
from kvsan.checker.report.exploration import EXITS
from kvsan.spec.designs.settings import as_set

from .line import Line
from .usage import Refused


def judge(design: Design, chosen: Scoped, as_json: bool, quiet: bool = True) -> tuple[str, int]:
    """The report, and the exit code. Raises Refused, BadDesign."""
    try:
        with Line(f"liveness of {design.name}", quiet) as line:
            found = liveness(design, chosen, line.tell)
    except TooLarge as error:
        raise Refused(str(error)) from error
    except NoCompiler as error:
        raise Refused(f"{error}: pip install 'kvsan[explore]'") from error
    except NoGraphs as error:
        raise Refused(f"{error}: pip install 'kvsan[graph]'") from error
    text = json.dumps(_object(design, found), indent=2) if as_json else "\n".join(_lines(design, found))
    return text + "\n", EXITS[found.verdict]


def _object(design: Design, found: Liveness) -> dict[str, object]:
    waiting = found.waiting
    return {
        "verdict": found.verdict,
        "exit_code": EXITS[found.verdict],
        "design": design.name,
        "scope": found.scoped.settings,
        "states": found.states,
        "pending": design.pending,
        "fair": list(design.fair),
        "waiting": waiting
        and {
            "branch": waiting.branch,
            "steps": [s.text for s in waiting.steps],
            "circle": waiting.circle,
            "never_enabled": list(waiting.never),
            "sometimes_enabled": list(waiting.sometimes),
            "blocks_that_suffice": found.suffices,
        },
    }


def _lines(design: Design, found: Liveness) -> Iterator[str]:
    yield f"liveness of {design.name}  {as_set(found.scoped.settings)}"
    yield f"  states        {found.states:,}; {design.pending} in up to {max(found.pending.values(), default=0):,}"
    yield f"  fair          {', '.join(design.fair)}"
    waiting = found.waiting
    if waiting is None:
        if found.verdict == "UNKNOWN":
            yield f"UNKNOWN: {design.pending} in no state of this scope"
        else:
            yield "HOLDS: whatever has begun ends, in every run that takes fair actions once they stay possible"
        return
    yield f"  reached by    {'; '.join(s.text for s in waiting.steps) or 'the start'}"
    if waiting.circle == 1:
        yield "  then          nothing fair is possible"
    else:
        yield f"  then          {waiting.circle:,} states, each reachable from each other; the run stays among them"
    if waiting.sometimes:
        yield f"  now and then  {', '.join(waiting.sometimes)}: enabled in some of them only"
    if waiting.never:
        yield f"  never         {', '.join(waiting.never)}: enabled in none of them"
    if found.suffices is not None:
        yield f"  pool          too small: {found.suffices} blocks are the fewest in which nothing waits for ever"
    yield f"VIOLATED: branch r{waiting.branch} may wait for ever"
