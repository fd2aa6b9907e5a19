"""The order analysis against the enumeration of all interleavings."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from kvsan.checker.order.analysis import Order
from kvsan.checker.order.placed import hearer
from kvsan.checker.order.spread import Spread, Survey
from kvsan.checker.replay.kinds import names_threads
from kvsan.checker.replay.memory import memory_log
from kvsan.checker.replay.replay import Replay
from kvsan.spec.ownership.accesses import ORDER_RULES
from oracle import Model
from programs import logs

NAMES = {rule.name for rule in ORDER_RULES}


def reported(log: list[dict[str, Any]]) -> tuple[dict[tuple[int, int], set[str]], dict[int, int]]:
    """What the analysis says: (line, block) of each breach, and its rule; a root cause speaks for all its blocks.

    And the line from which on a block is not trusted, because of an earlier breach that reached it.
    """
    opened = memory_log(log)
    assert opened.header is not None
    recorded = frozenset({"write", "read", "copy", "alloc", "free"})
    header, one_thread = opened.header, not names_threads(opened)

    def performed(hears: Callable[..., Order] = Order) -> Replay:
        replay = Replay(header, recorded, frozenset(), one_thread=one_thread, hears=hears)
        for batch in opened.batches():
            replay.perform(batch)
        return replay

    hears: Callable[..., Order] = Order
    if performed().misjudged:
        spread = Spread()
        performed(partial(Survey, spread))
        hears = hearer(spread)
    replay = Replay(header, recorded, frozenset(), one_thread=one_thread, hears=hears)
    distrusted: dict[int, int] = {}
    for batch in opened.batches():
        for line, event in batch:
            replay.perform([(line, event)])
            for name, b in replay.feed.blocks.items():
                assert isinstance(name, int)
                if replay.machine.fuzzy["Block"][b]:
                    distrusted.setdefault(name, line)
    assert opened.problem is None
    assert {f.violation.rule for f in replay.findings} <= NAMES, [f.violation for f in replay.findings]
    found: dict[tuple[int, int], set[str]] = {}
    for finding in replay.findings:
        assert finding.told is not None
        for b in finding.told.blocks:
            name = (finding.violation.line, int(replay.feed.describe("Block", b)))
            found.setdefault(name, set()).add(finding.violation.rule)
    return found, distrusted


def agree(log: list[dict[str, Any]], true: dict[tuple[int, int], set[str]]) -> None:
    """Each block's first breach is at the same line; its rule is that of one of the pairs that are unordered there.

    true: what an oracle says of the log.
    """
    told, distrusted = reported(log)
    first = {min((line, b) for line, b in true if b == block) for block in {b for _, b in true}}
    earliest = {min((line, b) for line, b in told if b == block) for block in {b for _, b in told}}
    spread = copied_on(log)
    for line, block in first ^ earliest:
        if (line, block) in first and distrusted.get(block, line) < line:
            continue
        if any(dst == block and distrusted.get(src, line) < line for src, dst in copies(log[line - 1])):
            continue
        assert any(near(line, block, other, spread) for other in first | earliest), (first, earliest)
    for line, block in first & earliest:
        assert told[line, block] <= true[line, block]


def near(line: int, block: int, other: tuple[int, int], spread: set[tuple[int, int]]) -> bool:
    """A breach about a block that an earlier breach may have reached through copies is not comparable."""
    return other != (line, block) and other[0] <= line and (other[1], block) in spread


def copies(e: dict[str, Any]) -> set[tuple[int, int]]:
    """From which block to which an event copies."""
    return {(c[0], c[1]) for c in e.get("copies", ())} | ({(e["src"], e["dst"])} if e["ev"] == "copy" else set())


def copied_on(log: list[dict[str, Any]]) -> set[tuple[int, int]]:
    """Pairs of blocks, the second of which got contents of the first."""
    pairs = {pair for e in log for pair in copies(e)}
    while more := {(a, d) for a, b in pairs for c, d in pairs if b == c} - pairs:
        pairs |= more
    return pairs


@given(logs())
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_race_is_reported_exactly_where_interleavings_differ(log: list[dict[str, Any]]) -> None:
    model = Model(log)
    true = model.races()
    assert model.races_by_paths() == true
    agree(log, true)


@pytest.mark.slow
@given(logs(events=16))
@settings(max_examples=5000, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_race_is_reported_exactly_where_interleavings_differ_in_thousands_of_logs(log: list[dict[str, Any]]) -> None:
    agree(log, Model(log).races())


@pytest.mark.parametrize("rule", sorted(NAMES))
def test_random_logs_break_every_order_rule(rule: str) -> None:
    """Else the agreement above would say nothing of it."""

    def breaks(log: list[dict[str, Any]]) -> bool:
        return any(rule in rules for rules in reported(log)[0].values())

    find(logs(), breaks, settings=settings(max_examples=2000, deadline=None, phases=[Phase.generate]))
