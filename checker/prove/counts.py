"""Counters: what is proved of a number that counts the members of a set, and the two lemmas that this rests on.

A `@counted` predicate says which members k the number x[keys] counts: S = {k : counted(keys, k)}. Z3 does not reason
about the size of S; it gets relational facts instead.

Lemma `count_members` (facts about one state). For a finite set S with c = |S|, and any members k1, k2, k3:
    k1 in S implies c >= 1; k1, k2 in S and k1 != k2 imply c >= 2; the same with three different ones and c >= 3;
    c >= 1 implies that there is a member; c >= 2 implies that there are two different ones.
Proof. {k1}, {k1, k2}, {k1, k2, k3} are subsets of S of 1, 2 and 3 elements, and a subset is not larger than its set. A
set with an element less than all its c >= 2 elements is not empty.

Lemma `count_moves` (what a step does). Let S and T be finite sets, and D = {d1, ..., dn} such that every k outside D is
in S just if it is in T. Then |T| = |S| + sum over i of ([di in T] - [di in S]), where a di equal to an earlier dj is
left out.
Proof. S is the disjoint union of S outside D and S within D, and so is T. Outside D they are the same set. Within D the
size of each is the number of different di in it.

Both are checked exhaustively on all sets over up to four members by a test. An x that counts members of a sized sort or
range is written out as a sum, and rests on no lemma.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any  # z3 is untyped

import z3
from kvsan.checker.prove.step import StepTerms, template
from kvsan.checker.prove.terms import Template, Terms, Translator
from kvsan.spec.lang import ir
from kvsan.spec.lang.symbolic import Sizes, is_open, predicate, size_of

Term = Any
LEMMAS = ("count_members", "count_moves")


@dataclass(frozen=True)
class Counter:
    """A counter: its predicate, the variable, the types of its keys, the type of what is counted."""

    step: ir.Step
    variable: str
    keys: tuple[ir.Type, ...]
    member: ir.Type

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{p.name}'" for p in self.step.params)


def counter(step: ir.Step) -> Counter:
    types = tuple(p.type for p in step.params)
    return Counter(step, step.name.removesuffix("_counted"), types[:-1], types[-1])


def rests_on(found: Counter, sizes: Sizes) -> tuple[str, ...]:
    """The lemmas behind a counter."""
    return LEMMAS if is_open(found.member, sizes) else ()


def _keys(found: Counter, terms: Terms) -> list[tuple[dict[str, Term | int], tuple[Term, ...], tuple[Term | int, ...]]]:
    """For each choice of sized keys: what the names stand for, the `?` constants of the open ones, the index."""
    choices: list[list[Term | int]] = []
    for name, type_ in zip(found.names, found.keys, strict=False):
        if is_open(type_, terms.sizes):
            choices.append([z3.Const(f"?{name}", terms.sort(type_))])
        else:
            choices.append(list(range(size_of(type_, terms.sizes))))
    made: list[tuple[dict[str, Term | int], tuple[Term, ...], tuple[Term | int, ...]]] = [({}, (), ())]
    for name, options in zip(found.names, choices, strict=False):
        made = [
            ({**names, name: o}, bound if isinstance(o, int) else (*bound, o), (*index, o))
            for names, bound, index in made
            for o in options
        ]
    return made


def _membership(
    condition: ir.Expr, terms: Terms, names: Mapping[str, Term | int], member: Term | int, last: str
) -> Term:
    """Whether the member is counted."""
    whole = {**names, last: member}
    given = {n: z3.IntVal(t) if isinstance(t, int) else t for n, t in whole.items()}
    return Translator(terms, given)(condition)


def hypotheses(found: Counter, terms: Terms) -> list[Template]:
    """What is known of a counter in the state before."""
    condition = predicate(found.step, terms.variables, terms.sizes).condition
    last, made = found.names[-1], list[Template]()
    for names, bound, index in _keys(found, terms):
        count = terms.read(found.variable, index)
        if not is_open(found.member, terms.sizes):
            sized = range(size_of(found.member, terms.sizes))
            total = z3.Sum([z3.If(_membership(condition, terms, names, k, last), 1, 0) for k in sized])
            made.append(template(terms, bound, count == total))
            continue
        sort = terms.sort(found.member)
        members = [z3.Const(f"?{last}{k}", sort) for k in range(3)]
        inside = [_membership(condition, terms, names, m, last) for m in members]
        for n in (1, 2, 3):
            apart = [a != b for a, b in combinations(members[:n], 2)]
            made.append(template(terms, (*bound, *members[:n]), z3.Implies(z3.And(*inside[:n], *apart), count >= n)))
        one, two = (terms.witness(sort, bound, f"{found.variable}.owner") for _ in range(2))
        in_one, in_two = (_membership(condition, terms, names, w, last) for w in (one, two))
        none = terms.none(found.member)
        some = z3.And(z3.Implies(count >= 1, z3.And(one != none, in_one)))
        more = z3.Implies(count >= 2, z3.And(two != none, in_two, one != two))
        made.append(template(terms, bound, z3.And(some, more)))
    return made


def goals(found: Counter, made: StepTerms, moved: list[Term]) -> list[tuple[tuple[Term, ...], Term]]:
    """What is to be shown of the state after, with the `?` constants that each binds.

    moved: the members whose counting the step may change.
    """
    terms, last = made.terms, found.names[-1]
    before = predicate(found.step, terms.variables, terms.sizes).condition
    after = predicate(found.step, terms.variables, terms.sizes, made.form).condition
    out: list[tuple[tuple[Term, ...], Term]] = []
    for names, bound, index in _keys(found, terms):
        was = terms.read(found.variable, index)
        now = _after(found, made, names)
        if not is_open(found.member, terms.sizes):
            sized = range(size_of(found.member, terms.sizes))
            total = z3.Sum([z3.If(_after_membership(made, after, names, k, last), 1, 0) for k in sized])
            out.append((bound, now == total))
            continue
        other = z3.Const(f"?{last}", terms.sort(found.member))
        same = _after_membership(made, after, names, other, last) == _membership(before, terms, names, other, last)
        out.append(((*bound, other), z3.Implies(z3.And([other != d for d in moved]), same)))
        change = []
        for k, d in enumerate(moved):
            first = z3.And([d != e for e in moved[:k]] + [d != terms.none(found.member)])
            comes = z3.If(z3.And(first, _after_membership(made, after, names, d, last)), 1, 0)
            goes = z3.If(z3.And(first, _membership(before, terms, names, d, last)), 1, 0)
            change.append(comes - goes)
        out.append((bound, now == z3.Sum([was, *change]) if change else now == was))
    return out


def _after_membership(
    made: StepTerms, condition: ir.Expr, names: Mapping[str, Term | int], member: Term | int, last: str
) -> Term:
    given = {n: z3.IntVal(t) if isinstance(t, int) else t for n, t in {**names, last: member}.items()}
    return Translator(made.terms, {**made.params, **given})(condition)


def _after(found: Counter, made: StepTerms, names: Mapping[str, Term | int]) -> Term:
    """The counter in the state after."""
    variable = made.terms.variables[found.variable]
    index = tuple(ir.Name(n, t) for n, t in zip(found.names, found.keys, strict=False))
    read = ir.Step(
        "",
        "helper",
        "",
        found.step.params,
        (),
        None,
        "",
        value=ir.Read(found.variable, tuple(ir.Name(p.name, p.type) for p in found.step.params[:-1]), variable.value),
    )
    condition = predicate(read, made.terms.variables, made.terms.sizes, made.form).condition
    given = {n: z3.IntVal(t) if isinstance(t, int) else t for n, t in names.items()}
    assert len(index) == len(found.keys)
    return Translator(made.terms, {**made.params, **given})(condition)
