"""The functional form as Z3 terms: open sorts are uninterpreted, everything else is finite or a natural.

A variable is one function for each of its sized indexes (`table.0`, `table.1`), from the members of its open sorts. An
option over an open sort is that sort with one element, `none`, that is no member; over numbers it is -1. A set of slots
is a bit vector with one bit more, which stands for all slots past the end; a set of an open sort is an array.

A quantifier over an open sort becomes a fresh truth value: where it is true its body holds of every member that the
proof instantiates, where it is false it fails for one witness. Leaving instances out can only lose proofs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, assert_never  # z3 is untyped

import z3
from kvsan.checker.prove.scan import Scanner
from kvsan.spec.lang import ir
from kvsan.spec.lang.symbolic import Sizes, is_open, size_of
from kvsan.spec.lang.walk import every

Term = Any
DEPTH, FAR = 2, 99
"""How deep an entry of entries may be to count as named, and what is deeper than all."""


@dataclass(frozen=True)
class Template:
    """What holds for all members: bound constants and the body over them. naming: it only says what a name means."""

    bound: tuple[Term, ...]
    body: Term
    naming: bool = False

    def instance(self, terms: tuple[Term, ...]) -> Term:
        return substituted(self.body, self.bound, terms)

    @property
    def quantified(self) -> Term:
        return z3.ForAll(list(self.bound), self.body) if self.bound else self.body


def substituted(body: Term, bound: tuple[Term, ...], terms: tuple[Term, ...]) -> Term:
    """The body with other terms for constants: `z3.substitute` without its checks, which cost ten times the work."""
    if not bound:
        return body
    n = len(bound)
    before, after = (z3.Ast * n)(*(b.ast for b in bound)), (z3.Ast * n)(*(t.ast for t in terms))
    return z3.z3._to_expr_ref(z3.Z3_substitute(body.ctx.ref(), body.ast, n, before, after), body.ctx)


def is_true_in(model: Any, term: Term) -> bool:
    """Whether a model makes a term true."""
    value = (z3.Ast * 1)()
    if not z3.Z3_model_eval(model.ctx.ref(), model.model, term.ast, True, value):
        return False
    return bool(z3.Z3_get_bool_value(model.ctx.ref(), value[0]) == z3.Z3_L_TRUE)


@dataclass(frozen=True)
class Cell:
    """One read of the state before: the variable, its sized indexes (None where open), its open members, its term."""

    variable: str
    sized: tuple[int | None, ...]
    members: tuple[Term, ...]
    term: Term


@dataclass
class Terms:
    """The terms of one state and what is known about them. templates: what holds for all members, in order of use."""

    variables: Mapping[str, ir.Variable]
    sizes: Sizes
    prefix: str = ""
    sorts: dict[str, Term] = field(default_factory=dict)
    cells: dict[int, Cell] = field(default_factory=dict)
    types: dict[str, ir.Type] = field(default_factory=dict)
    ranges: dict[int, Term | None] = field(default_factory=dict)
    templates: list[Template] = field(default_factory=list)
    names: dict[int, tuple[Term, Term]] = field(default_factory=dict)
    scanner: Scanner = field(default_factory=Scanner)
    depths: dict[int, int] = field(default_factory=dict)
    bound: dict[int, bool] = field(default_factory=dict)
    member: dict[int, bool] = field(default_factory=dict)
    fresh: int = 0

    # --- types --------------------------------------------------------------------------------------------------------

    def sort(self, type_: ir.Type) -> Term:
        """The Z3 sort of a type's values."""
        match type_:
            case ir.BoolType():
                return z3.BoolSort()
            case ir.SortType(name) if is_open(type_, self.sizes):
                if name not in self.sorts:
                    self.sorts[name] = z3.DeclareSort(name)
                return self.sorts[name]
            case ir.NatType() | ir.ChoiceType() | ir.SortType():
                return z3.IntSort()
            case ir.OptionType(inner):
                assert not isinstance(inner, ir.BoolType | ir.SetType), f"no encoding of {type_}"
                return self.sort(inner)
            case ir.SetType(element):
                if element is not None and is_open(element, self.sizes):
                    return z3.ArraySort(self.sort(element), z3.BoolSort())
                return z3.BitVecSort(self.width(element) + 1)
            case ir.NoneType() | ir.BadType():
                raise AssertionError(f"{type_} has no sort of its own")
            case _:
                assert_never(type_)

    def width(self, element: ir.Type | None) -> int:
        """The members of a sized set; where only its use tells the element, it is a set of slots."""
        if element is None or element == ir.NAT:
            widths = {
                size_of(v.value.element, self.sizes)
                for v in self.variables.values()
                if isinstance(v.value, ir.SetType) and isinstance(v.value.element, ir.NatType)
            }
            assert len(widths) == 1, "sets of naturals of different widths"
            return widths.pop()
        return size_of(element, self.sizes)

    def none(self, type_: ir.Type) -> Term:
        inner = ir.bare(type_)
        sort = self.sort(inner)
        return z3.IntVal(-1) if sort == z3.IntSort() else z3.Const(f"none.{sort}", sort)

    def numbered(self, type_: ir.Type, number: int) -> Term:
        """The member of an open sort that has this number in a scope."""
        sort = self.sort(type_)
        return z3.Const(f"{sort}.{number}", sort)

    def within(self, term: Term, type_: ir.Type) -> Term:
        """What a value of a type satisfies."""
        match type_:
            case ir.OptionType(inner):
                if self.sort(inner) != z3.IntSort():
                    return z3.BoolVal(True)
                return z3.Or(term == -1, self.within(term, inner))
            case ir.NatType(parameter):
                if parameter is None or parameter not in self.sizes.limits:
                    return term >= 0
                return z3.And(term >= 0, term < size_of(type_, self.sizes))
            case ir.ChoiceType() | ir.SortType() if not is_open(type_, self.sizes):
                return z3.And(term >= 0, term < size_of(type_, self.sizes))
            case ir.SortType():
                return term != self.none(type_)
            case ir.SetType(element) if element is None or not is_open(element, self.sizes):
                n = self.width(element)
                return z3.Extract(n, n, term) == 0
            case ir.SetType(element):
                assert element is not None
                return z3.Not(z3.Select(term, self.none(element)))
            case _:
                return z3.BoolVal(True)

    def range_of(self, key: int) -> Term | None:
        """That an entry is within its type, by its number among those scanned; None where there is nothing to say."""
        if key not in self.ranges:
            term = self.scanner.named[key]
            type_ = self.types.get(term.decl().name())
            bound = None if type_ is None else self.within(term, type_)
            self.ranges[key] = None if bound is None or z3.is_true(bound) else bound
        return self.ranges[key]

    # --- reads --------------------------------------------------------------------------------------------------------

    def read(self, variable: str, index: tuple[Term | int, ...]) -> Term:
        """The value before, at constant sized indexes and any members. A parameter may have the name of a variable."""
        v = self.variables[variable]
        sized = tuple(i if isinstance(i, int) else None for i in index)
        members = tuple(i for i in index if not isinstance(i, int))
        name = ".".join([self.prefix, variable, *(str(i) for i in sized if i is not None)])
        self.types.setdefault(name, v.value)
        kinds = [self.sort(k) for k, i in zip(v.keys, sized, strict=True) if i is None]
        value = self.sort(v.value)
        term = z3.Function(name, *kinds, value)(*members) if kinds else z3.Const(name, value)
        if term.get_id() not in self.cells:
            self.cells[term.get_id()] = Cell(variable, sized, members, term)
        return term

    def constant(self, name: str, type_: ir.Type) -> Term:
        return z3.Const(f"{self.prefix}{name}", self.sort(type_))

    def truth(self, name: str, arguments: tuple[Term, ...]) -> Term:
        """A truth value that depends on members."""
        self.fresh += 1
        full = f"{self.prefix}{name}!{self.fresh}"
        return (
            z3.Function(full, *(a.sort() for a in arguments), z3.BoolSort())(*arguments) if arguments else z3.Bool(full)
        )

    def named(self, term: Term) -> Term:
        """A member that is chosen by conditions, by a name of its own, so that terms stay flat."""
        if self._depth(term) <= 1:
            return term
        if term.get_id() not in self.names:
            self.fresh += 1
            outer = tuple(self.placeholders(term))
            full = f"{self.prefix}{term.sort()}!{self.fresh}"
            kinds = [o.sort() for o in outer]
            name = z3.Function(full, *kinds, term.sort())(*outer) if outer else z3.Const(full, term.sort())
            self.names[term.get_id()] = (term, name)
            self.templates.append(Template(outer, name == term, True))
        return self.names[term.get_id()][1]

    def is_simple(self, term: Term) -> bool:
        """A constant, or an entry of simple terms, `DEPTH` deep."""
        return self._depth(term) <= DEPTH

    def _depth(self, term: Term) -> int:
        key = term.get_id()
        if key not in self.depths:
            self.scanner.within(term)
            inner = self.scanner.parts[key]
            named = self.scanner.named
            deepest = max((self._depth(named[p]) if p in named else FAR for p in inner), default=-1)
            self.depths[key] = 1 + deepest if key in named else FAR
        return self.depths[key]

    def placeholders(self, term: Term) -> list[Term]:
        """The constants of a term that stand for all members, in order of occurrence."""
        return [self.scanner.named[k] for k in self.scanner.within(term) if self._is_placeholder(k)]

    def _is_placeholder(self, key: int) -> bool:
        if key not in self.bound:
            term = self.scanner.named[key]
            self.bound[key] = not self.scanner.parts[key] and term.decl().name()[0] == "?"
        return self.bound[key]

    def members_in(self, root: Term) -> list[Term]:
        """Where a term reads the state: constants, and entries; those of bound constants too."""
        scanner, found = self.scanner, dict[int, Term]()
        for key in scanner.within(root):
            inner = scanner.parts[key]
            if not inner and self._is_member(key):
                found[key] = scanner.named[key]
            for part in inner:
                if part in scanner.named and self._is_member(part) and self.is_simple(scanner.named[part]):
                    found[part] = scanner.named[part]
        return list(found.values())

    def _is_member(self, key: int) -> bool:
        if key not in self.member:
            term = self.scanner.named[key]
            name = term.decl().name()
            self.member[key] = term.sort().name() in self.sorts and not name.startswith("none.")
        return self.member[key]

    def plain(self, term: Term) -> Term:
        """The term without such names."""
        for whole, name in reversed(self.names.values()):
            if name.num_args():
                variables = [z3.Var(k, c.sort()) for k, c in enumerate(name.children())]
                body = z3.substitute(whole, *zip(name.children(), variables, strict=True))
                term = z3.substitute_funs(term, (name.decl(), body))
            else:
                term = z3.substitute(term, (name, whole))
        return term

    def witness(self, sort: Term, arguments: tuple[Term, ...], name: str = "witness") -> Term:
        """A member that depends on members."""
        self.fresh += 1
        full = f"{self.prefix}{name}!{self.fresh}"
        return (
            z3.Function(full, *(a.sort() for a in arguments), sort)(*arguments) if arguments else z3.Const(full, sort)
        )


@dataclass
class Translator:
    """Translates expressions over one state. names: what stands for parameters and bound names."""

    terms: Terms
    names: dict[str, Term]
    memo: dict[int, tuple[ir.Expr, Term]] = field(default_factory=dict)

    def __call__(self, expr: ir.Expr, want: ir.Type | None = None) -> Term:
        if isinstance(expr, ir.Const | ir.Empty):
            return self._literal(expr, want or expr.type)
        if id(expr) not in self.memo:
            self.memo[id(expr)] = (expr, self._of(expr, want))
        return self.memo[id(expr)][1]

    def _literal(self, expr: ir.Const | ir.Empty, type_: ir.Type) -> Term:
        if isinstance(expr, ir.Empty):
            sort = self.terms.sort(expr.type if _known(expr.type) else type_)
            return z3.K(sort.domain(), z3.BoolVal(False)) if sort.kind() == z3.Z3_ARRAY_SORT else z3.BitVecVal(0, sort)
        if expr.value is None:
            return self.terms.none(expr.type if isinstance(expr.type, ir.OptionType) else type_)
        if expr.type == ir.BOOL:
            return z3.BoolVal(bool(expr.value))
        inner = ir.bare(expr.type)
        return self.terms.numbered(inner, expr.value) if is_open(inner, self.terms.sizes) else z3.IntVal(expr.value)

    def _of(self, expr: ir.Expr, want: ir.Type | None) -> Term:
        match expr:
            case ir.Name(name):
                return self.names[name]
            case ir.Read(variable, index):
                return self._read(variable, index)
            case ir.Not(operand):
                return z3.Not(self(operand))
            case ir.And(items):
                return z3.And([self(i) for i in items])
            case ir.Or(items):
                return z3.Or([self(i) for i in items])
            case ir.Compare(op, a, b):
                return self._compare(op, a, b)
            case ir.IsNone(operand):
                if not isinstance(operand.type, ir.OptionType):
                    return z3.BoolVal(False) if not isinstance(operand.type, ir.NoneType) else z3.BoolVal(True)
                return self(operand) == self.terms.none(operand.type)
            case ir.Arith(op, a, b, type_):
                if isinstance(type_, ir.SetType):
                    return self._sets(op, a, b, type_ if _known(type_) else want or type_)
                return self._numbers(op, self(a), self(b))
            case ir.Only(member, type_):
                return self._only(member, type_)
            case ir.Cond(test, then, other, type_):
                kind = type_ if _known(type_) else want or type_
                return z3.If(self(test), self(then, kind), self(other, kind))
            case ir.Quantifier():
                return self._quantifier(expr)
            case ir.Some() | ir.LetIn() | ir.CallExpr() | ir.Const() | ir.Empty():
                raise AssertionError(f"{type(expr).__name__} has no place in the functional form")
            case _:
                assert_never(expr)

    def _read(self, variable: str, index: tuple[ir.Expr, ...]) -> Term:
        v = self.terms.variables[variable]
        parts: list[Term | int] = []
        for part, key in zip(index, v.keys, strict=True):
            if is_open(key, self.terms.sizes):
                parts.append(self.terms.named(self(part, key)))
            elif isinstance(part, ir.Const) and part.value is not None:
                parts.append(int(part.value))
            else:
                parts.append(_Which(self(part, key), size_of(key, self.terms.sizes)))
        return self._select(variable, parts, ())

    def _select(self, variable: str, parts: list[Any], done: tuple[Any, ...]) -> Term:
        """A choice between the entries that a computed index may mean."""
        if not parts:
            return self.terms.read(variable, done)
        first, rest = parts[0], parts[1:]
        if not isinstance(first, _Which):
            return self._select(variable, rest, (*done, first))
        value = self._select(variable, rest, (*done, first.size - 1))
        for k in reversed(range(first.size - 1)):
            test = first.term == (z3.BoolVal(bool(k)) if z3.is_bool(first.term) else k)
            value = z3.If(test, self._select(variable, rest, (*done, k)), value)
        return value

    def _compare(self, op: str, a: ir.Expr, b: ir.Expr) -> Term:
        terms = self.terms
        if op == "in":
            assert isinstance(b.type, ir.SetType)
            element = b.type.element or a.type
            whole = self(b, ir.SetType(element))
            if is_open(element, terms.sizes):
                return z3.Select(whole, self(a))
            value = self(a)
            bits = range(terms.width(element))
            return z3.Or([z3.And(value == k, z3.Extract(k, k, whole) == 1) for k in bits])
        kind = next((t for t in (a.type, b.type) if _known(t)), a.type)
        left, right = self(a, kind), self(b, kind)
        match op:
            case "==":
                return left == right
            case "!=":
                return left != right
            case "subset":
                if left.sort().kind() == z3.Z3_ARRAY_SORT:
                    return z3.IsSubset(left, right)
                return left & ~right == 0
            case "<":
                return left < right
            case "<=":
                return left <= right
            case ">":
                return left > right
            case _:
                return left >= right

    def _numbers(self, op: str, x: Term, y: Term) -> Term:
        match op:
            case "+":
                return x + y
            case "-":
                return x - y
            case "*":
                return x * y
            case "//":
                return x / y
            case "%":
                return x % y
            case "min":
                return z3.If(x < y, x, y)
            case "max":
                return z3.If(x > y, x, y)
            case "excess":
                return z3.If(x > y, x - y, z3.IntVal(0))
            case _:
                raise AssertionError(op)

    def _sets(self, op: str, a: ir.Expr, b: ir.Expr, type_: ir.Type) -> Term:
        if op == "span":
            assert isinstance(type_, ir.SetType)
            return self._span(self(a), self(b), self.terms.width(type_.element))
        x, y = self(a, type_), self(b, type_)
        if x.sort().kind() == z3.Z3_ARRAY_SORT:
            return {"|": z3.SetUnion, "&": z3.SetIntersect, "-": z3.SetDifference}[op](x, y)
        if op == "-":  # what lies past the end may stay
            return x & ~(y & z3.BitVecVal((1 << (y.size() - 1)) - 1, y.size()))
        return x | y if op == "|" else x & y

    def _span(self, low: Term, high: Term, n: int) -> Term:
        value = z3.BitVecVal(0, n + 1)
        for k in range(n):
            value = value | z3.If(z3.And(low <= k, k < high), z3.BitVecVal(1 << k, n + 1), z3.BitVecVal(0, n + 1))
        past = z3.And(low < high, high > n)
        return z3.simplify(value | z3.If(past, z3.BitVecVal(1 << n, n + 1), z3.BitVecVal(0, n + 1)))

    def _only(self, member: ir.Expr, type_: ir.Type) -> Term:
        assert isinstance(type_, ir.SetType) and type_.element is not None
        if is_open(type_.element, self.terms.sizes):
            return z3.Store(z3.K(self.terms.sort(type_.element), z3.BoolVal(False)), self(member), z3.BoolVal(True))
        n, at = self.terms.width(type_.element), self(member)
        value = z3.BitVecVal(0, n + 1)
        for k in range(n):
            value = z3.If(at == k, z3.BitVecVal(1 << k, n + 1), value)
        return value

    def _quantifier(self, expr: ir.Quantifier) -> Term:
        terms, sort = self.terms, self.terms.sort(expr.name_type)
        outer = tuple(dict.fromkeys(t for n in free_names(expr) for t in terms.placeholders(self.names[n])))
        holds = terms.truth(f"{expr.kind}.{expr.name}", outer)
        member = z3.Const(f"?{expr.name}", sort)
        inside = Translator(terms, {**self.names, expr.name: member})
        body = inside(expr.body)
        one = terms.witness(sort, outer)
        is_member, at_one = member != terms.none(expr.name_type), one != terms.none(expr.name_type)
        there = z3.substitute(body, (member, one))
        if expr.kind == "all":
            everywhere, somewhere = (
                z3.Implies(z3.And(holds, is_member), body),
                z3.Or(holds, z3.And(at_one, z3.Not(there))),
            )
        else:
            everywhere, somewhere = (
                z3.Implies(z3.And(z3.Not(holds), is_member), z3.Not(body)),
                z3.Implies(holds, z3.And(at_one, there)),
            )
        terms.templates.append(Template((*outer, member), everywhere))
        terms.templates.append(Template(outer, somewhere))
        return holds


def free_names(expr: ir.Quantifier) -> list[str]:
    """The names that a quantifier uses and does not bind, in order."""
    bound = {e.name for e in every(expr) if isinstance(e, ir.Quantifier)}
    return list(dict.fromkeys(e.name for e in every(expr) if isinstance(e, ir.Name) and e.name not in bound))


@dataclass(frozen=True)
class _Which:
    """A computed sized index."""

    term: Term
    size: int


def _known(type_: ir.Type) -> bool:
    """Whether a type says all that an encoding needs."""
    match type_:
        case ir.SetType(element):
            return element is not None and element != ir.NAT
        case ir.NoneType() | ir.BadType():
            return False
        case _:
            return True


def by_sort(members: Iterable[Term]) -> dict[str, list[Term]]:
    found: dict[str, list[Term]] = {}
    for term in members:
        found.setdefault(term.sort().name(), []).append(term)
    return found


Key = tuple[int, ...]


@dataclass
class Instances:
    """Templates for members, each made once and known by number; what members an instance names."""

    terms: Terms
    made: dict[Key, Term] = field(default_factory=dict)
    patterns: dict[int, list[Term]] = field(default_factory=dict)
    chosen: dict[Key, tuple[Term, ...]] = field(default_factory=dict)

    def of(self, number: int, template: Template, members: Mapping[str, list[Term]]) -> Iterator[tuple[Key, Term]]:
        for chosen in product(*(members.get(b.sort().name(), []) for b in template.bound)):
            key = (number, *(c.get_id() for c in chosen))
            if key not in self.made:
                self.made[key] = template.instance(chosen)
                self.chosen[key] = chosen
            yield key, self.made[key]

    def named(self, key: Key, template: Template) -> list[Term]:
        """The members that an instance names."""
        number, chosen = key[0], self.chosen[key]
        if number not in self.patterns:
            self.patterns[number] = self.terms.members_in(template.body)
        found = (substituted(p, template.bound, chosen) for p in self.patterns[number])
        return [t for t in found if self.terms.is_simple(t)]
