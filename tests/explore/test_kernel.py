"""The language of the generated search means what it says, and the search stores each state once, in tables that fill.

The designs of the fast tests have too few states for a table to be widened, or for two states to share a tag.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any  # numpy arrays

import pytest
from kvsan.checker.explore import module as machine_code
from kvsan.checker.explore.module import Module, build

np = pytest.importorskip("numpy", reason="the compiled search needs the extra `explore`")
pytest.importorskip("llvmlite", reason="the compiled search needs the extra `explore`")

REST = "".join(f"\ndef {name}(n):\n    return n\n" for name in ("store", "rehash", "canonical"))
DOUBLING = """
WORDS = 2
BATCH = 256
FAN = 2

@inline
def expand(states, at, buf, n, codes, taken, judged, fail_at, fail_code):
    for j in range(2):
        buf[n * WORDS] = 7
        buf[n * WORDS + 1] = states[at * WORDS + 1] * 2 + j
        codes[n] = j
        n += 1
    return n

def canonical(buf, first, n):
    return

"""
"""A search of binary numbers: state m leads to 2m and 2m + 1."""


def says(body: str, *given: int) -> list[int]:
    """What a program leaves in its array `a`; its numbers are `x` and `y`."""
    text = "def sweep(a, x, y):\n" + "".join(f"    {line}\n" for line in body.splitlines()) + "    return 0\n"
    a = np.zeros(8, np.int64)
    module = build(text + REST)
    module.sweep(a, *given)
    found = a.tolist()
    assert isinstance(found, list)
    return found


def test_numbers_are_signed_and_divide_and_shift_as_the_language_says() -> None:
    found = says(
        "a[0] = x >> 1\na[1] = lshr(x, 60)\nn = 69\na[2] = 1 << n\na[3] = (y * 9) // y\na[4] = (y * 9 + 2) % y\n"
        "a[5] = max(x, 0)\na[6] = min(x, y)\na[7] = 1 if x < 0 and not x >= y else 2",
        -8,
        5,
    )
    assert found == [-4, 15, 32, 9, 2, 0, -8, 1]


def test_and_and_or_are_of_all_their_parts() -> None:
    for x, y in ((0, 0), (0, 1), (1, 0), (1, 1)):
        found = says("a[0] = 1 == 1 and x and y\na[1] = x or y or 1 == 2\na[2] = x and y and 1 == 1", x, y)
        assert found[:3] == [x & y, x | y, x & y]


def test_loops_go_on_and_end_as_python_has_it() -> None:
    body = """
for i in range(x, y, 3):
    if i == 5:
        continue
    a[0] += i
for i in range(y):
    n = i
    i = 9
    a[1] += 1
    if n == 6:
        break
while True:
    a[2] += 1
    if a[2] < 4:
        continue
    break
p, q = x, y
p, q = q, p
a[3] = p
a[4] = q"""
    expected = [0] * 8
    exec(body, {"a": expected, "x": 2, "y": 20})
    assert expected[:5] == [52, 7, 4, 20, 2]
    assert says(body, 2, 20) == expected


@pytest.fixture(scope="module")
def search() -> Module:
    kernel = Path(machine_code.__file__).with_name("kernel.py")
    return build(DOUBLING + kernel.read_text(encoding="utf-8"))


def rows(numbers: Any) -> Any:
    """Two words each, the same first one."""
    return np.ascontiguousarray(np.stack([np.full_like(numbers, 7), numbers], axis=1)).reshape(-1)


def test_each_row_is_stored_once_though_rows_share_slots_and_tags(search: Module) -> None:
    """With 18 bits a tag has 14: of so many rows some dozens meet another with theirs."""
    chance = np.random.default_rng(1)
    given = chance.integers(0, 1 << 40, 240_000)
    given[1::6] = given[0::6]
    states, table = np.zeros(2 * len(given), np.int64), np.zeros(1 << 18, np.uint32)
    hashes = np.zeros(len(given), np.uint64)
    count = search.store(states, 0, table, 18, rows(given), len(given), hashes)
    first = np.sort(np.unique(given, return_index=True)[1])
    assert count == len(first)
    assert (states[1 : 2 * count : 2] == given[first]).all()


def test_a_row_whose_slots_are_taken_up_to_the_last_goes_to_the_first_free_one(search: Module) -> None:
    states, table, hashes = np.zeros(32, np.int64), np.zeros(32, np.uint32), np.zeros(15, np.uint64)
    assert search.store(states, 0, table, 4, rows(np.arange(15)), 15, hashes) == 15
    assert not table[16:].any()
    assert sorted((table[:16] & 15).tolist()) == list(range(16))


@pytest.mark.parametrize("size", [512, 700])
def test_a_wider_table_knows_every_state(search: Module, size: int) -> None:
    given = rows(np.arange(1, size + 1))
    states, hashes = np.zeros(4 * size, np.int64), np.zeros(size, np.uint64)
    count = search.store(states, 0, np.zeros(1 << 14, np.uint32), 14, given, size, hashes)
    wider = np.zeros(1 << 16, np.uint32)
    search.rehash(states, count, wider, 16, hashes)
    assert sorted((wider[wider != 0] & 0xFFFF).tolist()) == list(range(1, size + 1))
    assert search.store(states, count, wider, 16, given, size, hashes) == count == size


@pytest.mark.parametrize("limit", [3, 100, 777])
def test_a_sweep_stops_before_it_has_more_states_than_its_limit(search: Module, limit: int) -> None:
    states, table = np.zeros(4000, np.int64), np.zeros(1 << 14, np.uint32)
    buf, codes, hashes = (np.zeros(2 * 258, kind) for kind in (np.int64, np.int64, np.uint64))
    tallies, found = [np.zeros(8, np.int64) for _ in range(5)], np.zeros(2, np.int64)
    count = search.store(states, 0, table, 14, rows(np.array([1])), 1, hashes)
    at, known = 0, count
    while True:
        search.sweep(states, known, table, 14, at, known, limit, -1, buf, codes, hashes, *tallies, found)
        if found[0] == at:
            break
        at, known = map(int, found)
        assert known <= limit
    assert sorted(states[1 : 2 * known : 2].tolist()) == list(range(1, known + 1))
    assert limit - known < 2 + 2  # no room for one expansion more
    assert tallies[0].tolist() == [0, 0, at, 0, 0, 0, 0, 0]
