"""Programs about what streams and threads know of each other, each judged by the enumeration of interleavings, too.

`a=s1` writes block 1 in op a on stream s, `?a=s1` reads it there, `s1` writes it and waits, `1` does it on the thread;
`done a`, `record e s`, `wait e t` and the like are events of the log, `finish s` a sync of the stream; `two:` is the
second thread.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from kvsan.checker.order.clocks import Clocks
from oracle import Model
from programs import HEADER
from test_interleavings import agree, reported

ALLOCS = [{"ev": "alloc", "block": b} for b in range(3)]
ORDERING = {"done": ("op",), "record": ("event", "stream"), "wait": ("event", "stream"), "sync": ("event",),
            "finish": ("stream",), "signal": ("channel",), "await": ("channel",), "free": ("block",),
            "alloc": ("block",)}  # fmt: skip


def event(text: str) -> dict[str, Any]:
    thread, _, text = text.strip().rpartition(":")
    more = {"thread": "two"} if thread else {}
    word, *names = text.split()
    if word == "device":
        return {"ev": "sync", "device": True, **more}
    if word in ORDERING:
        values = [int(name) if name.isdigit() else name for name in names]
        kind = "sync" if word == "finish" else word
        return {"ev": kind, **dict(zip(ORDERING[word], values, strict=True)), **more}
    op, stream, block = re.fullmatch(r"\??(?:(\w)=)?(\D*)(\d)", text).groups()  # type: ignore[union-attr]
    where = {key: value for key, value in (("op", op), ("stream", stream)) if value}
    return {
        "ev": "read" if text[0] == "?" else "write",
        "holder": "h",
        "block": int(block),
        "slots": [0, 2],
        **where,
        **more,
    }


def log_of(program: str, legacy: bool) -> list[dict[str, Any]]:
    header = {**HEADER, "legacy_stream": "s"} if legacy else HEADER
    return [header, *ALLOCS, *map(event, program.split(","))]


ORDERED = {
    "a thread that hears of an earlier place of a stream still knows the later one":
        "a=s1, record e s, wait e t, b=s2, c=t0, done b, done c, 2",
    "a stream that a thread waited for again and again learns what the thread heard since":
        "a=t1, s0, s0, s0, finish t, s1",
    "and what the thread did since": "s0, s0, s0, 1, s1",
    "and the thread learns what the stream waited for": "s0, s0, b=t1, record e t, wait e s, s0, 1",
    "a record comes after what its thread did": "1, record e s, two:wait e t, two:b=t1",
    "a wait comes after what its thread did": "1, wait e s, two:b=s1",
    "the device is every stream": "a=s1, b=t2, c=u0, device, 0, 1, 2",
    "an await hears of every thread that signalled": "1, signal c, two:signal c, two:await c, two:a=s1",
    "an event that is recorded again holds what came meanwhile": "a=s1, record e s, b=s2, record e s, wait e t, c=t2",
    "a thread that waited for a stream again and again tells it what it awaited":
        "two:1, two:signal c, s0, s0, await c, s1",
    "a block handed on is handed on from its latest hand": "2, free 0, alloc 0, 1, free 0, two:alloc 0, two:a=s1",
    "legacy: the legacy stream comes after every other": "a=t1, b=s1",
    "legacy: every other stream comes after the legacy one": "a=s1, b=t1",
    "legacy: a thread that waits for a stream has waited for the legacy one too": "t2, t2, a=s1, t2, 1",
    "legacy: a sync of an idle stream waits for the legacy one": "a=s1, finish t, 1",
    "legacy: a sync of the legacy stream waits for every other": "a=t1, finish s, 1",
}  # fmt: skip
RACES = {
    "a record holds what its stream knew then, not what it learns later":
        "a=t1, record f t, b=s2, record e s, wait f s, sync e, 1",
    "so it does where the stream has just learned something":
        "a=t1, record f t, b=s2, c=u0, done c, record e s, wait f s, sync e, 1",
    "a block's next life begins with what may still touch it": "a=s1, done a, b=s1, free 1, alloc 1, c=t1",
    "a signal holds what its thread knew then, not what it learns later":
        "2, signal c, a=s1, done a, two:await c, two:b=t1",
    "nor what it waits for later": "s1, signal c, s2, two:await c, two:b=t2",
    "an id whose launch the thread knows complete names another launch": "a=s1, finish s, a=t1, b=s1",
    "so it does for a thread that heard of that by a hand-over": "two:a=s1, s0, free 2, two:alloc 2, two:a=t1, b=s1",
    "an event that is recorded on another stream is no place of the first":
        "a=s1, record e s, record e t, wait e u, b=u1",
    "so it does for a thread that waited for what comes after it": "a=s1, s0, a=t1, b=s1",
    "so it does where another thread was told that it is done": "a=s1, done a, two:a=t2, b=s2",
    "what a thread does itself is known to nobody else": "1, two:a=s1",
    "legacy: an op on no stream is not on the legacy one": "a=s1, b=1",
    "legacy: a sync of any other stream waits for no third one": "a=t1, finish u, 1",
    "legacy: a sync of the legacy stream puts nothing on it": "a=s2, b=t1, finish s, two:c=u1",
}  # fmt: skip


@pytest.mark.parametrize("what", ORDERED)
def test_is_in_order(what: str) -> None:
    log = log_of(ORDERED[what], legacy=what.startswith("legacy"))
    agree(log, Model(log).races())
    assert reported(log)[0] == {}


@pytest.mark.parametrize("what", RACES)
def test_is_a_race_of_the_last_access_alone(what: str) -> None:
    log = log_of(RACES[what], legacy=what.startswith("legacy"))
    agree(log, Model(log).races())
    assert {line for line, _ in reported(log)[0]} == {len(log)}


@pytest.mark.parametrize("more", ["two:done a, two:1", "two:?v2, two:?v2, two:done a, two:v1"])
def test_a_thread_that_hears_late_of_an_end_learns_what_others_knew(more: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvsan.checker.order.clocks.KEPT_OPS", 0)
    log = log_of(f"a=s1, finish s, ?b=t2, ?c=u2, {more}", legacy=False)
    agree(log, Model(log).races())
    assert reported(log)[0] == {}


def test_what_is_kept_of_launches_and_signals_does_not_grow_with_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvsan.checker.order.clocks.KEPT_OPS", 0)
    told, known = Clocks(), Clocks()
    told.thread("two")
    for op in range(50):
        for clocks in (told, known):
            clocks.launch(None, op, "s")
            clocks.signal(None, "c")
        told.done(None, op)
        known.sync_stream(None, "s")
    assert max(len(told.ops), len(known.ops)) < 5
    assert len(told.channels["c"]) == 1
