"""A second opinion: Spacer looks for an invariant of the witness-block abstraction, and a plain solver checks it.

It is told none of the facts that the induction rests on. What it answers is an invariant of one block and one branch,
printed, and checked clause by clause by a solver that shares only the abstraction with it; or a way to break the rule
there. Of a wrong design there always is one, of a right one there may be too: what the abstraction forgets matters, and
nothing is said of the design.

Settings that matter: global guidance, and none of the transformations of Horn clauses. With Z3's defaults a prototype
of this gave no answer at all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any  # z3 is untyped

import z3
from kvsan.checker.explore.slice import Parts, sliced
from kvsan.checker.prove import counts
from kvsan.checker.prove.flat import Flat, without_bits
from kvsan.checker.prove.induction import reads_of
from kvsan.checker.prove.step import facts, step_terms
from kvsan.checker.prove.system import System
from kvsan.checker.prove.witness import Abstraction, Clause
from kvsan.spec.lang import ir
from kvsan.spec.lang.walk import all_statements

Term = Any
OFF = ("slice", "inline_linear", "inline_eager", "coi", "elim_term_ite", "tail_simplifier_pve", "subsumption_checker")

LEDGER = {"held", "owners", "table", "places", "filling"}
"""What a fact of the ledger may rest on, beside what it reads."""


@dataclass(frozen=True)
class Opinion:
    """What Spacer says of one rule or fact.

    status: proved (and the invariant stood a plain check), broken, or unknown. invariant: its conjuncts, in words.
    trace: of a broken one, the steps that it names, first to last.
    """

    rule: str
    status: str
    invariant: tuple[str, ...] = ()
    trace: tuple[str, ...] = ()
    clauses: int = 0
    seconds: float = 0.0


def opinions(
    system: System,
    rules: Sequence[str] = (),
    budget: float = 600.0,
    tell: Callable[[str], None] = lambda _: None,
) -> Iterator[Opinion]:
    """One answer a state rule of a design, or a fact of the ledger. rules: only these. budget: seconds altogether."""
    until = time.monotonic() + budget
    for rule in asked(system):
        if not rules or rule in rules:
            tell(rule)
            yield _opinion(system, rule, until)


def _opinion(system: System, rule: str, until: float) -> Opinion:
    """The coarsest abstraction first: what breaks the rule there is looked at again where more is counted."""
    begun, found = time.monotonic(), Opinion(rule, "unknown")
    for naming in _finer(system, rule):
        left = until - time.monotonic()
        if left <= 0 or found.status == "proved":
            break
        abstraction, clauses = clauses_of(system, rule, naming)
        status, invariant, trace = _ask(system, abstraction, clauses, left)
        found = Opinion(rule, status, invariant, trace, len(clauses), time.monotonic() - begun)
    return found


def _finer(system: System, rule: str) -> list[tuple[str, ...]]:
    """Which variables to count by: none, each, all."""
    if system.events:
        return [()]
    names = [v.name for v in clauses_of(system, rule)[0].may_count]
    return list(dict.fromkeys([(), *((n,) for n in names), tuple(names)]))


def asked(system: System) -> list[str]:
    """The state rules that some step of a design may break; of the discipline, its facts."""
    if system.events:
        return [f.name for f in system.facts.all()]
    found = (s.rule for a in system.actions for s in all_statements(a.effects) if isinstance(s, ir.Obey))
    return [rule for rule in dict.fromkeys(found) if _is_state_rule(system, rule)]


def _is_state_rule(system: System, rule: str) -> bool:
    return system.design.spec.rules[rule].kind == "rule" or rule == "read_is_initialised"


def clauses_of(system: System, rule: str, naming: tuple[str, ...] = ()) -> tuple[Abstraction, list[Clause]]:
    """The abstraction that one rule or fact needs, and everything that it must satisfy. naming: what it counts by."""
    if system.events:
        return _of_fact(system, rule)
    spec, begun = system.design.spec, system.begun
    idle = frozenset(n for n, v in spec.variables.items() if not v.const and not any(n in b.state for b in begun))
    counted = tuple(c for c in spec.of_kind("counted") if _counts_members(c))
    parts, needed = sliced(
        Parts(spec.of_kind("action"), (), (), counted), spec.variables, system.scoped.known, idle, frozenset((rule,))
    )
    abstraction = _abstraction(system, needed, parts.counted, naming)
    return abstraction, [c for a in parts.actions for c in abstraction.clauses(a) if _is_possible(c)]


def _of_fact(system: System, name: str) -> tuple[Abstraction, list[Clause]]:
    (fact,) = (f for f in system.facts.all() if f.name == name)
    needed = reads_of(fact) | LEDGER
    counters = tuple(c for c in system.facts.counted if _counts_members(c))
    abstraction = _abstraction(system, [v for n, v in system.variables.items() if n in needed], counters)
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


def _counts_members(step: ir.Step) -> bool:
    return step.name in ("owners_counted", "places_counted")


def _abstraction(
    system: System, needed: Sequence[ir.Variable], counted: Sequence[ir.Step], naming: tuple[str, ...] = ()
) -> Abstraction:
    names = {v.name for v in needed}
    counters = tuple(c for c in map(counts.counter, counted) if c.variable in names)
    counting = tuple(v for v in needed if v.name in naming)
    return Abstraction(system.variables, system.sizes, tuple(needed), counters, counting)


# --- the question -----------------------------------------------------------------------------------------------------


def _ask(
    system: System, abstraction: Abstraction, clauses: Sequence[Clause], timeout: float
) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    starts = _starts(system, abstraction)
    fixed = z3.Fixedpoint()
    fixed.set("engine", "spacer")
    fixed.set("spacer.global", True)
    fixed.set("timeout", int(timeout * 1000))
    for name in OFF:
        fixed.set(f"xform.{name}", False)
    fact = z3.Function("fact", *(t.sort() for t in starts[0]), z3.BoolSort())
    broken = z3.Function("broken", z3.BoolSort())
    fixed.register_relation(fact, broken)
    for start in starts:
        fixed.fact(fact(*start))
    for clause in clauses:
        _tell(fixed, fact, broken, clause)
    try:
        answer = fixed.query(broken)
    except z3.Z3Exception:  # how this engine says that its time is over
        return "unknown", (), ()
    if answer == z3.sat:
        names = (str(n) for n in reversed(fixed.get_rule_names_along_trace()))
        return "broken", (), tuple(n for n in names if n != "<null>")
    if answer != z3.unsat:
        return "unknown", (), ()
    invariant = _invariant(fixed.get_answer(), fact)
    if not _stands(invariant, starts, clauses):
        return "unknown", (), ()
    return "proved", tuple(_conjuncts(invariant, abstraction.labels(), starts[0])), ()


def _tell(fixed: Any, fact: Any, broken: Any, clause: Clause) -> None:
    flat, equal = Flat(), list[Term]()

    def applied(values: Sequence[Term]) -> Term:
        """The fact of variables that have these values."""
        names = [z3.FreshConst(t.sort(), "v") for t in values]
        flat.variables.extend(names)
        equal.extend(n == t for n, t in zip(names, map(flat, values), strict=True))
        return fact(*names)

    premises = [applied(pair) for pair in clause.pairs]
    head = broken() if clause.head is None else applied(clause.head)
    body = [flat(t) for t in clause.body]
    formula = without_bits(z3.And(*body, *equal, *flat.congruence))
    fixed.declare_var(*flat.variables)
    fixed.rule(head, [*premises, formula], clause.name)


def _starts(system: System, abstraction: Abstraction) -> list[tuple[Term, ...]]:
    """What is seen of each block and branch of each start state, once."""
    found: dict[tuple[int, ...], tuple[Term, ...]] = {}
    sorts = system.base.sizes.sorts
    for begun in system.begun:
        for block, branch in product(range(sorts["Block"]), range(sorts["Branch"])):
            seen = abstraction.start(begun.state, block, branch)
            found[tuple(t.get_id() for t in seen)] = seen
    return list(found.values())


# --- the answer -------------------------------------------------------------------------------------------------------


def _invariant(answer: Term, fact: Any) -> Callable[[Sequence[Term]], Term]:
    """The fact as a formula over what is seen; where nothing can be broken at all, it says nothing."""
    for part in answer.children() if z3.is_and(answer) else [answer]:
        if z3.is_quantifier(part) and part.body().arg(0).decl().eq(fact):
            application, body = part.body().children()
            order = [z3.get_var_index(v) for v in application.children()]

            def filled(values: Sequence[Term], body: Term = body, order: Sequence[int] = tuple(order)) -> Term:
                by_number = dict(zip(order, values, strict=True))
                return z3.substitute_vars(body, *(by_number[k] for k in range(len(order))))

            return filled
    return lambda _: z3.BoolVal(True)


def _stands(invariant: Callable[[Sequence[Term]], Term], starts: Sequence[Sequence[Term]], clauses: Any) -> bool:
    """Whether a plain solver finds every clause true: of the start, of each step, and that nothing is broken."""
    for start in starts:
        if not z3.is_true(z3.simplify(invariant(start))):
            return False
    for clause in clauses:
        solver = z3.Solver()
        solver.add(*clause.body, *(invariant(pair) for pair in clause.pairs))
        if clause.head is not None:
            solver.add(z3.Not(invariant(clause.head)))
        if solver.check() != z3.unsat:
            return False
    return True


def _conjuncts(
    invariant: Callable[[Sequence[Term]], Term], labels: Sequence[str], like: Sequence[Term]
) -> Iterator[str]:
    """The invariant in words."""
    names = [z3.Const(label, t.sort()) for label, t in zip(labels, like, strict=True)]
    whole = z3.simplify(invariant(names))
    for part in whole.children() if z3.is_and(whole) else [whole]:
        yield _text(part)


def _text(part: Term) -> str:
    """A clause as an implication."""
    literals = part.children() if z3.is_or(part) else [part]
    given = [_plain(t.arg(0)) for t in literals if z3.is_not(t)]
    then = [_plain(t) for t in literals if not z3.is_not(t)]
    if not given:
        return " or ".join(then)
    if not then:
        return f"not ({' and '.join(given)})"
    return f"{' and '.join(given)}: {' or '.join(then)}"


def _plain(term: Term) -> str:
    return " ".join(str(term).split())
