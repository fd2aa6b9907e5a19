"""The corpus logs of faulty and fixed releases are what those releases do: record them again and compare.

Set KVSAN_ENGINES to a folder to keep the built releases between runs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from kvsan.traces.engines.releases.build import build, split_release
from kvsan.traces.engines.releases.catalogue import SCENARIOS
from kvsan.traces.engines.releases.scenarios import Log, logs, record
from kvsan.traces.read import open_log

CORPUS = Path(__file__).parents[2] / "traces" / "corpus"
each_log = pytest.mark.parametrize("log", logs(), ids=lambda log: log.path.stem)


def read(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    header, *events = map(json.loads, path.read_text().splitlines())
    header.pop("x_recorder", None)  # the corpus logs are older than the end mark that it announces
    return header, [event for event in events if event["ev"] != "x_closed"]


def renamed(events: list[dict[str, Any]]) -> Counter[str]:
    """Events with every block and name replaced by its order of first appearance."""
    names: dict[tuple[str, object], int] = {}
    kinds = {"block": "block", "src": "block", "dst": "block", "branch": "branch", "parent": "branch"}
    kinds |= {"hash": "hash", "holder": "holder", "digest": "digest", "published": "published"}

    def new_name(kind: str, value: object) -> object:
        if isinstance(value, list):
            return [new_name(kind, item) for item in value]
        return names.setdefault((kind, str(value)), len(names))

    def rename(event: dict[str, Any]) -> dict[str, Any]:
        named = {key: new_name(kinds[key], value) for key, value in sorted(event.items()) if key in kinds}
        return {key: value for key, value in event.items() if key != "seq"} | named

    return Counter(json.dumps(rename(event), sort_keys=True) for event in events)


@each_log
def test_every_release_of_a_scenario_has_its_log(log: Log) -> None:
    header, events = read(CORPUS / log.path)
    assert (header["engine"], header["version"]) == split_release(log.release)
    assert header["x_provenance"] == SCENARIOS[log.scenario].issue
    assert header["x_rule"] == SCENARIOS[log.scenario].rule
    assert header["x_expect"] == ("VIOLATED" if log.broken else "HOLDS")
    assert events


@each_log
def test_every_log_is_well_formed(log: Log) -> None:
    opened = open_log(CORPUS / log.path)
    written = [event for event in read(CORPUS / log.path)[1] if not event["ev"].startswith("x_")]
    assert sum(len(batch) for batch in opened.batches()) == len(written)
    assert opened.problem is None


@each_log
def test_the_fault_is_caught_by_its_rule_and_the_fix_is_silent(log: Log) -> None:
    checker = pytest.importorskip("kvsan.checker", reason="the checker is not there yet")
    if not hasattr(checker, "check"):
        pytest.skip("the checker is not there yet")
    report, scenario = checker.check(CORPUS / log.path), SCENARIOS[log.scenario]
    found = [(violation.rule, violation.line) for violation in report.violations]
    assert report.verdict == ("VIOLATED" if log.broken else "HOLDS")
    assert found[:1] == ([(scenario.rule, scenario.line)] if log.broken else [])


def test_every_faulty_release_has_a_log_without_the_fault_beside_it() -> None:
    for name in SCENARIOS:
        broken = [read(CORPUS / log.path)[1] for log in logs() if log.scenario == name and log.broken]
        sound = [read(CORPUS / log.path)[1] for log in logs() if log.scenario == name and not log.broken]
        assert broken and sound and not any(events in sound for events in broken), name


def test_a_scenario_refuses_a_release_it_is_not_about(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"vllm-4764 is about vllm-0\.4\.2, vllm-0\.4\.3"):
        record(Log("vllm-4764", "vllm-0.9.1"), tmp_path / "vllm-0.9.1", tmp_path / "log.jsonl")


def test_a_release_needs_a_version() -> None:
    assert split_release("nano-vllm-fork-0.2.0.post1") == ("nano-vllm-fork", "0.2.0.post1")
    with pytest.raises(ValueError, match="PACKAGE-VERSION"):
        split_release("vllm")


@pytest.fixture(scope="session")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    kept = os.environ.get("KVSAN_ENGINES")
    return Path(kept) / "releases" if kept else tmp_path_factory.mktemp("engines")


@pytest.mark.engine
@each_log
def test_recording_again_gives_the_committed_log(log: Log, engines: Path, tmp_path: Path) -> None:
    try:
        engine_dir = build(log.release, engines)
    except RuntimeError as problem:
        pytest.skip(f"NOT RE-RECORDED: {log.release} cannot be built here: {problem}")
    again = tmp_path / log.path.name
    command = [sys.executable, "-m", "kvsan.traces.engines.releases.scenarios", log.scenario]
    command += ["--corrected"] if log.corrected else []
    done = subprocess.run(
        [*command, "--engine-dir", str(engine_dir), "--out", str(again)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert read(again)[0] == read(CORPUS / log.path)[0]
    assert renamed(read(again)[1]) == renamed(read(CORPUS / log.path)[1])
