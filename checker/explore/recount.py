"""Counters that a state does not store: counted again before each of its steps, as their `@counted` facts say.

A step keeps its counters along like any other variable, in words that are not stored. At its end they must be what a
count of the new state gives: a step that says otherwise breaks the fact, and is reported. So it is for the steps of the
first JUDGED states, which is every step of a small scope; after that, a quarter of the time would go into it, the fact
is taken from them, and from its proof where there is one. A step that stores a counter of its own accord, past the
events of the ledger, is held to it for good.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path

from kvsan.checker.explore.emit_expr import Emitter, Value, shift_of, signed
from kvsan.checker.explore.layout import Chunk, Field, Layout, layout, values_of
from kvsan.checker.explore.words import Words, runs
from kvsan.checker.explore.writer import Writer
from kvsan.spec.lang import ir
from kvsan.spec.lang.effects import reads, writes
from kvsan.spec.lang.interpret import Plain, value
from kvsan.spec.lang.symbolic import Sizes, predicate, size_of
from kvsan.spec.lang.walk import all_statements, every

JUDGED = 1 << 16
"""States whose steps are held to the facts."""
PARTIAL = ("-", "//", "%")


def variable_of(fact: ir.Step) -> str:
    """The variable that a `@counted` fact is about."""
    return fact.name.removesuffix("_counted")


def recounted(facts: tuple[ir.Step, ...], kept: Mapping[str, ir.Variable], sizes: Sizes) -> tuple[ir.Step, ...]:
    """The facts whose variables need not be stored, each after those that it reads.

    What it reads must be in the state anyway, or counted before; and it must be defined everywhere.
    """
    waiting = {variable_of(f): f for f in facts if variable_of(f) in kept and _is_simple(f, kept, sizes)}
    out: list[ir.Step] = []
    while True:
        there = set(kept) - set(waiting)
        ready = next((f for f in waiting.values() if {a.variable for a in reads(f)} <= there), None)
        if ready is None:
            return tuple(out)
        out.append(waiting.pop(variable_of(ready)))


def _is_simple(fact: ir.Step, kept: Mapping[str, ir.Variable], sizes: Sizes) -> bool:
    """It counts members of types of a size, in a derived variable that has room for them, and is always defined."""
    assert fact.value is not None
    variable, types = kept[variable_of(fact)], [p.type for p in fact.params]
    partial = any(isinstance(e, ir.Some) or (isinstance(e, ir.Arith) and e.op in PARTIAL) for e in every(fact.value))
    fits = (*variable.keys, types[-1]) == tuple(types) and size_of(types[-1], sizes) < values_of(variable.value, sizes)
    return variable.derived and isinstance(variable.value, ir.NatType) and fits and not partial


def working(stored: Layout, counted: Iterable[ir.Variable], sizes: Sizes) -> Layout:
    """The layout of a state under way: what is stored, and in words behind it what is not."""
    more = layout(counted, sizes)
    moved = {
        n: replace(f, chunks=tuple(replace(c, word=c.word + stored.words) for c in f.chunks))
        for n, f in more.fields.items()
    }
    words = stored.words + (more.words if moved else 0)
    return Layout({**stored.fields, **moved}, words, stored.bits + more.bits, stored.spread or more.spread)


def count(
    fact: ir.Step, variables: Mapping[str, ir.Variable], sizes: Sizes, state: Plain
) -> dict[tuple[int, ...], int]:
    """The counts of a fact in a state, those that are not 0."""
    condition, out = predicate(fact, variables, sizes).condition, dict[tuple[int, ...], int]()
    for index in product(*(range(size_of(p.type, sizes)) for p in fact.params)):
        given = {f"{p.name}'": i for p, i in zip(fact.params, index, strict=True)}
        if value(condition, variables, state, given):
            out[index[:-1]] = out.get(index[:-1], 0) + 1
    return out


# --- generated text ---------------------------------------------------------------------------------------------------


def recount(facts: tuple[ir.Step, ...], stored: int, emit: Emitter) -> None:
    """The function `recount(words)` of the words that are stored: those that are not, which it returns, or sets where
    the words are an array. emit: reads the words `w`."""
    out, words = emit.out, emit.words
    with out.block(f"def recount({words.parameters('w', stored)})"):
        out.line("bad = -1")
        if words.array:
            out.line(f"for j in range({stored}, {words.count}):")
            out.line("    w[j] = 0")
        else:
            for n in range(stored, words.count):
                out.line(f"w{n} = 0")
        for fact in facts:
            depth = out.indent
            _tally(fact, emit)
            out.leave(depth)
            emit.known.clear()
        if not words.array:
            out.line(f"return {words.names('w', stored)}")
    out.line("\n")


def counted_again(words: Words, stored: int, letter: str) -> str:
    """The call that counts."""
    call = f"recount({words.names(letter, 0, stored)})"
    return call if words.array else f"{words.names(letter, stored)} = {call}"


def _tally(fact: ir.Step, emit: Emitter) -> None:
    """Loops over all members, but for a key that the condition itself says: `v == key` counts for the key v."""
    assert fact.value is not None
    field, out = emit.layout.fields[variable_of(fact)], emit.out
    said, key = _said(fact.value, [p.name for p in fact.params[:-1]])
    for param in fact.params:
        if param.name != key:
            size = size_of(param.type, emit.sizes)
            out.line(f"for p_{param.name} in range({size}):")
            out.enter()
            emit.values[param.name] = Value(f"p_{param.name}", size - 1)
    if said is None:
        out.line(f"if {emit.expr(fact.value).text}:")
    else:
        emit.values[key] = emit.keep(emit.expr(said), "v")
        out.line(f"if {emit.values[key].text} >= 0:")  # not None
    out.enter()
    _one_more(field, emit.linear(field, [emit.values[p.name] for p in fact.params[:-1]]), emit)


def _said(condition: ir.Expr, keys: list[str]) -> tuple[ir.Expr | None, str]:
    """Of a condition `v == key` the value and the key."""
    match condition:
        case ir.Compare("==", said, ir.Name(key)) | ir.Compare("==", ir.Name(key), said):
            inside = {e.name for e in every(said) if isinstance(e, ir.Name)}
            return (said, key) if key in keys and key not in inside else (None, "")
        case _:
            return None, ""


def _one_more(field: Field, entry: Value, emit: Emitter) -> None:
    at = emit.keep(entry, "e").text
    if field.even:
        word, shift = emit.computed(field, at, field.even, field.bits)
        emit.out.line(f"w[{word}] += 1 << {shift}")
        return
    for n, chunk in enumerate(field.chunks):
        shift = shift_of(at, chunk.first, chunk.offset, field.bits)
        line = f"{emit.words.word('w', chunk.word)} += 1 << {shift}"
        if len(field.chunks) == 1:
            emit.out.line(line)
            continue
        last = n == len(field.chunks) - 1
        with emit.out.block("else" if last else f"{'elif' if n else 'if'} {at} < {chunk.first + chunk.count}"):
            emit.out.line(line)


def _by_itself(step: ir.Step, facts: Collection[ir.Step]) -> bool:
    """Whether a store to a counter stands elsewhere than the fact that says what it counts."""
    home = {variable_of(f): Path(f.span.file).parent for f in facts}
    stores = (s for s in all_statements(step.effects) if isinstance(s, ir.Store))
    return any(home.get(s.variable, Path(s.span.file).parent) != Path(s.span.file).parent for s in stores)


def agree(
    step: ir.Step,
    facts: tuple[ir.Step, ...],
    stored: int,
    whole: Layout,
    variables: Mapping[str, ir.Variable],
    first: int,
    out: Writer,
) -> None:
    """Lines that compare what a step kept along in the words `o` with a count of its result, where it may differ.

    first: of the judges.
    """
    changed = {a.variable for a in writes(step, variables)}
    if not changed & {n for f in facts for n in (variable_of(f), *(a.variable for a in reads(f)))}:
        return
    words = Words.of(whole)
    with out.block("if True" if _by_itself(step, facts) else f"if at < {JUDGED}"):
        words.begin("y", out)
        words.copy(words.each("y"), words.each("o"), out, stored)
        out.line(counted_again(words, stored, "y"))
        out.line("wrong = 0")
        for number, fact in enumerate(facts, first):
            out.line("differ = 0")
            for chunk, alike in runs(whole.fields[variable_of(fact)]):
                _differ(words, chunk, alike, whole.fields[variable_of(fact)].bits, out)
            with out.block("if differ != 0"):
                out.line("wrong = 1")
                out.line(f"mark(fail_at, fail_code, {number}, at, code)")
        out.line("if wrong != 0:")
        out.line("    continue")


def _differ(words: Words, chunk: Chunk, alike: int, bits: int, out: Writer) -> None:
    """Add to `differ` the bits of a chunk, and of those after it that are alike, in which `y` and `o` differ."""
    mask = signed(((1 << chunk.count * bits) - 1) << chunk.offset)
    if alike == 1:
        out.line(f"differ |= ({words.word('y', chunk.word)} ^ {words.word('o', chunk.word)}) & {mask}")
        return
    out.line(f"for j in range({chunk.word}, {chunk.word + alike}):")
    out.line(f"    differ |= (y[j] ^ o[j]) & {mask}")
