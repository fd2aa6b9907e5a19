"""`kvsan prove`: the rules of a design, for any number of blocks and branches."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from kvsan.checker.prove.system import SPEND, BadDesign, System, ownership, system, with_facts
from kvsan.spec.lang.diagnostics import SpecError

from .explore import changes
from .line import Line
from .sink import Color, Sink
from .usage import Refused, refuse_unknown

PROCESSES = 2
"""That share the actions of a proof: on two cores it takes half the time."""


@dataclass(frozen=True)
class Request:
    """The options of one `kvsan prove`."""

    design: str
    settings: Sequence[str] = ()
    scope: str = ""
    mutant: str = ""
    without: Sequence[str] = ()
    actions: Sequence[str] = ()
    spend: int = SPEND
    budget: float = 600.0
    json: bool = False
    quiet: bool = False
    spacer: bool = False
    rules: Sequence[str] = ()

    @property
    def replay(self) -> str:
        parts = ["kvsan", "prove", self.design]
        parts += [part for s in self.settings for part in ("--set", s)]
        parts += ["--scope", self.scope] if self.scope else []
        parts += ["--mutant", self.mutant] if self.mutant else []
        parts += [part for s in self.without for part in ("--without", s)]
        parts += [part for s in self.actions for part in ("--action", s)]
        parts += ["--spend", str(self.spend)] if self.spend != SPEND else []
        parts += ["--budget", f"{self.budget:g}"] if self.budget != Request.budget else []
        parts += ["--spacer"] if self.spacer else []
        parts += [part for s in self.rules for part in ("--rule", s)]
        return shlex.join(parts)


def run(request: Request) -> int:
    """Prove and report. Returns the exit code. Raises Refused."""
    made = _system(request)
    if request.rules and not request.spacer:
        raise Refused("--rule goes with --spacer: an induction proves its rules together")
    try:
        from kvsan.checker.prove.prove import prove
        from kvsan.checker.prove.reach import reach
        from kvsan.checker.prove.second import asked, counters, opinions
        from kvsan.checker.report import opinion
        from kvsan.checker.report.proof import EXITS, as_json, as_text
    except ImportError as error:
        raise Refused("z3-solver is not installed: pip install 'kvsan[prove]'") from error
    if request.spacer:
        refuse_unknown("--rule", request.rules, asked(made), "rule here")
        rests_on = () if made.events else tuple(c.name for c in counters(made))
        rules = (*rests_on, *request.rules) if request.rules else ()
        with Line(f"asking Spacer of {request.design}", request.quiet) as live:
            explored = cache(lambda: reach(made, (), made.scoped))
            ways = (lambda rule: () if made.events else explored().actions_to(rule), lambda rule: explored().ways[rule])
            rest = (request.budget, live.tell, *ways)
            answers = tuple(opinions(made, rules, *rest))
            broken = any(o.status == "broken" for o in answers)
        second = opinion.Second(made, answers, explored() if broken and not made.events else None)
        text = opinion.as_json(second) if request.json else opinion.as_text(second, request.replay)
        Sink(None, not request.json, Color.never).write(text)
        return EXITS[second.verdict]
    with Line(f"proving {request.design}", request.quiet) as live:
        proof = prove(made, request.actions, request.spend, request.budget, tell=live.tell, processes=PROCESSES)
    Sink(None, not request.json, Color.never).write(as_json(proof) if request.json else as_text(proof, request.replay))
    return EXITS[proof.verdict]


def _system(request: Request) -> System:
    """What is to be proved; whether it can be is asked later. Raises Refused."""
    chosen = changes(request.settings), tuple(request.without)
    try:
        if request.design == "ownership":
            if given := [name for name in ("scope", "mutant") if getattr(request, name)]:
                raise Refused(f"ownership has no --{given[0]}: it is the rules alone; name a design, or leave that out")
            made = ownership(*chosen)
        else:
            made = system(with_facts(request.design), chosen[0], request.scope, request.mutant, chosen[1])
    except BadDesign as error:
        raise Refused(str(error)) from error
    except SpecError as error:
        raise Refused(f"the design is not well formed\n{error}") from error
    refuse_unknown("--action", request.actions, (s.name for s in made.actions), "action here")
    return made
