"""`kvsan export` writes files that can be run, says how, and refuses what a target cannot hold."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from kvsan.checker.cli import app
from kvsan.checker.explore.design import find
from kvsan.checker.export.names import Names
from kvsan.checker.export.promela import promela
from kvsan.checker.export.subject import CannotExport, subject
from kvsan.checker.export.tla import Tla, tla
from typer.testing import CliRunner, Result

ROOT = Path(__file__).parents[2]
MACHINE = str(ROOT / "tests" / "explore" / "designs" / "tail_machine.py")
GOLDEN = ROOT / "tests" / "golden" / "export"


def export(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["export", *arguments])


def test_the_machine_is_exported_as_kept(tmp_path: Path) -> None:
    """The two forms of the smallest machine, to be read beside their source. KVSAN_GOLDEN=write keeps new ones."""
    for target in ("tla", "promela"):
        done = export(os.path.relpath(MACHINE), "--to", target, "--set", "branches=2", "--out", str(tmp_path))
        assert done.exit_code == 0, done.output
    for made in tmp_path.iterdir():
        kept, text = GOLDEN / made.name, made.read_text().replace(os.path.relpath(MACHINE), "tail_machine.py")
        if os.environ.get("KVSAN_GOLDEN") == "write":
            kept.parent.mkdir(exist_ok=True)
            kept.write_text(text)
        assert text == kept.read_text(), f"{kept} differs; KVSAN_GOLDEN=write keeps the new text"
    assert {p.name for p in tmp_path.iterdir()} == {"TailMachine.tla", "TailMachine.cfg", "tail_machine.pml"}


def test_it_says_what_was_written_how_to_run_it_and_what_to_expect(tmp_path: Path) -> None:
    done = export("tail_copy", "--to", "promela", "--scope", "two_branches", "--out", str(tmp_path))
    assert done.exit_code == 0
    wrote, scope, run, expect = done.output.splitlines()
    assert wrote == f"wrote     {tmp_path / 'tail_copy.pml'}"
    assert scope == "scope     branches=2 blocks=4 block_size=2 positions=2 prompt=3 mutant=none"
    assert run.startswith(f"run       cd {tmp_path} && spin -a -o2 tail_copy.pml && gcc ")
    assert expect == "expect    one state more than kvsan explore tail_copy --scope two_branches --symmetry none"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nothing", "--to", "tla"], "there is no design 'nothing'"),
        (["tail_copy", "--to", "tla", "--mutant", "none_such"], "has no mutant 'none_such'"),
        (["tail_copy", "--to", "tla", "--symmetry", "half"], "--symmetry half: known are none, blocks, full"),
        (["tail_copy", "--to", "tla", "--without", "no_rule"], "there is no such rule: did you mean no_leak?"),
        ([MACHINE, "--to", "promela", "--out", "/dev/null/folder"], "cannot be written"),
    ],
)
def test_bad_usage_is_refused_with_what_to_do(arguments: list[str], says: str) -> None:
    done = export(*arguments)
    assert done.exit_code != 0
    assert says in str(done.exception)


def test_what_a_target_cannot_hold_is_refused() -> None:
    """A block or None takes one byte of SPIN; TLA+ has no bytes."""
    many = subject(find(MACHINE), {"blocks": "300"})
    with pytest.raises(CannotExport, match="`source` has more than 255 values"):
        promela(many)
    assert "b299" in tla(many).module


BEAMS = (Path(__file__).parents[2] / "spec" / "TUTORIAL.md").read_text().partition("```python file=beams.py\n")[2]


@pytest.mark.parametrize("to", ["tla", "promela"])
def test_a_name_that_the_other_checkers_cannot_read_is_refused(to: str, tmp_path: Path) -> None:
    path = tmp_path / "beams.py"
    path.write_text(BEAMS.partition("```")[0].replace("alive", "vivänt"), encoding="utf-8")
    result = CliRunner().invoke(app, ["export", str(path), "--to", to, "--out", str(tmp_path)])
    assert "rename `vivänt`" in str(result.exception)
    assert sorted(p.name for p in tmp_path.glob("*")) == ["beams.py"]


def test_a_local_of_promela_is_no_variable_and_no_parameter(tmp_path: Path) -> None:
    """SPIN: redeclaration of 'hidden_'; a parameter stands for its value wherever the step names it."""
    text = BEAMS.partition("```")[0].replace("alive", "b_").replace("def end(s: Beams, r:", "def end(s: Beams, p_:")
    head, end, rest = text.partition("def end")
    body, witness, last = rest.partition("@witness")
    path = tmp_path / "beams.py"
    path.write_text(head + end + body.replace("[r", "[p_").replace(", r", ", p_") + witness + last)
    made = promela(subject(find(str(path))))
    assert "hidden int b__2;" in made and "bool b_[2]" in made
    assert "hidden int p__;" in made and "inline end_2(p_) {" in made


def test_promela_takes_every_value_of_a_parameter_and_starts_where_the_design_does(tmp_path: Path) -> None:
    text = BEAMS.partition("```")[0].replace(
        "def end(s: Beams, r: Branch)", "def end(s: Beams, r: Branch, c: Branch | None)"
    )
    text = text.replace("    require(s.alive[r])\n\n    for", "    require(s.alive[r] and c != r)\n\n    for")
    path = tmp_path / "beams.py"
    path.write_text(text)
    made = promela(subject(find(str(path)), {"prompt": "2"}))
    assert re.findall(r":: (end_2\(.*\))", made) == [f"end_2({r}, {c})" for r in (0, 1) for c in ("None", 0, 1)]
    assert "written[0] = 3" in made  # its slots 0 and 1


@pytest.fixture(scope="module")
def tail_copy() -> Tla:
    return tla(subject(find("tail_copy")))


def test_a_rule_is_an_invariant_of_its_name_and_a_sentence(tail_copy: Tla) -> None:
    assert re.search(r'\*\)\nexclusive_write == broken # "exclusive_write"\n', tail_copy.module)
    invariants = tail_copy.configuration.split("INVARIANTS\n")[1]
    assert {"  TypeOK", "  exclusive_write", "  view_intact"} <= set(invariants.splitlines())


def test_a_mutant_differs_from_its_design() -> None:
    """The decision that is taken wrong is in the model, not only in its title."""
    right, wrong = (tla(subject(find(MACHINE), mutant=m)).module for m in ("", "shared_append"))
    guard = "/\\ refs[Some(table[r][length[r] \\div 2])] = 1\n"
    assert guard in right
    assert guard not in wrong


def test_no_name_of_a_module_is_defined_twice(tail_copy: Tla) -> None:
    names = re.findall(r"^(\w+)(?:\([\w, ]*\))? ==", tail_copy.module, re.M)
    names += re.findall(r"^  (\w+),?  \\\*", tail_copy.module, re.M)
    assert len(names) == len(set(names))


def test_a_name_that_is_taken_gets_a_number() -> None:
    names = Names({"len"})
    assert [names.new("len"), names.new("len"), names.new("tail")] == ["len_2", "len_3", "tail"]
