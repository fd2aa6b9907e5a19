"""The tutorial's design is explored as it says, the README shows a part of it, and its counterexample is a log."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path

import pytest
from kvsan.checker.cli import main
from kvsan.checker.explore.design import find
from kvsan.checker.explore.mutants import catch

pytest.importorskip("llvmlite", reason="the compiled search needs the extra `explore`")

ROOT = Path(__file__).parents[2]
TUTORIAL = (ROOT / "spec" / "TUTORIAL.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)(?: (\w+)=(\S+))?\n(.*?)^```$", TUTORIAL, re.MULTILINE | re.DOTALL)


@pytest.fixture
def beams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    files = {name: body for _, key, name, body in BLOCKS if key == "file"}
    assert set(files) == {"beams.py", "beams_facts.py"}
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_its_commands_end_as_it_says(
    beams: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = [(body, int(value or 0)) for language, _, value, body in BLOCKS if language == "sh"]
    assert [text for text, _ in commands][3:] == ["kvsan prove beams.py\n"]
    said = [output(text, code, capsys, monkeypatch) for text, code in commands[:3]]
    assert "HOLDS in every state" in said[0]
    assert "split(r0, r1)" in said[1] and "append_in_place(r0)" in said[1]
    assert "violated exclusive_write" in said[1] and "violated exclusive_write" in said[2]


def output(text: str, code: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """What a command prints, which ends with this code."""
    monkeypatch.setattr("sys.argv", shlex.split(text))
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == code, text
    return capsys.readouterr().out


@pytest.mark.slow
def test_it_is_proved_and_without_its_facts_a_fact_is_missing(
    beams: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("z3", reason="needs the extra `prove`")
    said = output("kvsan prove beams.py", 0, capsys, monkeypatch)
    assert said.endswith("\nHOLDS for any number of blocks and branches\n")
    assert "positions=2 prompt=1" in said.splitlines()[0]
    (beams / "beams_facts.py").unlink()
    said = output("kvsan prove beams.py", 3, capsys, monkeypatch)
    assert "not proved free_once at end: block b was freed, but it is already free\n" in said
    assert said.count("a fact is missing") == said.count("  reached   ") > 3


@pytest.mark.slow
def test_a_wrong_decision_is_named_as_it_says(beams: Path) -> None:
    text = (beams / "beams.py").read_text(encoding="utf-8").replace("import Const", "import Choice, Const")
    said = '\n\nclass Mutant(Choice):\n    """A wrong decision."""\n\n    names = ("NONE", "APPEND_ANYWAY")\n\n\n'
    text = text.replace("\n\nclass Beams", f'{said}APPEND_ANYWAY = Mutant("APPEND_ANYWAY")\n\n\nclass Beams')
    text = text.replace("    copy_on_write: Const[bool]", "    mutant: Const[Mutant]").replace(
        "or not s.copy_on_write", "or s.mutant == APPEND_ANYWAY"
    )
    text = text.replace("s.copy_on_write", "s.mutant == Mutant('NONE')").replace(
        '"copy_on_write": True', '"mutant": "NONE"'
    )
    (beams / "wrong.py").write_text(text.replace("s.mutant == Mutant('NONE') and ", ""), encoding="utf-8")
    (caught,) = catch(find("wrong.py"))
    assert (caught.name, caught.rule, caught.steps) == ("append_anyway", "exclusive_write", 2)


def test_the_events_it_names_are_there() -> None:
    (told,) = re.findall(r"^- \*\*Events\.\*\*(.*?)^- ", TUTORIAL, re.MULTILINE | re.DOTALL)
    state = importlib.import_module("kvsan.spec.ownership.state")
    module, events = state, 0
    for word in re.findall(r"`(\w+)`", told):
        if importlib.util.find_spec(f"kvsan.spec.ownership.{word}"):
            module = importlib.import_module(f"kvsan.spec.ownership.{word}")
        else:
            assert hasattr(module, word) or hasattr(state, word), word
            events += 1
    assert events > 20


def test_the_readme_shows_a_part_of_it() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```python\n(@action.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    assert shown in TUTORIAL
