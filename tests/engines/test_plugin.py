"""The entry point keeps out of the way: nothing without KVSAN_RECORD, a warning where it knows no engine."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest
from kvsan.traces.engines import plugin


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin, "_installed", False)


def test_vllm_finds_the_entry_point() -> None:
    (found,) = [e for e in importlib.metadata.entry_points(group="vllm.general_plugins") if e.name == "kvsan"]
    assert found.load() is plugin.register


def test_without_a_path_nothing_is_touched(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("KVSAN_RECORD", raising=False)
    monkeypatch.setattr(plugin, "_install", lambda version: pytest.fail("hooked an engine unasked"))
    plugin.register()
    assert capsys.readouterr().err == ""


def test_an_unknown_release_is_refused_loudly_and_left_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("KVSAN_RECORD", str(tmp_path / "run.jsonl"))
    monkeypatch.setattr(plugin, "release", lambda: "0.99.0")
    plugin.register()
    said = capsys.readouterr().err
    assert "vLLM 0.99.0 is not known to this recorder (known: 0.6.2, 0.9.1, 0.32.0); nothing is recorded" in said
    assert list(tmp_path.iterdir()) == []


def test_a_hook_that_cannot_be_placed_does_not_break_the_engine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Here there is no vLLM at all, so every import of the adapter fails."""
    monkeypatch.setenv("KVSAN_RECORD", str(tmp_path / "run.jsonl"))
    monkeypatch.setattr(plugin, "release", lambda: "0.9.1")
    plugin.register()
    assert "cannot record this engine: ModuleNotFoundError" in capsys.readouterr().err
