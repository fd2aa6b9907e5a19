"""A way as a sequence diagram: the events of each step below its bar, in order, in text that Mermaid takes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from kvsan.checker.command.explore import Request, run
from kvsan.checker.command.usage import Refused
from kvsan.checker.explore.replay import Change, Step
from kvsan.checker.explore.sequence import escaped, sequence
from kvsan.spec.lang.load import load

MACHINE = Path(__file__).parent / "designs" / "tail_machine.py"
ARROW = re.compile(r"    (\w+)->>(\w+): [^#;<>]*(?:#\d+;[^#;<>]*)*")
LINE = re.compile(r"    (participant \w+ as .+|Note over \w+(,\w+)?: [^;<>]+(#\d+;[^;<>]*)*|rect rgb\(.*\)|end)")


def step(text: str, *changes: Change, **values: int | None) -> Step:
    return Step(text.partition("(")[0], values, text, changes, (), {})


def drawn(events: list[dict[str, object]], *texts: str) -> list[str]:
    """The lines of a diagram of these events, participants left out."""
    text = sequence(load(MACHINE), [step(t) for t in texts], "a title", events)
    return [line.strip() for line in text.splitlines()[2:] if "participant" not in line]


def test_an_event_is_an_arrow_between_those_it_concerns() -> None:
    events = [
        {"ev": "admit", "branch": "r0", "tokens": 3, "note": "start"},
        {"ev": "fork", "branch": "r1", "parent": "r0", "note": "fork(r0, r1)"},
        {"ev": "alloc", "block": 2, "branch": "r0", "note": "start_copy(r0, b2)"},
        {"ev": "copy", "branch": "r0", "src": 1, "dst": 2, "slots": [0, 1], "note": "finish_copy(r0)"},
        {"ev": "map", "branch": "r0", "pos": 1, "block": 2, "note": "finish_copy(r0)"},
        {"ev": "free", "block": [1, 3], "note": "cancel(r0)"},
    ]
    assert drawn(events, "fork(r0, r1)", "start_copy(r0, b2)", "finish_copy(r0)", "cancel(r0)") == [
        "Note over host,block_b3: start",
        "Note over branch_r0: admit tokens 3",
        "Note over host,block_b3: 1  fork(r0, r1)",
        "branch_r0->>branch_r1: fork",
        "Note over host,block_b3: 2  start_copy(r0, b2)",
        "pool->>block_b2: alloc branch r0",
        "Note over host,block_b3: 3  finish_copy(r0)",
        "block_b1->>block_b2: copy slots [0,1)",
        "branch_r0->>block_b2: map pos 1",
        "Note over host,block_b3: 4  cancel(r0)",
        "block_b1->>pool: free",
        "block_b3->>pool: free",
    ]


def test_device_work_goes_through_its_stream() -> None:
    events = [
        {"ev": "write", "branch": "r0", "block": 2, "slots": [1, 2], "stream": "compute", "op": 7, "note": "w"},
        {"ev": "copy", "src": 1, "dst": 2, "slots": [0, 2], "stream": "copy", "note": "w"},
        {"ev": "wait", "event": "e1", "stream": "compute", "note": "w"},
        {"ev": "done", "op": 7, "note": "w"},
        {
            "ev": "step",
            "op": "step1",
            "stream": "compute",
            "copies": [[1, 2, 0, 1]],
            "writes": [["r0", 2, 1, 2]],
            "reads": [["r0", 4], "r1"],
            "note": "w",
        },
    ]
    assert drawn(events, "w")[1:] == [
        "branch_r0->>stream_compute: launch write",
        "stream_compute->>block_b2: write slots [1,2) op 7",
        "host->>stream_copy: launch copy",
        "block_b1->>block_b2: copy slots [0,2)",
        "host->>stream_compute: wait event e1",
        "Note over host: done op 7",
        "host->>stream_compute: launch step1",
        "block_b1->>block_b2: copy slots [0,1)",
        "stream_compute->>block_b2: r0 writes slots [1,2)",
        "Note over stream_compute: r0 attends to 4 tokens",
        "Note over stream_compute: r1 attends",
    ]


def test_participants_stand_from_requests_to_memory_in_the_order_of_their_numbers() -> None:
    events = [{"ev": "free", "block": [10, 9], "note": "x"}, {"ev": "admit", "branch": "r2", "note": "x"}]
    text = sequence(load(MACHINE), [step("x")], "t", events)
    found = re.findall(r"participant (\w+)", text)
    assert found == ["host", "pool", "branch_r2", "block_b9", "block_b10"]


def test_a_design_without_a_ledger_shows_what_a_step_changed() -> None:
    moved = [Change(f"refs[b{n}]", "0", "1") for n in range(6)]
    text = sequence(load(MACHINE), [step("fork(r0, r1)", *moved, r=0, c=1)], "t", (), "violated x: no <good>; #1")
    assert "host->>branch_r0: fork" in text
    assert "host->>branch_r1: fork" in text
    assert (
        "Note over host: refs[b0] 0 -#62; 1, refs[b1] 0 -#62; 1, refs[b2] 0 -#62; 1, refs[b3] 0 -#62; 1, and 2 more"
        in text
    )
    assert "violated x: no #60;good#62;#59; #35;1" in text


def test_nothing_ends_a_statement_before_its_line() -> None:
    assert escaped("a; b#c -> <d>") == "a#59; b#35;c -#62; #60;d#62;"


def test_every_line_of_a_saved_counterexample_is_in_the_grammar(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("llvmlite", reason="the compiled search needs the extra `explore`")
    made = tmp_path / "cex.mmd"
    settings = ("branches=2", "blocks=4")
    wanted = Request(str(MACHINE), settings=settings, mutant="shared_append", symmetry="none", save=made, quiet=True)
    assert run(wanted) == 1
    comment, first, *lines = made.read_text().splitlines()
    assert comment.startswith("%% tail_machine  branches=2 blocks=4")
    assert first == "sequenceDiagram"
    assert [x for x in lines if not ARROW.fullmatch(x) and not LINE.fullmatch(x)] == []
    assert "1  fork(r0, r1)" in made.read_text()
    assert lines[-2:] == [
        "    Note over host,branch_r1: violated exclusive_write: Only a sole owner writes.",
        "    end",
    ]


def test_an_unknown_ending_is_refused_before_the_search() -> None:
    with pytest.raises(Refused, match=r"known are \.jsonl .*\.itf\.json .*\.mmd"):
        run(Request("tail_copy", save=Path("cex.png")))
