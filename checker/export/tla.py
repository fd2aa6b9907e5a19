"""A TLA+ module and its configuration for TLC.

Every distinct state that TLC finds is a state of the explorer, and every state that it generates a transition, or a
start. A step that breaks a rule sets `broken` to the rule's name, changes nothing else, and nothing follows it: the
last step of TLC's trace is the step that broke it. The invariant of the rule's name fails there.
"""

from __future__ import annotations

from dataclasses import dataclass

from kvsan.checker.explore.model import Start
from kvsan.checker.export.bounds import Bounds
from kvsan.checker.export.names import Names
from kvsan.checker.export.subject import Subject, doc_lines, settings_text
from kvsan.checker.export.tla_expr import OPEN, WIDTH, Expressions, Text, after
from kvsan.checker.export.tla_let import NONE, Definition, bullets, let, record, tidy, verdict
from kvsan.checker.export.tla_step import Statements, constant_row
from kvsan.checker.export.tla_types import Types
from kvsan.spec.lang import ir

WORDS = """
    ACTION ASSUME ASSUMPTION AXIOM BY CASE CHOOSE CONSTANT CONSTANTS COROLLARY DEF DEFINE DEFS DOMAIN ELSE ENABLED
    EXCEPT EXTENDS HAVE HIDE IF IN INSTANCE LAMBDA LEMMA LET LOCAL MODULE NEW OBVIOUS OMITTED OTHER PICK PROOF
    PROPOSITION PROVE QED RECURSIVE SF_ STATE SUBSET SUFFICES TAKE TEMPORAL THEN THEOREM UNCHANGED UNION USE VARIABLE
    VARIABLES WF_ WITH WITNESS TRUE FALSE BOOLEAN STRING Nat Int Print PrintT Assert JavaTime
    TLCGet TLCSet Permutations SortSeq RandomElement Any ToString TLCEval Seq Head Tail Append Len SelectSeq SubSeq
    Init Next Spec TypeOK Symmetry None Min Max Excess Some Within Row Fold FoldUp broken state vars
"""
"""The words of TLA+ and of the modules that are extended, and those of the frame."""

HELPERS = {
    "Min": "Min(a, b) == IF a < b THEN a ELSE b",
    "Max": "Max(a, b) == IF a > b THEN a ELSE b",
    "Excess": "Excess(a, b) == IF a > b THEN a - b ELSE 0",
    "Some": """\\* The value of an option; where it is None there is no value, and TLC stops.
Some(option) == CHOOSE value \\in {option} : value # None""",
    "Within": """\\* An index that is a key; where it is none there is no value, and TLC stops.
Within(index, keys) == CHOOSE key \\in {index} : key \\in keys""",
    "Row": """\\* The keys of a row whose entries are not the default.
Row(entries, absent) == {key \\in DOMAIN entries : entries[key] # absent}""",
    "Fold": """\\* One turn for each key, in any order: the result does not depend on it.
Fold(Turn(_, _), outset, keys) ==
  LET turned[left \\in SUBSET keys] ==
        IF left = {} THEN outset
        ELSE LET key == CHOOSE k \\in left : TRUE IN Turn(turned[left \\ {key}], key)
  IN  turned[keys]""",
    "FoldUp": """\\* One turn for each key, from the smallest on.
FoldUp(Turn(_, _), outset, keys) ==
  LET turned[left \\in SUBSET keys] ==
        IF left = {} THEN outset
        ELSE LET key == CHOOSE k \\in left : \\A other \\in left : other <= k
             IN  Turn(turned[left \\ {key}], key)
  IN  turned[keys]""",
}

LOCALS = {"a", "b", "option", "value", "index", "keys", "key", "entries", "absent", "Turn", "outset"}
LOCALS |= {"turned", "left", "k", "other"}
"""The names within those operators: a name of the whole module may be none of them, a name within a step may."""


@dataclass(frozen=True)
class Tla:
    """name: of the module; the files have to be called so."""

    name: str
    module: str
    configuration: str


def tla(subject: Subject, exchangeable: tuple[str, ...] = ()) -> Tla:
    """The module and its configuration. exchangeable: sorts whose members TLC may exchange."""
    return _Module(subject, exchangeable).made()


class _Module:
    def __init__(self, subject: Subject, exchangeable: tuple[str, ...]) -> None:
        self.subject, self.exchangeable, self.model = subject, exchangeable, subject.model
        self.taken = Names(set(WORDS.split()) | LOCALS)
        spec = subject.design.spec
        self.name = self.taken.new(spec.state)
        self.types = Types(spec.sorts, subject.sizes, self.taken)
        self.called = self.taken.all(subject.variables)
        steps = [*self.model.actions, *self.model.invariants, *self.model.witnesses]
        rules = [r for r in subject.rules if r not in {i.name for i in self.model.invariants}]
        self.steps = self.taken.all([*(s.name for s in steps), *rules, *(s.step for s in subject.begun)])
        self.helpers: set[str] = set()

    def expressions(self) -> Expressions:
        spec = self.subject.design.spec
        types = {p.type for s in self.model.actions for p in s.params}
        keys = {k for v in self.subject.variables.values() for k in v.keys}
        domains = {t: self.types.domain(t) for t in {*types, *keys, *(ir.SortType(s) for s in self.types.sorts)}}
        bounds = Bounds(self.subject.sizes)
        taken, now = Names(self.taken.taken - LOCALS), dict(self.called)
        return Expressions(spec.variables, domains, self.types.members, bounds, taken, now, self.helpers)

    # --- the parts ----------------------------------------------------------------------------------------------------

    def made(self) -> Tla:
        typed, starts = self._types(), self._starts()
        actions = [self._action(a) for a in self.model.actions]
        facts = [self._fact(s) for s in (*self.model.invariants, *self.model.witnesses)]
        rules = self._rules()
        rest = [self._variables(), *self._helpers(), typed, starts, *actions, self._next(), *rules, *facts]
        parts = [self._head(), self._constants(), *(r for r in rest if r)]
        if self.exchangeable:
            sets = " \\cup ".join(f"Permutations({self.types.sorts[s]})" for s in self.exchangeable)
            parts.append(f"Symmetry == {sets}")
        title = f" MODULE {self.name} "
        side = "-" * max(4, (78 - len(title)) // 2)
        module = f"{side}{title}{side}\n" + "\n\n".join(parts) + "\n" + "=" * (2 * len(side) + len(title)) + "\n"
        return Tla(self.name, module, self._configuration())

    def _head(self) -> str:
        lines = [f"{self.subject.design.name}: {self.subject.command}", f"Scope: {settings_text(self.subject)}."]
        lines += ["", f"Run it: java -cp tla2tools.jar tlc2.TLC -config {self.name}.cfg {self.name}.tla"]
        return "\n".join([comment(lines), "EXTENDS Integers, TLC"])

    def _constants(self) -> str:
        sorts = [f"{self.types.sorts[s]}, {', '.join(self.types.members[s])}," for s in self.types.sorts]
        lines = [f"  {s}" for s in sorts]
        lines += [f"  {name},  \\* {parameter}" for parameter, name in self.types.limits.items()]
        return "\n".join(["CONSTANTS", *lines, "  None"])

    def _variables(self) -> str:
        lines = []
        for v in self.subject.variables.values():
            keys = ", ".join(map(str, v.keys))
            lines.append(f"  {self.called[v.name]},  \\* {f'{keys} -> {v.value}' if keys else v.value}")
        if self.subject.rules:
            lines.append('  broken  \\* the rule that the last step broke, or "none"')
        else:
            lines[-1] = lines[-1].replace(",  \\*", "  \\*", 1)
        state = wrapped("state == <<", list(self.called.values()), ">>")
        vars_ = "vars == <<state, broken>>" if self.subject.rules else "vars == state"
        return "\n".join(["VARIABLES", *lines, "", *state, vars_])

    def _helpers(self) -> list[str]:
        return [HELPERS[h] for h in HELPERS if h in self.helpers]

    def _types(self) -> str:
        lines = ["TypeOK =="]
        for v in self.subject.variables.values():
            type_ = self.types.domain(v.value)
            for key in reversed(v.keys):
                type_ = f"[{self.types.domain(key)} -> {type_}]"
            lines.append(f"  /\\ {self.called[v.name]} \\in {type_}")
        if self.subject.rules:
            rules = [NONE, *(f'"{r}"' for r in self.subject.rules)]
            lines += wrapped("  /\\ broken \\in {", rules, "}")
        return "\n".join(lines)

    def _starts(self) -> str:
        parts = [self._start(s) for s in self.subject.begun]
        names = [self.steps[s.step] for s in self.subject.begun]
        return "\n\n".join([*parts, "Init == " + " \\/ ".join(names)])

    def _start(self, start: Start) -> str:
        text = self.expressions()
        lines = [comment(doc_lines(self.subject.design.spec.steps[start.step])), f"{self.steps[start.step]} =="]
        for name, v in self.subject.variables.items():
            given = sorted(self.subject.start(start, name).items())
            absent = text.default(v.value)
            if not v.keys:
                value = self.types.value(given[0][1], v.value) if given else absent
            else:
                value = constant_row(text, v.keys, absent)
            if v.keys and given:
                entries = [
                    "!" + "".join(f"[{self.types.value(i, k)}]" for i, k in zip(index, v.keys, strict=True))
                    + f" = {self.types.value(x, v.value)}"
                    for index, x in given
                ]  # fmt: skip
                value = f"[{value} EXCEPT {', '.join(entries)}]"
            lines.append(f"  /\\ {self.called[name]} = {value}")
        if self.subject.rules:
            lines.append(f"  /\\ broken = {NONE}")
        return "\n".join(lines)

    def _action(self, action: ir.Step) -> str:
        """A step. TLC evaluates a definition within an action at every use, and within a value once: what takes
        definitions is an operator of its own, whose one value is named by a quantifier."""
        text, name = self.expressions(), self.steps[action.name]
        parameters = [text.bind(p.name) for p in action.params]
        call = f"({', '.join(parameters)})" if parameters else ""
        lines = [comment(doc_lines(action)), f"{name}{call} =="]
        for guard in action.guard:
            for part in guard.items if isinstance(guard, ir.And) else (guard,):
                lines += after("  /\\ ", guarded(text.text(part)))
        statements = Statements(text, self.subject.design.spec.variables, frozenset(self.subject.variables))
        statements.block(action.effects)
        changed = [v for v, now in text.now.items() if now != self.called[v]]
        ends = [Definition(self.called[v], [text.now[v]]) for v in changed]
        same = [self.called[v] for v in self.subject.variables if v not in changed]
        decided = [Definition(text.taken.new("verdict"), verdict(statements.checks), OPEN)] if statements.checks else []
        defined = [*tidy(statements.defined, [*ends, *decided]), *decided]
        if not defined:
            same += ["broken"] if self.subject.rules else []
            return "\n".join([*lines, *after("  ", [*bullets(ends), *unchanged(same)])])
        effect, next_ = self.taken.new(f"{name}_effect"), text.taken.new("next")
        whole = record([*ends, *([Definition("broken", [NONE])] if decided else [])])
        if decided:
            broken = decided[0].name
            whole = [f"IF {broken} = {NONE}", *after("THEN ", whole), f"ELSE [broken |-> {broken}]"]
        told = "or the rule that it breaks" if decided else "where they change"
        head = [f"\\* What {name} makes of the values, {told}.", f"{effect}{call} =="]
        head += [*after("  ", let(defined, whole)), ""]
        taken = [f"/\\ {e.name}' = {next_}.{e.name}" for e in ends]
        if decided:
            taken = after("THEN ", [*taken, *unchanged([*same, "broken"])])
            taken = [f"IF {next_}.broken = {NONE}", *taken, f"ELSE broken' = {next_}.broken /\\ UNCHANGED state"]
        else:
            taken += unchanged([*same, *(["broken"] if self.subject.rules else [])])
        return "\n".join([*head, *lines, f"  /\\ \\E {next_} \\in {{{effect}{call}}} :", *after("       ", taken)])

    def _next(self) -> str:
        lines = []
        for action in self.model.actions:
            text = self.expressions()
            by_type: dict[str, list[str]] = {}
            for p in action.params:
                by_type.setdefault(self.types.domain(p.type), []).append(text.bind(p.name))
            bound = ", ".join(f"{', '.join(names)} \\in {domain}" for domain, names in by_type.items())
            names = [text.names[p.name] for p in action.params]
            call = f"{self.steps[action.name]}({', '.join(names)})" if names else self.steps[action.name]
            lines.append(f"\\/ \\E {bound} : {call}" if bound else f"\\/ {call}")
        body = after("  ", lines)
        if self.subject.rules:
            body = [f"  /\\ broken = {NONE}", *after("  /\\ ", lines)]
        return "\n".join(["Next ==", *body, "", "Spec == Init /\\ [][Next]_vars"])

    def _rules(self) -> list[str]:
        spec, invariants = self.subject.design.spec, {i.name for i in self.model.invariants}
        parts = []
        for rule in self.subject.rules:
            if rule in invariants:
                continue
            declared = spec.rules[rule]
            lines = [declared.statement]
            if "Source" in declared.labels:
                lines.append(f"Source: {declared.labels['Source']}")
            parts.append(f'{comment(lines)}\n{self.steps[rule]} == broken # "{rule}"')
        return parts

    def _fact(self, step: ir.Step) -> str:
        text = self.expressions()
        assert step.value is not None
        lines = text.text(step.value).lines
        if step.kind == "invariant" and step.name in self.subject.rules:
            lines = [f'/\\ broken # "{step.name}"', *after("/\\ ", lines)]
        return "\n".join([comment(doc_lines(step)), f"{self.steps[step.name]} ==", *after("  ", lines)])

    def _configuration(self) -> str:
        lines = [f"\\* {self.subject.command}", "SPECIFICATION Spec", "CONSTANTS", "  None = None"]
        for s in self.types.sorts:
            lines += [f"  {m} = {m}" for m in self.types.members[s]]
            lines.append(f"  {self.types.sorts[s]} = {{{', '.join(self.types.members[s])}}}")
        lines += [f"  {name} = {self.subject.sizes.limits[p]}" for p, name in self.types.limits.items()]
        checked = dict.fromkeys((*self.subject.rules, *(i.name for i in self.model.invariants)))
        lines += ["INVARIANTS", "  TypeOK", *(f"  {self.steps[c]}" for c in checked)]
        lines += ["SYMMETRY Symmetry"] if self.exchangeable else []
        for w in self.model.witnesses:
            lines.append(f"\\* {self.steps[w.name]} is to be reachable: as an INVARIANT, its negation fails")
        return (
            "\n".join([*lines, "\\* A state in which nothing is left to do is a legal end.", "CHECK_DEADLOCK FALSE"])
            + "\n"
        )


def guarded(text: Text) -> list[str]:
    """A guard as a value: TLC takes each part of a disjunction within a step for a step of its own."""
    return text.lines if text.hold < OPEN else after("(", text.lines, ") = TRUE")


def unchanged(names: list[str]) -> list[str]:
    return wrapped("/\\ UNCHANGED <<", names, ">>") if names else []


def comment(lines: list[str]) -> str:
    safe = [line.replace("*)", "* )").replace("(*", "( *").rstrip() for line in lines]
    return "\n".join(f"{'(* ' if n == 0 else '   '}{line}".rstrip() for n, line in enumerate(safe)) + " *)"


def wrapped(head: str, words: list[str], tail: str) -> list[str]:
    """Words with commas between them, in lines that fit."""
    lines, line = [], head
    for n, word in enumerate(words):
        piece = word + (", " if n < len(words) - 1 else tail)
        if len(line) + len(piece) > WIDTH:
            lines.append(line.rstrip())
            line = " " * len(head)
        line += piece
    return [*lines, line if words else line + tail]
