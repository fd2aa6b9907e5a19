"""Whatever stands in a log, `check` gives an outcome: never a traceback."""

from __future__ import annotations

import json
import random
from io import BytesIO

import pytest
from engine_model import engine_log
from hypothesis import given, settings
from hypothesis import strategies as st
from kvsan.checker import check
from kvsan.traces.read import open_log
from reference import Line

SEEDS = st.integers(min_value=0, max_value=2**48)
VALUES = [0, 1, 11, 12, -1, 2**40, "r1", "x", None, True, [], [0, 1], [2, 1], [0, 2**33], [0, 3, 5], 1.5, {"a": 1}]
FIELDS = [
    "block", "branch", "slots", "tokens", "pos", "hash", "holder", "pool", "group", "op", "stream", "seq", "count",
    "free", "parent", "upto", "src", "dst", "dst_pool", "mode", "kind", "digest", "namespace", "blocks", "from",
]  # fmt: skip
HEADER = {
    "null_block": 0, "started": "mid_run", "complete": ["alloc", "map"], "block_size": 1, "blocks": 1,
    "pools": {"cpu": {"blocks": 3}}, "groups": {"1": {"block_size": 2}}, "discipline": "page_tree",
}  # fmt: skip


def shaken(log: list[Line], dice: random.Random) -> list[Line]:
    """The log with fields set to anything, taken from other events, or left out; with events moved and renamed."""
    log = [dict(event) for event in log]
    for name in dice.sample(list(HEADER), dice.choice([0, 0, 1, 2])):
        log[0][name] = HEADER[name]
    kinds = sorted({event["ev"] for event in log[1:]})
    for _ in range(dice.randint(1, 6)):
        at = dice.randrange(1, len(log))
        event, other = log[at], dice.choice(log[1:])
        match dice.randrange(5):
            case 0:
                event[dice.choice(FIELDS)] = dice.choice(VALUES)
            case 1:
                event.update({k: v for k, v in other.items() if k != "ev" and dice.random() < 0.5})
            case 2 if len(event) > 1:
                del event[dice.choice([k for k in event if k != "ev"])]
            case 3:
                event["ev"] = dice.choice(kinds)
            case _:
                log.insert(dice.randrange(1, len(log)), log.pop(at))
    return log


def assert_answers(log: list[Line]) -> None:
    assert check(log).verdict in ("HOLDS", "VIOLATED", "UNKNOWN")


def assert_answers_bytes(log: list[Line], seed: int) -> None:
    dice = random.Random(seed)
    data = bytearray(b"\n".join(json.dumps(event).encode() for event in log))
    for _ in range(dice.randint(1, 4)):
        at = dice.randrange(len(data))
        data[at : at + dice.randrange(4)] = dice.randbytes(dice.randrange(4)) or b'"'
    outcome = check(open_log(BytesIO(bytes(data))))
    assert outcome.verdict in ("HOLDS", "VIOLATED", "UNKNOWN")


ENGINES = st.builds(
    engine_log, st.sampled_from(("paged_cow", "append_only", "append_only_cow")), SEEDS, st.integers(3, 12)
)
SHAKEN = st.builds(lambda log, seed: shaken(log, random.Random(seed)), ENGINES, SEEDS)


@settings(max_examples=120, deadline=None, derandomize=True)
@given(SHAKEN)
def test_shaken_events_get_an_answer(log: list[Line]) -> None:
    assert_answers(log)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(ENGINES, SEEDS)
def test_broken_bytes_get_an_answer(log: list[Line], seed: int) -> None:
    assert_answers_bytes(log, seed)


@pytest.mark.slow
@settings(max_examples=5_000, deadline=None)
@given(SHAKEN)
def test_many_shaken_events_get_an_answer(log: list[Line]) -> None:
    assert_answers(log)
