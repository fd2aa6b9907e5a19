"""The corpus logs of vLLM are what vLLM does: record every scenario again and compare.

The engines live in virtual environments of their own, in the folder that KVSAN_ENGINES names (default `.engines`):

    python -m kvsan.traces.engines.env vllm-0.6.2 --into .engines/vllm-0.6.2
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import warnings
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from kvsan.traces.engines.env import DEFAULT, RECIPES, built_by, python
from kvsan.traces.engines.record_command import record
from kvsan.traces.read import open_log

CORPUS = Path(__file__).parents[2] / "traces" / "corpus"
ACCEPTED = CORPUS / "accept"
ENGINES = Path(os.environ.get("KVSAN_ENGINES", DEFAULT)).absolute()
COMMAND = "python -m kvsan.traces.engines.scenarios_vllm "
NAMES = {"branch": "r", "parent": "r", "block": "b", "blocks": "b", "src": "b", "dst": "b", "hash": "h", "op": "o"}


def header(path: Path) -> dict[str, Any]:
    with path.open() as lines:
        first: dict[str, Any] = json.loads(next(lines))
    return first


def recorded() -> dict[Path, str]:
    """Corpus logs that a scenario of ours made, and the scenario's name."""
    commands = {path: str(header(path).get("x_command", "")) for path in sorted(CORPUS.glob("*/vllm-*.jsonl"))}
    return {path: command.removeprefix(COMMAND) for path, command in commands.items() if command.startswith(COMMAND)}


LOGS = recorded()
each_log = pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)


@each_log
def test_a_recorded_log_is_well_formed_and_says_where_it_comes_from(path: Path) -> None:
    log = open_log(path)
    kinds = {type(event).__name__ for batch in log.batches() for _, event in batch}
    assert log.problem is None
    assert {"Admit", "Alloc", "Map", "Free", "Finish", "Ref", "Pool", "Quiescent"} <= kinds
    says = header(path)
    assert says["x_expect"] == {"accept": "HOLDS", "reject": "VIOLATED"}[path.parent.name]
    assert says["x_scenario"]
    assert says["discipline"] == discipline_of(path)
    assert f"vllm-{says['version']}" in RECIPES


def discipline_of(path: Path) -> str:
    if "-v1-cow-" in path.name:
        return "append_only_cow"
    return "append_only" if "-v1-" in path.name else "paged_cow"


def test_the_recorded_logs_cover_what_engines_do() -> None:
    wanted = {
        "fork-three", "fork-five", "full-prompt", "one-slot-tail", "beam-search", "cancel-midway", "abort",
        "prefix-hit", "prefix-hit-same-step", "evict-and-reuse", "preempt", "preempt-and-resume", "swap-forked-group",
        "parallel-sampling", "speculative", "lookahead", "equal-full-block", "sliding-window", "hybrid",
        "partial-tail", "partial-tail-shared", "partial-tail-cancelled", "async-scheduling", "async-abort",
        "async-partial-tail", "async-abort-fenced",
    }  # fmt: skip
    assert wanted <= {re.sub(r"vllm-[\d.]+-(live-)?(v0-|v1-)?(cow-)?", "", path.stem) for path in LOGS}


def events(path: Path) -> Iterator[dict[str, Any]]:
    with path.open() as lines:
        next(lines)
        for line in lines:
            event = json.loads(line)
            if not event["ev"].startswith("x_"):
                yield event


def renamed(path: Path) -> Counter[str]:
    """The events as a multiset, each name and block replaced by its order of appearance."""
    known: dict[tuple[str, object], str] = {}

    def new(kind: str, value: object) -> object:
        if isinstance(value, list):
            return [new(kind, item) for item in value]
        return known.setdefault((kind, value), f"{kind}{len(known)}")

    def step(event: dict[str, Any]) -> dict[str, Any]:
        event["copies"] = [[new("b", src), new("b", dst), lo, hi] for src, dst, lo, hi in event.get("copies", [])]
        event["writes"] = [[new("r", r), new("b", b), lo, hi] for r, b, lo, hi in event.get("writes", [])]
        event["reads"] = [[new("r", r), upto] for r, upto in event.get("reads", [])]
        return event

    def rename(event: dict[str, Any]) -> dict[str, Any]:
        del event["seq"]
        event |= {key: new(NAMES[key], value) for key, value in sorted(event.items()) if key in NAMES}
        return step(event) if event["ev"] == "step" else event

    return Counter(json.dumps(rename(event), sort_keys=True) for event in events(path))


def engine_of(path: Path) -> str:
    return f"vllm-{header(path)['version']}"


@cache
def again(engine: str, folder: Path) -> str:
    """Record every scenario of one engine again. Returns what was said."""
    names = [name for path, name in LOGS.items() if engine_of(path) == engine]
    command = [str(python(ENGINES / engine)), *COMMAND.split()[1:], *names, "--into", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder).stderr


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("recorded")


def needs(engine: str) -> Path:
    """The engine's Python. Skips, and says so loudly, where the engine is not installed, or not to its end."""
    if built_by(ENGINES / engine) is None:
        what = f"{engine} is not installed in {ENGINES}: build it with python -m kvsan.traces.engines.env {engine}"
        warnings.warn(f"NOT RECORDED AGAIN: {what}", stacklevel=2)
        pytest.skip(what)
    return python(ENGINES / engine)


@pytest.mark.engine
@each_log
def test_recording_again_gives_the_same_events(path: Path, folder: Path) -> None:
    needs(engine_of(path))
    said = again(engine_of(path), folder)
    assert (folder / path.name).exists(), said[-2000:]
    assert renamed(folder / path.name) == renamed(path)


USER_SCRIPT = """
import vllm
from kvsan.traces.engines import scenarios_live
scenarios_live.fork_three()
"""


@pytest.mark.engine
def test_a_script_that_knows_nothing_of_recording_is_recorded(tmp_path: Path) -> None:
    """The script stands for a user's. Only the kernels that this machine lacks are ours."""
    interpreter, out = needs("vllm-0.6.2"), tmp_path / "run.jsonl"
    assert record([str(interpreter), "-c", USER_SCRIPT], out) == 0
    assert renamed(out) == renamed(ACCEPTED / "vllm-0.6.2-live-fork-three.jsonl")
