"""What a newcomer gets wrong in a file is refused with its place, and never passed over or called a defect."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from kvsan.checker.command.explore import Request, run
from kvsan.checker.command.usage import Refused
from kvsan.checker.explore.design import BadDesign, find, scoped
from kvsan.checker.explore.model import starts
from kvsan.checker.explore.mutants import catch
from kvsan.spec.lang.diagnostics import SpecError

TUTORIAL = Path(__file__).parents[2] / "spec" / "TUTORIAL.md"
BEAMS = TUTORIAL.read_text(encoding="utf-8").partition("```python file=beams.py\n")[2].partition("```")[0]
NEAR = '"blocks": 4'
COUNTER = '''"""A counter."""

from typing import Annotated

from kvsan.spec.lang.surface import Scope, State, UpTo, action, initial, require


class Counter(State):
    """A number."""

    n: Annotated[int, UpTo("top")]


def scope() -> Scope:
    """The scope."""
    return SCOPE


@initial
def zero(s: Counter) -> None:
    """Zero."""
    s.n = 0


@action
def up(s: Counter) -> None:
    """One more."""
    require(s.n < 2)

    s.n += 1
'''


SIZED = '''"""Branches go deep."""

from typing import Annotated  # noqa

from kvsan.spec.lang.surface import Map, Sort, UpTo, action, initial, require  # noqa
from kvsan.spec.ownership.state import Branch, Ownership

SETTINGS = {"branches": 1, "blocks": 1, "block_size": 1, "positions": 1}
DECLARED

class Sized(Ownership):
    """How deep each is, and where it was."""

    deep: Map[Branch, Deep | None]


@initial
def begin(s: Sized) -> None:
    """Nobody is."""
    s.deep[Branch(0)] = None


@action
def surface(s: Sized, r: Branch, d: Deep) -> None:
    """A branch goes somewhere."""
    require(s.deep[r] is None)

    s.deep[r] = d
'''


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"prompt": 1', '"promt": 1', r"wrong.py:11: SETTINGS has 'promt', .* did you mean 'prompt'"),
        ('"copy_on_write": True', '"copy_on_wrte": True', "did you mean 'copy_on_write'"),
        ('"branches": 2, ', "", "lacks 'branches'"),
        (NEAR, '"blocks": "four"', "has 'four' for 'blocks'"),
        (NEAR, '"blocks": 0', "blocks=0: a scope has at least 1"),
        ("SETTINGS = ", "SETTINGS = 2 or ", "SETTINGS is a dict"),
        ('"branches": 2', '"branches": True', "has True for 'branches': write a natural"),
        ('"prompt": 1', '"prompt": -1', "has -1 for 'prompt': write a natural"),
        ('"copy_on_write": True', '"copy_on_write": "yes"', "copy_on_write='yes' is no bool"),
        ("DISCIPLINE", "PENDING = 'nope'\nDISCIPLINE", "wrong.py:10: PENDING names 'nope', which is no helper"),
        ("DISCIPLINE", "FAIR = ('splt',)\nDISCIPLINE", "FAIR names 'splt', which is no action: did you mean 'split'"),
        ("DISCIPLINE", "FAIR = 3\nDISCIPLINE", "wrong.py:10: PENDING is the name of a helper, FAIR a tuple"),
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


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ('Deep = Annotated[int, UpTo("depth")]\n', "SETTINGS lacks a number for 'depth', which ends a range of Sized"),
        ('class Deep(Sort):\n    """A depth."""\n', "SETTINGS says no number of 'Deep': write def scope"),
    ],
)
def test_a_size_that_nobody_gives_is_asked_for(declared: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "sized.py"
    path.write_text(SIZED.replace("DECLARED", declared))
    with pytest.raises(BadDesign, match=re.escape(said)):
        scoped(find(str(path)))


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


@pytest.mark.parametrize(
    ("more", "prompt", "said"),
    [
        (
            "    free(s, Block(0))\n",
            "1",
            r"wrong.py:33: the initial step `one_prompt` breaks free_once \(block {b} was",
        ),
        ("", "9", r"wrong.py:33: the initial step `one_prompt` goes past a size .* prompt=9 "),
        ("    s.alive[Branch(7)] = True\n", "1", "goes past a size of the scope"),
        ("    s.account[Block(0)] = Branch(2)\n", "1", "goes past a size of the scope"),
        ("REQUIRE", "1", "no @initial step of wrong may be taken in this scope"),
    ],
)
def test_a_start_that_cannot_be_is_refused_with_its_line(more: str, prompt: str, said: str, tmp_path: Path) -> None:
    path, last = tmp_path / "wrong.py", "    s.alive[Branch(0)] = True\n"
    text = BEAMS.replace(last, last + more)
    if more == "REQUIRE":
        text = BEAMS.replace("    fill_pool(s)\n", "    require(not s.copy_on_write)\n\n    fill_pool(s)\n")
    path.write_text(text, encoding="utf-8")
    design = find(str(path))
    with pytest.raises(BadDesign, match=said):
        starts(design.spec, scoped(design, {"prompt": prompt}))


@pytest.mark.parametrize(
    ("scope", "said"),
    [
        ('Scope({"Block": 2}, {})', "the sorts of the Scope name 'Block': counter has none"),
        ('Scope({}, {"tap": 2})', "the limits of the Scope name 'tap': counter has top"),
        ("Scope({}, {})", "the limits of the Scope lack a number for 'top'"),
        ('Scope({}, {"top": "2"})', "the limits of the Scope lack a number for 'top'"),
        ('Scope({}, {"top": 2}, {"on": True})', "the constants of the Scope name 'on'"),
    ],
)
def test_a_scope_names_what_the_design_has_and_all_of_it(scope: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "counter.py"
    path.write_text(COUNTER.replace("SCOPE", scope), encoding="utf-8")
    design = find(str(path))
    with pytest.raises(BadDesign, match=said):
        scoped(design)


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


def test_a_file_without_a_state_class_is_told_to_have_one(tmp_path: Path) -> None:
    path = tmp_path / "wrong.py"
    path.write_text(BEAMS.partition("class Beams")[0], encoding="utf-8")
    with pytest.raises(SpecError, match="wrong has no state class") as caught:
        find(str(path))
    assert [d.fix for d in caught.value.diagnostics] == ["class Model(Ownership): ..."]


def test_a_name_that_the_ledger_has_is_said_at_the_design_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "wrong.py"
    path.write_text(BEAMS.replace("def append(", "def leave(").replace("    append(s, r", "    leave(s, r"))
    with pytest.raises(SpecError, match=r"two definitions of `leave`: the other is at .*ledger.py:\d+") as caught:
        find(str(path))
    assert [d.code for d in caught.value.diagnostics] == ["duplicate-name"]
    assert caught.value.diagnostics[0].span.file == str(path)


def test_a_class_that_the_ledger_has_is_said_at_the_design(tmp_path: Path) -> None:
    path = tmp_path / "wrong.py"
    path.write_text(BEAMS.replace("class Beams(Ownership)", "class Mode(Ownership)"))
    with pytest.raises(SpecError, match=r"two classes `Mode`: the other is at .*state.py:\d+") as caught:
        find(str(path))
    assert caught.value.diagnostics[0].span.file == str(path)


def test_a_mark_of_byte_order_is_no_part_of_a_design(tmp_path: Path) -> None:
    path = tmp_path / "marked.py"
    path.write_text(BEAMS, encoding="utf-8-sig")
    assert find(str(path)).spec.state == "Beams"


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
