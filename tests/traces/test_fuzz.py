"""Whatever the bytes, the reader gives events or a problem: never an exception, never without an end."""

import gzip
import json

import hypothesis.strategies as st
import pytest
import zstandard
from hypothesis import given, settings
from kvsan.traces.read import Gap, Limits, open_log, open_logs, render_problem
from toy_logs import HEAD, stream
from valid_lines import VALID

SEED = (HEAD + "\n" + "\n".join(json.dumps(line) for line in VALID) + "\n").encode()
FORMS = [SEED, gzip.compress(SEED), zstandard.ZstdCompressor().compress(SEED)]
LIMITS = Limits(line_bytes=1 << 16, ratio=100, ratio_from=1 << 20)
TOKENS = [
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b'"',
    b"\n",
    b"\r",
    b"\0",
    b"null",
    b"-1",
    b"1e9",
    b"\\u",
    b'"x_',
    b"\xff",
]


def reads(data: bytes) -> None:
    log = open_log(stream(data), LIMITS)
    first = [item for batch in log.batches() for item in batch]
    problem = log.problem
    assert first == [item for batch in log.batches() for item in batch]
    assert problem == log.problem
    lines = [line for line, event in first if not isinstance(event, Gap)]
    assert lines == sorted(set(lines))
    if problem:
        assert render_problem(problem)
        assert problem.what
        assert problem.remedy
    for other in open_logs([stream(data)], LIMITS):
        assert [item for batch in other.batches() for item in batch] == first


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A valid log with some bytes overwritten, removed or repeated."""
    data = bytearray(draw(st.sampled_from(FORMS)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        length = draw(st.integers(0, 20))
        data[at : at + length] = draw(st.sampled_from(TOKENS) | st.binary(max_size=8) | st.just(data[at : at + 40]))
    return bytes(data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data)


@st.composite
def json_lines(draw: st.DrawFn) -> bytes:
    """Valid JSON, no valid log."""
    leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    keys = st.sampled_from(["ev", "block", "seq", "branch", "slots", "x_a", "copies", "pools", "schema", "alloc"])
    values = st.recursive(
        leaves | st.sampled_from(["alloc", "trace", "step", "kvsan/1"]),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
        max_leaves=8,
    )
    lines = draw(st.lists(st.dictionaries(keys, values, max_size=5) | values, max_size=4))
    head = [HEAD] if draw(st.booleans()) else []
    return "\n".join([*head, *map(json.dumps, lines)]).encode()


@settings(max_examples=200, deadline=None)
@given(mutated())
def test_mutated_logs_never_raise(data: bytes) -> None:
    reads(data)


@settings(max_examples=200, deadline=None)
@given(
    st.binary(max_size=200)
    | st.binary(max_size=80).map(lambda tail: b"\x1f\x8b\x08" + tail)
    | st.binary(max_size=80).map(lambda tail: b"\x28\xb5\x2f\xfd" + tail)
)
def test_random_bytes_never_raise(data: bytes) -> None:
    reads(data)


@settings(max_examples=60, deadline=None)
@given(json_lines())
def test_json_that_is_no_log_never_raises(data: bytes) -> None:
    reads(data)


@pytest.mark.slow
@settings(max_examples=3_000, deadline=None)
@given(mutated() | json_lines())
def test_many_mutated_logs_never_raise(data: bytes) -> None:
    reads(data)
