"""A Promela model for SPIN: one process, whose loop takes one step in each turn.

Each choice of parameters of each action is one `d_step`, so that SPIN stores no state within a step. It counts one
state more than the explorer, before the start is set, and one transition more for each start. An invariant is an option
of the loop that is enabled only where it fails: judged once in each state, as in the explorer.
"""

from __future__ import annotations

import itertools

from kvsan.checker.explore.model import Start
from kvsan.checker.export.bounds import top_of
from kvsan.checker.export.names import Names
from kvsan.checker.export.promela_expr import NONE, Cell, Expressions, declared
from kvsan.checker.export.promela_step import MARGIN, Statements, default_text
from kvsan.checker.export.subject import Subject, doc_lines, settings_text
from kvsan.spec.lang import ir
from kvsan.spec.lang.interpret import Value
from kvsan.spec.lang.symbolic import size_of

WORDS = """
    active assert atomic bit bool break byte chan cond_expr d_step D_proctype do else empty enabled end eval false fi
    float for full get_priority goto hidden if in init inline int len local ltl mtype nempty never nfull notrace np_ od
    of pc_value pid printf printm priority proctype progress provided return run select set_priority short show skip
    STDIN timeout trace true true typedef undef unless unsigned xr xs _ _last _nr_pr _pid _priority
    auto case char const continue default double enum extern long register signed sizeof static struct switch union void
    volatile while define include ifdef endif
    now design start None some below obey
"""
"""The words of Promela and C, and those of the frame."""

FRAME = f"""#define None {NONE}
#define some(x) (x != None -> x : 9999)  /* None where a value is needed is out of every range */
#define below(x, n) (x < n -> x : 9999)  /* an index out of its range is out of every range */
#define obey(rule, holds) breaks_##rule = !(holds); assert(!breaks_##rule)
"""


def promela(subject: Subject) -> str:
    """The model. Raises CannotExport."""
    return _Promela(subject).text()


class _Promela:
    def __init__(self, subject: Subject) -> None:
        self.subject, self.sizes = subject, subject.sizes
        self.taken = Names(set(WORDS.split()))
        variables = subject.variables.values()
        called = self.taken.all(subject.variables)
        self.cells = {
            v.name: Cell(called[v.name], v.value, v.keys, tuple(size_of(k, self.sizes) for k in v.keys))
            for v in variables
        }
        model = subject.model
        self.steps = self.taken.all(s.name for s in (*model.actions, *model.invariants))
        self.broken = tuple(dict.fromkeys((*subject.rules, *(i.name for i in model.invariants))))
        self.choices: dict[tuple[str, int], str] = {}
        for choice in subject.design.spec.choices.values():
            for n, name in enumerate(choice.names):
                self.choices[choice.name, n] = self.taken.new(name)
        self.locals: dict[str, str] = {}
        self.parameters = {p.name for a in model.actions for p in a.params}

    def text(self) -> str:
        model = self.subject.model
        actions = [self._action(a) for a in model.actions]
        invariants = [self._invariant(i) for i in model.invariants]
        rest = [*actions, *invariants, self._process()]
        parts = [self._head(), FRAME, self._choices(rest), self._state(), self._hidden(), *rest]
        return "\n".join(p for p in parts if p)

    def _head(self) -> str:
        lines = [
            f"{self.subject.design.name}: {self.subject.command}",
            f"scope: {settings_text(self.subject)}",
            "",
            "spin -a -o2 FILE; gcc -O2 -DSAFETY -DNOREDUCE -DNOFAIR -o pan pan.c; ./pan -m10000000",
            "-o2 keeps in a state what is only written. For a shortest counterexample: gcc -DREACH, ./pan -i.",
            "An entry m[i, j] is m[i * size of j + j]; a set is a mask; names that end in _ live within one step.",
        ]
        return _comment(lines) + "\n"

    def _choices(self, texts: list[str]) -> str:
        every = " ".join(texts)
        used = [f"#define {name} {n}" for (_, n), name in self.choices.items() if name in every]
        return "\n".join(used) + "\n" if used else ""

    def _state(self) -> str:
        lines = []
        for name, v in self.subject.variables.items():
            cell, count = self.cells[name], 1
            for size in cell.shape:
                count *= size
            shape = f"[{count}]" if v.keys else ""
            value = default_text(v.value)
            keys = ", ".join(map(str, v.keys))
            meaning = f"{keys} -> {v.value}" if keys else str(v.value)
            lines.append(f"{declared(v, self.sizes)} {cell.name}{shape} = {value};  /* {meaning} */")
        return "\n".join(lines) + "\n"

    def _hidden(self) -> str:
        lines = [f"hidden byte breaks_{rule};" for rule in self.broken]
        lines += [f"hidden int {name};" for name in self.locals.values()]
        return "\n".join(lines) + "\n"

    def _local(self, name: str) -> str:
        if name not in self.locals:
            wanted = f"{name}_"
            while wanted in self.parameters:  # an inline step writes what a parameter stands for in its place
                wanted += "_"
            self.locals[name] = self.taken.new(wanted)
        return self.locals[name]

    def _expressions(self, stem: str, taken: Names) -> Expressions:
        return Expressions(self.cells, self.choices, self.sizes, taken, stem)

    # --- steps --------------------------------------------------------------------------------------------------------

    def _action(self, action: ir.Step) -> str:
        inner, name = self.taken.inner(), self.steps[action.name]
        text = self._expressions(name, self.taken)
        for p in action.params:
            text.names[p.name], text.bounds.names[p.name] = inner.new(p.name), top_of(p.type, self.sizes)
        guard = " && ".join(map(text.text, action.guard)) or "true"
        statements = Statements(text, dict(self.subject.design.spec.variables), self._local)
        statements.block(action.effects)
        parameters = ", ".join(text.names[p.name] for p in action.params)
        shown = "".join(f", {text.names[p.name]}" for p in action.params)
        told = f"{name}({', '.join('%d' for _ in action.params)})"
        head = [f"inline {name}({parameters}) {{", f"{MARGIN}d_step {{", f"{MARGIN * 2}{guard} ->"]
        head.append(f'{MARGIN * 2}printf("{told}\\n"{shown});')
        tail = [f"{MARGIN * 2}skip", f"{MARGIN}}}", "}"]  # SPIN compiles no d_step that ends with a loop
        return self._step(action, text, [*head, *statements.lines, *tail])

    def _invariant(self, step: ir.Step) -> str:
        text = self._expressions(step.name, self.taken)
        assert step.value is not None
        value = text.text(step.value)
        return self._step(step, text, [f"#define {self.steps[step.name]}  {value}"])

    @staticmethod
    def _step(step: ir.Step, text: Expressions, lines: list[str]) -> str:
        return "\n".join([_comment(doc_lines(step)), *text.macros, *lines]) + "\n"

    def _process(self) -> str:
        lines = ["active proctype design() {"]
        starts = [self._start(s) for s in self.subject.begun]
        if len(starts) == 1:
            lines.append(f"{MARGIN}{starts[0]};")
        else:
            lines += [f"{MARGIN}if", *(f"{MARGIN}:: {s}" for s in starts), f"{MARGIN}fi;"]
        lines += ["end:  /* nothing is left to do: a legal end */", f"{MARGIN}do"]
        for action in self.subject.model.actions:
            for values in itertools.product(*(self._values(p.type) for p in action.params)):
                lines.append(f"{MARGIN}:: {self.steps[action.name]}({', '.join(values)})")
        for step in self.subject.model.invariants:
            failed = f"breaks_{step.name} = true; assert(!breaks_{step.name})"
            lines.append(f"{MARGIN}:: d_step {{ !({self.steps[step.name]}) -> {failed} }}")  # `!!` is no negation
        return "\n".join([*lines, f"{MARGIN}od", "}"]) + "\n"

    def _values(self, type_: ir.Type) -> list[str]:
        match type_:
            case ir.OptionType(inner):
                return ["None", *self._values(inner)]
            case ir.ChoiceType(name, names):
                return [self.choices[name, n] for n in range(len(names))]
            case _:
                return [str(n) for n in range(size_of(type_, self.sizes))]

    def _start(self, start: Start) -> str:
        stores = []
        for name, cell in self.cells.items():
            for index, value in sorted(self.subject.start(start, name).items()):
                place = Expressions.place(cell, [str(i) for i in index])
                stores.append(f"{place} = {self._number(value)}")
        return f"d_step {{ /* {start.step} */ {'; '.join(stores) or 'skip'} }}"

    @staticmethod
    def _number(value: Value) -> str:
        if value is None:
            return "None"
        return str(sum(1 << m for m in value) if isinstance(value, frozenset) else int(value))


def _comment(lines: list[str]) -> str:
    safe = [line.replace("*/", "* /").rstrip() for line in lines]
    return "\n".join(f"{'/* ' if n == 0 else '   '}{line}".rstrip() for n, line in enumerate(safe)) + " */"
