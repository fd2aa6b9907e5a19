"""The quick checks pass only what the judge passes, and they pass what is ordinary."""

import json
from typing import Any

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given, settings
from kvsan.traces.decode import Extension, decode_line, decoder
from kvsan.traces.events import EVENT_TYPES, Alloc, Copy, Event, Read, Sync, Table, Trace
from kvsan.traces.head import parse_header
from kvsan.traces.judge import judge
from kvsan.traces.problem import Fault
from kvsan.traces.quick import quick_checks, scanner
from valid_lines import FULL, OTHER

HEADER = msgspec.convert(
    {
        "ev": "trace",
        "schema": "kvsan/1",
        "engine": "toy",
        "version": "1",
        "discipline": "paged_cow",
        "block_size": 4,
        "blocks": 8,
        "pools": {"cpu": {"blocks": 2, "block_size": 2}},
        "groups": {"1": {"block_size": 8}},
    },
    Trace,
)
CHECKS = quick_checks(HEADER)
UNSURE = scanner(HEADER)
small = st.integers(0, 9)
spots: dict[str, st.SearchStrategy[Any]] = {
    "block": small | st.lists(small, min_size=1, max_size=3) | st.none(),
    "blocks": st.lists(small | st.none(), max_size=3),
    "slots": st.tuples(small, small) | st.none(),
    "tokens": st.tuples(small, small) | st.none(),
    "src": small,
    "dst": small,
    "copies": st.lists(st.tuples(small, small, small, small), max_size=2),
    "writes": st.lists(st.tuples(st.just("r0"), small, small, small), max_size=2),
    "branch": st.sampled_from(["r0", None]),
    "holder": st.sampled_from(["dma", None]),
    "upto": st.sampled_from([3, None]),
    "stream": st.sampled_from(["s", None]),
    "event": st.sampled_from(["e", None]),
    "device": st.sampled_from([True, False, None]),
    "pool": st.sampled_from([None, "gpu", "cpu", "disk"]),
    "src_pool": st.sampled_from([None, "gpu", "cpu", "disk"]),
    "dst_pool": st.sampled_from([None, "gpu", "cpu", "disk"]),
    "group": st.sampled_from([None, "0", "1", 1, "2"]),
}


@st.composite
def events(draw: st.DrawFn) -> Event:
    """Well-typed events whose ids and ranges are often impossible."""
    while True:
        line = dict(draw(st.sampled_from([*FULL, *OTHER[:-1]])))
        line.pop("x_own", None)
        for name in EVENT_TYPES[line["ev"]].__struct_fields__:
            if name in spots and draw(st.booleans()):
                line[name] = draw(spots[name])
        try:
            return decoder.decode(json.dumps(line))
        except msgspec.ValidationError:
            continue


@settings(max_examples=400, deadline=None)
@given(events())
def test_a_quick_check_passes_only_what_the_judge_passes(event: Event) -> None:
    fault = judge(event, HEADER)
    if CHECKS[type(event)](event):
        assert fault is None
    if not list(UNSURE([event])):
        assert fault is None


ORDINARY = [line for line in FULL if line["ev"] not in ("table", "sync", "map", "copy")]


@pytest.mark.parametrize("line", ORDINARY, ids=lambda line: line["ev"])
def test_a_quick_check_passes_ordinary_events(line: dict[str, Any]) -> None:
    """Else every event would take the slow way, and nothing but the speed would show it."""
    event = decode_line(json.dumps(line).encode())
    assert not isinstance(event, Fault | Extension)
    assert CHECKS[type(event)](event)
    assert list(UNSURE([event, event])) == []


def test_an_impossible_id_is_let_through_where_alloc_hands_it_out() -> None:
    """Then the allocator is wrong, not the log: the rule alloc_from_free judges it."""
    assert judge(Alloc(block=(3, 900)), HEADER) is None
    assert CHECKS[Alloc](Alloc(block=900))


def test_every_kind_has_a_check() -> None:
    assert set(CHECKS) == set(EVENT_TYPES.values())


@pytest.mark.parametrize(
    ("event", "path"),
    [
        (Table(branch="r0", blocks=(0, None, 8)), "blocks[2]"),
        (Copy(src=8, dst=0, slots=(0, 1)), "src"),
        (Copy(src=0, dst=0, slots=(0, 3), dst_pool="cpu"), "slots"),
        (Read(holder="dma", block=(1, 9)), "block[1]"),
        (Sync(stream="s", device=True), "device"),
        (Alloc(block=1, pool="disk"), "pool"),
        (Alloc(block=1, group=2), "group"),
    ],
)
def test_a_fault_names_its_place(event: Event, path: str) -> None:
    fault = judge(event, HEADER)
    assert fault is not None
    assert fault.path == path


def test_a_group_has_its_own_block_size() -> None:
    assert judge(decoder.decode(b'{"ev":"invalidate","block":1,"slots":[0,8],"group":1}'), HEADER) is None
    assert judge(decoder.decode(b'{"ev":"invalidate","block":1,"slots":[0,8]}'), HEADER) is not None


def test_any_group_will_do_where_the_header_names_none() -> None:
    line = json.dumps({**msgspec.to_builtins(HEADER), "groups": None}).encode()
    outcome = parse_header(line, is_open=False)
    assert not isinstance(outcome, Fault)
    assert judge(Alloc(block=1, group=7), outcome[0]) is None
