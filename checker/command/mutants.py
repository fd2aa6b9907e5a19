"""`kvsan mutants`: which rule catches which design mistake, and what each `require` is there for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any  # JSON values

from kvsan.checker.explore.design import BadDesign, Design, Scoped, find, scoped
from kvsan.checker.explore.module import NoCompiler
from kvsan.checker.explore.mutants import DEFAULT, Caught, Verdict, catch, without_guards
from kvsan.checker.explore.search import Limits
from kvsan.checker.explore.symmetry import SYMMETRIES
from kvsan.checker.prove.system import with_facts
from kvsan.spec.lang.diagnostics import SpecError

from .explore import changes
from .line import Line
from .sink import Color, Sink
from .usage import Refused

DIFFERS, UNKNOWN = 1, 3
ANSWERS = {
    "caught": "caught",
    "fact": "caught by a fact",
    "redundant": "redundant",
    "choice": "of choice",
    "unnoticed": "unnoticed",
    "unknown": "unknown",
}
"""What the last line calls them."""


@dataclass(frozen=True)
class Request:
    """The options of one `kvsan mutants`. settings, scope: those of the dropped guards; the catalog has its own."""

    design: str
    settings: Sequence[str] = ()
    scope: str = ""
    symmetry: str = "full"
    guards: bool = True
    limit_states: int = 1_000_000
    json: bool = False
    quiet: bool = False


def run(request: Request) -> int:
    """Search and report. Returns the exit code: 1 where a mutant is not caught as the catalog says, or nothing says
    what a guard is there for. Raises Refused."""
    if request.symmetry not in SYMMETRIES:
        raise Refused(f"--symmetry {request.symmetry}: known are {', '.join(SYMMETRIES)}")
    limits = Limits(request.limit_states)
    try:
        design = find(request.design)
        scopes = scopes_of(design, request) if request.guards else []
        with Line(f"mutants of {design.name}", request.quiet) as line:
            caught = catch(design, request.symmetry, limits, line.tell)
            dropped = guards_off(design, scopes, request, limits, line.tell) if scopes else []
    except BadDesign as error:
        raise Refused(str(error)) from error
    except SpecError as error:
        raise Refused(f"the design is not well formed\n{error}") from error
    except NoCompiler as error:
        raise Refused("llvmlite and numpy are not installed: pip install 'kvsan[explore]'") from error
    Sink(None, not request.json, Color.never).write((as_json if request.json else as_text)(caught, dropped))
    return exit_code(caught, dropped)


def guards_off(
    design: Design, scopes: list[tuple[str, Scoped]], request: Request, limits: Limits, tell: Callable[[str], None]
) -> list[Verdict]:
    """What the guards are there for, by the rules and by the facts beside the design."""
    facts = with_facts(request.design).spec.of_kind("auxiliary", "counted")
    return without_guards(design, scopes, request.symmetry, limits, tell, facts)


def scopes_of(design: Design, request: Request) -> list[tuple[str, Scoped]]:
    """Where guards are dropped: the scope that was asked for, else those of the catalog, else all that have a name."""
    if request.scope or request.settings:
        name = " ".join((request.scope, *request.settings)).strip()
        return [(name, scoped(design, changes(request.settings), request.scope))]
    chosen = design.ours.drop_in if design.ours is not None else ()
    return [(name or DEFAULT, scoped(design, scope=name)) for name in chosen or ("", *design.scopes)]


def exit_code(caught: Sequence[Caught], dropped: Sequence[Verdict]) -> int:
    if not all(c.agrees for c in caught) or not all(v.explained for v in dropped):
        return DIFFERS
    return UNKNOWN if any(v.answer == "unknown" for v in dropped) else 0


# --- text -------------------------------------------------------------------------------------------------------------


def as_text(caught: Sequence[Caught], dropped: Sequence[Verdict]) -> str:
    return "\n".join([*_mutants(caught), *_guards(dropped)]) + "\n"


def _mutants(caught: Sequence[Caught]) -> Iterator[str]:
    if not caught:
        yield "no mutants"
        return
    names, rules = (max(map(len, column)) for column in zip(*((c.name, c.rule) for c in caught), strict=True))
    yield f"{'mutant':<{names}}  {'caught by':<{max(rules, 9)}}  steps  scope"
    for c in caught:
        scope = c.scope if c.agrees else f"{c.scope}  {_difference(c)}"
        yield f"{c.name:<{names}}  {c.rule or 'nothing':<{max(rules, 9)}}  {c.steps or '':>5}  {scope}"
    agreed = sum(c.agrees for c in caught)
    yield f"{agreed} of {len(caught)} caught" + (" as the catalog says" if caught[0].pinned else "")


def _difference(c: Caught) -> str:
    stopped = f", stopped by {c.found.stopped}" if c.found.stopped else ""
    if c.pinned is None:
        return f"NOT CAUGHT{stopped}"
    return f"DIFFERS: the catalog says {c.pinned.rule} after {c.pinned.steps} steps{stopped}"


def _guards(dropped: Sequence[Verdict]) -> Iterator[str]:
    if not dropped:
        return
    yield ""
    yield "each require dropped in turn"
    action = ""
    for v in dropped:
        if v.drop.guard.action != action:
            action = v.drop.guard.action
            yield f"{action}  {v.drop.guard.place.rpartition(':')[0]}"
        yield f"  {v.drop.guard.span.line:>4}  {v.drop.guard.text}"
        yield f"        {said(v)}"
    counts = {word: sum(v.answer == answer for v in dropped) for answer, word in ANSWERS.items()}
    yield ", ".join(f"{n} {word}" for word, n in counts.items() if n)


def said(v: Verdict) -> str:
    drop = v.drop
    match drop.result:
        case "caught":
            assert drop.finding is not None
            wrong = "" if v.explained else "; CALLED A CHOICE"
            return f"caught by {drop.finding.rule} after {len(drop.finding.steps)} steps, scope {v.scope}{wrong}"
        case "redundant":
            idle = f", by {drop.more_transitions:,} more transitions in {v.scope}" if drop.more_transitions else ""
            return f"redundant: the same states in {', '.join(v.searched)}{idle}"
        case "unknown":
            return f"unknown: a limit was reached after {drop.states:,} states, scope {v.scope}"
        case _:
            why = f"a choice: {drop.guard.choice}; " if drop.guard.choice else ""
            if drop.fact:
                why = f"caught by the fact {drop.fact} after {len(drop.first)} steps; "
            new = f"{drop.more_states:,} more states and {drop.more_transitions:,} more transitions"
            way = f"; first {', '.join(s.text for s in drop.first)}" if drop.first else ""
            return f"{why}unnoticed by every rule and lint: {new}, scope {v.scope}{way}"


# --- JSON -------------------------------------------------------------------------------------------------------------


def as_json(caught: Sequence[Caught], dropped: Sequence[Verdict]) -> str:
    """One object, indented, in a fixed order of fields."""
    found = {"mutants": [_mutant(c) for c in caught], "guards": [_guard(v) for v in dropped]}
    return json.dumps(found, indent=2) + "\n"


def _mutant(c: Caught) -> dict[str, Any]:
    return {
        "name": c.name,
        "rule": c.rule,
        "caught": c.finding is not None,
        "steps": c.steps,
        "scope": c.found.scoped.settings,
        "scope_name": c.scope,
        "agrees": c.agrees,
        "pinned": {"rule": c.pinned.rule, "steps": c.pinned.steps} if c.pinned else {},
        "way": [s.text for s in c.finding.steps] if c.finding else [],
        "stopped": c.found.stopped,
    }


def _guard(v: Verdict) -> dict[str, Any]:
    drop = v.drop
    return {
        "action": drop.guard.action,
        "guard": drop.guard.text,
        "at": drop.guard.place,
        "result": drop.result,
        "answer": v.answer,
        "choice": drop.guard.choice,
        "rule": drop.finding.rule if drop.finding else "",
        "way": [s.text for s in (drop.finding.steps if drop.finding else drop.first)],
        "scope": v.scope,
        "searched": list(v.searched),
        "fact": drop.fact,
        "more_states": drop.more_states,
        "more_transitions": drop.more_transitions,
    }
