"""The recorder of PyTorch streams, over the stand-in for `torch.cuda` (`fake_cuda`): no GPU, and no torch.

Launches are told by hand here; `test_torch_ops` has torch's own operators.
"""

from __future__ import annotations

import gc
import json
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from fake_cuda import FakeCuda, executions
from hypothesis import given, settings
from hypothesis import strategies as st
from kvsan.checker import check
from kvsan.traces.engines.torch_streams import Accesses, Streams, pools_of
from kvsan.traces.record import Recorder

HEADER: dict[str, Any] = {
    "engine": "torch", "version": "stand-in", "discipline": "paged_cow", "block_size": 4, "blocks": 8,
    "started": "mid_run",
}  # fmt: skip


class Silent:
    """A log that keeps nothing."""

    def emit(self, ev: str, /, **fields: object) -> None:
        pass

    def group(self) -> AbstractContextManager[None]:
        return nullcontext()


class Program:
    """A program on the stand-in, recorded. `ran` has the launches in the order in which the device did them."""

    def __init__(self, cuda: FakeCuda, log: Any) -> None:
        self.cuda, self.streams = cuda, Streams(log, cuda)
        self.side: Any = cuda.Stream()
        self.launches = 0
        self.ran: list[int] = []

    def launch(self, stream: Any = None, **accesses: Any) -> None:
        stream, number = stream or self.cuda.current_stream(), self.launches
        self.launches += 1
        with self.cuda.stream(stream):
            self.cuda.launch(lambda: self.ran.append(number))
            self.streams.launched(Accesses(**accesses))

    def write(self, block: int, lo: int = 0, hi: int = 4, stream: Any = None) -> None:
        self.launch(stream, writes=(("gpu", block, lo, hi),))

    def read(self, block: int, lo: int = 0, hi: int = 4, stream: Any = None) -> None:
        self.launch(stream, reads=(("gpu", block, lo, hi),))

    def copy(self, src: int, dst: int, lo: int = 0, hi: int = 4, stream: Any = None) -> None:
        self.launch(stream, copies=(("gpu", "gpu", src, dst, lo, hi),))


def recorded(run: Callable[[Program], None], path: Path, cuda: FakeCuda | None = None, **header: Any) -> Program:
    cuda = cuda or FakeCuda()
    with Recorder(path, **(HEADER | header)) as log:
        program = Program(cuda, log)
        with program.streams.attached():
            run(program)
            type(cuda).synchronize(cuda)  # unseen: only to finish
    return program


def lines(path: Path) -> list[dict[str, Any]]:
    """The events, but for the recorder's own last line."""
    found = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    found = [line for line in found if not line["ev"].startswith("x_")]
    return [{key: value for key, value in line.items() if key != "seq"} for line in found]


def rules(path: Path) -> list[tuple[str, int]]:
    return [(violation.rule, violation.line) for violation in check(path).violations]


# --- what is written --------------------------------------------------------------------------------------------------


def test_records_waits_and_syncs_of_the_stand_in_are_written_as_they_are_called(tmp_path: Path) -> None:
    def run(p: Program) -> None:
        event = p.side.record_event()
        event.wait()
        p.side.wait_stream(p.cuda.current_stream())
        event.synchronize()
        p.side.synchronize()
        p.cuda.synchronize()

    recorded(run, tmp_path / "run.jsonl")
    assert lines(tmp_path / "run.jsonl") == [
        {"ev": "record", "event": "e0", "stream": "s0"},
        {"ev": "wait", "event": "e0", "stream": "default"},
        {"ev": "record", "event": "e1", "stream": "default"},
        {"ev": "wait", "event": "e1", "stream": "s0"},
        {"ev": "sync", "event": "e0"},
        {"ev": "sync", "stream": "s0"},
        {"ev": "sync", "device": True},
    ]


def test_a_query_is_written_only_when_it_says_yes(tmp_path: Path) -> None:
    def run(p: Program) -> None:
        event = p.side.record_event()
        assert not event.query()
        assert not p.side.query()
        type(p.cuda).synchronize(p.cuda)
        assert event.query()
        assert p.side.query()

    recorded(run, tmp_path / "run.jsonl")
    assert lines(tmp_path / "run.jsonl")[1:] == [{"ev": "sync", "event": "e0"}, {"ev": "sync", "stream": "s0"}]


def test_an_event_never_recorded_is_not_written(tmp_path: Path) -> None:
    def run(p: Program) -> None:
        event = p.cuda.Event()
        event.wait(p.side)
        assert event.query()
        event.synchronize()

    recorded(run, tmp_path / "run.jsonl")
    assert lines(tmp_path / "run.jsonl") == []


def test_the_name_of_an_event_that_is_gone_is_used_again(tmp_path: Path) -> None:
    def run(p: Program) -> None:
        for _ in range(5):
            p.cuda.current_stream().wait_stream(p.side)
            gc.collect()

    recorded(run, tmp_path / "run.jsonl")
    assert {line["event"] for line in lines(tmp_path / "run.jsonl")} == {"e0"}


def test_one_launch_is_one_op_of_its_stream_and_of_who_acts(tmp_path: Path) -> None:
    def run(p: Program) -> None:
        with p.streams.acting("r1"):
            p.launch(p.side, copies=(("gpu", "gpu", 1, 2, 0, 2),), writes=(("gpu", 2, 2, 3),))
        with p.streams.acting("r1", upto=3):
            p.read(2)
        p.write(3)

    recorded(run, tmp_path / "run.jsonl")
    assert lines(tmp_path / "run.jsonl") == [
        {"ev": "copy", "op": "k1", "branch": "r1", "src": 1, "dst": 2, "slots": [0, 2], "stream": "s0"},
        {"ev": "write", "op": "k1", "branch": "r1", "block": 2, "slots": [2, 3], "stream": "s0"},
        {"ev": "read", "op": "k2", "branch": "r1", "upto": 3, "stream": "default"},
        {"ev": "write", "op": "k3", "holder": "torch", "block": 3, "slots": [0, 4], "stream": "default"},
    ]


def test_a_thread_is_named_and_races_with_the_other_unless_a_channel_orders_them(tmp_path: Path) -> None:
    def run(p: Program, ordered: bool) -> None:
        def work() -> None:
            if ordered:
                p.streams.log.emit("await", channel="queue")
            p.write(1, stream=p.side)

        p.write(1)
        p.cuda.current_stream().synchronize()
        if ordered:
            p.streams.log.emit("signal", channel="queue")
        thread = threading.Thread(target=work, name="worker")
        thread.start()
        thread.join()

    recorded(lambda p: run(p, False), tmp_path / "run.jsonl")
    assert lines(tmp_path / "run.jsonl")[-1]["thread"] == "worker"
    assert [rule for rule, _ in rules(tmp_path / "run.jsonl")] == ["accesses_ordered"]
    recorded(lambda p: run(p, True), tmp_path / "ordered.jsonl")
    assert rules(tmp_path / "ordered.jsonl") == []


def test_sizes_of_pools_come_from_the_tensors_and_must_agree() -> None:
    assert pools_of([("gpu", 8, 4), ("gpu", 8, 4), ("cpu", 6, 4)]) == {
        "blocks": 8,
        "block_size": 4,
        "pools": {"cpu": {"blocks": 6, "block_size": 4}},
    }
    with pytest.raises(ValueError, match="differ in blocks or slots"):
        pools_of([("gpu", 8, 4), ("gpu", 8, 2)])
    with pytest.raises(ValueError, match="pool gpu"):
        pools_of([("cpu", 8, 4)])


def test_the_stand_in_is_itself_again_after_the_recording(tmp_path: Path) -> None:
    cuda = FakeCuda()
    before = [vars(cuda.Event).copy(), vars(cuda.Stream).copy(), vars(cuda).copy()]
    program = recorded(lambda p: p.write(1), tmp_path / "run.jsonl", cuda)
    written = lines(tmp_path / "run.jsonl")
    program.side.record_event().synchronize()
    assert [vars(cuda.Event), vars(cuda.Stream), vars(cuda)] == before
    assert lines(tmp_path / "run.jsonl") == written


def test_a_hook_that_fails_leaves_the_program_running(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run(p: Program) -> None:
        p.streams.log.close()
        p.side.record_event().synchronize()
        p.write_nothing = True  # type: ignore[attr-defined]  # reached

    assert recorded(run, tmp_path / "run.jsonl").write_nothing  # type: ignore[attr-defined]
    assert capsys.readouterr().err.count("the recorder failed and has stopped") == 1


# --- what the checker says of it --------------------------------------------------------------------------------------


def use_without_waiting(p: Program) -> None:
    p.write(1)
    p.side.wait_stream(p.cuda.current_stream())
    p.copy(1, 2, stream=p.side)
    p.read(2)


def use_behind_an_event(p: Program) -> None:
    p.write(1)
    p.side.wait_stream(p.cuda.current_stream())
    p.copy(1, 2, stream=p.side)
    p.cuda.current_stream().wait_stream(p.side)
    p.read(2)


def overwrite_the_source(p: Program) -> None:
    p.write(1)
    p.side.wait_stream(p.cuda.current_stream())
    p.copy(1, 2, stream=p.side)
    p.write(1, 1, 2)


def overwrite_another_slot(p: Program) -> None:
    p.write(1)
    p.side.wait_stream(p.cuda.current_stream())
    p.copy(1, 2, 0, 2, stream=p.side)
    p.write(1, 2, 4)


def overwrite_when_the_query_says_yes(p: Program) -> None:
    p.write(1)
    p.side.wait_stream(p.cuda.current_stream())
    p.copy(1, 2, stream=p.side)
    copied = p.side.record_event()
    type(p.cuda).synchronize(p.cuda)  # the device gets there; nobody says so but the query
    assert copied.query()
    p.write(1, 1, 2)


def overwrite_without_asking(p: Program) -> None:
    p.write(1)
    p.side.wait_stream(p.cuda.current_stream())
    p.copy(1, 2, stream=p.side)
    type(p.cuda).synchronize(p.cuda)
    p.write(1, 1, 2)


def wait_bound_to_the_record_it_saw(p: Program) -> None:
    event = p.side.record_event()
    p.write(1, stream=p.side)
    p.cuda.current_stream().wait_event(event)
    event.record(p.side)
    p.write(1)


def trust_the_default_stream(p: Program) -> None:
    p.write(1, stream=p.side)
    p.write(1)


def two_streams_made_elsewhere(p: Program) -> None:
    p.write(1, stream=p.cuda.ExternalStream())
    p.write(1)
    p.write(1, stream=p.cuda.ExternalStream())


def reuse_in_flight(p: Program) -> None:
    log = p.streams.log
    log.emit("alloc", block=1)
    log.emit("pin", block=1, holder="torch", kind="transfer")
    p.write(1)
    log.emit("unpin", block=1, holder="torch", kind="transfer")
    log.emit("free", block=1)
    log.emit("alloc", block=1)
    log.emit("pin", block=1, holder="torch", kind="transfer")
    p.write(1, stream=p.side)


VERDICTS: list[tuple[Callable[[Program], None], str | None]] = [
    (use_without_waiting, "copy_precedes_use"),
    (use_behind_an_event, None),
    (overwrite_the_source, "source_stable"),
    (overwrite_another_slot, None),
    (overwrite_when_the_query_says_yes, None),
    (overwrite_without_asking, "source_stable"),
    (wait_bound_to_the_record_it_saw, "accesses_ordered"),
    (trust_the_default_stream, "accesses_ordered"),
    (reuse_in_flight, "no_reuse_in_flight"),
]


@pytest.mark.parametrize(("run", "rule"), VERDICTS, ids=[run.__name__ for run, _ in VERDICTS])
def test_check_names_the_order_that_is_missing_on_the_stand_in(
    tmp_path: Path, run: Callable[[Program], None], rule: str | None
) -> None:
    recorded(run, tmp_path / "run.jsonl")
    last = 1 + len(lines(tmp_path / "run.jsonl"))
    assert rules(tmp_path / "run.jsonl") == ([] if rule is None else [(rule, last)])


def test_blocking_streams_of_the_stand_in_hold_once_the_header_says_so(tmp_path: Path) -> None:
    recorded(two_streams_made_elsewhere, tmp_path / "run.jsonl", legacy_stream="default")
    assert rules(tmp_path / "run.jsonl") == []
    recorded(two_streams_made_elsewhere, tmp_path / "unsaid.jsonl")
    assert [rule for rule, _ in rules(tmp_path / "unsaid.jsonl")] == ["accesses_ordered"]


# --- verdict and reality ----------------------------------------------------------------------------------------------

Instruction = tuple[str, int, int]


def instructions() -> st.SearchStrategy[list[Instruction]]:
    kinds = ("write", "read", "write", "record", "wait", "wait", "sync_event", "sync_stream", "wait_stream")
    return st.lists(st.tuples(st.sampled_from(kinds), st.integers(0, 2), st.integers(0, 1)), max_size=7)


def interpreted(program: list[Instruction], blocking: bool) -> Callable[[Program], None]:
    """Three streams, the default one among them, two events, two blocks."""

    def run(p: Program) -> None:
        kind = p.cuda.ExternalStream if blocking else p.cuda.Stream
        streams = [p.cuda.current_stream(), kind(), kind()]
        events = [p.cuda.Event(), p.cuda.Event()]
        calls = {
            "write": lambda s, n: p.write(n, stream=streams[s]),
            "read": lambda s, n: p.read(n, stream=streams[s]),
            "record": lambda s, n: events[n].record(streams[s]),
            "wait": lambda s, n: events[n].wait(streams[s]),
            "sync_event": lambda s, n: events[n].synchronize(),
            "sync_stream": lambda s, n: streams[s].synchronize(),
            "wait_stream": lambda s, n: streams[s].wait_stream(streams[n]),
        }
        for name, stream, number in program:
            calls[name](stream, number)

    return run


def conflicts(program: list[Instruction]) -> set[tuple[int, int]]:
    """Pairs of launches, in the order of the program, that must not change places."""
    launches = [(kind, block) for kind, _, block in program if kind in {"write", "read"}]
    return {
        (first, second)
        for second, (kind, block) in enumerate(launches)
        for first, (former, other) in enumerate(launches[:second])
        if block == other and "write" in (kind, former)
    }


def may_turn_out_otherwise(program: list[Instruction], blocking: bool) -> bool:
    """Whether the device can do two conflicting launches the wrong way round. Nothing is recorded here."""
    pairs = conflicts(program)

    def once(cuda: FakeCuda) -> list[int]:
        unrecorded = Program(cuda, Silent())
        interpreted(program, blocking)(unrecorded)
        cuda.synchronize()
        return unrecorded.ran

    return any(ran.index(first) > ran.index(second) for ran in executions(once) for first, second in pairs)


@settings(deadline=None)
@given(instructions(), st.booleans())
def test_a_race_is_reported_exactly_when_the_stand_in_can_run_it_the_other_way(
    program: list[Instruction], blocking: bool
) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.jsonl"
        recorded(interpreted(program, blocking), path, **({"legacy_stream": "default"} if blocking else {}))
        assert (check(path).verdict == "VIOLATED") == may_turn_out_otherwise(program, blocking)
