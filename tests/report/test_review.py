"""The review says the same in both forms, links inside it work, and text is harmless."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from kvsan.checker.command.line import Line
from kvsan.checker.command.review import Request, gathered, proof_of, run
from kvsan.checker.command.usage import Refused
from kvsan.checker.explore.design import find
from kvsan.checker.explore.explore import Finding
from kvsan.checker.explore.mutants import Caught
from kvsan.checker.report.review.blocks import Details, Diagram, Heading, Items, Paragraph, Table
from kvsan.checker.report.review.content import document, title, verdict_of
from kvsan.checker.report.review.diagram import svg
from kvsan.checker.report.review.markdown import markdown
from kvsan.checker.report.review.material import Material, Shown
from kvsan.checker.report.review.page import page
from kvsan.checker.report.review.words import wrong
from kvsan.spec.designs.catalog import DESIGNS, Mutant

pytest.importorskip("llvmlite", reason="the searches need the extra `explore`")

MACHINE = str(Path(__file__).parents[1] / "explore" / "designs" / "tail_machine.py")
MERMAID = """%% a way
sequenceDiagram
    participant host as host
    participant block_b0 as block b0
    Note over host,block_b0: 1  split(r0)
    host->>block_b0: write slots [0,1) #60;b#62;
    Note over host: waits
    rect rgb(255, 220, 220)
    Note over host,block_b0: violated exclusive_write
    end
"""


FACTS = """from kvsan.spec.lang import auxiliary
from tidy import Tidy, Block

@auxiliary
def all_is_dirty_or_not(s: Tidy, b: Block) -> bool:
    \"\"\"Nothing.

    Source: ours.
    Catches: nothing.
    Except: nowhere.
    Deviates: nowhere.
    \"\"\"
    return s.dirty[b] or not s.dirty[b]
"""


SLOPPY = '''"""Nothing happens, rightly or wrongly."""

from kvsan.spec.lang.surface import Choice, Const, action, initial, require
from kvsan.spec.ownership.state import Ownership

SETTINGS = {"branches": 1, "blocks": 1, "block_size": 1, "positions": 1, "mutant": "NONE"}


class Mutant(Choice):
    """FORGET: nothing comes of it."""

    names = ("NONE", "FORGET")


FORGET = Mutant("FORGET")


class Sloppy(Ownership):
    """tidy: whether it is."""

    mutant: Const[Mutant]
    tidy: bool


@initial
def begin(s: Sloppy) -> None:
    """It is not."""
    s.tidy = False


@action
def clean(s: Sloppy) -> None:
    """Now it is."""
    require(not s.tidy)

    s.tidy = s.mutant != FORGET
'''


@pytest.fixture(scope="module")
def material() -> Material:
    return gathered(Request(MACHINE, proof=False), find(MACHINE), Line("review", quiet=True))


class Links(HTMLParser):
    """ids: every id. hrefs: every address. tags: open ones, to see that they close."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.hrefs: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.ids += [v for k, v in found.items() if k == "id" and v]
        self.hrefs += [v for k, v in found.items() if k in ("href", "src") and v]
        if tag not in ("meta",):
            self.tags.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.tags.pop() == tag


def read(text: str) -> Links:
    links = Links()
    links.feed(text)
    assert links.tags == []
    return links


def test_every_link_leads_somewhere_inside(material: Material) -> None:
    links = read(page(title(material), document(material)))
    assert len(links.ids) == len(set(links.ids))
    assert links.hrefs and all(h.startswith("#") and h[1:] in links.ids for h in links.hrefs)
    marked = markdown(document(material))
    named = set(re.findall(r'id="([^"]+)"', marked))
    assert set(re.findall(r"\]\(#([^)]+)\)", marked)) <= named


def test_it_tells_what_was_found(material: Material) -> None:
    marked = markdown(document(material))
    assert "| default | branches=3 blocks=5" in marked and "| 111 | 520 | 14 |" in marked
    assert "`append_in_place(r)`" in marked and r"tail\_machine.py:" in marked
    assert "(Branch) to Phase" in marked and "| `Phase` | IDLE, COPYING, COPIED, WRITING |" in marked
    assert "`TailMachine`** The state, and the sizes of the scope." in marked
    assert "enables: grow" in marked.split("What is not covered")[-1]


def test_a_design_without_a_proof_says_so_in_short_in_its_part_and_among_the_gaps(material: Material) -> None:
    assert material.proof == "No proof was asked for (--no-proof)."
    said = markdown(document(material)).split("\n## ")
    short, proved, open_ = (next(p for p in said if p.startswith(n)) for n in ("In short", "Proved", "What is not"))
    assert "**UNPROVED** beyond these scopes. No proof was asked for" in short
    assert "**UNPROVED** No proof was asked for" in proved and "and no further" in proved
    assert "Nothing is proved beyond the scopes" in open_
    assert "**UNTRIED** The design names no wrong decision" in short


def test_why_there_is_no_more_symmetry_is_said_once_and_without_a_folder(material: Material) -> None:
    note = "Branch: {}/ownership/ledger.py:36: a turn of the loop"
    (_, found), *_ = material.scopes
    scopes = [
        (n, replace(found, symmetry_note=note.format(at))) for n, at in (("one", "spec"), ("two", "/usr/lib/spec"))
    ]
    marked = markdown(document(replace(material, scopes=tuple(scopes))))
    assert "\nNo more symmetry in one, two. Branch: ownership/ledger.py:36: a turn of the loop.\n" in marked


@pytest.mark.slow
def test_a_proof_is_tried_where_facts_stand_beside_the_design(tmp_path: Path) -> None:
    pytest.importorskip("z3", reason="needs the extra `prove`")
    design, line = tmp_path / "tidy.py", Line("review", quiet=True)
    design.write_text(Path(MACHINE).with_name("tidy.py").read_text("utf-8"), encoding="utf-8")
    proof, facts = proof_of(Request(str(design)), line)
    assert isinstance(proof, str) and "no facts stand beside the design" in proof and not facts
    proof, _ = proof_of(Request(str(design), proof=True), line)
    assert isinstance(proof, dict) and proof["verdict"] == "VIOLATED"
    (tmp_path / "tidy_facts.py").write_text(FACTS, encoding="utf-8")
    proof, facts = proof_of(Request(str(design)), line)
    assert isinstance(proof, dict) and [f.name for f in facts] == ["all_is_dirty_or_not"]


def test_a_wrong_decision_shows_the_lines_that_take_it() -> None:
    said, spots = wrong(find("tail_copy"), "free_twice")
    assert said == "" and [spot.step for spot in spots] == ["cancel_branch"]
    assert spots[0].line == "s.freed_early[pending] = s.mutant == FREE_TWICE"


@pytest.mark.slow
@pytest.mark.parametrize("name", DESIGNS)
def test_every_wrong_decision_shows_the_lines_that_take_it(name: str) -> None:
    design = find(name)
    for mutant in DESIGNS[name].mutants:
        _, spots = wrong(design, mutant.name)
        assert spots and all(mutant.name.upper() in spot.line for spot in spots)
        assert not set("`#") & set("".join(spot.line for spot in spots))  # whole in backticks, and no comment
    assert name != "transfers" or wrong(design, "released_twice")[0].startswith("LMCache#2954")


def test_what_is_not_covered_names_each_gap(material: Material) -> None:
    (name, found), *_ = material.scopes
    missed = Shown(Caught("forgets", name, None, found, None), "")
    kinds = ("proved", "failed", "unknown")
    results = [{"kind": "rule", "rule": kind, "action": f"at_{kind}", "status": kind} for kind in kinds]
    proof = {"verdict": "UNKNOWN", "fixed": {}, "rests_on": [], "never_enabled": ["rest"], "results": results}
    proof |= {"left": {"late": "no time"}, "initial": [{"fact": "clean", "step": "start", "scope": {"blocks": 7}}]}
    proof |= {"initial_varies": [{"variable": "free", "step": "fill"}], "leaves_out": ("lints", "ends")}
    stopped = replace(found, stopped="the limit of memory", judged={})
    tidy = find(str(Path(MACHINE).with_name("tidy.py")))
    other = replace(material, design=tidy, scopes=((name, stopped),), mutants=(missed,), proof=proof)
    told = markdown(document(other)).split("What is not covered")[-1].replace("\\", "")
    assert f"The search of {name} ended early: the limit of memory." in told
    assert "The wrong decision [`forgets`](#mutant-forgets) is not caught." in told
    assert "**MISSED** 0 of 1 wrong decisions are caught\n" in markdown(document(other))
    assert "Not proved: `failed` at at_failed, `unknown` at at_unknown." in told
    assert "The proof did not try the step late: no time." in told
    assert "The start start breaks the fact `clean`, with blocks=7." in told
    assert "nothing is proved: with more, fill leaves free otherwise." in told
    assert "The proof leaves out lints, ends." in told
    assert "The sizes of the proof never enable rest" in told
    assert "Rules that no step of these scopes is judged by: `clean`." in told
    before = markdown(document(material)).split("What is not covered")[-1]
    assert "](#mutant-forgets) | nothing |  | default |" in markdown(document(other))
    assert "No `view_intact` is judged" in told
    seen = replace(found, judged={"view_intact": found.states})
    assert "- Contents are ghosts" in markdown(document(replace(material, scopes=((name, seen),))))
    blind = replace(material, scopes=((name, replace(found, witnesses=dict.fromkeys(found.witnesses))),))
    unseen = "What the design says it can do, and no scope shows: can_"
    assert unseen in markdown(document(blind)).replace("\\", "") and unseen not in before.replace("\\", "")
    assert "ended early" not in before and "not caught" not in before and "judged by" not in before


def test_the_worst_of_several_searches_is_the_verdict(material: Material) -> None:
    (_, found), *_ = material.scopes
    stopped = replace(found, stopped="the limit of states")
    broken = replace(stopped, violations=(Finding("clean", "rule", "", (), {}),))
    assert [verdict_of(some) for some in ([], [found], [found, stopped], [stopped, broken, found])] == [
        "UNKNOWN", "HOLDS", "UNKNOWN", "VIOLATED",
    ]  # fmt: skip


def test_a_rule_that_a_wrong_decision_alone_is_judged_by_has_its_bugs_too(material: Material) -> None:
    """And one that is caught as it is pinned is said to differ from nothing."""
    (name, found), *_ = material.scopes
    finding = Finding("free_once", "rule", "", (), {})
    caught = Caught("twice", name, Mutant("twice", "free_once", 0, ""), found, finding)
    told = markdown(document(replace(material, mutants=(Shown(caught, ""),))))
    assert "vllm-project/vllm #1556" in told and "differs from what is pinned" not in told
    assert "vllm-project/vllm #1556" not in markdown(document(material))


def test_the_same_inputs_give_the_same_bytes_but_for_one_line(material: Material) -> None:
    other = replace(material, run="another day")
    for form in (lambda m: page(title(m), document(m)), lambda m: markdown(document(m))):
        pairs = zip(form(material).splitlines(), form(other).splitlines(), strict=True)
        assert [b for a, b in pairs if a != b].pop().count("another day") == 1


def test_both_forms_are_written_and_small(tmp_path: Path) -> None:
    assert run(Request(MACHINE, tmp_path / "out", proof=False, mutants=False, quiet=True)) == 0
    for ending in (".html", ".md"):
        assert 2_000 < (tmp_path / "out" / f"tail_machine{ending}").stat().st_size < 2_000_000


def test_text_is_harmless() -> None:
    bad = "<script>alert(1)</script> & `x<y`"
    blocks = (
        Heading(1, bad, "top"), Paragraph(bad), Items(((bad, bad),)), Table((bad,), ((bad,),)),
        Details(bad, (Paragraph(bad),), "d"), Diagram(MERMAID.replace("waits", bad), bad),
    )  # fmt: skip
    made = page(bad, blocks)
    read(made)
    assert "<script" not in made and made.count("&lt;script&gt;") >= 8
    assert "<script" not in markdown(blocks[:5]).replace("\\<script", "")


def test_a_diagram_has_every_participant_arrow_and_note() -> None:
    drawn = svg(MERMAID, "a way")
    read(drawn)
    assert drawn.count('class="life"') == 2 and drawn.count('class="arrow"') == 1
    assert [drawn.count(f'class="{kind}"') for kind in ("bar", "note", "bad")] == [1, 1, 1]
    assert "write slots [0,1) &lt;b&gt;" in drawn
    width = int(re.findall(r'width="(\d+)" role', drawn)[0])
    assert all(float(x) < width for x in re.findall(r' x="([\d.]+)"', drawn))


@pytest.mark.slow
def test_the_review_that_ships_is_what_the_command_writes(tmp_path: Path) -> None:
    pytest.importorskip("z3", reason="the proof in it needs the extra `prove`")
    assert run(Request("tail_copy", tmp_path, quiet=True)) == 0
    made = (tmp_path / "tail_copy.md").read_text(encoding="utf-8").splitlines()
    ships = Path(__file__).parents[2] / "spec" / "designs" / "reviews" / "tail_copy.md"
    told = ships.read_text(encoding="utf-8").splitlines()
    assert [line for line in made if not line.startswith("<!-- run -->")] == [
        line for line in told if not line.startswith("<!-- run -->")
    ]


def test_what_a_review_does_not_show_is_said_and_its_exit_is_no_success(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "sloppy.py"
    path.write_text(SLOPPY)
    assert run(Request(str(path), tmp_path, quiet=True)) == 1
    assert "kvsan review: VIOLATED: the wrong decision forget: it is not caught\n" in capsys.readouterr().err
    assert (tmp_path / "sloppy.md").is_file()
    assert run(Request(str(path), tmp_path, limit_states=1, mutants=False, quiet=True)) == 3
    assert "kvsan review: UNKNOWN: the search ended early, " in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_refused_before_the_work(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("")
    with pytest.raises(Refused, match=f"--out {taken}: the folder cannot be written: File exists; name one of yours"):
        run(Request(MACHINE, taken, quiet=True))
