"""Is every design mistake caught? The mutants of the catalog in their scopes, and each `require` dropped in turn."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from kvsan.checker.explore.design import Design, Scoped, scoped
from kvsan.checker.explore.explore import Exploration, Finding, explore, prepare
from kvsan.checker.explore.guards import Broken, Drop, Guard, drops, guards
from kvsan.checker.explore.search import UNLIMITED, Limits
from kvsan.spec.designs.catalog import DESIGNS, Mutant

Tell = Callable[[str], None]
TellGuard = Callable[[Guard], None]
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


def catch(
    design: Design, symmetry: str = "full", limits: Limits = UNLIMITED, tell: Tell = lambda _: None
) -> list[Caught]:
    """Every mutant of a design. Raises BadDesign, NoCompiler."""
    named = _named(design)
    out = []
    for n, (name, scope, pinned) in enumerate(named, 1):
        tell(f"mutant {n} of {len(named)}: {name}")
        chosen = scoped(design, scope=scope, mutant=name)
        rule = design.spec.rules.get(pinned.rule) if pinned else None
        lints = pinned is None or (rule is not None and rule.kind == "lint")
        found = explore(prepare(design, chosen, symmetry, lints), limits)
        both = (*found.violations, *found.lints)
        wanted = [f for f in both if pinned and f.rule == pinned.rule]
        out.append(Caught(name, scope or DEFAULT, pinned, found, next(iter((*wanted, *both)), None)))
    return out


def _named(design: Design) -> list[tuple[str, str, Mutant | None]]:
    """Name, scope and what is pinned: from the catalog, else the values of a user's own `Mutant`."""
    if design.name in DESIGNS:
        return [(m.name, m.scope, m) for m in DESIGNS[design.name].mutants]
    choice = design.spec.choices.get("Mutant")
    return [(n.lower(), "", None) for n in choice.names if n != "NONE"] if choice else []


def without_guards(
    design: Design,
    scopes: Sequence[tuple[str, Scoped]],
    symmetry: str = "full",
    limits: Limits = UNLIMITED,
    tell: Tell = lambda _: None,
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
            for drop in search(design, chosen, symmetry, left, limits, partial(_tell, tell, name)) if left else ():
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
) -> Iterator[Drop]:
    return drops(design, chosen, symmetry, wanted, False, limits, tell)


def _with_lints(
    design: Design,
    chosen: Scoped,
    symmetry: str,
    wanted: Collection[int],
    limits: Limits,
    tell: Callable[[Guard], None],
) -> Iterator[Drop]:
    """By the rules, and what they do not notice by the lints."""
    unnoticed: dict[int, Drop] = {}
    for drop in _by_rules(design, chosen, symmetry, wanted, limits, tell):
        if drop.result == "unnoticed":
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
    name, drop = min(seen, key=lambda pair: ORDER.index(pair[1].result))
    return Verdict(drop, name, tuple(n for n, _ in seen))
