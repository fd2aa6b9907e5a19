"""One arbitrary block and one arbitrary branch: what an abstraction sees of a design, and its steps as Horn clauses.

The abstraction keeps, of one block b and one branch w, every entry that is theirs (`held[b]`, `phase[w]`,
`filling[w, b]`); of an entry that names a block or a branch, whether it is none and whether it is b or w; and, counted
over all branches, how many own b (the discipline's own counter), and for each variable by which a branch names a block
(a copy's source: readers; its target: writers), how many name b. It forgets all else. A fact of it is one of every
block and every branch, so that a step may assume it of the block and each branch that the step names.

Nothing in it is written for a design: entries come from the state's types, clauses from the lowered steps, what must
not be reached from the obligations. What is added by hand is the lemma `count_members`: so many different branches that
name b are no more than are counted. What it forgets can make it find a way to break a rule that no design has; what it
proves holds of the design.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations, product
from typing import Any  # z3 is untyped

import z3
from kvsan.checker.prove import counts
from kvsan.checker.prove.step import StepTerms, step_terms
from kvsan.checker.prove.terms import Instances, Terms, Translator, by_sort
from kvsan.checker.prove.views import BLOCK, BRANCH, is_empty, letter, literals, views, words
from kvsan.spec.lang import ir
from kvsan.spec.lang.interpret import Plain, default
from kvsan.spec.lang.symbolic import Sizes, is_open, predicate, size_of
from kvsan.spec.lang.turns import FEW

Term = Any
Pair = tuple[Term, Term]


@dataclass(frozen=True)
class Part:
    """An entry that is seen: of the witnesses where an index is None."""

    variable: ir.Variable
    index: tuple[int | None, ...]

    @property
    def text(self) -> str:
        keys = zip(self.variable.keys, self.index, strict=True)
        inside = ", ".join(str(i) if i is not None else letter(k) for k, i in keys)
        return f"{self.variable.name}[{inside}]" if inside else self.variable.name

    def value(self, state: Plain, block: int, branch: int) -> Any:  # as a plain state has it
        keys = zip(self.variable.keys, self.index, strict=True)
        key = tuple(i if i is not None else block if k == BLOCK else branch for k, i in keys)
        return state.get(self.variable.name, {}).get(key, default(self.variable.value))


@dataclass(frozen=True)
class Clause:
    """Where the fact holds of these pairs, and `body`, it holds of `head`; None: a rule is broken.

    Pairs and head are lists of what is seen of a block and a branch. few: of a step that is written out for few turns;
    what it does with more of them is in no clause.
    """

    name: str
    pairs: tuple[tuple[Term, ...], ...]
    body: tuple[Term, ...]
    head: tuple[Term, ...] | None
    few: bool = False


@dataclass(frozen=True)
class Abstraction:
    """seen: the variables of which entries are kept. counted: counters of the discipline among what is read.

    naming: the variables for which it is counted how many branches name b. wide: a step is told the fact of the other
    blocks whose entries the witness takes over, too: what a copy's source holds its target will. emptied: variables of
    whose sets it is kept whether they are empty. named: members of a scope by their numbers; it is seen whether b or w
    is one of them.
    """

    variables: dict[str, ir.Variable]
    sizes: Sizes
    seen: tuple[ir.Variable, ...]
    counted: tuple[counts.Counter, ...]
    naming: tuple[ir.Variable, ...] = ()
    wide: bool = False
    emptied: frozenset[str] = frozenset()
    named: tuple[tuple[ir.Type, int], ...] = ()

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        return tuple(Part(v, index) for v in self.seen if self._fits(v) for index in self._indexes(v))

    @property
    def _sets(self) -> list[Part]:
        return [p for p in self.parts if p.variable.name in self.emptied]

    @property
    def may_count(self) -> tuple[ir.Variable, ...]:
        """The variables by which a branch names one block."""
        return tuple(v for v in self.seen if v.keys == (BRANCH,) and ir.bare(v.value) == BLOCK)

    def labels(self) -> list[str]:
        """What is seen, in words."""
        terms = Terms(self.variables, self.sizes)
        found = [p.text + end for p in self.parts for end in words(terms, p.variable.value)]
        found += [f"{p.text} is empty" for p in self._sets]
        counted = (f"{v.name}s that are b are {n}" for v in self.naming for n in (0, 1))
        return [*found, *counted, *(f"{letter(t)} is number {k}" for t, k in self.named)]

    def seen_of(self, made: StepTerms, block: Term, branch: Term, after: bool = False) -> tuple[Term, ...]:
        """What is seen of a block and a branch, before the step or after it."""
        terms, out = made.terms, list[Term]()
        for part in self.parts:
            out += views(terms, self._entry(made, part, block, branch, after), part.variable.value, block, branch)
        for part in self._sets:
            out.append(is_empty(self._entry(made, part, block, branch, after)))
        for v in self.naming:
            count = self._namers(made, v, block, after)
            out += [count == 0, count == 1]
        out += [(block if t == BLOCK else branch) == terms.numbered(t, k) for t, k in self.named]
        return tuple(out)

    def start(self, state: Plain, block: int, branch: int) -> tuple[Term, ...]:
        """What is seen of a member of each sort in a start state."""
        terms, out = Terms(self.variables, self.sizes), list[Term]()
        for part in self.parts:
            out += literals(terms, part.value(state, block, branch), part.variable.value, block, branch)
        out += [z3.BoolVal(not part.value(state, block, branch)) for part in self._sets]
        for v in self.naming:
            count = sum(named == block for named in state.get(v.name, {}).values())
            out += [z3.BoolVal(count == 0), z3.BoolVal(count == 1)]
        out += [z3.BoolVal((block if t == BLOCK else branch) == k) for t, k in self.named]
        return tuple(out)

    # --- entries ------------------------------------------------------------------------------------------------------

    def _fits(self, v: ir.Variable) -> bool:
        """One block and one branch say where its entries are. Places are what they count: entries say it too."""
        open_keys = [k for k in v.keys if is_open(k, self.sizes)]
        summed = any(c.variable == v.name and not is_open(c.member, self.sizes) for c in self.counted)
        return not v.const and not summed and len(set(open_keys)) == len(open_keys) and {*open_keys} <= {BLOCK, BRANCH}

    def _indexes(self, v: ir.Variable) -> Iterator[tuple[int | None, ...]]:
        choices = ([None] if is_open(k, self.sizes) else range(size_of(k, self.sizes)) for k in v.keys)
        return product(*choices)

    def _entry(self, made: StepTerms, part: Part, block: Term, branch: Term, after: bool) -> Term:
        index: list[ir.Expr] = []
        names, params = dict[str, Term](made.params if after else {}), list[ir.Param]()
        for k, i in zip(part.variable.keys, part.index, strict=True):
            if i is not None:
                index.append(ir.Const(i, k))
                continue
            params.append(ir.Param(letter(k), k, False))
            index.append(ir.Name(letter(k), k))
            names[f"{letter(k)}'"] = block if k == BLOCK else branch
        read = ir.Read(part.variable.name, tuple(index), part.variable.value)
        return self._value(made, read, tuple(params), names, after)

    def _value(
        self, made: StepTerms, read: ir.Expr, params: tuple[ir.Param, ...], names: dict[str, Term], after: bool
    ) -> Term:
        step = ir.Step("", "helper", "", params, (), None, "", value=read)
        condition = predicate(step, self.variables, self.sizes, made.form if after else None).condition
        return Translator(made.terms, names)(condition, read.type)

    def _namers(self, made: StepTerms, v: ir.Variable, block: Term, after: bool) -> Term:
        """How many branches name the block; after a step, those of its own branches have come or gone."""
        terms = made.terms
        count = z3.Function(f"namers of {v.name}", block.sort(), z3.IntSort())(block)
        if not after:
            return count
        own, change = branches_of(made), list[Term]()
        for k, r in enumerate(own):
            first = z3.And([r != q for q in own[:k]] + [r != terms.none(BRANCH)])
            was = terms.read(v.name, (r,)) == block
            read = ir.Read(v.name, (ir.Name("w", BRANCH),), v.value)
            now = self._value(made, read, (ir.Param("w", BRANCH, False),), {**made.params, "w'": r}, True) == block
            change.append(z3.If(z3.And(first, now), 1, 0) - z3.If(z3.And(first, was), 1, 0))
        return z3.Sum([count, *change]) if change else count

    # --- clauses ------------------------------------------------------------------------------------------------------

    def clauses(self, step: ir.Step, obeys: bool = False) -> Iterator[Clause]:
        """A step as clauses. obeys: it is taken to obey its rules, else what breaks them is a clause each."""
        made = step_terms(step, self.variables, self.sizes)
        block, branch = z3.Const(":b", made.terms.sort(BLOCK)), z3.Const(":w", made.terms.sort(BRANCH))
        guard = [*made.guard, *made.guard_defined, block != made.terms.none(BLOCK), branch != made.terms.none(BRANCH)]
        guard += [term for rule, _, term in made.obligations if rule == FEW]
        placed = (block, branch)
        if obeys:
            guard += [_at(made.terms, t, block, branch) for *_, t in made.obligations]
            guard += [_at(made.terms, t, block, branch) for t in made.defined]
        head = self.seen_of(made, block, branch, after=True)
        yield self._clause(step.name, made, placed, guard, (), head)
        for rule, _, obligation in [] if obeys else judged(made):
            goal = _at(made.terms, obligation, block, branch)
            yield self._clause(f"{rule} at {step.name}", made, placed, guard, (z3.Not(goal),), None)
        for found in self.counted if obeys else ():
            moved = [made.params[p.name] for p in step.params if ir.bare(p.type) == found.member]
            for _, term in counts.goals(found, made, moved):
                goal = _at(made.terms, term, block, branch)
                name = f"{found.step.name} at {step.name}"
                yield self._clause(name, made, placed, guard, (z3.Not(goal),), None)
        others = [branch != r for r in branches_of(made)]
        for v in self.naming:
            read = ir.Read(v.name, (ir.Name("w", BRANCH),), v.value)
            now = self._value(made, read, (ir.Param("w", BRANCH, False),), {**made.params, "w'": branch}, True)
            changed = (now == block) != (made.terms.read(v.name, (branch,)) == block)
            yield self._clause(f"{v.name} at {step.name}", made, placed, guard, (*others, changed), None)

    def broken(self, facts: Iterable[tuple[str, StepTerms, Term]]) -> Iterator[Clause]:
        """Facts of a state that it must not break."""
        for name, made, term in facts:
            block, branch = z3.Const(":b", made.terms.sort(BLOCK)), z3.Const(":w", made.terms.sort(BRANCH))
            members = [block != made.terms.none(BLOCK), branch != made.terms.none(BRANCH)]
            goal = _at(made.terms, term, block, branch)
            yield self._clause(name, made, (block, branch), members, (z3.Not(goal),), None)

    def _clause(
        self,
        name: str,
        made: StepTerms,
        placed: Pair,
        guard: Sequence[Term],
        goal: Sequence[Term],
        head: tuple[Term, ...] | None,
    ) -> Clause:
        terms = made.terms
        (block, branch), none = placed, made.terms.none(BLOCK)
        pairs = [placed, *((block, r) for r in _present(made))]
        for at in indexed(terms, goal if head is None else head if self.wide else ()):
            if not at.eq(block):
                at = z3.If(at == none, block, at)  # of no block nothing is known
                pairs += [(at, r) for r in _present(made) or [branch]]
        pairs = list({(b.get_id(), w.get_id()): (b, w) for b, w in pairs}.values())
        seen = tuple(self.seen_of(made, b, w) for b, w in pairs)
        roots = [*guard, *goal, *(head or ())]
        found = {t.get_id(): t for root in roots for t in terms.members_in(root) if not terms.placeholders(t)}
        found |= {t.get_id(): t for t in placed}
        extra = [*self._lemmas(made, pairs), *_instances(terms, by_sort(found.values())), *self._apart(terms)]
        body = (*guard, *goal, *extra)
        few = any(rule == FEW for rule, *_ in made.obligations)
        return Clause(name, seen, (*body, *bounds(terms, (*body, *(head or ()), *chain(*seen)))), head, few)

    def _apart(self, terms: Terms) -> Iterator[Term]:
        """That different numbers are of different members."""
        for sort in dict.fromkeys(t for t, _ in self.named):
            yield z3.Distinct(terms.none(sort), *(terms.numbered(t, k) for t, k in self.named if t == sort))

    def _lemmas(self, made: StepTerms, pairs: Sequence[Pair]) -> Iterator[Term]:
        """`count_members` for the members of these pairs, and what is written out as a sum."""
        blocks = list({b.get_id(): b for b, _ in pairs}.values())
        branches = list({w.get_id(): w for _, w in pairs}.values())
        for found in self.counted:
            keys = sum(is_open(k, self.sizes) for k in found.keys)
            for one in counts.hypotheses(found, made.terms):
                bound, members = one.bound[:keys], one.bound[keys:]
                if is_open(found.member, self.sizes) and not members:
                    continue  # that some member is counted needs a name that the abstraction does not have
                for chosen in product(*(blocks if b.sort() == blocks[0].sort() else branches for b in bound)):
                    for inside in combinations(branches, len(members)):
                        yield one.instance((*chosen, *inside))
        for v in self.naming:
            for b in blocks:
                count = self._namers(made, v, b, after=False)
                yield count >= 0
                for n in (1, 2, 3):
                    for inside in combinations(branches, n):
                        apart = [x != y for x, y in combinations(inside, 2)]
                        naming = [made.terms.read(v.name, (r,)) == b for r in inside]
                        yield z3.Implies(z3.And(*apart, *naming, b != made.terms.none(BLOCK)), count >= n)


def judged(made: StepTerms) -> list[tuple[str, int, Term]]:
    """What a step must obey."""
    return [o for o in made.obligations if o[0] != FEW]


def branches_of(made: StepTerms) -> list[Term]:
    """The branches that a step names."""
    return [made.params[p.name] for p in made.step.params if ir.bare(p.type) == BRANCH]


def _present(made: StepTerms) -> list[Term]:
    """Those of them that are never left out."""
    return [made.params[p.name] for p in made.step.params if p.type == BRANCH]


def bounds(terms: Terms, roots: Iterable[Term]) -> list[Term]:
    """That the entries which are read are within their types."""
    keys = dict.fromkeys(k for root in roots for k in terms.scanner.within(root))
    return [r for r in map(terms.range_of, keys) if r is not None]


def indexed(terms: Terms, roots: Iterable[Term]) -> list[Term]:
    """The blocks whose entries are read, or that a set is asked for."""
    found, seen, stack = dict[int, Term](), set[int](), list(roots)
    while stack:
        term = stack.pop(0)
        if term.get_id() in seen:
            continue
        seen.add(term.get_id())
        inner = term.children()
        stack += inner
        if term.decl().kind() in (z3.Z3_OP_UNINTERPRETED, z3.Z3_OP_SELECT):
            blocks = (m for m in inner if m.sort() == terms.sort(BLOCK) and not terms.placeholders(m))
            found |= {m.get_id(): m for m in blocks}
    return list(found.values())


def _at(terms: Terms, term: Term, block: Term, branch: Term) -> Term:
    """The term for the witnesses: what it says of all members it says of them."""
    pairs = [(p, block if p.sort() == block.sort() else branch) for p in terms.placeholders(term)]
    assert len({p.sort() for p, _ in pairs}) == len(pairs), "one block and one branch stand for no two"
    return z3.substitute(term, *pairs) if pairs else term


def _instances(terms: Terms, members: dict[str, list[Term]]) -> list[Term]:
    """What names and quantifiers of the step mean, for the members that it names."""
    made = Instances(terms)
    return [term for n, one in enumerate(terms.templates) for _, term in made.of(n, one, members)]
