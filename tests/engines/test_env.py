"""An engine's environment is complete, made by the recipe of today, or not there. pip itself is not run here."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from kvsan.traces.engines import env


@pytest.fixture
def pips(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """pip's calls. A virtual environment is a folder with a python in it."""
    calls: list[tuple[str, ...]] = []

    def venv(command: list[str], check: bool) -> None:
        into = Path(command[-1])
        (into / "bin").mkdir(parents=True)
        (into / "bin" / "python").touch()

    monkeypatch.setattr(env, "pip", lambda environment, *arguments: calls.append(arguments))
    monkeypatch.setattr(subprocess, "run", venv)
    monkeypatch.setitem(env.RECIPES, "engine-1", env.Recipe((("one",), ("two", "three"))))
    return calls


def test_a_new_environment_gets_every_step_and_kvsan_last(pips: list[tuple[str, ...]], tmp_path: Path) -> None:
    env.build("engine-1", tmp_path / "e")
    assert pips == [("install", "one"), ("install", "two", "three"), ("install", *env.kvsan_itself())]


def test_a_finished_environment_only_gets_kvsan_again(pips: list[tuple[str, ...]], tmp_path: Path) -> None:
    env.build("engine-1", tmp_path / "e")
    pips.clear()
    env.build("engine-1", tmp_path / "e")
    assert pips == [("install", *env.kvsan_itself())]


def test_an_environment_of_an_older_recipe_is_built_anew(
    pips: list[tuple[str, ...]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env.build("engine-1", tmp_path / "e")
    monkeypatch.setitem(env.RECIPES, "engine-1", env.Recipe((("four",),)))
    pips.clear()
    env.build("engine-1", tmp_path / "e")
    assert ("install", "four") in pips


def test_a_step_that_fails_leaves_nothing_behind(
    pips: list[tuple[str, ...]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(environment: Path, *arguments: str) -> None:
        raise subprocess.CalledProcessError(1, "pip")

    monkeypatch.setattr(env, "pip", fail)
    with pytest.raises(subprocess.CalledProcessError):
        env.build("engine-1", tmp_path / "e")
    assert not (tmp_path / "e").exists()


def test_a_folder_that_is_something_else_is_left_alone(pips: list[tuple[str, ...]], tmp_path: Path) -> None:
    (tmp_path / "mine.txt").touch()
    with pytest.raises(FileExistsError):
        env.build("engine-1", tmp_path)
    assert (tmp_path / "mine.txt").exists()
