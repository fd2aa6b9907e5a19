"""One specification and one scope as a text in the language of `machine`: `expand` makes every successor of a state.

The loops over a step's parameters stay loops, so the text does not grow with the scope; each condition of a guard
stands at the outermost loop that binds what it names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path

from kvsan.checker.explore.emit_expr import Emitter, Places, Value
from kvsan.checker.explore.emit_step import StepEmitter
from kvsan.checker.explore.layout import Layout
from kvsan.checker.explore.recount import agree, counted_again, recount
from kvsan.checker.explore.words import Words
from kvsan.checker.explore.writer import Writer
from kvsan.spec.lang import ir
from kvsan.spec.lang.diagnostics import Span
from kvsan.spec.lang.symbolic import Sizes, size_of
from kvsan.spec.lang.walk import all_statements, every

HEADER = '''"""{name}"""

WORDS = {words}
CUT = {cut}
BATCH = {batch}
TURN = {turn}
CHUNK = {chunk}
FAN = {fan}
SOON = {soon}


@inline
def mark(fail_at, fail_code, k, at, code):
    if fail_at[k] < 0:
        fail_at[k] = at
        fail_code[k] = code


'''

BATCH = 256
"""Successors stored at once, at least."""
MOST_CHUNK = 4096
"""States that a thread expands before it stores what they lead to, at most."""
SHORT, VERY_SHORT, FEW = 2500, 1200, 4
"""Lines up to which all steps become one piece of code, lines up to which loops over a parameter are written out there,
and values of a parameter up to which they are: what several steps read of a branch is then read once. Longer texts
gain less and take longer to compile."""
SOON = 24
"""How many successors before its turn the slot of one is called into the cache."""
AHEAD = 4
"""How many states before its turn the halves of one are called into the cache."""
ROOM = 1 << 28
"""Bytes for the successors of a chunk, at most."""


@dataclass(frozen=True)
class Judge:
    """What a number in `judged`, `fail_at` and `fail_code` stands for.

    kind: rule, lint, invariant, witness, deadlock (where the design says when it may rest), guard or undefined. step:
    the action, '' where a state is judged. A guard has two, for what it refused and what it let pass.
    """

    kind: str
    rule: str
    step: str
    message: str
    span: Span


@dataclass(frozen=True)
class Model:
    """What the generator works from: sliced, lowered steps and the layout of their state.

    bases: the first code of each action; a code counts the choices of parameters, the last one fastest. counted: facts
    about the variables that are counted again before each step; working: the layout with them behind what is stored.
    """

    name: str
    actions: tuple[ir.Step, ...]
    invariants: tuple[ir.Step, ...]
    witnesses: tuple[ir.Step, ...]
    variables: Mapping[str, ir.Variable]
    constants: Mapping[str, int | None]
    sizes: Sizes
    layout: Layout
    lints: frozenset[str]
    counted: tuple[ir.Step, ...]
    working: Layout

    @property
    def fan(self) -> int:
        """At most so many successors, and at least 1."""
        return max(1, self.bases[-1])

    @property
    def chunk(self) -> int:
        """How many states are expanded in one piece, a power of two: their successors must fit in ROOM bytes."""
        fit = max(1, ROOM // (8 * self.layout.words * self.fan))
        return min(MOST_CHUNK, 1 << fit.bit_length() - 1)

    @property
    def bases(self) -> tuple[int, ...]:
        out = [0]
        for action in self.actions:
            out.append(out[-1] + choices(action, self.sizes))
        return tuple(out)

    def decode(self, code: int) -> tuple[ir.Step, tuple[int | None, ...]]:
        """The action of a code and its parameters' values."""
        bases = self.bases
        which = max(n for n, base in enumerate(bases[:-1]) if base <= code)
        rest, values = code - bases[which], list[int | None]()
        for param in reversed(self.actions[which].params):
            rest, value = divmod(rest, _range(param.type, self.sizes))
            values.append((None if value == 0 else value - 1) if isinstance(param.type, ir.OptionType) else value)
        return self.actions[which], tuple(reversed(values))


@dataclass(frozen=True)
class Generated:
    """The text, and what its numbers mean."""

    source: str
    judges: tuple[Judge, ...]


def _range(type_: ir.Type, sizes: Sizes) -> int:
    return size_of(type_.inner, sizes) + 1 if isinstance(type_, ir.OptionType) else size_of(type_, sizes)


def choices(action: ir.Step, sizes: Sizes) -> int:
    """How many choices of parameters an action has."""
    return prod(_range(p.type, sizes) for p in action.params)


REST = "can_rest"
"""A witness of this name says in which states a design may be without a step; elsewhere that is a deadlock."""
NO_DEADLOCK = "no_deadlock"
STUCK = "no step is left, and the design is not at rest"


def generate(model: Model, canonical: str = "", counting: bool = False) -> Generated:
    """The module. canonical: the text of a function of that name, where a symmetry is used. counting: count what each
    condition of a guard refuses and lets pass, which takes time."""
    judges = [
        Judge("lint" if o.rule in model.lints else "rule", o.rule, a.name, o.message, o.span)
        for a in model.actions
        for o in _obligations(a)
    ]
    for kind, steps in (("invariant", model.invariants), ("witness", model.witnesses), ("counted", model.counted)):
        judges += [Judge(kind, s.name, "", s.doc.strip().splitlines()[0] if s.doc else "", s.span) for s in steps]
    rest = next((w for w in model.witnesses if w.name == REST), None)
    ends = len(judges)
    judges += [] if rest is None else [Judge("deadlock", NO_DEADLOCK, "", STUCK, rest.span)]
    counters = dict[str, int]()
    for action in model.actions if counting else ():
        counters[action.name] = len(judges)
        judges += [Judge("guard", "", action.name, "", g.span) for g in action.guard for _ in range(2)]
    places = Places(len(judges))
    out = Writer()
    sizes = {"words": model.layout.words, "cut": model.layout.cut, "chunk": model.chunk, "fan": model.fan}
    out.lines.append(HEADER.format(name=model.name, batch=BATCH, turn=2 * BATCH, soon=SOON, **sizes).rstrip("\n"))
    out.line("\n")
    if model.counted:
        recount(model.counted, model.layout.words, _emitter(model, out, places, "w"))
    _inspect(model, out, places, sum(j.kind in ("rule", "lint") for j in judges))
    first = 0
    for which, action in enumerate(model.actions):
        _action(model, action, which, first, counters.get(action.name, -1), out, places)
        first += len(_obligations(action))
    _expand(model, rest, ends, out, places)
    if len(out.lines) < SHORT:
        few = FEW if len(out.lines) < VERY_SHORT else 0
        out.lines = [_as_one_piece(line, few) for line in out.lines]
    judges += [Judge("undefined", "defined", "", what, span) for what, span in places.spans]
    text = out.text + (canonical or "def canonical(buf, first, n):\n    return\n") + "\n\n"
    return Generated(text + Path(__file__).with_name("kernel.py").read_text(encoding="utf-8"), tuple(judges))


def _as_one_piece(line: str, few: int) -> str:
    """The line, where the steps become one piece of code. few: values of a parameter that is no loop then."""
    head = re.match(r" +for p_\w+ in range\((\d+)\):$", line)
    if head and int(head[1]) <= few:
        return line.replace("range(", "unrolled(")
    return f"@inline\n{line}" if line.startswith("def step_") else line


def _obligations(action: ir.Step) -> list[ir.Obey]:
    return [s for s in all_statements(action.effects) if isinstance(s, ir.Obey)]


def _emitter(model: Model, out: Writer, places: Places, prefix: str) -> Emitter:
    return Emitter(out, model.working, model.variables, model.constants, model.sizes, places, prefix)


ARRAYS = "buf, n, codes, taken, judged, fail_at, fail_code"


def _given(model: Model) -> str:
    """The words of a state as parameters."""
    return Words.of(model.working).parameters("w")


def _expand(model: Model, rest: ir.Step | None, ends: int, out: Writer, places: Places) -> None:
    """Judge one state, then append its successors; where there is none, see whether it may be at rest."""
    with out.block(f"def expand(sets, at, {ARRAYS})"):
        words = Words.of(model.working)
        _load(model.layout, words, out)
        if model.counted:
            out.line(counted_again(words, model.layout.words, "w"))
        with out.block(f"if not inspect(at, {words.names('w')}, fail_at, fail_code)"):
            went = " + ".join(f"taken[{which}]" for which in range(len(model.actions))) or "0"
            if rest is not None:
                out.line("begun = n")
                out.line(f"before = {went}")
            for which in range(len(model.actions)):
                out.line(f"n = step_{which}(at, {words.names('w')}, {ARRAYS})")
            if rest is not None and rest.value is not None:
                with out.block(f"if n == begun and {went} == before"):  # a step that breaks a rule is one too
                    out.line("bad = -1")
                    holds = _emitter(model, out, places, "w").expr(rest.value).text
                    with out.block(f"if not {holds} or bad >= 0"):
                        out.line(f"judged[{ends}] += 1")
                        out.line(f"mark(fail_at, fail_code, {ends}, at, -1)")
        out.line("return n")
    out.line("\n")


def _load(layout: Layout, words: Words, out: Writer) -> None:
    """The words of state `at`, whole or from its halves."""
    words.begin("w", out)
    out.line("rows = array(sets[0])")
    if layout.cut:
        out.line("left = array(sets[5])")
        out.line("right = array(sets[10])")
        out.line("first = (rows[at] & 0xFFFFFFFF) * CUT")
        out.line("then = lshr(rows[at], 32) * (WORDS - CUT)")
        out.line(f"prefetch(left, (rows[at + {AHEAD}] & 0xFFFFFFFF) * CUT)")
        out.line(f"prefetch(right, lshr(rows[at + {AHEAD}], 32) * (WORDS - CUT))")
    if not layout.cut:
        words.copy(words.each("w"), "rows[at * WORDS + #]", out, layout.words)
    elif words.array:
        words.copy("w[#]", "left[first + #]", out, layout.cut)
        words.copy(f"w[{layout.cut} + #]", "right[then + #]", out, layout.words - layout.cut)
    else:
        for n in range(layout.words):
            out.line(f"w{n} = " + (f"left[first + {n}]" if n < layout.cut else f"right[then + {n - layout.cut}]"))


def _inspect(model: Model, out: Writer, places: Places, first: int) -> None:
    out.line(f"def inspect(at, {_given(model)}, fail_at, fail_code):")
    out.enter()
    out.line("bad = -1")
    out.line("broken = False")
    for number, step in enumerate(model.invariants, first):
        assert step.value is not None
        holds = _emitter(model, out, places, "w").expr(step.value).text
        with out.block(f"if not {holds} or bad >= 0"):
            out.line(f"mark(fail_at, fail_code, bad if bad >= 0 else {number}, at, -1)")
            out.line("broken = True")
            out.line("bad = -1")
    for number, step in enumerate(model.witnesses, first + len(model.invariants)):
        with out.block(f"if fail_at[{number}] < 0"):
            assert step.value is not None
            seen = _emitter(model, out, places, "w").expr(step.value).text
            out.line(f"if {seen} and bad < 0:")
            out.line(f"    mark(fail_at, fail_code, {number}, at, -1)")
            out.line("bad = -1")
    out.line("return broken")
    out.leave(0)
    out.line("\n")


# --- actions ----------------------------------------------------------------------------------------------------------


def _action(model: Model, action: ir.Step, which: int, first: int, counter: int, out: Writer, places: Places) -> None:
    """The successors by one action; it reads like the action, inside its loops. counter: of its first guard, or -1."""
    depth = out.indent
    out.line(f"def step_{which}(at, {_given(model)}, {ARRAYS}):")
    out.enter()
    out.line(f'"""{action.name}"""')
    emit = _emitter(model, out, places, "w")
    code = ""
    guards = [(g, counter + 2 * n if counter >= 0 else -1) for n, g in enumerate(action.guard)]
    unbound = {p.name for p in action.params}
    out.line("for once in range(1):")  # so that `continue` leaves the action
    out.enter()
    _guards(guards, unbound, emit)
    for param in action.params:
        code = _parameter(model, param, code, emit)
        unbound.discard(param.name)
        _guards(guards, unbound, emit)
    out.line(f"code = {model.bases[which]} + {code or '0'}")
    out.line("bad = -1")
    out.line("broken = False")
    emit.words.begin("o", out)
    emit.words.copy(emit.words.each("o"), emit.words.each("w"), out)
    emit.prefix, emit.dirty = "o", set()
    numbers = {o.number: first + k for k, o in enumerate(_obligations(action))}
    StepEmitter(emit, lambda o: numbers.get(o.number), model.lints).block(action.effects)
    _finish(model, out, which)
    out.leave(depth + 1)
    out.line("return n")
    out.leave(depth)
    out.line("\n")


def _parameter(model: Model, param: ir.Param, code: str, emit: Emitter) -> str:
    size = _range(param.type, model.sizes)
    key = f"p_{param.name}"
    emit.out.line(f"for {key} in range({size}):")
    emit.out.enter()
    code = f"({code} * {size} + {key})" if code else key
    if isinstance(param.type, ir.OptionType):
        emit.values[param.name] = Value(f"({key} - 1)", size - 2)
    else:
        emit.values[param.name] = Value(key, size - 1)
    return code


def _guards(guards: list[tuple[ir.Expr, int]], unbound: set[str], emit: Emitter) -> None:
    """Write the conditions, in order, that name nothing unbound; they leave the list. Each has its counter, or -1."""
    out = emit.out
    while guards and not _names(guards[0][0]) & unbound:
        guard, counter = guards.pop(0)
        if isinstance(guard, ir.And) and counter < 0:
            guards[:0] = [(item, -1) for item in guard.items]
            continue
        before = len(out.lines)
        holds = emit.expr(guard).text
        if any(line.lstrip().startswith("bad = ") for line in out.lines[before:]):
            out.lines.insert(before, "    " * out.indent + "bad = -1")
            with out.block("if bad >= 0"):
                out.line("mark(fail_at, fail_code, bad, at, -1)")
                out.line("continue")
        if holds != "True":
            with out.block(f"if not {holds}"):
                if counter >= 0:
                    out.line(f"judged[{counter}] += 1")
                out.line("continue")
        if counter >= 0:
            out.line(f"judged[{counter + 1}] += 1")


def _names(expr: ir.Expr) -> set[str]:
    return {e.name for e in every(expr) if isinstance(e, ir.Name)}


def _finish(model: Model, out: Writer, which: int) -> None:
    out.line(f"taken[{which}] += 1")
    with out.block("if bad >= 0"):
        out.line("mark(fail_at, fail_code, bad, at, code)")
        out.line("continue")
    with out.block("if broken"):
        out.line("continue")
    if model.counted:
        action, rules = model.actions[which], sum(len(_obligations(a)) for a in model.actions)
        first = rules + len(model.invariants) + len(model.witnesses)
        agree(action, model.counted, model.layout.words, model.working, model.variables, first, out)
    words = Words.of(model.working)
    words.copy("buf[n * WORDS + #]", words.each("o"), out, model.layout.words)
    out.line("codes[n] = code")
    out.line("n += 1")
