"""What a newcomer gets wrong in a file is refused with its place, and never passed over or called a defect."""

from __future__ import annotations

from pathlib import Path

import pytest
from kvsan.checker.command.explore import Request, run
from kvsan.checker.command.usage import Refused
from kvsan.checker.explore.design import BadDesign, find, scoped
from kvsan.checker.explore.mutants import catch
from kvsan.spec.lang.diagnostics import SpecError

TUTORIAL = Path(__file__).parents[2] / "spec" / "TUTORIAL.md"
BEAMS = TUTORIAL.read_text(encoding="utf-8").partition("```python file=beams.py\n")[2].partition("```")[0]
NEAR = '"blocks": 4'


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"prompt": 1', '"promt": 1', r"wrong.py:11: SETTINGS has 'promt', .* did you mean 'prompt'"),
        ('"copy_on_write": True', '"copy_on_wrte": True', "did you mean 'copy_on_write'"),
        ('"branches": 2, ', "", "lacks 'branches'"),
        (NEAR, '"blocks": "four"', "has 'four' for 'blocks'"),
        (NEAR, '"blocks": 0', "blocks=0: a scope has at least 1"),
        ("SETTINGS = ", "SETTINGS = 2 or ", "SETTINGS is a dict"),
        ('"paged_cow"', '"paged_cw"', r"wrong.py:10: there is no discipline 'paged_cw'"),
        ("DISCIPLINE", "import nosuchpackage\nDISCIPLINE", "wrong.py:10 imports nosuchpackage, which is not installed"),
        ("DISCIPLINE", "1 / 0\nDISCIPLINE", "wrong.py:10 fails when it is run as Python"),
        ("DISCIPLINE", "raise SystemExit(5)\nDISCIPLINE", "wrong.py:10 fails when it is run as Python"),
        ("DISCIPLINE", "scope = 3\nDISCIPLINE", "wrong.py:10: `scope` is no function"),
        ("DISCIPLINE", "def scope(n): return n\nDISCIPLINE", "`n` of `scope` has no default"),
        ("DISCIPLINE", "def scope(n=3): return n\nDISCIPLINE", "`scope` returned 3"),
        ("DISCIPLINE", "SCOPES = {'wide': 3}\nDISCIPLINE", "wrong.py:10: SCOPES is a dict from names to what each"),
        ("DISCIPLINE", "SCOPES = {'wide': {'beams': 3}}\nDISCIPLINE", "'wide' changes 'beams', which is no setting"),
        ("DISCIPLINE", "SCOPES = {'wide': {'blocks': 'x'}}\nDISCIPLINE", "'wide' has 'x' for 'blocks', where"),
    ],
)
def test_a_mistake_outside_the_language_is_refused_with_its_line(old: str, new: str, said: str, tmp_path: Path) -> None:
    assert old in BEAMS
    path = tmp_path / "wrong.py"
    path.write_text(BEAMS.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(BadDesign, match=said):
        scoped(find(f"{path}:Beams"))


def test_a_file_names_scopes_as_the_catalog_does(tmp_path: Path) -> None:
    path = tmp_path / "named.py"
    path.write_text(BEAMS.replace("DISCIPLINE", "SCOPES = {'wide': {'branches': 3}}\nDISCIPLINE", 1), encoding="utf-8")
    wide = scoped(find(f"{path}:Beams"), {"blocks": "6"}, "wide").settings
    assert (wide["branches"], wide["blocks"], wide["positions"]) == (3, 6, 2)
    with pytest.raises(BadDesign, match="named has no scope 'wid': known are wide"):
        scoped(find(f"{path}:Beams"), scope="wid")


def test_a_file_may_have_the_name_of_a_design_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "tail_copy.py"
    path.write_text(BEAMS, encoding="utf-8")
    assert find("tail_copy").ours is not None
    assert find(str(path)).ours is None and catch(find(str(path))) == []


def test_a_number_past_every_search_is_refused() -> None:
    with pytest.raises(BadDesign, match="1000 at most"):
        scoped(find("tail_copy"), {"branches": "99999999999999999999"})


def test_a_step_without_its_decorator_is_not_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "wrong.py"
    path.write_text(BEAMS.replace("@action\ndef append_in_copy", "def append_in_copy"), encoding="utf-8")
    with pytest.raises(SpecError, match="`append_in_copy` is a function of the state without a decorator"):
        find(str(path))


def without(kind: str) -> str:
    """The tutorial's design less every step of a kind."""
    parts = BEAMS.split("\n\n\n@")
    return "\n\n\n@".join(part for part in parts if not part.startswith(kind))


@pytest.mark.parametrize("kind", ["initial", "action"])
def test_a_design_that_cannot_begin_or_move_is_refused_with_the_line_of_its_class(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.py"
    path.write_text(without(kind), encoding="utf-8")
    with pytest.raises(BadDesign, match=rf"wrong.py:14: Beams has no @{kind}"):
        find(str(path))


def test_a_class_that_is_not_there_is_said_before_anything_else(tmp_path: Path) -> None:
    path = tmp_path / "two.py"
    path.write_text(BEAMS + '\n\nclass Other(Ownership):\n    """Another."""\n\n    idle: Map[Branch, bool]\n')
    with pytest.raises(SpecError, match="no state class `Nope`") as caught:
        find(f"{path}:Nope")
    assert [(d.code, d.expected) for d in caught.value.diagnostics] == [("no-state", "one of Beams, Other")]
    assert find(f"{path}:Beams").spec.state == "Beams"


def test_a_name_that_the_ledger_has_is_said_at_the_design_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "wrong.py"
    path.write_text(BEAMS.replace("def append(", "def leave(").replace("    append(s, r", "    leave(s, r"))
    with pytest.raises(SpecError, match=r"two definitions of `leave`: the other is at .*ledger.py:\d+") as caught:
        find(str(path))
    assert [d.code for d in caught.value.diagnostics] == ["duplicate-name"]
    assert caught.value.diagnostics[0].span.file == str(path)


def test_a_file_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "wrong.py"
    path.write_bytes(b'a = "\xe9"\n')
    with pytest.raises(SpecError, match="it is not UTF-8"):
        find(str(path))


def test_a_design_may_be_split_over_files_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "common_sizes.py").write_text('"""Sizes."""\n\nTWO = 2\n', encoding="utf-8")
    text = BEAMS.replace('"branches": 2', '"branches": TWO').replace(
        "DISCIPLINE", "from common_sizes import TWO\n\nD", 1
    )
    (tmp_path / "split.py").write_text(text, encoding="utf-8")
    assert find(str(tmp_path / "split.py")).settings["branches"] == 2


def test_a_missing_folder_is_refused_before_the_search(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="there is no folder"):
        run(Request("no_such_design", save=tmp_path / "nowhere" / "cex.jsonl"))
