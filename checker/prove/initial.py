"""The start states: every fact holds in them, for any number of blocks and branches.

An initial step names a few members and leaves all others alike (blocks and branches are scalarsets). A fact speaks of a
few members at once. So it holds of every scope when it holds of one that has, beside those of a scope in which the
initial step finds all that it names, as many more as the fact names: a member more would be one more of the untouched.

That is looked at, not believed: an initial step may count members (`free`), or go through them until it has enough.
With one member more it must leave the new one like the last, and all else as it was, as far as the facts depend on it.
Then its loops have come to a turn that changes nothing but the member it is about, and every further turn is like it.
Where it does not, no other number of members is shown. That a variable is at rest at the start, which leaves out of the
proof what only another value of it would do, is looked at alike; so are the constants and sizes of the scope. What
would fool this: a loop that counts, and a second one that takes the count back before anybody looks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product

from kvsan.checker.explore.design import Scoped, scoped
from kvsan.checker.explore.model import starts
from kvsan.checker.explore.rest import settled
from kvsan.checker.explore.slice import sources
from kvsan.checker.prove.system import OPEN_LIMITS, OPEN_SORTS, System
from kvsan.spec.lang import ir
from kvsan.spec.lang.interpret import Plain, Value, default, value
from kvsan.spec.lang.symbolic import Guarded, Sizes, predicate, size_of

Fact = ir.Step
Cells = dict[tuple[int, ...], Value]


def broken_at_start(system: System) -> list[tuple[str, str, Scoped]]:
    """The facts that a start state breaks, with the initial step and the scope: of that which was asked for, or of
    that in which the proof begins."""
    found = dict[tuple[str, str], Scoped]()
    asked = () if system.events else starts(system.design.spec, system.scoped)
    for begun, scope in ((asked, system.scoped), (system.begun, system.base)):
        for start, fact in product(begun, system.facts.all()):
            if not holds_in(fact, system.variables, scope.sizes, start.state):
                found.setdefault((fact.name, start.step), scope)
    return [(*broken, scope) for broken, scope in found.items()]


# --- a member more ----------------------------------------------------------------------------------------------------


def varying(system: System, names: Iterable[str]) -> list[tuple[str, str]]:
    """The variables on which these and what is at rest depend at a start, and which it leaves otherwise where there is
    a member more, each with the initial step; and what the scope itself has otherwise then, or begins with."""
    if system.events:
        return []
    asked = tuple(names)
    found, wanted = dict[tuple[str, str], None](), (*asked, *system.idle)
    for sort, setting in OPEN_SORTS.items():
        if not system.base.sizes.sorts.get(sort):
            continue
        number, last = system.base.settings.get(setting), system.base.sizes.sorts[sort]
        if number != last:  # no setting says how many there are
            return [(name, start.step) for start in system.begun for name in asked or ("its state",)]
        larger = _Larger(system, ir.SortType(sort), last, *(_with(system, setting, last + more) for more in (1, 2)))
        found |= dict.fromkeys((name, "the scope") for name in larger.moving())
        found |= dict.fromkeys(larger.begun(wanted))
    return list(found)


def _with(system: System, setting: str, number: int) -> Scoped:
    """The base with so many members."""
    changed = {name: str(given) for name, given in {**system.base.settings, setting: number}.items()}
    return scoped(system.design, changed)


@dataclass(frozen=True)
class _Larger:
    """The base with one member of a sort more, and with two. last: of the base, as numbers of it start at 0."""

    system: System
    sort: ir.SortType
    last: int
    one: Scoped
    two: Scoped

    def moving(self) -> Iterator[str]:
        """The constants and sizes that say, or follow from, how many there are."""
        one, two = self.one, self.two
        yield from (name for name in one.known if one.known[name] != two.known.get(name))
        yield from (
            name
            for name in one.constants
            if name not in one.known and not self._alike(name, one.constants, two.constants)
        )
        for was, now, open_ in (
            (one.sizes.limits, two.sizes.limits, OPEN_LIMITS),
            (one.sizes.sorts, two.sizes.sorts, OPEN_SORTS),
        ):
            yield from (name for name in was if was[name] != now.get(name) and name not in open_)

    def begun(self, wanted: Iterable[str]) -> Iterator[tuple[str, str]]:
        """The variables on which these depend that a start leaves otherwise; the starts that only one of them has."""
        spec = self.system.design.spec
        one, two = ({s.step: s.state for s in starts(spec, scope)} for scope in (self.one, self.two))
        yield from ((f"what {step} does", step) for step in sorted(one.keys() ^ two.keys()))
        for step in sorted(one.keys() & two.keys()):
            for name in sorted(sources(self._taken(spec.steps[step]), wanted)):
                if not self.system.variables[name].const and not self._alike(name, one[step], two[step]):
                    yield name, step

    def _taken(self, step: ir.Step) -> ir.Step:
        """The step without the arms that the constants of the scope rule out."""
        folded, _ = settled(step, self.system.base.known, frozenset(), self.system.variables)
        return replace(folded, effects=_possible(folded.effects))

    def _alike(self, name: str, one: Plain, two: Plain) -> bool:
        return _alike(self.system.variables[name], one.get(name, {}), two.get(name, {}), self.sort, self.last)


def _possible(block: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
    """The statements without those that wait for a natural below zero."""
    out = list[ir.Stmt]()
    for s in block:
        match s:
            case ir.If(ir.Compare("<", _, ir.Const(0)), _, orelse):
                out += _possible(orelse)
            case ir.If(then=then, orelse=orelse):
                out.append(replace(s, then=_possible(then), orelse=_possible(orelse)))
            case ir.For(body=body):
                out.append(replace(s, body=_possible(body)))
            case _:
                out.append(s)
    return tuple(out)


def _alike(v: ir.Variable, small: Cells, big: Cells, sort: ir.SortType, last: int) -> bool:
    """Whether the member behind the last is like the last, and all else the same."""
    new, absent = last + 1, default(v.value)

    def swapped(index: tuple[int, ...], member: int, by: int) -> tuple[int, ...]:
        return tuple(by if k == sort and i == member else i for k, i in zip(v.keys, index, strict=True))

    for index in {*big, *small, *(swapped(i, last, new) for i in small)}:
        of_sort = {i for k, i in zip(v.keys, index, strict=True) if k == sort}
        if {last, new} <= of_sort:
            continue  # of the two together nothing is said: a fact that names both has members of its own for it
        was, now = small.get(swapped(index, new, last), absent), big.get(index, absent)
        if now != was and not _like(v.value, was, now, sort, last):
            return False
    return True


def _like(type_: ir.Type, was: Value, now: Value, sort: ir.SortType, last: int) -> bool:
    """Whether the values differ in the new member alone, which is there where the last is."""
    match type_:
        case ir.SetType(element) if element == sort:
            assert isinstance(was, frozenset) and isinstance(now, frozenset)
            return now - {last + 1} == was and (last + 1 in now) == (last in was)
        case ir.SortType() | ir.OptionType(ir.SortType()):
            return ir.bare(type_) == sort and (was, now) == (
                last,
                last + 1,
            )
        case _:
            return False


def holds_in(fact: Fact, variables: dict[str, ir.Variable], sizes: Sizes, state: Plain) -> bool:
    """Whether a fact holds of one state, for every value of its parameters."""
    condition = predicate(fact, variables, sizes)
    domains = [range(size_of(p.type, sizes)) for p in fact.params]
    if fact.kind == "counted":
        return _counts(fact, condition, variables, sizes, state)
    return all(_true(fact, condition, variables, state, values) for values in product(*domains))


def _true(
    fact: Fact, condition: Guarded, variables: dict[str, ir.Variable], state: Plain, values: tuple[int, ...]
) -> bool:
    names: dict[str, Value] = {f"{p.name}'": v for p, v in zip(fact.params, values, strict=True)}
    asked = (condition.defined, condition.condition) if fact.kind == "invariant" else (condition.condition,)
    return all(value(e, variables, state, names) for e in asked)


def _counts(fact: Fact, condition: Guarded, variables: dict[str, ir.Variable], sizes: Sizes, state: Plain) -> bool:
    variable = variables[fact.name.removesuffix("_counted")]
    *keys, member = (range(size_of(p.type, sizes)) for p in fact.params)
    for key in product(*keys):
        counted = sum(_true(fact, condition, variables, state, (*key, m)) for m in member)
        if state.get(variable.name, {}).get(key, default(variable.value)) != counted:
            return False
    return True
