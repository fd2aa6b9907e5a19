"""The language of the generated search means what it says, and the search stores each state once, in tables that fill.

The designs of the fast tests have too few states for a table to be widened, or for two states to share a tag.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any  # numpy arrays

import pytest
from kvsan.checker.explore import module as machine_code
from kvsan.checker.explore.layout import Layout
from kvsan.checker.explore.machine import translate
from kvsan.checker.explore.module import PUBLIC, Module, build
from kvsan.checker.explore.store import Store

np = pytest.importorskip("numpy", reason="the compiled search needs the extra `explore`")
pytest.importorskip("llvmlite", reason="the compiled search needs the extra `explore`")

REST = "".join(f"\ndef {name}(n):\n    return n\n" for name in PUBLIC if name != "sweep")
DOUBLING = """
WORDS = 2
CUT = {cut}
BATCH = 256
TURN = 512
CHUNK = 4096
FAN = 2
SOON = 24

@inline
def expand(sets, at, buf, n, codes, taken, judged, fail_at, fail_code):
    rows = array(sets[0])
    number = rows[at * WORDS + 1] if CUT == 0 else 0
    if CUT != 0:
        right = array(sets[10])
        number = right[lshr(rows[at], 32)]
    for j in range(2):
        buf[n * WORDS] = 7
        buf[n * WORDS + 1] = number * 2 + j
        codes[n] = j
        n += 1
    return n

def canonical(buf, first, n):
    return

"""
"""A search of binary numbers: state m leads to 2m and 2m + 1. CUT 1 keeps the halves of a state apart."""


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


def test_a_loop_that_is_written_out_means_the_same_and_is_one_no_more() -> None:
    # long turns: LLVM writes out short ones anyway
    turn = "".join(f"    a[(i + {n}) & 7] += (a[{n % 8}] + x * i) ^ y\n" for n in range(60))
    programs = [f"for i in {loop}(4):\n    if a[i] == x:\n        continue\n{turn}" for loop in ("range", "unrolled")]
    looped, written_out = (says(program, 3, 5) for program in programs)
    assert looped == written_out != [0] * 8
    assert [has_a_loop(program) for program in programs] == [True, False]


def has_a_loop(body: str) -> bool:
    """Whether LLVM leaves one in a program."""
    from llvmlite import binding as llvm

    text = "def sweep(a, x, y):\n" + "".join(f"    {line}\n" for line in body.splitlines()) + "    return 0\n"
    module = llvm.parse_assembly(translate("program", text, frozenset({"sweep"})))
    builder = llvm.create_pass_builder(machine_code._machine(), llvm.create_pipeline_tuning_options(2))
    builder.getModulePassManager().run(module, builder)
    return " = phi i64 [ 0, %" in str(module)


class Halved(Layout):
    """Two words a state, kept apart."""

    @property
    def cut(self) -> int:
        return 1


@pytest.fixture(scope="module", params=["whole", "halves"])
def search(request: pytest.FixtureRequest) -> tuple[Module, Layout]:
    kernel = Path(machine_code.__file__).with_name("kernel.py").read_text(encoding="utf-8")
    layout = (Halved if request.param == "halves" else Layout)({}, 2, 128)
    return build(DOUBLING.format(cut=layout.cut) + kernel), layout


def a_store(search: tuple[Module, Layout], states: int) -> Store:
    return Store(*search, states, 1 << 30, 2)


def rows(numbers: Any) -> Any:
    """Two words each, the same first one."""
    return np.ascontiguousarray(np.stack([np.full_like(numbers, 7), numbers], axis=1)).reshape(-1)


def stored(search: tuple[Module, Layout], store: Store, numbers: Any) -> list[int]:
    """The numbers that a store has after some more, given all at once."""
    store.make_room(len(numbers))
    search[0].store(store.sets, rows(numbers), 0, len(numbers), np.zeros(2 * len(numbers), np.uint64))
    found = store.all()[1::2].tolist()
    assert isinstance(found, list) and (store.all()[::2] == 7).all()
    return found


def test_each_row_is_stored_once_though_rows_share_slots_and_tags(search: tuple[Module, Layout]) -> None:
    """With 19 bits a tag has 13: of so many rows some dozens meet another with theirs."""
    given = np.random.default_rng(1).integers(0, 1 << 40, 240_000)
    given[1::6] = given[0::6]
    first = np.sort(np.unique(given, return_index=True)[1])
    assert stored(search, a_store(search, len(given)), given) == given[first].tolist()


def test_a_row_whose_slots_are_taken_up_to_the_last_goes_to_the_first_free_one(search: tuple[Module, Layout]) -> None:
    """The table is told to be of 16 slots: all but one are taken, so some rows go round its end."""
    store = a_store(search, 32)
    store.sets[3::5] = 4
    search[0].store(store.sets, rows(np.arange(15)), 0, 15, np.zeros(30, np.uint64))
    assert store.all()[1::2].tolist() == list(range(15))
    table = store._tables[0]
    assert not table[16:].any()
    assert sorted((table[:16] & 15).tolist()) == list(range(16))


@pytest.mark.parametrize("size", [512, 700])
def test_a_wider_table_knows_every_state(search: tuple[Module, Layout], size: int) -> None:
    given, store = np.arange(1, size + 1), a_store(search, 1 << 20)
    assert stored(search, store, given) == given.tolist()
    store.make_room(1 << 16)
    for which, table in enumerate(store._tables):
        of = int(store.sets[5 * which + 1])
        assert len(table) > 1 << 14
        assert sorted((table[table != 0] & (len(table) - 1)).tolist()) == list(range(1, of + 1))
    assert stored(search, store, given) == given.tolist()


@pytest.mark.parametrize("most", [3, 100, 7777])
def test_a_sweep_ends_with_the_batch_that_passes_its_limit(search: tuple[Module, Layout], most: int) -> None:
    store, given = a_store(search, 20_000), (np.zeros(2 * 258, kind) for kind in (np.int64, np.int64, np.uint64))
    assert stored(search, store, np.array([1])) == [1]
    buffers, tallies, found = list(given), [np.zeros(8, np.int64) for _ in range(5)], np.zeros(2, np.int64)
    at = 0
    while True:
        store.make_room(1000)
        search[0].sweep(store.sets, at, store.count, most, 0, found, *buffers, *tallies, found)
        if found[0] == at:
            break
        at = int(found[0])
    assert store.all()[1::2].tolist() == list(range(1, store.count + 1))
    assert most < store.count <= most + 256 + 2 * 2
    assert tallies[0].tolist() == [0, 0, at, 0, 0, 0, 0, 0]


def test_a_store_tells_how_much_fits(search: tuple[Module, Layout], monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit there is room for the batches under way, and a table may ask for more room before that."""
    store = a_store(search, 10)
    assert store.has_room(526) and not store.has_room(527)
    assert set(store.sets[4::5].tolist()) == {526}
    monkeypatch.setattr("kvsan.checker.explore.store.FIRST_BITS", 8)
    store = a_store(search, 1000)
    assert set(store.sets[4::5].tolist()) == {153}
    store.make_room(154)
    assert set(store.sets[4::5].tolist()) == {int(1024 * 0.6)}
