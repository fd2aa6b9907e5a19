"""A view's labels are those of its elements, looked up one by one."""

from __future__ import annotations

from itertools import permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kvsan.traces.engines.torch_footprint import OUTSIDE, Cache, Geometry, Layout, pair_runs, runs

ITEM = 4


def dense(shape: tuple[int, ...], order: tuple[int, ...], offset: int = 0) -> Geometry:
    """A tensor without gaps whose dimensions lie in storage in this order, the first outermost."""
    strides, step = [0] * len(shape), ITEM
    for dim in reversed(order):
        strides[dim], step = step, step * shape[dim]
    return Geometry(shape, tuple(strides), offset, ITEM)


def elements(geometry: Geometry) -> dict[tuple[int, ...], int]:
    """Index -> byte in the storage."""
    return {
        index: geometry.offset + sum(i * s for i, s in zip(index, geometry.strides, strict=True))
        for index in product(*(range(size) for size in geometry.shape))
    }


def brute(cache: Cache, view: Geometry) -> dict[tuple[int, ...], int]:
    """Index of the view -> label, by a table of every element of the KV tensor."""
    block_dim, slot_dim = cache.layout.block_dim, cache.layout.slot_dim
    known = {
        byte: index[block_dim] if slot_dim is None else index[block_dim] * cache.slots + index[slot_dim]
        for index, byte in elements(cache.geometry).items()
    }
    return {index: known.get(byte, OUTSIDE) for index, byte in elements(view).items()}


@st.composite
def caches(draw: st.DrawFn) -> Cache:
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=2, max_size=4)))
    order = draw(st.sampled_from(list(permutations(range(len(shape))))))
    geometry = dense(shape, order, ITEM * draw(st.integers(0, 3)))
    block_dim, slot_dim = draw(st.sampled_from(list(permutations(range(len(shape)), 2))))
    if draw(st.booleans()):
        return Cache(geometry, Layout(block_dim, slot_dim))
    return Cache(geometry, Layout(block_dim, None, draw(st.sampled_from([1, shape[block_dim]]))))


@st.composite
def cached_views(draw: st.DrawFn) -> tuple[Cache, Geometry]:
    """Any strides and offsets whatever: also ones that no chain of slices would make."""
    cache = draw(caches())
    dims = draw(st.integers(1, 4))
    shape = tuple(draw(st.integers(1, 4)) for _ in range(dims))
    wanted = st.one_of(st.sampled_from(cache.geometry.strides), st.integers(0, 20).map(lambda n: n * ITEM))
    strides = tuple(draw(wanted) * draw(st.sampled_from([1, 1, 2])) for _ in range(dims))
    return cache, Geometry(shape, strides, ITEM * draw(st.integers(0, 12)), ITEM)


@given(cached_views())
def test_labels_of_a_view_are_those_of_its_elements(made: tuple[Cache, Geometry]) -> None:
    cache, view = made
    labels = cache.labels(view)
    told = dict(zip(product(*(range(size) for size in labels.shape)), labels.values, strict=True))
    for index, label in brute(cache, view).items():
        kept = tuple(i if size > 1 else 0 for i, size in zip(index, labels.shape, strict=True))
        assert told[kept] == label


def test_heads_and_lanes_are_not_enumerated() -> None:
    """vLLM's V0 key cache: [blocks, heads, size / x, slots, x]."""
    geometry = dense((6, 2, 8, 4, 2), (0, 1, 2, 3, 4))
    assert Cache(geometry, Layout(0, 3)).labels(geometry).shape == (6, 1, 1, 4, 1)


def test_a_flattened_view_is_told_slot_by_slot() -> None:
    cache = Cache(dense((3, 4, 2), (0, 1, 2)), Layout())
    flat = Geometry((12, 2), (2 * ITEM, ITEM), 0, ITEM)
    labels = cache.labels(flat)
    assert labels.shape == (12, 1)
    assert labels.values == tuple(range(12))


def test_runs_join_neighbouring_slots_of_one_block() -> None:
    assert runs([0, 1, 3, 4, 5, 6, 7, OUTSIDE, 1], 4) == [(0, 0, 2), (0, 3, 4), (1, 0, 4)]


def test_copies_keep_the_numbers_of_slots_or_are_refused() -> None:
    assert pair_runs([(4, 8), (5, 9), (7, 11)], 4, 4) == [(1, 2, 0, 2), (1, 2, 3, 4)]
    with pytest.raises(ValueError, match="numbers"):
        pair_runs([(4, 9)], 4, 4)


@pytest.mark.parametrize(
    ("shape", "layout", "says"),
    [
        ((4, 4), Layout(0, None), "one of them"),
        ((4, 4), Layout(0, 0), "two dimensions"),
        ((4, 4), Layout(0, 7), "two dimensions"),
        ((7, 2), Layout(0, None, 4), "whole number"),
    ],
)
def test_a_layout_that_does_not_fit_is_refused(shape: tuple[int, ...], layout: Layout, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Cache(dense(shape, tuple(range(len(shape)))), layout)


def test_an_expanded_tensor_is_refused() -> None:
    with pytest.raises(ValueError, match="overlap"):
        Cache(Geometry((4, 4), (0, ITEM), 0, ITEM), Layout())
