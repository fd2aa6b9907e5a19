"""Building a release's folder and importing from it without what the release needs."""

from __future__ import annotations

import importlib
import io
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from kvsan.traces.engines.releases import build as building
from kvsan.traces.engines.releases.build import build, python_files
from kvsan.traces.engines.releases.standins import open_release


def wheel(path: Path, **files: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def test_a_wheel_gives_its_python_files_only(tmp_path: Path) -> None:
    archive = wheel(tmp_path / "e-1-py3-none-any.whl", **{"e/core.py": "x = 1", "e/kernel.so": "", "e-1/METADATA": ""})
    assert [(str(path), content) for path, content in python_files(archive)] == [("e/core.py", b"x = 1")]


def test_a_source_archive_gives_the_same_paths_as_a_wheel(tmp_path: Path) -> None:
    archive = tmp_path / "e-1.tar.gz"
    with tarfile.open(archive, "w:gz") as source:
        member = tarfile.TarInfo("e-1/e/core.py")
        member.size = 5
        source.addfile(member, io.BytesIO(b"x = 1"))
    assert [str(path) for path, _ in python_files(archive)] == ["e/core.py"]


def test_a_file_outside_the_archive_is_refused_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = wheel(tmp_path / "e-1-py3-none-any.whl", **{"../outside.py": ""})
    monkeypatch.setattr(building, "download", lambda package, version, folder: archive)
    with pytest.raises(RuntimeError, match="outside itself"):
        build("e-1", tmp_path / "engines")
    assert list((tmp_path / "engines").iterdir()) == []


def test_a_built_release_is_not_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = wheel(tmp_path / "e-1-py3-none-any.whl", **{"e/core.py": "x = 1"})
    monkeypatch.setattr(building, "download", lambda package, version, folder: archive)
    assert build("e-1", tmp_path / "engines") == tmp_path / "engines" / "e-1"
    monkeypatch.setattr(building, "download", None)
    assert (build("e-1", tmp_path / "engines") / "e" / "core.py").read_text() == "x = 1"


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A release `kvsan_engine` whose `__init__` cannot run and whose core needs torch."""
    core = """
import torch
from torch.nn import Module
from kvsan_engine import config
class Layer(Module):
    def forward(self, x: torch.Tensor | None) -> "torch.Tensor": return x
@torch.compile(dynamic=True)
def doubled(x): return 2 * x
"""
    folder = tmp_path / "engine-1" / "kvsan_engine"
    folder.mkdir(parents=True)
    for name, text in {"__init__": "raise ImportError", "core": core, "config": "raise ImportError"}.items():
        (folder / f"{name}.py").write_text(text)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    before = set(sys.modules)
    yield folder.parent
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_a_release_is_imported_without_its_init_its_needs_and_what_is_not_used(release: Path) -> None:
    open_release(release, ("kvsan_engine",), ("kvsan_engine.config",))
    core = importlib.import_module("kvsan_engine.core")
    assert core.Layer().forward(3) == 3
    assert core.doubled(4) == 8


def test_a_folder_without_the_package_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="holds none of kvsan_engine: build it first"):
        open_release(tmp_path, ("kvsan_engine",))


def test_two_releases_do_not_share_a_process(release: Path, tmp_path: Path) -> None:
    open_release(release, ("kvsan_engine",))
    (tmp_path / "engine-2" / "kvsan_engine").mkdir(parents=True)
    with pytest.raises(RuntimeError, match="one process per release"):
        open_release(tmp_path / "engine-2", ("kvsan_engine",))
