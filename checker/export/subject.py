"""What is exported: the steps that a search of this scope runs, and where it starts."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from kvsan.checker.explore.design import Design, Scoped, scoped
from kvsan.checker.explore.emit import Model
from kvsan.checker.explore.model import Start, model, starts
from kvsan.spec.designs.settings import as_set
from kvsan.spec.lang import ir
from kvsan.spec.lang.interpret import Value, default
from kvsan.spec.lang.symbolic import Sizes
from kvsan.spec.lang.walk import all_statements


class CannotExport(Exception):
    """The target cannot hold this design exactly: the message says what, and what to do."""


@dataclass(frozen=True)
class Subject:
    """A design in a scope. command: what made it. variables: those of a state, in the order of the specification."""

    design: Design
    scoped: Scoped
    begun: tuple[Start, ...]
    model: Model
    variables: Mapping[str, ir.Variable]
    command: str

    @property
    def sizes(self) -> Sizes:
        return self.scoped.sizes

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules that the steps may break, in the order in which they are judged."""
        judged = (s.rule for a in self.model.actions for s in all_statements(a.effects) if isinstance(s, ir.Obey))
        return tuple(dict.fromkeys(judged))

    @property
    def names(self) -> Iterator[str]:
        """Those of the state, the steps and all that is in them, as the design spells them."""
        yield self.design.spec.state
        yield from self.variables
        yield from (name for choice in self.design.spec.choices.values() for name in choice.names)
        for step in (*self.model.actions, *self.model.invariants, *self.model.witnesses):
            yield step.name
            yield from (p.name for p in step.params)
            yield from (s.name for s in all_statements(step.effects) if isinstance(s, ir.Let | ir.For))

    def start(self, which: Start, variable: str) -> Mapping[tuple[int, ...], Value]:
        """The entries of a variable at a start, without those that are the default."""
        absent = default(self.variables[variable].value)
        return {i: v for i, v in which.state.get(variable, {}).items() if v != absent}


def subject(
    design: Design,
    changes: Mapping[str, str] | None = None,
    scope: str = "",
    mutant: str = "",
    lints: bool = False,
    without: Collection[str] = (),
    command: str = "",
) -> Subject:
    """The design in one scope, chosen as `explore` chooses it. lints: judge those too. Raises BadDesign."""
    chosen = scoped(design, changes, scope, mutant)
    begun = starts(design.spec, chosen)
    made = model(design.spec, chosen, begun, lints, without)
    kept = {n: design.spec.variables[n] for n in made.working.fields}
    return Subject(design, chosen, begun, made, kept, command or shlex.join(["kvsan", "export", design.name]))


def settings_text(subject: Subject) -> str:
    """The scope in the names of `--set`."""
    return as_set(subject.scoped.settings)


def doc_lines(step: ir.Step) -> list[str]:
    """A docstring as lines, without its margin."""
    return [line.strip() for line in step.doc.strip().splitlines()]
