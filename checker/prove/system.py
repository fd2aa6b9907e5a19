"""What is proved of a design: its steps and facts, sliced as for a search, with sorts that have no size."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from kvsan.checker.explore.design import BadDesign, Design, Scoped, find, scoped
from kvsan.checker.explore.model import Start, starts
from kvsan.checker.explore.slice import Parts, sliced
from kvsan.spec.designs.catalog import DESIGNS
from kvsan.spec.designs.settings import sizing
from kvsan.spec.lang import ir
from kvsan.spec.lang.load import load
from kvsan.spec.lang.symbolic import Sizes
from kvsan.spec.lang.walk import every
from kvsan.spec.ownership.disciplines import DISCIPLINES

SPEND = 20_000_000
"""What one query may take, in Z3's count of resources, which is the same on every machine: more than two hundred times
what the hardest query of `paged_cow` and `tail_copy` takes."""

OPEN_SORTS = {"Block": "blocks", "Branch": "branches"}
"""The sorts that have any number of members, and the setting that says how many a scope has."""

OPEN_LIMITS = ("branches", "blocks", "count", "ops")
"""Ranges that only say how many members a scope has: here they have no end."""


@dataclass(frozen=True)
class Facts:
    """The facts that an induction is about. counted: counters among them."""

    invariants: tuple[ir.Step, ...]
    counted: tuple[ir.Step, ...]

    def all(self) -> tuple[ir.Step, ...]:
        return (*self.invariants, *self.counted)


@dataclass(frozen=True)
class System:
    """A design for any number of blocks and branches. sizes: what is of a fixed size. scoped: a scope to look for
    counterexamples in. base: one that is large enough for its start states to stand for those of every scope. idle:
    what has its default in all of them, and is taken to have it where every action leaves it so."""

    design: Design
    scoped: Scoped
    base: Scoped
    begun: tuple[Start, ...]
    actions: tuple[ir.Step, ...]
    facts: Facts
    variables: dict[str, ir.Variable]
    sizes: Sizes
    idle: frozenset[str] = frozenset()
    events: bool = False
    """The steps are events: each obeys its rules, and what follows from that is to be shown."""


def with_facts(source: str) -> Design:
    """A design together with the facts beside it: `<module>_facts`. Raises BadDesign, SpecError."""
    design = find(source)
    if source in DESIGNS:
        ours = DESIGNS[source]
        beside = f"{ours.module}_facts"
        return (
            design if importlib.util.find_spec(beside) is None else replace(design, spec=load(f"{beside}:{ours.state}"))
        )
    path = Path(design.spec.file)
    facts = path.with_name(f"{path.stem}_facts.py")
    return replace(design, spec=load(facts)) if facts.is_file() else design


def system(
    design: Design,
    changes: Mapping[str, str] | None = None,
    scope: str = "",
    mutant: str = "",
    without: tuple[str, ...] = (),
) -> System:
    """The steps and facts of a design in a scope. without: facts to leave out. Raises BadDesign."""
    spec, chosen = design.spec, scoped(design, changes, scope, mutant)
    facts = [s.name for s in spec.of_kind("invariant", "auxiliary", "counted")]
    unknown = [n for n in without if n not in facts]
    if unknown:
        raise BadDesign(f"{design.name} has no fact {unknown[0]!r}: known are {', '.join(facts) or 'none'}")
    predicates = tuple(s for s in spec.of_kind("invariant", "auxiliary", "counted") if s.name not in without)
    _check_ends(design, predicates)
    base = _base(design, changes, scope, mutant, predicates)
    begun = starts(spec, base)
    asked = frozenset(r.name for r in spec.rules.values() if r.kind != "lint")
    idle = frozenset(n for n, v in spec.variables.items() if not v.const and not any(n in b.state for b in begun))
    parts, _ = sliced(Parts(spec.of_kind("action"), predicates, ()), spec.variables, chosen.known, idle, asked)
    counted = tuple(s for s in parts.invariants if s.kind == "counted")
    kept = Facts(tuple(s for s in parts.invariants if s.kind != "counted"), counted)
    sizes = open_sizes(chosen.sizes)
    return System(design, chosen, base, begun, parts.actions, kept, dict(spec.variables), sizes, idle)


def _check_ends(design: Design, facts: tuple[ir.Step, ...]) -> None:
    """Raises BadDesign where something is written out for each number of a range that has no end here."""
    places = [(f"{v.name} is indexed by", k) for v in design.spec.variables.values() for k in v.keys]
    places += [(f"{p.name} of {f.name} ranges over", p.type) for f in facts for p in f.params]
    for what, type_ in places:
        if isinstance(type_, ir.NatType) and type_.parameter in OPEN_LIMITS:
            raise BadDesign(
                f"{what} {type_}, which has no end where there is any number of them: let it be a sort, or a range"
                " of a fixed size"
            )


def ownership(changes: Mapping[str, str] | None = None, without: tuple[str, ...] = ()) -> System:
    """The discipline itself: every event, in any order, as long as each obeys the rules. Raises BadDesign."""
    spec = load("kvsan.spec.ownership")
    discipline = (changes or {}).get("discipline", "paged_cow").lower()
    if discipline not in DISCIPLINES or set(changes or {}) - {"discipline", *LEDGER_SIZES}:
        raise BadDesign(f"ownership has the settings discipline ({', '.join(DISCIPLINES)}), {', '.join(LEDGER_SIZES)}")
    settings: dict[str, int | bool | str] = dict(LEDGER_SIZES)
    settings |= {n: int(v) for n, v in (changes or {}).items() if n != "discipline"} | {"discipline": discipline}
    design = Design("ownership", spec.name, discipline, spec, settings, lambda s: sizing(s, discipline), {}, {})
    chosen = scoped(design)
    chosen = replace(chosen, sizes=replace(chosen.sizes, sorts={**chosen.sizes.sorts, **LEDGER_SORTS}))
    predicates = tuple(s for s in spec.of_kind("auxiliary", "counted") if s.name not in without)
    idle = frozenset(n for n, v in spec.variables.items() if not v.const)
    asked = frozenset(r.name for r in spec.rules.values() if r.kind != "lint")
    parts, _ = sliced(
        Parts(spec.of_kind("event", "settling"), predicates, ()), spec.variables, chosen.known, idle, asked
    )
    counted = tuple(s for s in parts.invariants if s.kind == "counted")
    kept = Facts(tuple(s for s in parts.invariants if s.kind != "counted"), counted)
    sizes = open_sizes(chosen.sizes)
    begun = (Start("nothing", {}),)
    return System(design, chosen, chosen, begun, parts.actions, kept, dict(spec.variables), sizes, events=True)


def open_sizes(sizes: Sizes) -> Sizes:
    """The sizes without those that only say how many blocks and branches there are."""
    sorts = {n: k for n, k in sizes.sorts.items() if n not in OPEN_SORTS}
    return Sizes(sorts, {n: k for n, k in sizes.limits.items() if n not in OPEN_LIMITS})


LEDGER_SIZES = {"branches": 2, "blocks": 2, "block_size": 2, "positions": 2, "prompt": 1}
LEDGER_SORTS = {"Holder": 2, "Identity": 2, "Digest": 2, "Published": 2}
"""What the discipline is proved for. More positions, slots, holders and identities would be more of the same text."""


def _base(
    design: Design, changes: Mapping[str, str] | None, scope: str, mutant: str, facts: tuple[ir.Step, ...]
) -> Scoped:
    """A scope with, beside the members of the one that is asked for, as many as a fact names at once: its initial
    steps touch none of these by name."""
    chosen = scoped(design, changes, scope, mutant)
    wider = dict(changes or {})
    for sort, setting in OPEN_SORTS.items():
        if setting in chosen.settings:
            wider[setting] = str(int(chosen.settings[setting]) + max((enough(f, sort) for f in facts), default=0))
    return scoped(design, wider, scope, mutant)


def enough(fact: ir.Step, sort: str) -> int:
    """How many members of a sort a fact names at once."""
    assert fact.value is not None
    bound = sum(isinstance(e, ir.Quantifier) and e.name_type == ir.SortType(sort) for e in every(fact.value))
    return bound + sum(p.type == ir.SortType(sort) for p in fact.params)


__all__ = [
    "SPEND",
    "BadDesign",
    "Design",
    "Facts",
    "Scoped",
    "Start",
    "System",
    "enough",
    "ownership",
    "system",
    "with_facts",
]
