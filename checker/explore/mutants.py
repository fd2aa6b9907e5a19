"""Is every design mistake caught? The mutants of the catalog in their scopes, and each `require` dropped in turn.

All mutants of a scope are one text: what is a constant of the design is a variable here, which no step changes and the
start sets. So a scope is compiled once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

from kvsan.checker.explore.design import Design, Scoped, scoped
from kvsan.checker.explore.emit import generate
from kvsan.checker.explore.explore import Exploration, Finding, Prepared, explore
from kvsan.checker.explore.guards import Broken, Drop, Guard, drops, guards
from kvsan.checker.explore.model import model, starts
from kvsan.checker.explore.search import UNLIMITED, Limits
from kvsan.checker.explore.symmetry import symmetry as strongest
from kvsan.spec.designs.catalog import Mutant
from kvsan.spec.lang import ir

Tell = Callable[[str], None]
TellGuard = Callable[[Guard], None]
SWITCH = "mutant"
"""The constant that says which decision is taken wrong; its first value: none."""
DEFAULT = "default"
"""How the scope without a name is called in reports."""


@dataclass(frozen=True)
class Caught:
    """One mutant of the catalog, or of a user's design, where nothing is pinned. finding: that of the pinned rule,
    else the first."""

    name: str
    scope: str
    pinned: Mutant | None
    found: Exploration
    finding: Finding | None

    @property
    def rule(self) -> str:
        return self.finding.rule if self.finding else ""

    @property
    def steps(self) -> int:
        return len(self.finding.steps) if self.finding else 0

    @property
    def agrees(self) -> bool:
        """Caught, and as the catalog says where it says something."""
        if self.finding is None:
            return False
        return self.pinned is None or (self.rule, self.steps) == (self.pinned.rule, self.pinned.steps)


@dataclass(frozen=True)
class Verdict:
    """What is known of one `require` after every scope: the drop that decides, and the scopes that were searched.

    Caught in one scope is caught; else unnoticed in one is unnoticed; else unknown in one is unknown; else it is
    redundant in all of them.
    """

    drop: Drop
    scope: str
    searched: tuple[str, ...]

    @property
    def answer(self) -> str:
        """The result; of what no rule notices: `fact` where it is against a known one, else `choice` where the guard
        says so itself."""
        if self.drop.result != "unnoticed":
            return self.drop.result
        return "fact" if self.drop.fact else "choice" if self.drop.guard.choice else "unnoticed"

    @property
    def explained(self) -> bool:
        """It is known what the guard is there for, and it does not call itself a choice where a rule needs it."""
        return self.answer != "unnoticed" and not (self.answer == "caught" and self.drop.guard.choice)


def catch(
    design: Design, symmetry: str = "full", limits: Limits = UNLIMITED, tell: Tell = lambda _: None
) -> list[Caught]:
    """Every mutant of a design. Raises BadDesign, NoCompiler."""
    named = _named(design)
    prepared = cache(partial(every_mutant, design, symmetry))
    out = []
    for n, (name, scopes, pinned) in enumerate(named, 1):
        tell(f"mutant {n} of {len(named)}: {name}")
        rule = design.spec.rules.get(pinned.rule) if pinned else None
        lints = pinned is None or (rule is not None and rule.kind == "lint")
        tries = (
            _caught(name, scope, pinned, explore(chosen(prepared(scope, lints), name), limits)) for scope in scopes
        )
        first = next(tries)
        out.append(first if first.finding else next((c for c in tries if c.finding), first))
    return out


def _caught(name: str, scope: str, pinned: Mutant | None, found: Exploration) -> Caught:
    both = (*found.violations, *found.lints)
    wanted = [f for f in both if pinned and f.rule == pinned.rule]
    return Caught(name, scope or DEFAULT, pinned, found, next(iter((*wanted, *both)), None))


def every_mutant(design: Design, symmetry: str, scope: str, lints: bool = False) -> Prepared:
    """A named scope of the design with the switch for a mutant in its state, set to none. Raises BadDesign."""
    whole = scoped(design, scope=scope)
    known = {name: value for name, value in whole.known.items() if name != SWITCH}
    variables = {**design.spec.variables, SWITCH: replace(design.spec.variables[SWITCH], const=False)}
    switched = replace(design, spec=replace(design.spec, variables=variables))
    within = replace(whole, known=known, constants={n: v for n, v in whole.constants.items() if n != SWITCH})
    none = starts(switched.spec, within)
    some = [replace(start, state={**start.state, SWITCH: {(): 1}}) for start in none]
    made = model(switched.spec, within, [*none, *some], lints)
    used = strongest(made, symmetry)
    return Prepared(switched, within, none, made, generate(made, used.text), used.name, used.note)


def chosen(prepared: Prepared, name: str) -> Prepared:
    """The same text, from a start where the switch names this mutant."""
    number = prepared.design.spec.choices["Mutant"].names.index(name.upper())
    begun = tuple(replace(start, state={**start.state, SWITCH: {(): number}}) for start in prepared.begun)
    settings = {**prepared.scoped.settings, SWITCH: name.upper()}
    return replace(prepared, begun=begun, scoped=replace(prepared.scoped, settings=settings))


def _named(design: Design) -> list[tuple[str, tuple[str, ...], Mutant | None]]:
    """Name, scopes until one catches it, and what is pinned: from the catalog, else the values of a user's own
    `Mutant`, in all of that design's scopes."""
    if design.ours is not None:
        return [(m.name, (m.scope,), m) for m in design.ours.mutants]
    choice = design.spec.choices.get("Mutant") if SWITCH in design.spec.variables else None
    return [(n.lower(), ("", *design.scopes), None) for n in choice.names if n != "NONE"] if choice else []


def without_guards(
    design: Design,
    scopes: Sequence[tuple[str, Scoped]],
    symmetry: str = "full",
    limits: Limits = UNLIMITED,
    tell: Tell = lambda _: None,
    facts: Sequence[ir.Step] = (),
) -> list[Verdict]:
    """Every `require` dropped, scope after scope until one catches it. Raises BadDesign, NoCompiler.

    A later scope in which the design itself is wrong is left out. In the first scope lints count where no rule notices;
    a search for them takes longer, because they need more of the state, and the symmetries may not hold for that.
    """
    every = guards(design.spec)
    seen: dict[int, list[tuple[str, Drop]]] = {g.number: [] for g in every}
    for n, (name, chosen) in enumerate(scopes):
        left = {g for g, found in seen.items() if not any(drop.result == "caught" for _, drop in found)}
        search = _with_lints if n == 0 else _by_rules
        try:
            say = partial(_tell, tell, name)
            for drop in search(design, chosen, symmetry, left, limits, say, facts) if left else ():
                seen[drop.guard.number].append((name, drop))
        except Broken:
            if n == 0:
                raise
    return [_verdict(drop) for drop in seen.values()]


def _tell(tell: Tell, scope: str, guard: Guard) -> None:
    tell(f"require {guard.number} dropped in scope {scope}")


def _by_rules(
    design: Design,
    chosen: Scoped,
    symmetry: str,
    wanted: Collection[int],
    limits: Limits,
    tell: Callable[[Guard], None],
    facts: Sequence[ir.Step],
) -> Iterator[Drop]:
    return drops(design, chosen, symmetry, wanted, False, limits, tell, facts)


def _with_lints(
    design: Design,
    chosen: Scoped,
    symmetry: str,
    wanted: Collection[int],
    limits: Limits,
    tell: Callable[[Guard], None],
    facts: Sequence[ir.Step],
) -> Iterator[Drop]:
    """By the rules, and what they do not notice by the lints."""
    unnoticed: dict[int, Drop] = {}
    for drop in _by_rules(design, chosen, symmetry, wanted, limits, tell, facts):
        if drop.result == "unnoticed" or (drop.result == "redundant" and drop.more_transitions):
            unnoticed[drop.guard.number] = drop
        else:
            yield drop
    lints = any(rule.kind == "lint" for rule in design.spec.rules.values())
    if not lints:
        yield from unnoticed.values()
    for drop in drops(design, chosen, symmetry, unnoticed, True, limits, tell) if unnoticed and lints else ():
        yield drop if drop.result == "caught" else unnoticed[drop.guard.number]


ORDER = ("caught", "unnoticed", "unknown", "redundant")


def _verdict(seen: Sequence[tuple[str, Drop]]) -> Verdict:
    name, drop = min(seen, key=lambda pair: (ORDER.index(pair[1].result), not pair[1].fact, -pair[1].more_transitions))
    return Verdict(drop, name, tuple(n for n, _ in seen))
