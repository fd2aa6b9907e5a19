"""What every change has to pass: format, lint, strict types, the direction of imports, and a README that is true."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from kvsan.spec.designs.catalog import DESIGNS
from kvsan.spec.ownership.disciplines import DISCIPLINES

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def run(*command: str, cwd: Path = ROOT, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, env={**os.environ, **env})


def test_the_code_is_formatted_and_lint_free() -> None:
    for arguments in (("format", "--check", "."), ("check", ".")):
        done = run(sys.executable, "-m", "ruff", *arguments)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_packages_are_strictly_typed(tmp_path: Path) -> None:
    package = tmp_path / "kvsan"
    package.mkdir()
    for part in ("spec", "traces", "checker"):
        shutil.copytree(ROOT / part, package / part, ignore=shutil.ignore_patterns("corpus", "__pycache__"))
    parts = [argument for part in ("spec", "traces", "checker") for argument in ("-p", f"kvsan.{part}")]
    settings = ("--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(ROOT / ".mypy_cache"))
    done = run(sys.executable, "-m", "mypy", *settings, *parts, cwd=tmp_path, MYPYPATH=str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr


def imported(path: Path) -> set[str]:
    """The packages that a file imports: by their first names, ours by their second."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module)
    return {name.removeprefix("kvsan.").split(".")[0] for name in names}


@pytest.mark.parametrize(("package", "forbidden"), [("spec", {"traces", "checker"}), ("traces", {"checker"})])
def test_imports_point_one_way(package: str, forbidden: set[str]) -> None:
    for path in (ROOT / package).rglob("*.py"):
        assert not imported(path) & forbidden, path


def test_the_specification_needs_the_standard_library_only() -> None:
    for path in (ROOT / "spec").rglob("*.py"):
        assert imported(path) <= sys.stdlib_module_names | {"spec"}, path


def block(kind: str) -> str:
    """The README's first block of a kind."""
    found = re.search(rf"^```{kind}\n(.*?)^```", README, re.M | re.S)
    assert found
    return found[1]


def test_the_readme_shows_what_the_command_prints(tmp_path: Path) -> None:
    (tmp_path / "beam.jsonl").write_text(block("jsonl"))
    command = "import sys; from kvsan.checker.cli import main; sys.argv[:1] = []; main()"
    done = run(sys.executable, "-c", command, "kvsan", "check", "beam.jsonl", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout.startswith(block("text"))


def test_the_readme_python_runs() -> None:
    done = run(sys.executable, "-c", block("python"))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "hit_is_live at line 35\n"


def test_the_readme_commands_name_what_ships() -> None:
    for path in re.findall(r"traces/corpus/[\w./-]+", README):
        assert (ROOT / path.rstrip(".")).exists(), path


def test_the_readme_leads_to_what_is_there_and_counts_it() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert "spec/designs/reviews/tail_copy.md" in links
    assert [link for link in links if not (ROOT / link).is_file()] == []
    bugs = json.loads((ROOT / "traces" / "corpus" / "bugs.json").read_text(encoding="utf-8"))
    assert f"The {len(bugs)} public bugs" in README
    assert "Six engine designs" in README and len(DESIGNS) == 6
    assert all(f"`{name}`" in README for name in DESIGNS)


def test_the_readme_lists_the_disciplines_that_exist() -> None:
    assert set(re.findall(r"^\| `(\w+)` \|.*\|.*\|$", README, re.M)) == set(DISCIPLINES)
