"""Terms without functions: each entry becomes a variable, and two entries of equal members are equal (Ackermann).

Spacer takes no uninterpreted functions. Members become numbers, `none` is -1, sets of slots become truth values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any  # z3 is untyped

import z3

Term = Any
NONE, CASES = -1, 8


@dataclass
class Flat:
    """variables: those that stand for entries, constants and bits. congruence: what their equal members force.

    sets: a truth value for each equation of two sets, with both. asked: the members of which it was asked whether a set
    has them, by their sorts.
    """

    variables: list[Term] = field(default_factory=list)
    congruence: list[Term] = field(default_factory=list)
    families: dict[tuple[str, int], list[tuple[list[Term], Term]]] = field(default_factory=dict)
    kept: list[Term] = field(default_factory=list)
    done: dict[int, tuple[Term, Term]] = field(default_factory=dict)
    sets: list[tuple[Term, Term, Term]] = field(default_factory=list)
    asked: dict[str, dict[int, Term]] = field(default_factory=dict)

    def __call__(self, term: Term) -> Term:
        key = term.get_id()
        if key not in self.done:
            self.done[key] = (term, self._of(term))
        return self.done[key][1]

    def _of(self, term: Term) -> Term:
        declaration, inner = term.decl(), term.children()
        match declaration.kind():
            case z3.Z3_OP_UNINTERPRETED:
                if declaration.name().startswith("none."):
                    return z3.IntVal(NONE)
                return self._entry(declaration.name(), term.sort(), [self(t) for t in inner])
            case z3.Z3_OP_SELECT:
                member = self(inner[1])
                self.asked.setdefault(inner[1].sort().name(), {})[member.get_id()] = member
                return self._has(inner[0], member)
            case z3.Z3_OP_EQ if inner[0].sort().kind() == z3.Z3_ARRAY_SORT:
                one, other = inner if z3.is_K(inner[1]) else inner[::-1]
                return self._is_empty(one) if _holds_nothing(other) else self._equal(one, other)
            case z3.Z3_OP_DISTINCT if inner[0].sort().kind() == z3.Z3_ARRAY_SORT:
                assert len(inner) == 2, "no step compares three sets"
                return z3.Not(self(inner[0] == inner[1]))
            case z3.Z3_OP_EQ:
                return self(inner[0]) == self(inner[1])
            case z3.Z3_OP_IDIV | z3.Z3_OP_MOD if z3.is_int_value(inner[1]):
                return self._divided(declaration.kind() == z3.Z3_OP_MOD, self(inner[0]), inner[1].as_long())
            case z3.Z3_OP_DISTINCT:
                return z3.Distinct([self(t) for t in inner])
            case z3.Z3_OP_ITE:
                return z3.If(*(self(t) for t in inner))
            case _:
                return declaration(*(self(t) for t in inner)) if inner else term

    def _equal(self, one: Term, other: Term) -> Term:
        equal = self._entry(f"equal sets {one.get_id()} {other.get_id()}", z3.BoolSort(), [])
        self.sets.append((equal, one, other))
        return equal

    def _is_empty(self, whole: Term) -> Term:
        """Whether a set has no member; of some that are made of others it may be either."""
        inner = whole.children()
        match whole.decl().kind():
            case z3.Z3_OP_CONST_ARRAY:
                return z3.Not(self(inner[0]))
            case z3.Z3_OP_STORE if z3.is_true(inner[2]):
                return z3.BoolVal(False)
            case z3.Z3_OP_ITE:
                return z3.If(self(inner[0]), self._is_empty(inner[1]), self._is_empty(inner[2]))
            case z3.Z3_OP_ARRAY_MAP if z3.get_map_func(whole).kind() == z3.Z3_OP_OR:
                return z3.And(*map(self._is_empty, inner))
            case z3.Z3_OP_SET_UNION:
                return z3.And(*map(self._is_empty, inner))
            case _:
                nothing = z3.K(whole.sort().domain(), z3.BoolVal(False))
                if whole.decl().kind() != z3.Z3_OP_UNINTERPRETED:
                    return self._equal(whole, nothing)
                empty = self._entry(f"empty {whole.decl().name()}", z3.BoolSort(), [self(t) for t in inner])
                self.sets.append((empty, whole, nothing))
                return empty

    def equations(self) -> list[Term]:
        """That equal sets have the same of the members that were asked for. Of unequal ones nothing is said."""
        return [
            z3.Implies(equal, self._has(one, member) == self._has(other, member))
            for equal, one, other in self.sets
            for member in self.asked.get(one.sort().domain().name(), {}).values()
        ]

    def _divided(self, rest: bool, number: Term, by: int) -> Term:
        """A quotient or its rest, by cases: Spacer finds no invariants where there is a division."""
        name = f"{'rest' if rest else 'quotient'} of {number.get_id()}"
        value = self._entry(name, z3.IntSort(), [])  # far out it may be anything
        self.kept.append(number)
        for k in reversed(range(CASES)):
            value = z3.If(number < by * (k + 1), number - by * k if rest else z3.IntVal(k), value)
        return value

    def _has(self, whole: Term, member: Term) -> Term:
        """Whether a set of members has one."""
        inner = whole.children()
        match whole.decl().kind():
            case z3.Z3_OP_STORE:
                return z3.If(self(inner[1]) == member, self(inner[2]), self._has(inner[0], member))
            case z3.Z3_OP_CONST_ARRAY:
                return self(inner[0])
            case z3.Z3_OP_ITE:
                return z3.If(self(inner[0]), self._has(inner[1], member), self._has(inner[2], member))
            case z3.Z3_OP_ARRAY_MAP | z3.Z3_OP_SET_UNION | z3.Z3_OP_SET_INTERSECT | z3.Z3_OP_SET_COMPLEMENT:
                return _operation(whole)(*(self._has(t, member) for t in inner))
            case z3.Z3_OP_SET_DIFFERENCE:
                return z3.And(self._has(inner[0], member), z3.Not(self._has(inner[1], member)))
            case _:
                name = f"has {whole.decl().name()}"
                return self._entry(name, z3.BoolSort(), [*(self(t) for t in inner), member])

    def _entry(self, name: str, sort: Term, members: list[Term]) -> Term:
        """The variable of one entry. A parameter may have the name of a map."""
        family = self.families.setdefault((name, len(members)), [])
        for known, variable in family:
            if all(a.get_id() == b.get_id() for a, b in zip(known, members, strict=True)):
                return variable
        made = self._variable(f"{name}#{len(self.variables)}", sort)
        for known, variable in family:
            same = [a == b for a, b in zip(known, members, strict=True)]
            self.congruence.append(z3.Implies(z3.And(same), variable == made))
        family.append((members, made))
        return made

    def _variable(self, name: str, sort: Term) -> Term:
        if sort.kind() == z3.Z3_BV_SORT:
            bits = [z3.Bool(f"{name}.{k}") for k in range(sort.size())]
            self.variables += bits
            one, zero = z3.BitVecVal(1, 1), z3.BitVecVal(0, 1)
            return z3.Concat([z3.If(b, one, zero) for b in reversed(bits)])
        self.variables.append(z3.Const(name, z3.IntSort() if sort.kind() == z3.Z3_UNINTERPRETED_SORT else sort))
        return self.variables[-1]


def _holds_nothing(whole: Term) -> bool:
    return bool(z3.is_K(whole) and z3.is_false(whole.arg(0)))


def _operation(whole: Term) -> Any:
    match whole.decl().kind():
        case z3.Z3_OP_ARRAY_MAP:
            return z3.get_map_func(whole)
        case z3.Z3_OP_SET_UNION:
            return z3.Or
        case z3.Z3_OP_SET_INTERSECT:
            return z3.And
        case _:
            return z3.Not


def decided(formula: Term) -> Term:
    """The formula, with the values that it gives outright put in everywhere."""
    goal = z3.Goal()
    goal.add(formula)
    (made,) = z3.Then("simplify", "propagate-values", "simplify")(goal)
    return made.as_expr()


def without_bits(formula: Term) -> Term:
    """The formula over truth values and numbers alone."""
    goal = z3.Goal()
    goal.add(formula)
    (made,) = z3.Then("simplify", "bit-blast", "simplify")(goal)
    return made.as_expr()
