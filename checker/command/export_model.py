"""`kvsan export --to tla|promela`: the input of another model checker, in a folder, and how to run it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kvsan.checker.explore.design import find
from kvsan.checker.explore.symmetry import symmetry
from kvsan.checker.export.promela import promela
from kvsan.checker.export.subject import CannotExport, Subject, settings_text, subject
from kvsan.checker.export.tla import tla

from .explore import changes
from .usage import Refused, refuse_unknown

MODELS = ("tla", "promela")
SPIN = "spin -a -o2 {0} && gcc -O2 -DSAFETY -DNOREDUCE -DNOFAIR -o pan pan.c && ./pan -m10000000"
TLC = "java -cp tla2tools.jar tlc2.TLC -config {0}.cfg {0}.tla"
EXCHANGED = {"none": (), "blocks": ("Block",), "full": ("Block", "Branch")}


@dataclass(frozen=True)
class ModelRequest:
    """What is asked of it."""

    design: str
    to: str
    folder: Path = Path()
    settings: Sequence[str] = ()
    scope: str = ""
    mutant: str = ""
    symmetry: str = "full"
    lints: bool = False
    without: Sequence[str] = ()

    def command(self, verb: str, *more: str) -> str:
        """The same design and scope as a command line."""
        parts = ["kvsan", verb, self.design, *more]
        parts += ["--scope", self.scope] if self.scope else []
        parts += [part for s in self.settings for part in ("--set", s)]
        parts += ["--mutant", self.mutant] if self.mutant else []
        parts += ["--lints"] if self.lints else []
        parts += [part for rule in self.without for part in ("--without", rule)]
        return shlex.join(parts)


@dataclass(frozen=True)
class Written:
    """Files by their names; how to run them, in their folder; the symmetry with which the explorer counts the same."""

    files: dict[str, str]
    run: str
    symmetry: str
    note: str


def write(request: ModelRequest) -> str:
    """Write the files. Returns what to say about them. Raises BadDesign, SpecError, Refused."""
    design = find(request.design)
    refuse_unknown("--without", request.without, design.spec.rules, "rule")
    chosen = changes(request.settings), request.scope, request.mutant
    command = request.command("export", "--to", request.to)
    exported = subject(design, *chosen, request.lints, request.without, command)
    try:
        made = written(request, exported)
    except CannotExport as error:
        raise Refused(f"{request.design} has no exact form in {request.to}: {error}") from error
    save(request.folder, made)
    return told(request, exported, made)


def written(request: ModelRequest, exported: Subject) -> Written:
    """The files. Raises CannotExport."""
    foreign = next((n for n in exported.names if not n.isascii()), "")
    if foreign:
        raise CannotExport(f"the names of both languages are of plain letters: rename `{foreign}`")
    if request.to == "promela":
        name = f"{exported.design.name}.pml"
        return Written({name: promela(exported)}, SPIN.format(shlex.quote(name)), "none", "")
    used = symmetry(exported.model, request.symmetry)
    made = tla(exported, EXCHANGED[used.name])
    files = {f"{made.name}.tla": made.module, f"{made.name}.cfg": made.configuration}
    return Written(files, TLC.format(made.name), used.name, used.note)


def save(folder: Path, made: Written) -> None:
    """Write the files. Raises Refused."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in made.files.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise Refused(f"--output {folder} cannot be written: {error.strerror}; name a folder of yours") from error


def told(request: ModelRequest, exported: Subject, made: Written) -> str:
    """What was written, how to run it, and what to compare it with."""
    lines = [f"wrote     {request.folder / name}" for name in made.files]
    lines.append(f"scope     {settings_text(exported)}")
    lines += [f"symmetry  {made.symmetry}"] if request.to == "tla" else []
    lines += [f"          not more: {made.note}"] if made.note else []
    there = "" if request.folder == Path() else f"cd {shlex.quote(str(request.folder))} && "
    lines.append(f"run       {there}{made.run}")
    more = "one state more than" if request.to == "promela" else "as many distinct states as"
    lines.append(f"expect    {more} {request.command('explore')} --symmetry {made.symmetry}")
    return "\n".join(lines) + "\n"
