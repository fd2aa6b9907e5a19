"""Witnesses: allowed by all recorded order, the two accesses the wrong way round, small, and reported alike."""

from __future__ import annotations

from pathlib import Path

import pytest
from kvsan.checker import check
from kvsan.checker.command.check import Request, run
from kvsan.checker.order.schedule import Impossible, ran
from kvsan.checker.order.witness import Witness, witness
from kvsan.checker.replay.memory import memory_log
from kvsan.traces import events as ev
from kvsan.traces.read import open_log
from kvsan.traces.write import write_log
from msgspec import structs

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "traces" / "corpus" / "reject"
MINIMAL = ROOT / "tests" / "replay" / "minimal"
RACES = [
    *(CORPUS / f"{name}.jsonl" for name in (
        "vllm-32255", "vllm-29870", "vllm-47728", "sglang-35049", "sglang-18744", "mooncake-850",
        "tensorrt-llm-8813", "tensorrt-llm-8813-partial", "tensorrt-llm-15546",
    )),
    *(MINIMAL / f"{rule}-breaks.jsonl" for rule in (
        "no_reuse_in_flight", "copy_precedes_use", "source_stable", "read_is_initialised", "accesses_ordered",
    )),
]  # fmt: skip


@pytest.mark.parametrize("path", RACES, ids=lambda path: path.stem)
def test_a_witness_turns_the_two_accesses_round_and_replay_confirms_it(path: Path, tmp_path: Path) -> None:
    log = open_log(path)
    (found,) = check(path).violations
    said = witness(log, found)
    made = said.events
    saved = write_log(tmp_path / "witness.jsonl", said.header, made)
    (again,) = check(saved).violations
    assert (again.rule, again.block, again.event) == (found.rule, found.block, found.event)
    assert len(made) <= 24
    order = ran(made, said.header.legacy_stream)
    early = made[(again.earlier or 0) - 2]
    late = made[again.line - 2]
    assert isinstance(early, ev.Write | ev.Read | ev.Copy | ev.Step)
    if isinstance(late, ev.Write | ev.Read | ev.Copy | ev.Step) and late.op is not None:
        assert order.index(late.op) < order.index(early.op)
    else:
        assert made.index(late) < made.index(ev.Run(op=early.op or ""))


def test_copies_of_one_launch_are_exchanged(tmp_path: Path) -> None:
    path = CORPUS / "vllm-0.6.2-live-chained-copies.jsonl"
    found = check(path).violations[0]
    log = open_log(path)
    made = witness(log, found)
    steps = [event for event in made.events if isinstance(event, ev.Step) and event.op == "s2"]
    assert [tuple(c) for c in steps[0].copies] == [(3, 1, 0, 4), (1, 4, 0, 4)]
    again = check(write_log(tmp_path / "witness.jsonl", made.header, made.events)).violations[0]
    assert (again.rule, again.block) == (found.rule, found.block)


HEADER = ev.Trace(schema="kvsan/1", engine="test", version="1", discipline="paged_cow", block_size=4, blocks=4)


def witness_of(tmp_path: Path, *events: ev.Event) -> tuple[list[ev.Event], list[tuple[str, int]]]:
    """The witness of the one race of a log, and what the replay says of it."""
    path = write_log(tmp_path / "log.jsonl", HEADER, list(events))
    (found,) = check(path).violations
    made = witness(open_log(path), found)
    assert made.header == HEADER
    told = check(write_log(tmp_path / "witness.jsonl", HEADER, made.events)).violations
    return made.events, [(v.rule, v.line) for v in told]


def test_a_threads_own_access_is_late_by_coming_last(tmp_path: Path) -> None:
    alloc = ev.Alloc(block=1)
    mine = ev.Write(holder="h", block=1, slots=(0, 4), thread="one")
    theirs = ev.Read(op="r", holder="h", block=1, slots=(0, 4), stream="s")
    made, told = witness_of(tmp_path, alloc, ev.Alloc(block=2), mine, ev.Signal(channel="c", thread="one"), theirs)
    assert made == [alloc, theirs, ev.Run(op="r"), mine]
    assert told == [("accesses_ordered", 5)]


def test_a_read_of_slots_that_nobody_wrote_is_its_own_witness(tmp_path: Path) -> None:
    alloc, other = ev.Alloc(block=1, branch="a"), ev.Alloc(block=2)
    admit, entry = ev.Admit(branch="a", tokens=2), ev.Map(branch="a", pos=0, block=1)
    half = ev.Write(op="w", branch="a", block=1, slots=(0, 1), stream="s")
    read = ev.Read(op="r", branch="a", upto=2, stream="s")
    made, told = witness_of(tmp_path, admit, alloc, other, entry, half, read)
    assert made[-2:] == [read, ev.Run(op="r")]
    assert other not in made
    assert [rule for rule, _ in told] == ["read_is_initialised"]


RACE: list[ev.Event] = [
    ev.Alloc(block=1),
    ev.Write(op="w", holder="h", block=1, slots=(0, 4), stream="s"),
    ev.Read(op="r", holder="h", block=1, slots=(0, 4), stream="t"),
]


def witness_in(*log: ev.Trace | ev.Event) -> Witness:
    """The witness of the last breach of a log, which check confirms."""
    opened, found = memory_log(log), check(log).violations[-1]
    made = witness(opened, found)
    assert (found.rule, found.block) in [(v.rule, v.block) for v in check([made.header, *made.events]).violations]
    return made


def test_a_witness_after_a_gap_begins_there_and_mid_run() -> None:
    log = [ev.Alloc(block=2), ev.Free(block=2), *RACE]
    numbered = [structs.replace(event, seq=n) for event, n in zip(log, (1, 2, 7, 8, 9), strict=True)]
    made = witness_in(HEADER, *numbered)
    assert made.header == structs.replace(HEADER, started="mid_run")
    assert made.events == [*RACE[1:], ev.Run(op="r"), ev.Run(op="w")]


def test_a_witness_of_a_log_that_starts_mid_run_starts_mid_run() -> None:
    late = structs.replace(HEADER, started="mid_run")
    made = witness_in(structs.replace(late, seq=40), *RACE[1:])
    assert made.header == late
    assert made.events == [*RACE[1:], ev.Run(op="r"), ev.Run(op="w")]


def test_of_a_long_log_the_witness_begins_with_the_blocks_life(monkeypatch: pytest.MonkeyPatch) -> None:
    assert witness_in(HEADER, ev.Alloc(block=2), *RACE).header.started is None
    monkeypatch.setattr("kvsan.checker.order.reordered.LONG", 3)
    made = witness_in(HEADER, ev.Alloc(block=2), *RACE)
    assert made.header.started == "mid_run"
    assert made.events == [*RACE[1:], ev.Run(op="r"), ev.Run(op="w")]


def test_a_race_for_slots_of_which_some_were_not_written_has_a_witness() -> None:
    half = ev.Write(op="w", holder="h", block=1, slots=(1, 2), stream="s")
    read = ev.Read(op="r", branch="a", upto=2)
    made = witness_in(HEADER, RACE[0], half, ev.Map(branch="a", pos=0, block=1), read)
    assert [read, ev.Run(op="r")] == [event for event in made.events if getattr(event, "op", None) == "r"]


def test_each_race_of_a_log_has_a_witness() -> None:
    second = ev.Read(op="q", holder="h", block=2, slots=(0, 4), stream="t")
    log = [ev.Alloc(block=2), ev.Write(op="v", holder="h", block=2, slots=(0, 4), stream="s"), *RACE, second]
    assert witness_in(HEADER, *log).events == [*log[:2], second, ev.Run(op="q"), ev.Run(op="v")]


def test_a_token_without_an_entry_has_a_witness() -> None:
    log = [ev.Admit(branch="a", tokens=1), ev.Alloc(block=2), ev.Read(branch="a", stream="s")]
    others = [ev.Map(branch="b", pos=0, block=2), ev.Unmap(branch="b", pos=0, block=2)]  # tables are recorded
    found = witness_in(HEADER, *log[:2], ev.Admit(branch="b"), *others, log[2])
    assert log[2] in found.events


def test_the_witness_of_a_race_is_no_read_of_what_nobody_wrote() -> None:
    entry = [ev.Admit(branch="a", tokens=4), ev.Alloc(block=1, branch="a"), ev.Map(branch="a", pos=0, block=1)]
    write = ev.Write(op="w", branch="a", block=1, slots=(0, 4), tokens=(0, 4), stream="s")
    read = ev.Read(op="r", branch="a", stream="t")
    made = witness_in(HEADER, *entry, write, ev.Wait(event="e", stream="t"), ev.Record(event="e", stream="s"), read)
    assert made.events[-4:] == [write, read, ev.Run(op="r"), ev.Run(op="w")]


def test_where_nothing_orders_an_access_after_its_blocks_new_life_the_witness_has_both_in_one() -> None:
    alloc, write = ev.Alloc(block=1), ev.Write(op="w", holder="h", block=1, slots=(0, 4), stream="s", thread="one")
    again = [ev.Free(block=1, thread="one"), ev.Alloc(block=1, thread="two")]
    late = ev.Write(op="x", holder="h", block=1, slots=(0, 4), stream="t", thread="three")
    log = [alloc, write, ev.Done(op="w", thread="one"), *again, late]
    (found,) = check([HEADER, *log]).violations
    made = witness(memory_log([HEADER, *log]), found)
    assert made.events == [alloc, write, late, ev.Run(op="x"), ev.Run(op="w")]
    rules = [v.rule for v in check([made.header, *made.events]).violations]
    assert (found.rule, rules) == ("no_reuse_in_flight", ["accesses_ordered"])


def test_an_access_that_its_thread_waits_for_is_late_by_coming_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kvsan.checker.order.minimal.TRIALS", 0)
    waited = ev.Write(holder="h", block=1, slots=(0, 4), stream="s", thread="one")
    behind = [ev.Record(event="e", stream="s"), ev.Wait(event="e", stream="u")]
    made, told = witness_of(tmp_path, RACE[0], ev.Alloc(block=2), waited, *behind, RACE[2])
    assert made == [RACE[0], ev.Alloc(block=2), RACE[2], ev.Run(op="r"), waited]
    assert told == [("accesses_ordered", 6)]


def test_copies_of_one_launch_that_several_events_show_are_exchanged(tmp_path: Path) -> None:
    first, second = (ev.Copy(op="c", src=b, dst=b + 1, slots=(0, 4), stream="s") for b in (1, 2))
    made, told = witness_of(tmp_path, *(ev.Alloc(block=b) for b in (1, 2, 3)), first, second)
    assert made[-3:] == [second, first, ev.Run(op="c")]
    assert [rule for rule, _ in told] == ["source_stable"]


def test_where_there_is_no_witness_the_report_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kvsan.checker.order.reordered.LONG", 0)
    log = [ev.Admit(branch="a", tokens=1), ev.Alloc(block=2), ev.Map(branch="b", pos=0, block=2), ev.Read(branch="a")]
    path = write_log(tmp_path / "log.jsonl", HEADER, [*log[:2], ev.Admit(branch="b"), *log[2:]])
    assert run(Request((str(path),), output=tmp_path / "report", witness=tmp_path)) == 1
    said = capsys.readouterr().err
    assert "line 6: from where its log has to begin, the read is not reported as a breach" in said


def write(op: str, stream: str) -> ev.Write:
    return ev.Write(op=op, holder="h", block=1, slots=(0, 1), stream=stream)


@pytest.mark.parametrize(
    "events",
    [
        [write("a", "s"), write("b", "s"), ev.Run(op="b")],
        [write("a", "s"), ev.Record(event="e", stream="s"), ev.Wait(event="e", stream="t"), write("b", "t"),
         ev.Run(op="b")],
        [write("a", "s"), ev.Done(op="a")],
        [write("a", "s"), ev.Sync(stream="s")],
        [ev.Run(op="a")],
    ],
)  # fmt: skip
def test_a_schedule_that_recorded_order_forbids_is_impossible(events: list[ev.Event]) -> None:
    with pytest.raises(Impossible):
        ran(events)


def test_the_command_saves_a_witness_that_it_rejects(tmp_path: Path) -> None:
    request = Request((str(CORPUS / "vllm-32255.jsonl"),), quiet=True, output=tmp_path / "report", witness=tmp_path)
    assert run(request) == 1
    saved = tmp_path / "vllm-32255-line-11-block-1.jsonl"
    assert [v.rule for v in check(saved).violations] == ["no_reuse_in_flight"]


def test_logs_of_ranks_that_have_one_name_keep_their_witnesses_apart(tmp_path: Path) -> None:
    for rank in ("r0", "r1"):
        (tmp_path / rank).mkdir()
        write_log(tmp_path / rank / "run.jsonl", structs.replace(HEADER, rank=rank), RACE)
    logs = tuple(str(tmp_path / rank / "run.jsonl") for rank in ("r0", "r1"))
    assert run(Request(logs, quiet=True, output=tmp_path / "report", witness=tmp_path)) == 1
    saved = [tmp_path / f"{name}-line-4-block-1.jsonl" for name in ("run", "run-2")]
    assert [check(path).log["rank"] for path in saved] == ["r0", "r1"]
