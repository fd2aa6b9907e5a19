"""Which slots an operator of PyTorch touches: a dispatch mode over the KV tensors. Needs torch.

An operator writes the arguments that its schema says it changes, and reads its other tensors: each whole, that is every
slot its view covers. Operators that pick by index touch what they pick (`PICKS`), and `copy_` from one KV view into
another is a copy. Views touch nothing.

Where told more coarsely than it happens: tensors of one pool count as one (a copy of the keys of a block is a copy of
the block; give keys and values pools of their own where they are ordered apart); an operator that changes what it reads
only writes; a value that is picked and then stored is a read and a write, not a copy. An opaque kernel touches all of
each tensor it is given: tell such a kernel by `Streams.launched` instead, on tensors that are not listed.
"""

from __future__ import annotations

import importlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any  # tensors and operators: torch has no types that we could name without it here

from kvsan.traces.engines.torch_footprint import OUTSIDE, Cache, Geometry, Layout, pair_runs, runs
from kvsan.traces.engines.torch_streams import Accesses, Copied, Slots, Streams

torch: Any = importlib.import_module("torch")  # the program's, not ours: no need of kvsan
DispatchMode: Any = importlib.import_module("torch.utils._python_dispatch").TorchDispatchMode
Arguments = dict[str, Any]
KEPT_VIEWS = 64


class KVTensor:
    """A KV tensor and its layout. Raises ValueError where they do not fit."""

    def __init__(self, tensor: Any, layout: Layout) -> None:
        self.layout = layout
        self.cache = Cache(geometry(tensor), layout)
        self.storage = tensor.untyped_storage().data_ptr()
        self.kept = tensor  # while it is listened to, its memory is nobody else's
        self._labels: dict[Geometry, Any] = {}

    def labels(self, view: Any) -> Any:
        """The labels of a view of the same storage, as an integer tensor; dropped dimensions have size 1."""
        where = geometry(view)
        if where not in self._labels:
            if len(self._labels) >= KEPT_VIEWS:
                self._labels.clear()
            labels = self.cache.labels(where)
            self._labels[where] = torch.tensor(labels.values, dtype=torch.int64).view(labels.shape)
        return self._labels[where]


def geometry(tensor: Any) -> Geometry:
    item = tensor.element_size()
    strides = tuple(stride * item for stride in tensor.stride())
    return Geometry(tuple(tensor.shape), strides, tensor.storage_offset() * item, item)


# --- operators that pick ----------------------------------------------------------------------------------------------


def _by_indices(labels: Any, a: Arguments) -> Any:
    return labels[tuple(slice(None) if index is None else index.cpu() for index in a["indices"])]


def _by_dim(labels: Any, a: Arguments) -> Any:
    return labels.index_select(a["dim"], a["index"].cpu())


def _by_element(labels: Any, a: Arguments) -> Any:
    return labels.gather(a["dim"], a["index"].cpu())


def _by_mask(labels: Any, a: Arguments) -> Any:
    labels, mask = torch.broadcast_tensors(labels, a["mask"].cpu())
    return labels[mask]


def _by_row(labels: Any, a: Arguments) -> Any:
    return labels[a["indices"].cpu()]


PICKS: dict[str, tuple[str, Callable[[Any, Arguments], Any]]] = {
    "index": ("self", _by_indices), "index_put_": ("self", _by_indices), "_index_put_impl_": ("self", _by_indices),
    "index_select": ("self", _by_dim), "index_copy_": ("self", _by_dim), "index_fill_": ("self", _by_dim),
    "index_add_": ("self", _by_dim), "index_reduce_": ("self", _by_dim),
    "gather": ("self", _by_element), "scatter_": ("self", _by_element), "scatter_add_": ("self", _by_element),
    "scatter_reduce_": ("self", _by_element),
    "masked_select": ("self", _by_mask), "masked_fill_": ("self", _by_mask), "masked_scatter_": ("self", _by_mask),
    "embedding": ("weight", _by_row),
}  # fmt: skip
"""Operator -> the argument of which it touches a part, and which part that is, of its labels in full shape."""

ASK_THE_SHAPE_ONLY = {
    "empty_like", "new_empty", "new_empty_strided", "zeros_like", "new_zeros", "ones_like", "new_ones", "full_like",
    "new_full", "rand_like", "randn_like", "record_stream", "is_same_size",
}  # fmt: skip


# --- what an operator touches -----------------------------------------------------------------------------------------


class Touched:
    """The labels that one operator touches, by pool."""

    def __init__(self, tensors: Sequence[KVTensor]) -> None:
        self.tensors = tensors
        self.slots = {kv.layout.pool: kv.cache.slots for kv in tensors}
        self.written: dict[str, set[int]] = defaultdict(set)
        self.read: dict[str, set[int]] = defaultdict(set)
        self.copied: dict[tuple[str, str], set[tuple[int, int]]] = defaultdict(set)

    def of(self, view: Any) -> Iterator[KVTensor]:
        """The KV tensors in whose storage the view lies."""
        if view.device.type == "meta" or view.layout != torch.strided:
            return
        storage = view.untyped_storage().data_ptr()
        yield from (kv for kv in self.tensors if kv.storage == storage)

    def add(self, view: Any, into: dict[str, set[int]], pick: Callable[[Any], Any] | None = None) -> None:
        for kv in self.of(view):
            labels = kv.labels(view)
            if pick is not None:
                labels = pick(labels.expand(view.shape))
            into[kv.layout.pool].update(labels.unique().tolist())

    def copy(self, dst: Any, src: Any) -> None:
        """`dst.copy_(src)`, element by element; what only one of the two has in a KV tensor is written, or read."""
        for to in self.of(dst):
            for source in self.of(src):
                pair = torch.stack(torch.broadcast_tensors(source.labels(src), to.labels(dst)), -1).flatten(0, -2)
                pools = (source.layout.pool, to.layout.pool)
                for old, new in pair.unique(dim=0).tolist():
                    if OUTSIDE not in (old, new) and (old != new or pools[0] != pools[1]):
                        self.copied[pools].add((old, new))
        self.add(dst, self.written)
        self.add(src, self.read)

    def accesses(self) -> Accesses:
        copies: list[Copied] = []
        for (src_pool, dst_pool), pairs in self.copied.items():
            try:
                found = pair_runs(pairs, self.slots[src_pool], self.slots[dst_pool])
            except ValueError:  # to slots of another number: told as reads and writes
                continue
            copies += [(src_pool, dst_pool, *copy) for copy in found]
            self.read[src_pool] -= {old for old, _ in pairs}
            self.written[dst_pool] -= {new for _, new in pairs}
        for pool, labels in self.written.items():
            self.read[pool] -= labels
        return Accesses(tuple(copies), self._runs(self.written), self._runs(self.read))

    def _runs(self, labels: dict[str, set[int]]) -> tuple[Slots, ...]:
        return tuple((pool, *run) for pool in labels for run in runs(labels[pool], self.slots[pool]))


def touched(tensors: Sequence[KVTensor], func: Any, args: Sequence[Any], kwargs: Arguments) -> Accesses:
    """What `func(*args, **kwargs)` does to the KV tensors."""
    schema, name = func._schema, func._schema.name.partition("::")[2]
    found = Touched(tensors)
    changed = {arg.name for arg in schema.arguments if arg.alias_info is not None and arg.alias_info.is_write}
    is_view = any(arg.alias_info is not None for arg in schema.arguments) and not changed
    if is_view or name in ASK_THE_SHAPE_ONLY:
        return Accesses()
    given = bound(schema, args, kwargs)
    if name in {"copy_", "_foreach_copy_"}:
        for dst, src in zip(_tensors(given["self"]), _tensors(given["src"]), strict=True):
            found.copy(dst, src)
        return found.accesses()
    picked, pick = PICKS.get(name, ("", None))
    for argument, value in given.items():
        part = (lambda labels: pick(labels, given)) if pick is not None and argument == picked else None
        for tensor in _tensors(value):
            found.add(tensor, found.written if argument in changed else found.read, part)
    return found.accesses()


def bound(schema: Any, args: Sequence[Any], kwargs: Arguments) -> Arguments:
    """The arguments by name; what is left to its default is left out."""
    return dict(zip((argument.name for argument in schema.arguments), args, strict=False)) | kwargs


def _tensors(value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, list | tuple):
        return [tensor for item in value for tensor in _tensors(item)]
    return []


# --- listening --------------------------------------------------------------------------------------------------------


def listening(
    streams: Streams, tensors: Sequence[KVTensor], on_device: Callable[[Any], bool]
) -> AbstractContextManager[Any]:
    """A context in which this thread's operators are told to `streams`."""
    mode: AbstractContextManager[Any] = Listening(streams, tensors, on_device)
    return mode


class Listening(DispatchMode):  # type: ignore[misc]  # torch's class, which strict types cannot see from here
    """Sees every operator of its thread, after autograd."""

    def __init__(self, streams: Streams, tensors: Sequence[KVTensor], on_device: Callable[[Any], bool]) -> None:
        super().__init__()
        self.streams, self.tensors, self.on_device = streams, tensors, on_device

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        watch = self.streams.watch
        accesses = watch.run(touched, self.tensors, func, args, kwargs) or Accesses()
        if accesses == Accesses():
            result = func(*args, **kwargs)
        else:
            with self.streams.log.group():  # launches of one stream are logged in the order in which they are queued
                result = func(*args, **kwargs)
                watch.run(self._tell, accesses, _tensors([*args, *kwargs.values(), result]))
        watch.run(self._learned, func, args, kwargs, result)
        return result

    def _tell(self, accesses: Accesses, tensors: list[Any]) -> None:
        device = next((tensor.device for tensor in tensors if self.on_device(tensor)), None)
        if device is None:
            self.streams.accessed(accesses)
        else:
            self.streams.launched(accesses, self.streams.cuda.current_stream(device))

    def _learned(self, func: Any, args: Any, kwargs: Arguments, result: Any) -> None:
        """Reading a number off the device, and a blocking copy between it and the host, wait for the stream."""
        name = func._schema.name.partition("::")[2]
        where = []
        if name == "_local_scalar_dense":
            where = [args[0].device] if self.on_device(args[0]) else []
        elif name in {"copy_", "_to_copy"} and not bound(func._schema, args, kwargs).get("non_blocking"):
            ends = [result, args[1] if name == "copy_" else args[0]]
            where = [end.device for end in ends if self.on_device(end) and end.numel()]
        if len(where) == 1:
            self.streams.sync(self.streams.cuda.current_stream(where[0]))
