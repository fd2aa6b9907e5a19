"""Induction, step by step: what holds before a step makes its obligations hold, and holds again after it.

Hypotheses are instances: every fact for every choice of the members that the step names (its parameters, the blocks of
their entries, sources and targets) and of one arbitrary other member for each that the goal binds. Fewer instances are
weaker hypotheses, so a proof is a proof for any number of blocks and branches. Where it fails, the entries of the other
members are named too, once; what then still fails is a counterexample to these instances.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any  # z3 is untyped

import z3
from kvsan.checker.prove import counts
from kvsan.checker.prove.example import Example, example
from kvsan.checker.prove.step import (
    StepTerms,
    facts,
    ranged,
    step_terms,
    template,
)
from kvsan.checker.prove.system import SPEND, Facts
from kvsan.checker.prove.terms import Instances, Key, Template, by_sort, is_true_in
from kvsan.spec.lang import ir
from kvsan.spec.lang.symbolic import Sizes
from kvsan.spec.lang.walk import every

Term = Any
QUICK, TURNS, PER_TURN, FEW = 20_000, 60, 8, 6
"""For one goal: what pattern matching may take, queries with instances, new instances of a hypothesis a query; queries
for what is not possible at all, which two have shown where it was so."""

FACTS, ENABLED, DONE = range(3)
"""What a goal may rest on: that the facts hold before the step, that it is enabled, that it is defined."""


@dataclass(frozen=True)
class Goal:
    """One query. rule: what it is part of. number: that of an obligation. given: what it may rest on."""

    rule: str
    kind: str
    term: Term
    number: int = -1
    given: int = DONE


@dataclass
class Result:
    """A rule at a step. status: proved, untouched (the step changes nothing that it reads), failed, unknown.
    started: of a failed one, the steps to its start that the explorer finds in a small scope; None: none, or not asked.
    """

    rule: str
    kind: str
    action: str
    status: str = "proved"
    queries: int = 0
    seconds: float = 0.0
    number: int = -1
    example: Example | None = None
    started: tuple[str, ...] | None = None


@dataclass
class Induction:
    """One step of a system."""

    step: ir.Step
    facts: Facts
    sizes: Sizes
    spend: int
    assume_obligations: bool
    made: StepTerms
    instances: Instances
    hypotheses: list[Template] = field(default_factory=list)
    told: list[Template] = field(default_factory=list)
    given: int = FACTS
    solver: Any = None
    quick: Any = None
    known: Known = field(default_factory=lambda: Known({}))

    def goals(self) -> Iterator[Goal]:
        """Everything that has to be shown of the step."""
        made = self.made
        if not self.assume_obligations:  # else the step has happened as it should
            yield from self._own_goals()
        for inv in self.facts.invariants:
            if self._touches(inv):
                for bound, body in facts(inv, made, after=True):
                    yield Goal(inv.name, inv.kind, self._skolem(bound, body))
        for step in self.facts.counted:
            if self._touches(step):
                found = counts.counter(step)
                moved = self._moved(found)
                for bound, body in counts.goals(found, made, moved):
                    yield Goal(step.name, step.kind, self._skolem(bound, body))

    def _own_goals(self) -> Iterator[Goal]:
        """That the step stays within its types, and obeys."""
        made = self.made
        for t in made.guard_defined:
            yield Goal("defined", "defined", self._closed(t), given=FACTS)
        whole = [self._closed(t) for t in made.defined]
        if whole:
            yield Goal("defined", "defined", z3.And(whole), given=ENABLED)
        for rule, number, term in made.obligations:
            yield Goal(rule, "rule", self._closed(term), number)

    def _touches(self, fact: ir.Step) -> bool:
        assert fact.value is not None
        return bool(reads_of(fact) & set(self.made.form.updates))

    def _moved(self, found: counts.Counter) -> list[Term]:
        return [self.made.params[p.name] for p in self.step.params if ir.bare(p.type) == found.member]

    def _closed(self, term: Term) -> Term:
        return self._skolem(tuple(self.made.terms.placeholders(term)), term)

    def _skolem(self, bound: tuple[Term, ...], body: Term) -> Term:
        """The body for arbitrary members: one constant for each, the same ones in every goal."""
        ordinal: dict[str, int] = {}
        pairs = []
        for b in bound:
            sort = b.sort().name()
            ordinal[sort] = ordinal.get(sort, 0) + 1
            pairs.append((b, z3.Const(f"{sort}:{ordinal[sort]}", b.sort())))
        members = [c != z3.Const(f"none.{c.sort()}", c.sort()) for _, c in pairs]
        term = z3.substitute(body, *pairs) if pairs else body
        return z3.Implies(z3.And(members), term) if members else term


def induction(
    step: ir.Step,
    all_facts: Facts,
    variables: dict[str, ir.Variable],
    sizes: Sizes,
    spend: int = SPEND,
    assume_obligations: bool = False,
    deadline: float = math.inf,
    first: bool = False,
) -> tuple[list[Result], bool]:
    """Try to show everything of one step. Returns whether the step can happen at all, too.

    spend: on one query, in Z3's count of resources, which is the same on every machine. deadline: of
    `time.perf_counter`; what is not tried by then is unknown. first: stop where something fails.
    """
    begun = time.perf_counter()
    made = step_terms(step, variables, sizes)
    run = Induction(step, all_facts, sizes, spend, assume_obligations, made, Instances(made.terms))
    for fact in all_facts.invariants:
        for bound, body in facts(fact, made, after=False):
            run.hypotheses.append(template(made.terms, bound, body))
    for counted in all_facts.counted:
        run.hypotheses += counts.hypotheses(counts.counter(counted), made.terms)
    pending = list(run.goals())
    results = _results(run, pending)
    _prepare(run)
    setup = (time.perf_counter() - begun) / max(len(pending), 1)
    for goal in pending:
        result = results[goal.kind, goal.rule]
        at = time.perf_counter()
        if at > deadline or (first and any(r.status == "failed" for r in results.values())):
            result.status = "unknown" if result.status == "proved" else result.status
            continue
        _assume(run, goal.given)
        _try(run, goal, result)
        result.seconds += time.perf_counter() - at + setup
    _assume(run, DONE)
    return list(results.values()), _enabled(run)


def _results(run: Induction, goals: Sequence[Goal]) -> dict[tuple[str, str], Result]:
    results = {(g.kind, g.rule): Result(g.rule, g.kind, run.step.name) for g in goals}
    for fact in (*run.facts.invariants, *run.facts.counted):
        if (fact.kind, fact.name) not in results:
            results[fact.kind, fact.name] = Result(fact.name, fact.kind, run.step.name, "untouched")
    return results


def _prepare(run: Induction) -> None:
    """Two solvers: one for instances, and one with the hypotheses as quantified formulas."""
    made = run.made
    run.solver, run.quick = z3.SolverFor("ALL"), z3.SolverFor("ALL")
    run.solver.set("rlimit", run.spend)
    run.quick.set("smt.mbqi", False)
    run.quick.set("rlimit", QUICK)
    _tell(run, made.ranges, [*run.hypotheses, *made.terms.templates])
    run.known = Known(_closed_members(run, [*made.guard, *made.guard_defined, *_changed(made)]))


def _assume(run: Induction, given: int) -> None:
    """Tell the solvers what goals from here on may rest on: not before that was a goal itself."""
    made = run.made
    if run.given < ENABLED <= given:
        _tell(run, [*made.guard, *made.guard_defined])
    if run.given < DONE <= given:
        own = [*made.defined, *(t for _, _, t in made.obligations if run.assume_obligations)]
        _tell(run, (), [template(made.terms, tuple(made.terms.placeholders(t)), t) for t in own])
    run.given = max(run.given, given)


def _tell(run: Induction, terms: Iterable[Term], hypotheses: Sequence[Template] = ()) -> None:
    """What holds from here on: terms as they are, and hypotheses for all members."""
    for term in terms:
        run.solver.add(ranged(run.made.terms, term))
        run.quick.add(ranged(run.made.terms, term))
    for one in hypotheses:
        run.quick.add(one.quantified)
    run.told += hypotheses


@dataclass
class Known:
    """What a solver has been told, and the members that it names."""

    members: dict[int, Term]
    asserted: set[Key] = field(default_factory=set)

    def copy(self) -> Known:
        return Known(dict(self.members), set(self.asserted))


def _closed_members(run: Induction, roots: list[Term]) -> dict[int, Term]:
    terms = run.made.terms
    found = {t.get_id(): t for root in roots for t in terms.members_in(root)}
    return {key: t for key, t in found.items() if not terms.placeholders(t)}


def _enabled(run: Induction) -> bool:
    """Whether the facts leave the step possible, as far as a few turns show: else its proofs say nothing."""
    known = run.known.copy()
    run.solver.push()
    for _ in range(FEW):
        if run.solver.check() != z3.sat or not _refute(run, known, run.solver.model()):
            break
    possible = bool(run.solver.check() != z3.unsat)
    run.solver.pop()
    return possible


def _changed(made: StepTerms) -> list[Term]:
    """What the stores of a step name."""
    out = []
    for updates in made.form.updates.values():
        for u in updates:
            parts = (u.path, *(i for i in u.index if i is not None))
            out += [made.translate(p) for p in parts if not isinstance(p, ir.Const | ir.Empty)]
    return out


def _try(run: Induction, goal: Goal, result: Result) -> None:
    """One goal: by pattern matching where that is quick, else by instances."""
    negated = ranged(run.made.terms, z3.Not(goal.term))
    run.quick.push()
    run.quick.add(negated)
    result.queries += 1
    answer = run.quick.check()
    run.quick.pop()
    if answer == z3.unsat:
        return
    run.solver.push()
    run.solver.add(negated)
    answer = _by_instances(run, goal, result)
    run.solver.pop()
    if answer == z3.unknown and result.status == "proved":
        result.status = "unknown"


def _by_instances(run: Induction, goal: Goal, result: Result) -> Any:
    """What the solver finds against a goal is held against every fact, until it finds nothing or is right."""
    known = run.known.copy()
    known.members |= _closed_members(run, [goal.term])
    for _ in range(TURNS):
        result.queries += 1
        answer = run.solver.check()
        if answer != z3.sat:
            return answer
        model = run.solver.model()
        if not _refute(run, known, model):
            if result.example is None:
                result.number = goal.number
                given = run.made.ranges if goal.given == FACTS else run.made.guard
                result.example = example(run.made, list(known.members.values()), given, goal.term, model)
            result.status = "failed"
            return answer
    return z3.unknown


def _refute(run: Induction, known: Known, model: Any) -> bool:
    """Assert the instances that a model breaks, for one name of each of its members. Returns whether there are any."""
    members, any_ = different(known.members.values(), model), False
    for number, one in enumerate(run.told):
        left = PER_TURN
        for key, term in run.instances.of(number, one, members):
            if not left:
                break
            if key not in known.asserted and not is_true_in(model, term):
                any_, left = True, left - 1
                known.asserted.add(key)
                known.members.update((t.get_id(), t) for t in run.instances.named(key, one))
                run.solver.add(term)
    return any_


def different(members: Iterable[Term], model: Any) -> dict[str, list[Term]]:
    """One name for each member of a model."""
    values: dict[int, Term] = {}
    for term in members:
        values.setdefault(model.eval(term, model_completion=True).get_id(), term)
    return by_sort(values.values())


def reads_of(fact: ir.Step) -> set[str]:
    """The variables that a fact reads; of a counter the counter too."""
    assert fact.value is not None
    found = {e.variable for e in every(fact.value) if isinstance(e, ir.Read)}
    found |= {
        e.domain.variable for e in every(fact.value) if isinstance(e, ir.Quantifier) and isinstance(e.domain, ir.Row)
    }
    return found | ({fact.name.removesuffix("_counted")} if fact.kind == "counted" else set())
