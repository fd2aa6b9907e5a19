"""Which slots of which blocks a strided view of a KV tensor covers. Numbers only; no torch.

A slot's label is `block * slots_per_block + slot`; OUTSIDE marks elements of the view that are not the KV tensor's.
Dimensions of the view that only move inside one slot (heads, lanes) are dropped: their size becomes 1. What is left is
enumerated, so that any view of any dense layout is told exactly, transposed, flattened or re-strided ones too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

OUTSIDE = -1


@dataclass(frozen=True)
class Geometry:
    """Where the elements of a tensor lie in its storage. All in bytes but `shape`; item: the size of one element."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    item: int


@dataclass(frozen=True)
class Layout:
    """How a KV tensor is cut into blocks of slots.

    block_dim: the dimension that counts blocks. slot_dim: the one that counts the slots of a block; None where
    `block_dim` itself counts slots, `slots_per_block` to the block (a flat pool of tokens in pages).
    pool: the pool of the log; tensors of one pool share its block ids (keys and values, layers).
    """

    block_dim: int = 0
    slot_dim: int | None = 1
    slots_per_block: int | None = None
    pool: str = "gpu"

    def slots(self, shape: tuple[int, ...]) -> int:
        """Slots of a block. Raises ValueError where layout and shape do not fit."""
        if (self.slot_dim is None) == (self.slots_per_block is None):
            raise ValueError("give slot_dim, or None and slots_per_block: one of them says how long a block is")
        dims = (self.block_dim,) if self.slot_dim is None else (self.block_dim, self.slot_dim)
        if not all(0 <= dim < len(shape) for dim in dims) or len(set(dims)) < len(dims):
            raise ValueError(f"block_dim and slot_dim must be two dimensions of the tensor, whose shape is {shape}")
        slots = shape[self.slot_dim] if self.slot_dim is not None else self.slots_per_block or 0
        if slots < 1 or (self.slot_dim is None and shape[self.block_dim] % slots):
            raise ValueError(f"{shape[self.block_dim]} slots are no whole number of blocks of {slots}")
        return slots

    def blocks(self, shape: tuple[int, ...]) -> int:
        slots = self.slots(shape)
        return shape[self.block_dim] // (slots if self.slot_dim is None else 1)


@dataclass(frozen=True)
class Labels:
    """shape: the view's, 1 where a dimension was dropped. values: the labels, row by row."""

    shape: tuple[int, ...]
    values: tuple[int, ...]


class Cache:
    """A KV tensor's geometry with its layout. Raises ValueError where its elements overlap or the layout is wrong."""

    def __init__(self, geometry: Geometry, layout: Layout) -> None:
        self.geometry, self.layout = geometry, layout
        self.slots, self.blocks = layout.slots(geometry.shape), layout.blocks(geometry.shape)
        dims = zip(geometry.strides, geometry.shape, range(len(geometry.shape)), strict=True)
        self.dims = sorted((dim for dim in dims if dim[1] > 1), reverse=True)
        inner = geometry.item
        for stride, size, _ in reversed(self.dims):
            if stride < inner:
                raise ValueError("a KV tensor whose elements overlap (an expanded one) has no slots of its own")
            inner = stride * size

    def places(self, distance: int) -> dict[int, int] | None:
        """Coordinates (of dimensions longer than 1) of the element so many bytes from the first; None outside."""
        found = {}
        for stride, size, dim in self.dims:
            found[dim], distance = divmod(distance, stride)
            if not 0 <= found[dim] < size:
                return None
        return found if 0 <= distance < self.geometry.item else None

    def label(self, distance: int) -> int:
        places = self.places(distance)
        if places is None:
            return OUTSIDE
        block = places.get(self.layout.block_dim, 0)
        return block if self.layout.slot_dim is None else block * self.slots + places.get(self.layout.slot_dim, 0)

    def labels(self, view: Geometry) -> Labels:
        """The label of each element of a view of the same storage."""
        start = view.offset - self.geometry.offset
        dropped = self._within_a_slot(view, start)
        shape = tuple(1 if dim in dropped else size for dim, size in enumerate(view.shape))
        if not prod(view.shape):
            return Labels(view.shape, ())
        distances = [start]
        for size, stride in zip(shape, view.strides, strict=True):
            distances = [distance + step * stride for distance in distances for step in range(size)]
        return Labels(shape, tuple(self.label(distance) for distance in distances))

    def _within_a_slot(self, view: Geometry, start: int) -> set[int]:
        """The dimensions of a view whose steps change no label, wherever the other dimensions stand."""
        places = self.places(start)
        moves = [size > 1 and stride > 0 for size, stride in zip(view.shape, view.strides, strict=True)]
        moving = [dim for dim, does in enumerate(moves) if does]
        still = set(range(len(view.shape))) - set(moving)
        along = {dim: self._along(view.strides[dim]) for dim in moving}
        if places is None or None in along.values():
            return still
        reached = dict(places)
        for dim in moving:
            stride, _, mine = along[dim] or (0, 0, 0)
            reached[mine] += (view.shape[dim] - 1) * view.strides[dim] // stride
        for stride, size, mine in reversed(self.dims):
            if reached[mine] >= size:  # it carries into the longer strides: those are not told by their own steps
                break
            if mine not in (self.layout.block_dim, self.layout.slot_dim):
                still |= {dim for dim in moving if along[dim] == (stride, size, mine)}
        return still

    def _along(self, stride: int) -> tuple[int, int, int] | None:
        """The dimension of the tensor along which a step of the view moves."""
        return next((mine for mine in self.dims if mine[0] <= stride and stride % mine[0] == 0), None)


def runs(labels: Iterable[int], slots: int) -> list[tuple[int, int, int]]:
    """Labels as (block, lo, hi), in order; what is outside is left out."""
    found: list[tuple[int, int, int]] = []
    for label in sorted(set(labels) - {OUTSIDE}):
        block, slot = divmod(label, slots)
        if found and found[-1][0] == block and found[-1][2] == slot:
            found[-1] = (block, found[-1][1], slot + 1)
        else:
            found.append((block, slot, slot + 1))
    return found


def pair_runs(pairs: Iterable[tuple[int, int]], src_slots: int, dst_slots: int) -> list[tuple[int, int, int, int]]:
    """Pairs (source, target) of labels as (source block, target block, lo, hi).

    Raises ValueError where a slot is copied to a slot of another number: the log's `copy` cannot say that.
    """
    found: list[tuple[int, int, int, int]] = []
    split = sorted((divmod(src, src_slots), divmod(dst, dst_slots)) for src, dst in set(pairs))
    for src, dst, slot, other in sorted((s[0], d[0], s[1], d[1]) for s, d in split):
        if slot != other:
            raise ValueError("slots change their numbers")
        if found and found[-1][:2] == (src, dst) and found[-1][3] == slot:
            found[-1] = (src, dst, found[-1][2], slot + 1)
        else:
            found.append((src, dst, slot, slot + 1))
    return found
