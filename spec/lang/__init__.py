"""The specification language: Python that also compiles. This page is the whole of what it accepts.

Declarations, at module level
    class Block(Sort)                        members are only compared for equality
    class Mode(Choice): names = ("A", "B")   an enumeration; A, B = Mode("A"), Mode("B") are its constants
    Slot = Annotated[int, Below("size")]     0 .. size-1; UpTo("size"): 0 .. size; both usable as an index
    class Model(State):                      one state class (or one that derives from all others), annotations only
        held:  Map[Block, bool]              maps are read and written entry by entry and are no values
        table: Map[Branch, Pos, Block | None]
        total: Count                         a scalar
    Const[...], Derived[...], Ghost[...]     given with the scope; follows from others; the explorer's alone
    values: a Sort, a range, bool, a Choice, Set[Sort or range], each possibly `| None`
    defaults: None, 0, False, the first name, the empty set

Functions, each with exactly one decorator, first parameter `s: Model`, all parameters typed
    @rule @order_rule @step_rule @ghost_rule @lint   no body; docstring with Source, Catches, Except, Deviates
    @event       has happened: judges with `obey` and `advise`, changes the state, never `require`s
    @settling    an event at which nothing runs: may range over sorts
    @action      a design's step: docstring, `require` lines, effects; judges only through events
    @helper      with a result type: local names and one `return`; without: a block of statements; inlined
    @auxiliary   -> bool, for proofs, with the labels of a rule: holds in every state, of every value of its parameters
    @counted     -> bool, for proofs, with labels: x_counted(s, keys, k) says which k the number x[keys] counts
    @invariant   -> bool     @witness `can_...` -> bool     @initial  a prefix of events; may name members: Block(0)

Statements
    x = e    a, b = e, f                     a local name has one value on a path; both arms of an `if` may bind it
    s.v[i] = e    s.v[i, j] += e    s.x = e  also -= |= &=, and tuple assignment (the values are read first)
    if / elif / else        for k in row(s.v, i)        for k in members(Block, s)     (settling, initial, ghosts)
    require(c)   obey(rule, c, "text {name}")   advise(lint, c, "...")   reset(s, b)   event_or_helper(s, ...)   pass
    require(c, "why")                        a guard that no rule needs

Expressions
    names, naturals, True, False, None, choices; s.x, s.v[i]; and or not; == != < <= > >= (chains too); is None
    + - * // % min max excess on naturals; | & - <= in on Sets; span(lo, hi) only(x) empty(); a if c else b; some(x)
    all(... for k in row(s.v, i) if c), any(... for k in members(Block, s))   in settling events and predicates
    helper(s, ...)

What the compiler proves or refuses: an option is used as a value only after `is not None` (locals and parameters) or
through `some` (undefined on None); `a - b` needs a test that keeps it above zero, or `excess`; nothing recurses; no
guard, obligation or lasting store depends on a ghost; `scalarset` says per sort whether its members are exchangeable.

Left out, because machine code, Z3, TLA+ and Promela must all carry it: while, break, return in a step, recursion,
closures, comprehensions, strings, floats, negative numbers, exceptions, collections other than Map and Set. Each is
refused with what to write instead. What would change our mind: a rule of the discipline that cannot be said without.

surface      the words, and their meaning as ordinary Python (an oracle that shares nothing with the compiler)
source       find and parse modules; resolve names through imports
declare      classes, variables, rules, heads of steps -> `world`; `annotations` reads types
expressions  `ast` to typed form, by way of `names`, `operators`, `calls`, `loops`; `scope`: names and types in force
statements   the same for bodies; `refusals`: Python that is left out, and what to write instead
check        the whole: unused, circles, ghosts; `subtract`: nothing below zero; `scalarset`: exchangeable members
lower        inline calls: guard and body; `simplify`, `fold`, `effects` (read and write sets), `walk`
symbolic     the functional form for given sizes; `interpret` evaluates it; `turns`: loops that have none, for few turns
diagnostics  mistakes as data, and their text
load         the way in: load("kvsan.spec.ownership") -> Spec
"""

from kvsan.spec.lang.diagnostics import Diagnostic, SpecError
from kvsan.spec.lang.ir import Spec
from kvsan.spec.lang.load import load
from kvsan.spec.lang.surface import (
    Below,
    Choice,
    Const,
    Derived,
    Ghost,
    Map,
    Rule,
    Scope,
    Set,
    Sort,
    State,
    UpTo,
    action,
    advise,
    auxiliary,
    counted,
    empty,
    event,
    excess,
    ghost_rule,
    helper,
    initial,
    invariant,
    lint,
    members,
    obey,
    only,
    order_rule,
    require,
    reset,
    row,
    rule,
    settling,
    some,
    span,
    step_rule,
    witness,
)

__all__ = [
    "Below",
    "Choice",
    "Const",
    "Derived",
    "Diagnostic",
    "Ghost",
    "Map",
    "Rule",
    "Scope",
    "Set",
    "Sort",
    "Spec",
    "SpecError",
    "State",
    "UpTo",
    "action",
    "advise",
    "auxiliary",
    "counted",
    "empty",
    "event",
    "excess",
    "ghost_rule",
    "helper",
    "initial",
    "invariant",
    "lint",
    "load",
    "members",
    "obey",
    "only",
    "order_rule",
    "require",
    "reset",
    "row",
    "rule",
    "settling",
    "some",
    "span",
    "step_rule",
    "witness",
]
