"""A second opinion on a rule: an invariant of the witness-block abstraction, found without any fact of the design.

It is told none of the facts that the induction rests on. What it answers is an invariant of one block and one branch,
printed, and checked clause by clause by a solver that shares only the abstraction with it; or a way to break the rule
there. Of a wrong design there always is one, of a right one there may be too: what the abstraction forgets matters, and
nothing is said of the design. That every counter is right before a step is taken for granted, and that it is right
after it is asked too: together that is an induction, and a rule is not shown without it. Along the explorer's steps a
counter that its states show to be wrong is not taken for granted.

Spacer is asked first. Where it gives no answer for what it may spend, `cover` enumerates what the abstraction reaches,
and its invariant stands the same check.

Of a rule that the explorer breaks, Spacer is asked of the explorer's steps, by their actions and one after the other: a
relation for each number of steps, and only the clauses of that step from one to the next. What is seen is what these
steps depend on; what of it tells the rest, after so many steps, a plain solver finds first. Who stands where, which
block and which branch are seen, and what holds of them on the way is for Spacer to find. Where it finds nothing so, it
is told the steps as they were taken: the values of each, and of the blocks and branches that they name which is which.

A loop over blocks or branches whose turns depend on each other has no functional form. Along the explorer's steps it is
written out for as many turns as the scope has members. Executions with more of them are left out, and the turns may
come in any order, as in all that the abstraction does. So it is good for a counterexample, and no invariant stands on
it: where a step of a design has such a loop, every step together is asked of nobody.

How far it goes: every state rule of `tail_copy` (in `one_slot_tail`) is proved, some by Spacer, the others by either in
minutes of processor time. Each mutant of each design that breaks a state rule has a counterexample of Spacer's along
the explorer's steps, by their actions alone. By the same actions the right design has none, some with all counters kept
that the steps do not ask for; but for two mutants of `speculative`, which a test names: there the abstraction loses
what is seen of a block that the witness is not, or the actions do it with other values. By the same steps as they were
taken the right design has none there either, and the wrong one has. Asked of every step, with no word of the explorer,
Spacer finds one for each mutant of `tail_copy`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any  # z3 is untyped

import z3
from kvsan.checker.explore.model import Start
from kvsan.checker.explore.model import starts as starts_of
from kvsan.checker.explore.replay import Step
from kvsan.checker.explore.slice import Parts, sliced
from kvsan.checker.prove import counts
from kvsan.checker.prove.cover import cover, holds, lemmas
from kvsan.checker.prove.induction import reads_of
from kvsan.checker.prove.initial import holds_in, varying
from kvsan.checker.prove.spacer import along, spacer
from kvsan.checker.prove.stands import Invariant, conjuncts, stands
from kvsan.checker.prove.step import facts, step_terms
from kvsan.checker.prove.system import Scoped, System
from kvsan.checker.prove.views import BLOCK, BRANCH
from kvsan.checker.prove.witness import Abstraction, Clause
from kvsan.spec.lang import ir
from kvsan.spec.lang.symbolic import Entangled
from kvsan.spec.lang.turns import few_turns
from kvsan.spec.lang.walk import all_expressions, all_statements, every

Term = Any
LEDGER = {"held", "owners", "table", "places", "filling"}
"""What a fact of the ledger may rest on, beside what it reads."""

Way = Callable[[str], Sequence[str]]
"""The actions by which the design itself, not only an abstraction of it, breaks a rule; none where it does not."""

ALONG = "the explorer's steps, one after the other"
AS_TAKEN = "the explorer's steps, one after the other, each with its values and members"


@dataclass(frozen=True)
class Opinion:
    """What is said of one rule or fact.

    status: proved (and the invariant stood a plain check), broken, or unknown. by: `Spacer`, or `enumeration` of what
    the abstraction reaches. invariant: its conjuncts, in words. trace: of a broken one, the steps that lead there,
    first to last; each once, where Spacer chose among all. asked: of which steps, where not of all. left: a finer
    abstraction was asked too, and gave no answer. tied: the loop for which nothing is asked of every step. few: the
    steps whose loops had no more turns than the scope has members. varying: what it sees and a start leaves otherwise
    where there are more members, so that the proof is of no other number: the status is unknown then.
    """

    rule: str
    status: str
    by: str = ""
    invariant: tuple[str, ...] = ()
    trace: tuple[str, ...] = ()
    asked: str = ""
    clauses: int = 0
    left: bool = False
    tied: str = ""
    few: tuple[str, ...] = ()
    varying: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True)
class Level:
    """How much the abstraction keeps: the variables by which it counts, and whether steps are told of other blocks.
    counting: all counters, where no step asks for them too. miscounted: the counters that are not taken to be right."""

    naming: tuple[str, ...] = ()
    wide: bool = False
    counting: bool = False
    miscounted: frozenset[str] = frozenset()


def opinions(
    system: System,
    rules: Sequence[str] = (),
    budget: float = 600.0,
    tell: Callable[[str], None] = lambda _: None,
    way: Way = lambda _: (),
    taken: Callable[[str], Sequence[Step]] = lambda _: (),
) -> Iterator[Opinion]:
    """One answer a state rule of a design, or a fact of the ledger.

    rules: only these. budget: seconds altogether, of which each has its share. taken: the steps of the way in full.
    """
    until = time.monotonic() + budget
    chosen = [rule for rule in asked(system) if not rules or rule in rules]
    for k, rule in enumerate(chosen):
        tell(rule)
        now = time.monotonic()
        yield _opinion(system, rule, now + (until - now) / (len(chosen) - k), way, taken)


def _opinion(system: System, rule: str, until: float, way: Way, taken: Callable[[str], Sequence[Step]]) -> Opinion:
    """The coarsest abstraction first: what breaks the rule there alone is looked at again where more is kept."""
    begun, found = time.monotonic(), Opinion(rule, "unknown")
    if steps := way(rule):
        found = _along(system, rule, steps, taken(rule), until)
    if found.status == "unknown":
        try:
            found = _of_every_step(system, rule, until)
        except Entangled as tie:
            found = replace(found, tied=str(tie))
    return replace(found, seconds=time.monotonic() - begun)


def _of_every_step(system: System, rule: str, until: float) -> Opinion:
    """Raises Entangled."""
    found, levels = Opinion(rule, "unknown"), _levels(system, rule)
    tries = [(by_spacer, level) for level in levels if not level.wide]
    tries.append((_by_enumeration, levels[-1]))  # what a coarser one reaches beside is more to enumerate
    for ask, level in tries:
        if found.status == "proved" or found.varying:
            break
        abstraction, clauses = clauses_of(system, rule, level)
        answer = ask(system, abstraction, clauses, until) if time.monotonic() < until else None
        found = replace(found, left=True) if answer is None else replace(answer, rule=rule, clauses=len(clauses))
        if found.status == "proved" and (names := varying(system, [p.variable.name for p in abstraction.parts])):
            found = replace(found, status="unknown", varying=tuple(dict.fromkeys(name for name, _ in names)))
    return found


def _levels(system: System, rule: str) -> list[Level]:
    """From the coarsest: nothing counted, everything, and other blocks too."""
    if system.events:
        return [Level()]
    names = tuple(v.name for v in clauses_of(system, rule)[0].may_count)
    return list(dict.fromkeys([Level(), Level(names), Level(names, True)]))


def asked(system: System) -> list[str]:
    """What the counters count, and the state rules that some step of a design may break; of the discipline, its
    facts."""
    if system.events:
        return [f.name for f in system.facts.all()]
    found = (s.rule for a in system.actions for s in all_statements(a.effects) if isinstance(s, ir.Obey))
    rules = [rule for rule in dict.fromkeys(found) if _is_state_rule(system, rule)]
    return [*(c.name for c in counters(system)), *rules]


def counters(system: System) -> tuple[ir.Step, ...]:
    """What every answer rests on: that these count what they say."""
    return system.facts.counted


def _is_state_rule(system: System, rule: str) -> bool:
    return system.design.spec.rules[rule].kind == "rule" or rule == "read_is_initialised"


def clauses_of(system: System, rule: str, level: Level = Level()) -> tuple[Abstraction, list[Clause]]:
    """The abstraction that one rule or fact needs, and everything that it must satisfy."""
    if system.events:
        return _of_fact(system, rule)
    parts, needed = _sliced(system, rule, system.design.spec.of_kind("action"))
    abstraction = _abstraction(system, needed, parts.counted, level)
    return abstraction, _clauses(system, rule, abstraction, parts.actions)


def clauses_along(
    system: System, rule: str, steps: Sequence[str], level: Level = Level(), taken: Sequence[Step] = ()
) -> tuple[Abstraction, list[Clause]]:
    """The same of these steps alone; of those without a functional form, with as many turns as the scope has members.

    They show ways to break a rule, and no invariant: what the steps do besides is in no clause. taken: the same steps,
    as they were taken in the scope: each has its values then, its clauses have its text for a name, and of the members
    that the steps name it is seen which is which.
    """
    chosen = tuple(a for a in system.design.spec.of_kind("action") if a.name in steps)
    parts, needed = _sliced(system, rule, chosen, level.counting)
    turns = system.scoped.sizes.sorts
    actions = tuple(few_turns(a, system.design.spec.variables, system.sizes, turns) for a in parts.actions)
    abstraction = _abstraction(system, needed, parts.counted, level, _emptied(actions))
    if taken:
        found = {t.text: (a, t) for t in taken for a in actions if a.name == t.action}
        abstraction = replace(abstraction, named=tuple(dict.fromkeys(_members(found.values()))))
        actions = tuple(_as_taken(a, t) for a, t in found.values())
    return abstraction, _clauses(system, rule, abstraction, actions)


def _members(found: Iterable[tuple[ir.Step, Step]]) -> Iterator[tuple[ir.Type, int]]:
    """The blocks and branches that these steps name."""
    for action, taken in found:
        for p in action.params:
            number = taken.values.get(p.name)  # none for a turn: any member may have it
            if ir.bare(p.type) in (BLOCK, BRANCH) and number is not None:
                yield ir.bare(p.type), number


def _as_taken(action: ir.Step, taken: Step) -> ir.Step:
    """The action with the values that it was taken with."""
    given = ((p, taken.values[p.name]) for p in action.params if p.name in taken.values)
    values = (ir.Compare("==", ir.Name(p.name, p.type), ir.Const(value, p.type)) for p, value in given)
    return replace(action, name=taken.text, guard=(*action.guard, *values))


def _sliced(
    system: System, rule: str, actions: tuple[ir.Step, ...], counting: bool = False
) -> tuple[Parts, tuple[ir.Variable, ...]]:
    """What the actions do that matters for the rule, or for any counter, and the variables that do."""
    spec, begun = system.design.spec, system.begun
    idle = frozenset(n for n, v in spec.variables.items() if not v.const and not any(n in b.state for b in begun))
    counted = counters(system)
    reads = tuple(_reading(counts.counter(c), spec.variables) for c in counted) if counting else ()
    whole = Parts(actions, tuple(c for c in counted if c.name == rule), reads, counted)
    return sliced(whole, spec.variables, system.scoped.known, idle, frozenset((rule,)))


def _reading(found: counts.Counter, variables: Mapping[str, ir.Variable]) -> ir.Step:
    """A question that depends on what a counter counts and on the counter itself."""
    assert found.step.value is not None
    index = tuple(ir.Name(p.name, p.type) for p in found.step.params[:-1])
    read = ir.Read(found.variable, index, variables[found.variable].value)
    return replace(found.step, kind="witness", value=ir.And((found.step.value, ir.Compare("==", read, read))))


def _clauses(system: System, rule: str, abstraction: Abstraction, actions: Iterable[ir.Step]) -> list[Clause]:
    counts_it = any(c.name == rule for c in counters(system))
    found = (c for a in actions for c in abstraction.clauses(a, obeys=counts_it))
    told = (c for c in found if c.head is not None or not counts_it or c.name.startswith(f"{rule} at "))
    return [c for c in told if _is_possible(c)]


def _of_fact(system: System, name: str) -> tuple[Abstraction, list[Clause]]:
    (fact,) = (f for f in system.facts.all() if f.name == name)
    needed = reads_of(fact) | LEDGER
    abstraction = _abstraction(system, [v for n, v in system.variables.items() if n in needed], counters(system))
    clauses = [c for a in system.actions for c in abstraction.clauses(a, obeys=True)]
    if fact.kind != "counted":
        rest = step_terms(ir.Step("rest", "action", "", (), (), None, ""), system.variables, system.sizes)
        closed = [(name, rest, body) for _, body in facts(fact, rest, after=False)]
        clauses += abstraction.broken(closed)
    return abstraction, [c for c in clauses if _is_possible(c)]


def _is_possible(clause: Clause) -> bool:
    """Whether its premises do not contradict each other whatever the invariant is."""
    solver = z3.Solver()
    solver.set("rlimit", 1_000_000)
    solver.add(*clause.body)
    return bool(solver.check() != z3.unsat)


def _abstraction(
    system: System,
    needed: Sequence[ir.Variable],
    counted: Sequence[ir.Step],
    level: Level = Level(),
    emptied: frozenset[str] = frozenset(),
) -> Abstraction:
    names = {v.name for v in needed}
    kept = tuple(counts.counter(c) for c in counted if c.name not in level.miscounted)
    kept = tuple(c for c in kept if c.variable in names)
    counting = tuple(v for v in needed if v.name in level.naming)
    return Abstraction(system.variables, system.sizes, tuple(needed), kept, counting, level.wide, emptied)


def _emptied(actions: Sequence[ir.Step]) -> frozenset[str]:
    """The variables whose sets are of blocks or branches, and of which a step asks whether they are empty."""
    asked = (e for a in actions for g in (*a.guard, *all_expressions(a.effects)) for e in every(g))
    sides = (e.left for e in asked if isinstance(e, ir.Compare) and isinstance(e.right, ir.Empty))
    reads = (r for side in sides for r in every(side) if isinstance(r, ir.Read))
    return frozenset(r.variable for r in reads if r.type in (ir.SetType(BLOCK), ir.SetType(BRANCH)))


# --- who is asked -----------------------------------------------------------------------------------------------------


def _along(system: System, rule: str, steps: Sequence[str], taken: Sequence[Step], until: float) -> Opinion:
    """What Spacer says of these steps. How they were taken it is told where it finds nothing else."""
    level = Level(miscounted=_miscounted(system, taken))
    asked_of, (trace, clauses) = ALONG, breaks_along(system, rule, steps, until, level)
    if not trace and taken:
        asked_of, (trace, clauses) = AS_TAKEN, breaks_along(system, rule, steps, until, level, taken)
    if not trace:
        return Opinion(rule, "unknown")
    few = tuple(dict.fromkeys(c.name for c in clauses if c.few and c.head is not None))
    return Opinion(rule, "broken", "Spacer", (), trace, asked_of, len(clauses), few=few)


def _miscounted(system: System, taken: Sequence[Step]) -> frozenset[str]:
    """The counters that are wrong in a state of these steps, before the one that breaks a rule."""
    sizes, states = system.scoped.sizes, [t.after for t in taken[:-1]]
    wrong = (c for c in counters(system) for s in states if not holds_in(c, system.variables, sizes, s))
    return frozenset(c.name for c in wrong)


def breaks_along(
    system: System, rule: str, steps: Sequence[str], until: float, level: Level = Level(), taken: Sequence[Step] = ()
) -> tuple[tuple[str, ...] | None, list[Clause]]:
    """The steps, where Spacer breaks the rule by these from a start of the scope, and the clauses that it was told.

    () where they do not break it, which says nothing of other steps; None where there is no answer.
    """
    abstraction, clauses = clauses_along(system, rule, steps, level, taken)
    starts = at_start(abstraction, system.scoped, starts_of(system.design.spec, system.scoped))
    *names, last = [t.text for t in taken] or steps
    return along(starts, clauses, (*names, f"{rule} at {last}"), until), clauses


def by_spacer(system: System, abstraction: Abstraction, clauses: Sequence[Clause], until: float) -> Opinion | None:
    """What Spacer says of every step, told nothing else."""
    starts = at_start(abstraction, system.base, system.begun)
    answer = spacer(starts, clauses, until)
    if answer is None or isinstance(answer, tuple):
        return None if answer is None else Opinion("", "broken", "Spacer", (), answer)
    return _proved("Spacer", answer, abstraction, starts, clauses)


def _by_enumeration(
    system: System, abstraction: Abstraction, clauses: Sequence[Clause], until: float
) -> Opinion | None:
    starts = at_start(abstraction, system.base, system.begun)
    found = cover(starts, clauses, until)
    if found is None:
        return None
    if found.broken:
        return Opinion("", "broken", "enumeration", (), found.broken)
    told = lemmas(found, clauses)
    return _proved("enumeration", lambda seen: z3.And([holds(t, seen) for t in told]), abstraction, starts, clauses)


def _proved(
    by: str, invariant: Invariant, abstraction: Abstraction, starts: Sequence[Sequence[Term]], clauses: Sequence[Clause]
) -> Opinion | None:
    """What a plain solver makes of an invariant."""
    if not stands(invariant, starts, clauses):
        return None
    return Opinion("", "proved", by, tuple(conjuncts(invariant, abstraction.labels(), starts[0])))


def at_start(abstraction: Abstraction, scope: Scoped, states: Sequence[Start]) -> list[tuple[Term, ...]]:
    """What is seen of each block and branch of each start state, once."""
    found: dict[tuple[int, ...], tuple[Term, ...]] = {}
    sorts = scope.sizes.sorts
    for begun in states:
        for block, branch in product(range(sorts["Block"]), range(sorts["Branch"])):
            seen = abstraction.start(begun.state, block, branch)
            found[tuple(t.get_id() for t in seen)] = seen
    return list(found.values())
