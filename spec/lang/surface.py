"""The words a specification is written in, and what they do when it runs as ordinary Python.

The compiler (`parse`, `check`, `lower`) never calls this module's functions: it reads the source. What stands here is
the independent oracle, slow and literal: every index, range and option is checked at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import wraps
from typing import (
    Annotated,
    Any,  # the run-time half handles values of every declared type
    ClassVar,
    Generic,
    NoReturn,
    Self,
    TypeAlias,
    TypeVar,
    TypeVarTuple,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

T = TypeVar("T")
V = TypeVar("V")
S = TypeVar("S", bound="Sort")
Keys = TypeVarTuple("Keys")
F = TypeVar("F", bound=Callable[..., Any])


class NotEnabled(Exception):
    """A `require` was false: the step cannot happen in this state."""


class Undefined(Exception):
    """An index, `some(None)`, a division or a range left its domain: the specification itself is wrong."""


def undefined(what: str) -> NoReturn:
    raise Undefined(what)


# --- values -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sort:
    """A finite set whose members are only compared for equality; subclass it to declare one (`class Block(Sort)`)."""

    index: int

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.index})"


@dataclass(frozen=True)
class Below:
    """`Annotated[int, Below("block_size")]`: the naturals 0 .. n-1, n a scope parameter. Usable as an index."""

    parameter: str


@dataclass(frozen=True)
class UpTo:
    """`Annotated[int, UpTo("tokens")]`: the naturals 0 .. n, n a scope parameter."""

    parameter: str


class _Const:
    """Marks a state variable that no step changes; its value comes with the scope."""


CONST = _Const()
Const: TypeAlias = Annotated[T, CONST]


class _Derived:
    """Marks a counter that the steps keep but that follows from other variables."""


DERIVED = _Derived()
Derived: TypeAlias = Annotated[T, DERIVED]


class _Ghost:
    """Marks a variable that exists only in the explorer; no guard and no obligation of an event may read it."""


GHOST = _Ghost()
Ghost: TypeAlias = Annotated[T, GHOST]


@dataclass(frozen=True)
class Set(Generic[T]):
    """An immutable set over a finite sort or a `Below` range: the one compound value of the language.

    `a | b`, `a & b`, `a - b`, `a <= b` (subset), `x in a`, `a == b`; build with `span`, `only`, `empty`.
    """

    members: frozenset[T] = frozenset()

    def __or__(self, other: Set[T]) -> Set[T]:
        return Set(self.members | other.members)

    def __and__(self, other: Set[T]) -> Set[T]:
        return Set(self.members & other.members)

    def __sub__(self, other: Set[T]) -> Set[T]:
        return Set(self.members - other.members)

    def __le__(self, other: Set[T]) -> bool:
        return self.members <= other.members

    def __contains__(self, item: object) -> bool:
        return item in self.members

    def __repr__(self) -> str:
        return "{" + ", ".join(sorted(map(repr, self.members))) + "}"


def span(low: int, high: int) -> Set[int]:
    """The slots low .. high-1; empty when high <= low."""
    return Set(frozenset(range(low, high)))


def only(member: T) -> Set[T]:
    """The set with one member."""
    return Set(frozenset((member,)))


def empty() -> Set[Any]:
    """The empty set."""
    return Set(frozenset())


def some(value: T | None) -> T:
    """Unwrap an option. Raises Undefined on None: guard it first."""
    return undefined("some(None)") if value is None else value


def excess(a: int, b: int) -> int:
    """How far a is above b: a - b, or 0 where b is larger. The total form of subtraction."""
    return max(a - b, 0)


# --- state ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scope:
    """The finite sizes one run is about.

    sorts: members per sort name (`{"Block": 5}`). limits: value per range parameter (`{"block_size": 2}`).
    constants: value per `Const` variable (a scalar, or a dict from index tuple for maps; missing entries: default).
    """

    sorts: dict[str, int]
    limits: dict[str, int]
    constants: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class _Domain:
    """What a declared type means within a scope: its members (for indexes), its check and its default."""

    name: str
    members: tuple[Any, ...] | None
    accepts: Callable[[Any], bool]
    default: Any


def _range(n: int) -> _Domain:
    return _Domain(f"0..{n - 1}", tuple(range(n)), lambda v: type(v) is int and 0 <= v < n, 0)


def _domain(hint: Any, scope: Scope) -> _Domain:
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        for mark in args[1:]:
            if isinstance(mark, Below):
                return _range(scope.limits[mark.parameter])
            if isinstance(mark, UpTo):
                return _range(scope.limits[mark.parameter] + 1)
        return _domain(args[0], scope)
    if origin is Set:
        inner = _domain(args[0], scope)
        return _Domain(
            f"set of {inner.name}", None, lambda v: isinstance(v, Set) and all(map(inner.accepts, v.members)), empty()
        )
    if type(None) in args:
        inner = _domain(next(a for a in args if a is not type(None)), scope)
        return _Domain(f"{inner.name} or None", None, lambda v: v is None or inner.accepts(v), None)
    if isinstance(hint, type) and issubclass(hint, Sort):
        members = tuple(hint(i) for i in range(scope.sorts[hint.__name__]))
        return _Domain(hint.__name__, members, lambda v: v in members, members[0] if members else None)
    if hint is bool:
        return _Domain("bool", (False, True), lambda v: type(v) is bool, False)
    if isinstance(hint, type) and issubclass(hint, Choice):
        return _Domain(hint.__name__, hint.members(), lambda v: isinstance(v, hint), hint.members()[0])
    raise TypeError(f"{hint!r} is not a type of the specification language")


@dataclass(frozen=True)
class Choice:
    """An enumeration: `class Mode(Choice): names = ("KEEP", "FREEZE")`; members: `Mode("KEEP")` or module constants."""

    name: str
    names: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        if self.name not in self.names:
            undefined(f"{type(self).__name__} has no member {self.name}")

    @classmethod
    def members(cls) -> tuple[Self, ...]:
        return tuple(cls(n) for n in cls.names)

    def __repr__(self) -> str:
        return self.name


class Map(Generic[*Keys, V]):
    """A total map of fixed shape: `Map[Branch, Pos, Block | None]` is read `s.table[r, p]`. It is no value itself.

    The index is typed `object`: the specification compiler checks index sorts, more strictly than mypy could.
    """

    def __init__(self, name: str, keys: tuple[_Domain, ...], value: _Domain) -> None:
        self.name, self.keys, self.value = name, keys, value
        self.cells: dict[tuple[Any, ...], Any] = {}

    def _index(self, key: object) -> tuple[Any, ...]:
        index = key if isinstance(key, tuple) else (key,)
        if len(index) != len(self.keys):
            undefined(f"{self.name} takes {len(self.keys)} indexes, got {index}")
        for part, domain in zip(index, self.keys, strict=True):
            if not domain.accepts(part):
                undefined(f"{self.name}[{part!r}] is outside {domain.name}")
        return index

    def __getitem__(self, key: object) -> V:
        value: V = self.cells.get(self._index(key), self.value.default)
        return value

    def __setitem__(self, key: object, value: V) -> None:
        index = self._index(key)
        if not self.value.accepts(value):
            undefined(f"{self.name}[{index}] = {value!r} is outside {self.value.name}")
        if value == self.value.default:
            self.cells.pop(index, None)
        else:
            self.cells[index] = value


class State:
    """Base of a state class. Its annotations declare the variables; `Model(scope)` makes the all-default state.

    Variables are maps (`held: Map[Block, bool]`) or scalars (`free: Count`); `Const`, `Derived`, `Ghost` wrap either.
    """

    def __init__(self, scope: Scope) -> None:
        self.__dict__["scope"] = scope
        self.__dict__["_domains"] = {}
        for name, hint in get_type_hints(type(self), include_extras=True).items():
            if get_origin(hint) is ClassVar:
                continue
            self._declare(name, hint)

    def _declare(self, name: str, hint: Any) -> None:
        scope: Scope = self.__dict__["scope"]
        bare = get_args(hint)[0] if get_origin(hint) is Annotated and get_origin(get_args(hint)[0]) is Map else hint
        given = scope.constants.get(name)
        if get_origin(bare) is Map:
            *keys, value = get_args(bare)
            made: Map[Any, Any] = Map(name, tuple(_domain(k, scope) for k in keys), _domain(value, scope))
            for index, v in (given or {}).items():
                made[index] = v
            self.__dict__[name] = made
        else:
            domain = _domain(hint, scope)
            self.__dict__["_domains"][name] = domain
            self.__dict__[name] = domain.default if given is None else given

    def __setattr__(self, name: str, value: object) -> None:
        domain = self.__dict__["_domains"].get(name)
        if domain is None:
            undefined(f"no scalar variable {name}")
        if not domain.accepts(value):
            undefined(f"{name} = {value!r} is outside {domain.name}")
        self.__dict__[name] = value


def row(table: Map[Any, Any, Any], first: object) -> Iterator[Any]:
    """The second indexes, in order, whose value in this row is not the default: `for p in row(s.table, r)`.

    The row is read once, before the first turn of the loop.
    """
    return iter([k for k in table.keys[1].members or () if table[first, k] != table.value.default])


def members(sort: type[S], s: State) -> Iterable[S]:
    """Every member of a sort; only in invariants, initial states, ghost updates and settling events."""
    return [sort(i) for i in range(s.__dict__["scope"].sorts[sort.__name__])]


_constants: dict[type, frozenset[str]] = {}


def reset(s: State, member: Sort) -> None:
    """Every non-`Const` map whose first index has this member's sort: its row returns to the default."""
    model = type(s)
    if model not in _constants:
        hints = get_type_hints(model, include_extras=True)
        _constants[model] = frozenset(name for name, hint in hints.items() if CONST in get_args(hint)[1:])
    for name, table in s.__dict__.items():
        if isinstance(table, Map) and name not in _constants[model] and table.keys[0].accepts(member):
            for index in [i for i in table.cells if i[0] == member]:
                del table.cells[index]


# --- steps ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    """A named fact with its four labels, taken from the docstring of the decorated function."""

    name: str
    kind: str  # "rule", "order", "step", "ghost" or "lint"
    doc: str
    function: Callable[[], None]


@dataclass(frozen=True)
class Judgement:
    """One evaluated obligation: rule, whether it held, the message template."""

    rule: Rule
    holds: bool
    message: str


@dataclass(frozen=True)
class Performed:
    """An event that a step performed. depth: how many other events were being performed then."""

    event: str
    arguments: tuple[Any, ...]
    depth: int


_performances: list[list[Performed | Judgement]] = []
_depth = [0]
_judgements: list[list[Judgement]] = []


def judged(step: Callable[..., object], *arguments: object) -> list[Judgement]:
    """Run a step as ordinary Python; returns every obligation it evaluated, in order. Raises NotEnabled, Undefined."""
    _judgements.append([])
    try:
        step(*arguments)
        return _judgements[-1]
    finally:
        _judgements.pop()


def require(condition: bool, choice: str = "") -> None:
    """A guard: false means that the step is not enabled here. Stands before every effect.

    choice: for a guard that no rule needs, a sentence that says what it is there for.
    """
    if not condition:
        raise NotEnabled


def obey(rule: Rule, condition: bool, message: str = "") -> None:
    """An obligation: the event happens either way; false means that the rule is violated.

    message: a sentence with `{name}` for parameters and local names of the step (`{s.owners[b]}` is written `{owners}`
    after `owners = s.owners[b]`). The first Block it names is the violated block, the first Branch its branch.
    """
    if _judgements:
        _judgements[-1].append(Judgement(rule, bool(condition), message))
    if _performances:
        _performances[-1].append(Judgement(rule, bool(condition), message))


def advise(lint: Rule, condition: bool, message: str = "") -> None:
    """As `obey`, for a lint: reported when false, never a violation."""
    obey(lint, condition, message)


REGISTRY: dict[str, list[Callable[..., Any]]] = {}


def _mark(kind: str) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        function.__dict__["spec_kind"] = kind
        REGISTRY.setdefault(function.__module__, []).append(function)
        return function

    return decorate


def performed(step: Callable[..., object], *arguments: object) -> list[Performed | Judgement]:
    """Run a step as ordinary Python; returns the events that it performed, each before the obligations that it judged.

    Raises NotEnabled, Undefined.
    """
    _performances.append([])
    try:
        step(*arguments)
        return _performances[-1]
    finally:
        _performances.pop()


def _happening(kind: str) -> Callable[[F], F]:
    """As `_mark`, for what shows in a log."""
    mark = _mark(kind)

    def decorate(function: F) -> F:
        @wraps(function)
        def perform(s: State, *arguments: object, **named: object) -> None:
            if not _performances:
                function(s, *arguments, **named)
                return
            _performances[-1].append(Performed(function.__name__, (*arguments, *named.values()), _depth[0]))
            _depth[0] += 1
            try:
                function(s, *arguments, **named)
            finally:
                _depth[0] -= 1

        return mark(cast(F, perform))

    return decorate


event = _happening("event")  # may `obey`, never `require`: in a log it has already happened
settling = _happening("settling")  # an event at which nothing is running: it may range over sorts
action = _mark("action")  # a step of a design: `require`, effects, ownership events
helper = _mark("helper")  # an expression (one `return`, local names before it) or a block of statements; inlined
invariant = _mark("invariant")  # s -> bool
auxiliary = _mark("auxiliary")  # as an invariant, with a rule's labels: what a proof needs and a search need not judge
counted = _mark("counted")  # `x_counted(s, keys, k) -> bool`: x[keys] is the number of k for which this is true
witness = _mark("witness")  # s -> bool, named `can_...`: some reachable state satisfies it
initial = _mark("initial")  # a prefix of events that builds the initial state


def _rule(kind: str) -> Callable[[Callable[[], None]], Rule]:
    def decorate(function: Callable[[], None]) -> Rule:
        return Rule(function.__name__, kind, function.__doc__ or "", function)

    return decorate


rule = _rule("rule")
order_rule = _rule("order")
step_rule = _rule("step")
ghost_rule = _rule("ghost")
lint = _rule("lint")
