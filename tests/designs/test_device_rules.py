"""The rule that a launch breaks with work under way, as the designs' model of it says, is the one that
`kvsan.spec.ownership.accesses` names for the two accesses: the language can call no table, so `meet` writes it out."""

from __future__ import annotations

import pytest
from kvsan.spec.designs.catalog import PAGED_COW
from kvsan.spec.designs.device import COMPUTE, COPIES, COPY_WORK, STEP_WORK, Device, meet
from kvsan.spec.lang.surface import empty, judged, only
from kvsan.spec.ownership.accesses import Use, rule_between
from kvsan.spec.ownership.state import Block, Branch, Slot
from plain_search import plain_scope

SCOPE = plain_scope(PAGED_COW, PAGED_COW.at("event_wait"))
WORKS = {Use.COPY_SOURCE: COPY_WORK, Use.COPY_TARGET: COPY_WORK, Use.WRITE: STEP_WORK, Use.ATTENTION: STEP_WORK}
READING = (Use.COPY_SOURCE, Use.ATTENTION)
LATER = (Use.COPY_SOURCE, Use.ATTENTION, Use.WRITE)
"""What `meet` tells apart; the target of a copy is written, as a step's slots are."""


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("same_life", [False, True])
@pytest.mark.parametrize("later", LATER)
@pytest.mark.parametrize("earlier", WORKS)
def test_a_launch_breaks_the_rule_between_its_access_and_one_under_way(
    earlier: Use, later: Use, same_life: bool, whole: bool, ordered: bool
) -> None:
    s, q, b, slot = Device(SCOPE), Branch(0), Block(1), only(Slot(0))
    work = WORKS[earlier]
    s.running[work, q] = True
    (s.tail_copies if work is COPY_WORK else s.tail_steps)[COPIES if not ordered else COMPUTE] = only(q)
    if earlier in READING:
        s.loads[work, q] = only(b) if whole else empty()
        s.loads_part[work, q], s.part_loaded[work, q] = (None, empty()) if whole else (b, slot)
    else:
        s.stores[work, q] = only(b) if whole else empty()
        s.stores_part[work, q], s.part_stored[work, q] = (None, empty()) if whole else (b, slot)
    s.former[work, q] = empty() if same_life else only(b)
    broken = {
        j.rule
        for j in judged(meet, s, COMPUTE, b, *(slot if later is use else empty() for use in LATER))
        if not j.holds
    }
    rule = None if ordered else rule_between(earlier, later, same_life)
    assert broken == (set() if rule is None else {rule})
