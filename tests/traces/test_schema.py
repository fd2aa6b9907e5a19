"""The published schema and the reader accept the same lines, as far as a schema can speak."""

import json
from importlib.resources import files
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import example, given, settings
from jsonschema import Draft202012Validator
from kvsan.traces import schema
from kvsan.traces.decode import decode_line
from kvsan.traces.events import EVENT_TYPES, Trace
from kvsan.traces.fields import MAX_NAT, SLOTS_MAX
from kvsan.traces.head import parse_header
from kvsan.traces.judge import faults
from kvsan.traces.problem import Fault
from test_malformed_lines import LINES
from valid_lines import VALID

VALIDATOR = Draft202012Validator(schema.published())
HEADER = {
    "ev": "trace",
    "schema": "kvsan/1",
    "engine": "toy",
    "version": "1",
    "discipline": "paged_cow",
    "block_size": SLOTS_MAX,
    "blocks": MAX_NAT,
    "pools": {"cpu": {"blocks": MAX_NAT}},
}
BEYOND_A_SCHEMA = ("an empty range", "is not in the header", "and the pool has blocks", "and a block has", "twice")

PLACES = ("pool", "group", "src_pool", "dst_pool")

Line = dict[str, Any]  # Any: JSON


def reader_accepts(line: Line) -> bool:
    """The reader's verdict, without what a schema cannot say."""
    text = json.dumps(line).encode()
    if line.get("ev") == "trace":
        return not isinstance(parse_header(text, is_open=False), Fault)
    event = decode_line(text)
    if isinstance(event, Fault):
        return False
    header = parse_header(json.dumps(HEADER).encode(), is_open=False)
    assert isinstance(header, tuple)
    wrong = list(faults(event, header[0])) if type(event) in EVENT_TYPES.values() else []
    if any("is not in the header" in fault.what for fault in wrong):  # nothing more is said of such a line
        return reader_accepts({name: value for name, value in line.items() if name not in PLACES})
    return all(any(words in fault.what for words in BEYOND_A_SCHEMA) for fault in wrong)


def test_the_committed_schema_is_the_generated_one() -> None:
    assert files("kvsan.traces").joinpath("schema.json").read_text("utf-8") == schema.text()


def test_the_schema_is_a_valid_json_schema() -> None:
    Draft202012Validator.check_schema(schema.published())


def test_the_schema_knows_every_kind_of_event() -> None:
    parts = [part["properties"].get("ev") for part in schema.published()["$defs"].values() if "title" in part]
    known = {part.get("enum", ["x_"])[0] for part in parts if part}
    assert known == {"trace", "x_", *EVENT_TYPES}


@pytest.mark.parametrize("line", VALID, ids=lambda line: json.dumps(line)[:70])
def test_both_accept_what_the_format_shows(line: Line) -> None:
    assert VALIDATOR.is_valid(line)
    assert reader_accepts(line)


def bad_lines() -> list[Line]:
    """The malformed lines that are objects and whose fault a schema can see."""
    found = []
    for text, problem in LINES:
        try:
            line = json.loads(text)
        except ValueError:
            continue
        beyond = (*BEYOND_A_SCHEMA, "a block has", "a header of another log")
        if isinstance(line, dict) and not any(words in problem for words in beyond):
            found.append(line)
    return found


@pytest.mark.parametrize("line", bad_lines(), ids=lambda line: json.dumps(line)[:70])
def test_both_refuse_what_is_malformed(line: Line) -> None:
    assert not VALIDATOR.is_valid(line)
    assert not reader_accepts(line)


names = st.one_of(st.sampled_from(["r0", "", "0", "gpu", "cpu"]), st.integers(-3, 9), st.just(10**30))
naturals = st.one_of(st.integers(0, 9), st.sampled_from([MAX_NAT - 1, MAX_NAT + 1, -1]))
keys = st.sampled_from(["blocks", "block_size", "x_y"])
junk = st.recursive(
    st.one_of(st.none(), st.booleans(), naturals, st.just(0.5), names),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=2),
    max_leaves=6,
)
pairs = st.tuples(naturals, naturals).map(list)
rows = st.lists(st.one_of(st.lists(st.one_of(names, naturals), max_size=5), names), max_size=3)
words = st.sampled_from(
    ["keep", "freeze", "copy", "transfer", "step", "cache", "empty", "mid_run", "owners", "owners+pins", "kvsan/1"]
)
values = st.one_of(naturals, names, pairs, rows, words, st.booleans(), st.lists(naturals, max_size=3), junk)


@st.composite
def lines(draw: st.DrawFn) -> Line:
    """A valid line with some fields changed, dropped or added."""
    line: Line = dict(draw(st.sampled_from(VALID)))
    for _ in range(draw(st.integers(0, 3))):
        record = EVENT_TYPES.get(line.get("ev", ""), Trace)
        fields = [name.rstrip("_") for name in record.__struct_fields__]
        name = draw(st.sampled_from([*fields, "ev", "x_own", "blok"]))
        if draw(st.booleans()):
            line.pop(name, None)
        else:
            line[name] = draw(st.sampled_from([*EVENT_TYPES, "x_own", "aloc", 3]) if name == "ev" else values)
    return line


@settings(max_examples=120, deadline=None)
@given(lines())
@example({"ev": "write", "branch": None, "holder": "dma", "block": 1, "slots": [0, 1]})
@example({"ev": "sync", "device": False})
@example({"ev": "read", "block": None, "pool": 0})
@example({"ev": "sync", "device": True, "stream": None})
@example({"ev": "x_own", "seq": -1})
@example(HEADER | {"complete": ["alloc", "x_own"]})
@example(HEADER | {"complete": ["aloc"]})
@example(HEADER | {"pools": {"gpu": {"blocks": 3}}})
def test_the_schema_and_the_reader_agree(line: Line) -> None:
    assert VALIDATOR.is_valid(line) == reader_accepts(line)
