"""The typed intermediate form: what the parser makes, and what every later pass reads.

Spans take no part in equality, so two occurrences of one expression are equal.
"""

# ruff: noqa: RUF009  # every node has the same immutable default span

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from kvsan.spec.lang.diagnostics import NOWHERE, Span

# --- types ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BoolType:
    def __str__(self) -> str:
        return "bool"


@dataclass(frozen=True)
class NatType:
    """A natural; with a parameter its range is 0 .. n-1, or 0 .. n where inclusive."""

    parameter: str | None = None
    inclusive: bool = False

    def __str__(self) -> str:
        if self.parameter is None:
            return "a natural"
        return f"0..{self.parameter}" if self.inclusive else f"0..{self.parameter}-1"


@dataclass(frozen=True)
class SortType:
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class ChoiceType:
    name: str
    names: tuple[str, ...]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class SetType:
    """A finite set; the element of `empty()` is not known (None)."""

    element: Type | None

    def __str__(self) -> str:
        return f"Set[{self.element}]" if self.element else "Set"


@dataclass(frozen=True)
class OptionType:
    inner: Type

    def __str__(self) -> str:
        return f"{self.inner} | None"


@dataclass(frozen=True)
class NoneType:
    def __str__(self) -> str:
        return "None"


@dataclass(frozen=True)
class BadType:
    """The type of something already reported; it fits everywhere."""

    def __str__(self) -> str:
        return "?"


Type: TypeAlias = BoolType | NatType | SortType | ChoiceType | SetType | OptionType | NoneType | BadType


def bare(type_: Type) -> Type:
    """A type without its option."""
    return type_.inner if isinstance(type_, OptionType) else type_


BOOL, NAT, NONE, BAD = BoolType(), NatType(), NoneType(), BadType()

# --- expressions ------------------------------------------------------------------------------------------------------


def _span() -> Span:
    return field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Name:
    name: str
    type: Type
    span: Span = _span()


@dataclass(frozen=True)
class Const:
    """A literal: a bool, a natural, None, the index of a choice, or (initial steps only) of a sort member."""

    value: int | None
    type: Type
    span: Span = _span()


@dataclass(frozen=True)
class Empty:
    type: Type
    span: Span = _span()


@dataclass(frozen=True)
class Read:
    """`s.variable[index]`; a scalar has an empty index."""

    variable: str
    index: tuple[Expr, ...]
    type: Type
    span: Span = _span()


@dataclass(frozen=True)
class Not:
    operand: Expr
    span: Span = _span()
    type: Type = BOOL


@dataclass(frozen=True)
class And:
    """Short-circuit, from left to right."""

    items: tuple[Expr, ...]
    span: Span = _span()
    type: Type = BOOL


@dataclass(frozen=True)
class Or:
    items: tuple[Expr, ...]
    span: Span = _span()
    type: Type = BOOL


@dataclass(frozen=True)
class Compare:
    """== and != on any type, < <= > >= on naturals, `in` (element, set), `subset` (set, set)."""

    op: str
    left: Expr
    right: Expr
    span: Span = _span()
    type: Type = BOOL


@dataclass(frozen=True)
class IsNone:
    operand: Expr
    span: Span = _span()
    type: Type = BOOL


@dataclass(frozen=True)
class Arith:
    """+ - * // % min max excess on naturals; | & - on sets; `span` (low, high) makes a set."""

    op: str
    left: Expr
    right: Expr
    type: Type
    span: Span = _span()


@dataclass(frozen=True)
class Only:
    """The set with one member."""

    member: Expr
    type: Type
    span: Span = _span()


@dataclass(frozen=True)
class Cond:
    test: Expr
    then: Expr
    other: Expr
    type: Type
    span: Span = _span()


@dataclass(frozen=True)
class Some:
    """An option unwrapped; undefined on None."""

    operand: Expr
    type: Type
    span: Span = _span()


@dataclass(frozen=True)
class Members:
    """Every member of a sort."""

    sort: str


@dataclass(frozen=True)
class Row:
    """The second indexes whose entry in `variable[first, ...]` is not the default, in order."""

    variable: str
    first: Expr


Domain: TypeAlias = Members | Row


@dataclass(frozen=True)
class Quantifier:
    """`all` or `any` over a domain."""

    kind: str
    name: str
    name_type: Type
    domain: Domain
    body: Expr
    span: Span = _span()
    type: Type = BOOL


@dataclass(frozen=True)
class CallExpr:
    """A call of an expression helper; gone after lowering."""

    step: str
    arguments: tuple[Expr, ...]
    type: Type
    span: Span = _span()


@dataclass(frozen=True)
class LetIn:
    """An inlined local name: value is evaluated first, then body."""

    name: str
    value: Expr
    body: Expr
    type: Type
    span: Span = _span()


Expr: TypeAlias = (
    Name
    | Const
    | Empty
    | Read
    | Not
    | And
    | Or
    | Compare
    | IsNone
    | Arith
    | Only
    | Cond
    | Some
    | Quantifier
    | CallExpr
    | LetIn
)

TRUE, FALSE = Const(True, BOOL), Const(False, BOOL)

# --- statements -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Let:
    name: str
    value: Expr
    span: Span = _span()


@dataclass(frozen=True)
class Store:
    variable: str
    index: tuple[Expr, ...]
    value: Expr
    span: Span = _span()


@dataclass(frozen=True)
class If:
    test: Expr
    then: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...]
    span: Span = _span()


@dataclass(frozen=True)
class For:
    name: str
    name_type: Type
    domain: Domain
    body: tuple[Stmt, ...]
    span: Span = _span()


@dataclass(frozen=True)
class Obey:
    """An obligation. names: what the message may show, by its name in the source.

    via: the calls that led here. number: its place among the obligations of a lowered step.
    """

    rule: str
    condition: Expr
    message: str
    names: tuple[tuple[str, Expr], ...]
    span: Span = _span()
    via: tuple[Span, ...] = field(default=(), compare=False)
    number: int = field(default=-1, compare=False)


@dataclass(frozen=True)
class Reset:
    """Every non-Const map whose first index has this sort: the row of this member returns to its default."""

    sort: str
    entity: Expr
    span: Span = _span()


@dataclass(frozen=True)
class Require:
    """A guard. choice: why it is there, where no rule needs it."""

    condition: Expr
    span: Span = _span()
    choice: str = ""


@dataclass(frozen=True)
class CallStmt:
    """A call of an event or of a helper of statements; gone after lowering."""

    step: str
    arguments: tuple[Expr, ...]
    span: Span = _span()


Stmt: TypeAlias = Let | Store | If | For | Obey | Reset | Require | CallStmt

# --- the whole --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Variable:
    name: str
    keys: tuple[Type, ...]
    value: Type
    const: bool
    derived: bool
    ghost: bool
    span: Span = _span()


@dataclass(frozen=True)
class RuleDecl:
    """A named fact and its labels (`Source`, `Catches`, `Except`, `Deviates`), each a sentence."""

    name: str
    kind: str  # rule, order, step, ghost or lint
    statement: str
    labels: dict[str, str]
    module: str
    span: Span = _span()


@dataclass(frozen=True)
class Param:
    name: str
    type: Type
    optional: bool  # has the default None
    span: Span = _span()


@dataclass(frozen=True)
class Step:
    """One decorated function. body keeps its calls; guard and effects are the lowered form, calls inlined.

    result: the value of an expression helper, invariant or witness (lowered too in `value`).
    """

    name: str
    kind: str  # event, settling, action, helper, invariant, witness or initial
    doc: str
    params: tuple[Param, ...]
    body: tuple[Stmt, ...]
    result: Expr | None
    module: str
    span: Span = _span()
    guard: tuple[Expr, ...] = ()
    effects: tuple[Stmt, ...] = ()
    value: Expr | None = None


@dataclass(frozen=True)
class Spec:
    """A loaded specification: everything the other parts need, by name, in source order."""

    name: str
    file: str
    state: str
    variables: dict[str, Variable]
    sorts: tuple[str, ...]
    choices: dict[str, ChoiceType]
    parameters: tuple[str, ...]  # the range parameters, limits of a scope
    rules: dict[str, RuleDecl]
    steps: dict[str, Step]

    def of_kind(self, *kinds: str) -> tuple[Step, ...]:
        """The steps of these kinds, in source order."""
        return tuple(s for s in self.steps.values() if s.kind in kinds)


def default(type_: Type) -> int | None:
    """The default value of a type as the lowered forms hold it: an index, a natural, a bool, an empty mask, None."""
    match type_:
        case OptionType() | NoneType():
            return None
        case BoolType():
            return False
        case _:
            return 0
