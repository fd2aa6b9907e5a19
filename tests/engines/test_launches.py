"""A slot mapping becomes writes by branch and block, with nothing lost and nothing added."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kvsan.traces.engines.launches import cut, slot_writes

SIZE = 4


def test_neighbouring_slots_of_a_block_are_one_write() -> None:
    assert slot_writes(SIZE, [("r0", [8, 9, 10, 11, 0]), ("r1", [6])]) == [
        ["r0", 2, 0, 4], ["r0", 0, 0, 1], ["r1", 1, 2, 3],
    ]  # fmt: skip


def test_slots_of_two_blocks_are_two_writes_even_where_they_follow_each_other() -> None:
    assert slot_writes(SIZE, [("r0", [3, 4])]) == [["r0", 0, 3, 4], ["r0", 1, 0, 1]]


def test_padding_is_not_written() -> None:
    assert slot_writes(SIZE, [("r0", [-1, -1, 5])]) == [["r0", 1, 1, 2]]


def test_each_branch_gets_its_slots_and_the_rest_is_padding() -> None:
    assert cut([0, 1, 9, -1, -1], [("r0", 2), ("r1", 1)]) == [("r0", [0, 1]), ("r1", [9])]


def test_more_tokens_than_slots_are_refused() -> None:
    with pytest.raises(ValueError, match="3 tokens are scheduled, but the slot mapping has 2 slots"):
        cut([0, 1], [("r0", 3)])


@given(st.lists(st.integers(-1, 40), max_size=30))
def test_the_writes_cover_exactly_the_slots_that_are_no_padding(slots: list[int]) -> None:
    covered = []
    for _, block, low, high in slot_writes(SIZE, [("r0", slots)]):
        assert isinstance(block, int)
        assert isinstance(low, int)
        assert isinstance(high, int)
        assert 0 <= low < high <= SIZE
        covered += [block * SIZE + offset for offset in range(low, high)]
    assert covered == [slot for slot in slots if slot >= 0]
