"""However many threads expand the states, the search is the same: each state has its number, each failure its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from kvsan.checker.explore import emit, layout
from kvsan.checker.explore import search as one_search
from kvsan.checker.explore import store as stored
from kvsan.checker.explore.design import find, scoped
from kvsan.checker.explore.explore import Prepared, explore, prepare
from kvsan.checker.explore.module import build
from kvsan.checker.explore.packed import unpack
from kvsan.checker.explore.pieces import Tally
from kvsan.checker.explore.search import UNLIMITED, Limits, Search, search
from kvsan.spec.lang.interpret import Plain

np = pytest.importorskip("numpy", reason="the compiled search needs the extra `explore`")
pytest.importorskip("llvmlite", reason="the compiled search needs the extra `explore`")

MACHINE = str(Path(__file__).parent / "designs" / "tail_machine.py")


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of 16 states, so that a level of a small scope has many of them."""
    monkeypatch.setattr(emit, "MOST_CHUNK", 16)
    monkeypatch.setattr(one_search, "PIECE", 64)


def prepared(changes: dict[str, str]) -> Prepared:
    design = find(MACHINE)
    return prepare(design, scoped(design, changes), "none")


def searched(made: Prepared, threads: int, limits: Limits = UNLIMITED) -> Search:
    begun = [s.state for s in made.begun]
    return search(made.model, made.generated, build(made.generated.source), begun, limits, threads=threads)


def told(found: Search) -> list[object]:
    """All that a search found, its states in their order."""
    counts = [found.fan.tolist(), found.taken.tolist(), found.judged.tolist()]
    return [*counts, found.levels, found.expanded, found.stopped, found.failures, found.states.tolist()]


def states(found: Search) -> list[Plain]:
    words = found.model.layout.words
    return [unpack(found.states[n * words : (n + 1) * words], found.model.layout) for n in range(found.count)]


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"branches": "3", "blocks": "5"}, 8),
        ({"branches": "3", "blocks": "5"}, 1),
        ({"branches": "4", "blocks": "5", "shared_append": "true"}, 1),
    ],
    ids=["whole rows", "halves", "a failure"],
)
def test_every_number_is_the_same(changes: dict[str, str], line: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "LINE", line)
    made = prepared(changes)
    alone = searched(made, 1)
    assert made.model.chunk == 16 < alone.count / alone.depth
    assert bool(made.model.layout.cut) == (line == 1)
    kinds = {made.generated.judges[f.judge].kind for f in alone.failures}
    assert ("rule" in kinds or "invariant" in kinds) == ("shared_append" in changes)
    for threads in (2, 3):
        assert told(searched(made, threads)) == told(alone)
    if line == 1:
        halved = states(alone)
        monkeypatch.setattr(layout, "LINE", 8)
        assert states(searched(prepared(changes), 1)) == halved


@pytest.mark.parametrize(
    ("limits", "piece", "line", "stopped"),
    [
        (Limits(states=1500), 1024, 8, "the limit of states"),
        (Limits(memory=30_000), 1024, 8, "the limit of memory"),
        (Limits(memory=90_000), 128, 1, "the limit of memory"),
        (Limits(memory=30_000), 1 << 16, 1, "the limit of memory"),
        (Limits(depth=6), 128, 8, "depth 6"),
    ],
    ids=["states", "memory", "memory at a piece", "memory within a piece", "depth"],
)
def test_a_limit_ends_it_at_the_same_state(
    limits: Limits, piece: int, line: int, stopped: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks of 32 states, which are several batches, and tables that are widened from 256 slots on."""
    monkeypatch.setattr(emit, "MOST_CHUNK", 32)
    monkeypatch.setattr(emit, "BATCH", 16)
    monkeypatch.setattr(one_search, "PIECE", piece)
    monkeypatch.setattr(layout, "LINE", line)
    monkeypatch.setattr(stored, "FIRST_BITS", 8)
    made = prepared({"branches": "4", "blocks": "6"})
    alone = searched(made, 1, limits)
    assert alone.stopped == stopped
    assert alone.store.bytes < 3 * limits.memory and alone.count <= limits.states + 16 + made.model.fan
    assert told(searched(made, 2, limits)) == told(alone)


@pytest.mark.parametrize("line", [8, 1], ids=["whole rows", "halves"])
def test_a_store_takes_its_rows_and_tables_that_are_never_full(line: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A depth adds thousands of rows to a table that had room for hundreds when it began."""
    monkeypatch.setattr(layout, "LINE", line)
    monkeypatch.setattr(stored, "FIRST_BITS", 8)
    store = searched(prepared({"branches": "4", "blocks": "5"}), 1).store
    counts, slots = store.sets[1::5].tolist(), [len(table) for table in store._tables]
    assert store.bytes == sum(
        8 * n * width + 4 * s for n, width, s in zip(counts, store.layout.widths, slots, strict=True)
    )
    assert all(n <= stored.LOAD * s < 4 * n + 2 for n, s in zip(counts, slots, strict=True))


def test_what_failed_first_stays_first() -> None:
    made = prepared({"branches": "2", "blocks": "4"})
    whole, first, second = (Tally.zero(np, made.model, 3) for _ in range(3))
    first.begin(whole)
    second.begin(whole)  # both began before either had failed
    first.fail_at[:], first.fail_code[:] = [5, -1, -1], [1, -1, -1]
    second.fail_at[:], second.fail_code[:] = [9, 8, -1], [2, 3, -1]
    first.fan[0], second.fan[0] = 1, 2
    whole.add(first)
    whole.add(second)
    assert (whole.fail_at.tolist(), whole.fail_code.tolist(), whole.fan[0]) == ([5, 8, -1], [1, 3, -1], 3)


@pytest.mark.usefixtures("small_pieces")
def test_an_interrupt_keeps_what_was_stored_so_far() -> None:
    made, begun = prepared({"branches": "3", "blocks": "5"}), 0

    def interrupt(_: object) -> None:
        nonlocal begun
        begun += 1
        if begun == 12:
            raise KeyboardInterrupt

    module = build(made.generated.source)
    found = search(
        made.model, made.generated, module, [s.state for s in made.begun], tell=interrupt, threads=2, partial=True
    )
    whole = searched(made, 1)
    assert found.stopped == "interrupted" and 0 < found.expanded < whole.expanded
    assert found.states.tolist() == whole.states[: len(found.states)].tolist()
    assert found.fan.sum() == found.expanded


def test_an_interrupt_ends_what_has_more_searches_to_make() -> None:
    """Else `kvsan mutants` went on with its next mutant, and a budget with its next pool."""
    made = prepared({"branches": "2", "blocks": "4"})
    seen = []

    def interrupt(_: object) -> None:
        seen.append(1)
        raise KeyboardInterrupt

    module, begun = build(made.generated.source), [s.state for s in made.begun]
    with pytest.raises(KeyboardInterrupt):
        search(made.model, made.generated, module, begun, tell=interrupt)
    assert seen == [1]


@pytest.mark.usefixtures("small_pieces")
def test_an_error_in_a_thread_is_an_error_of_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise MemoryError("no room")

    made = prepared({"branches": "3", "blocks": "5"})
    monkeypatch.setattr("kvsan.checker.explore.pieces.Tally.add", fail)
    with pytest.raises(MemoryError, match="no room"):
        searched(made, 2)


def test_an_exploration_is_the_same(small_pieces: None) -> None:
    made = prepared({"branches": "4", "blocks": "5", "shared_append": "true"})
    one, two = explore(made, threads=1), explore(made, threads=2)
    assert one.violations and one.violations == two.violations
    assert (one.judged, one.witnesses, one.obligations) == (two.judged, two.witnesses, two.obligations)
