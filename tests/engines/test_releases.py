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
from kvsan.traces.engines.releases.scenarios import SCENARIOS, record

CORPUS = Path(__file__).parents[2] / "traces" / "corpus"
RECORDED = [(name, release) for name, scenario in SCENARIOS.items() for release in scenario.faulty + scenario.fixed]


def corpus_log(name: str, release: str) -> Path:
    side = "reject" if release in SCENARIOS[name].faulty else "accept"
    return CORPUS / side / f"{name}-{release.rpartition('-')[2]}.jsonl"


def read(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    header, *events = map(json.loads, path.read_text().splitlines())
    return header, events


def renamed(events: list[dict[str, Any]]) -> Counter[str]:
    """Events with every block and name replaced by its order of first appearance."""
    names: dict[tuple[str, object], int] = {}
    kinds = {"block": "block", "src": "block", "dst": "block", "branch": "branch", "parent": "branch"}
    kinds |= {"hash": "hash", "holder": "holder", "digest": "digest"}

    def new_name(kind: str, value: object) -> object:
        if isinstance(value, list):
            return [new_name(kind, item) for item in value]
        return names.setdefault((kind, str(value)), len(names))

    def rename(event: dict[str, Any]) -> dict[str, Any]:
        named = {key: new_name(kinds[key], value) for key, value in event.items() if key in kinds}
        return {key: value for key, value in event.items() if key != "seq"} | named

    return Counter(json.dumps(rename(event), sort_keys=True) for event in events)


@pytest.mark.parametrize(("name", "release"), RECORDED)
def test_every_release_of_a_scenario_has_its_log(name: str, release: str) -> None:
    header, events = read(corpus_log(name, release))
    assert (header["engine"], header["version"]) == split_release(release)
    assert header["x_provenance"] == SCENARIOS[name].issue
    assert header["x_rule"] == SCENARIOS[name].rule
    assert header["x_expect"] == ("VIOLATED" if release in SCENARIOS[name].faulty else "HOLDS")
    assert events


def test_the_faulty_and_the_fixed_log_differ() -> None:
    for name, scenario in SCENARIOS.items():
        for faulty in scenario.faulty:
            for fixed in scenario.fixed:
                assert read(corpus_log(name, faulty))[1] != read(corpus_log(name, fixed))[1], name


def test_a_scenario_refuses_a_release_it_is_not_about(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"vllm-4764 is about vllm-0\.4\.2, vllm-0\.4\.3"):
        record("vllm-4764", tmp_path / "vllm-0.9.1", tmp_path / "log.jsonl")


def test_a_release_needs_a_version() -> None:
    assert split_release("nano-vllm-fork-0.2.0.post1") == ("nano-vllm-fork", "0.2.0.post1")
    with pytest.raises(ValueError, match="PACKAGE-VERSION"):
        split_release("vllm")


@pytest.fixture(scope="session")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    kept = os.environ.get("KVSAN_ENGINES")
    return Path(kept) if kept else tmp_path_factory.mktemp("engines")


@pytest.mark.engine
@pytest.mark.parametrize(("name", "release"), RECORDED)
def test_recording_again_gives_the_committed_log(name: str, release: str, engines: Path, tmp_path: Path) -> None:
    try:
        engine_dir = build(release, engines)
    except RuntimeError as problem:
        pytest.skip(f"NOT RE-RECORDED: {release} cannot be built here: {problem}")
    again = tmp_path / corpus_log(name, release).name
    command = [sys.executable, "-m", "kvsan.traces.engines.releases.scenarios", name]
    done = subprocess.run(
        [*command, "--engine-dir", str(engine_dir), "--out", str(again)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert read(again)[0] == read(corpus_log(name, release))[0]
    assert renamed(read(again)[1]) == renamed(read(corpus_log(name, release))[1])
