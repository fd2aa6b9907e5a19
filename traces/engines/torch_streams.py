"""Record the order that a PyTorch program makes on its CUDA streams, and what it does to its KV tensors there.

    with record_streams("run.jsonl", [(keys, Layout(0, 1)), (values, Layout(0, 1))]) as kv:
        with kv.acting("r0"):                   # optional: whose writes and copies these are
            serve()                             # the program, unchanged
    # kvsan check run.jsonl

`torch.cuda`'s streams and events are wrapped from outside while the recording lasts, and a dispatch mode sees each
operator that touches a KV tensor (`torch_ops`). One operator is one launch, on the stream that is current for it.

| the program does | the log says |
|---|---|
| `event.record(s)`, `s.record_event()` | `record` |
| `event.wait(s)`, `s.wait_event(e)`, `s.wait_stream(t)` | `wait` (behind a `record`, for a stream) |
| `event.synchronize()`, `s.synchronize()`, `torch.cuda.synchronize()` | `sync` |
| `event.query()`, `s.query()`, when they say yes | `sync`: the host has learned it |
| `.item()`, a blocking copy between host and device | `sync` of the stream |
| an operator on a KV tensor | `copy`, `read`, `write` with one `op` and its stream; without, where the host does it |

A wait for an event that was never recorded orders nothing and is not logged. The name of an event that is gone is used
again. PyTorch's pool streams do not block on the legacy default stream, so the header names no `legacy_stream`; say
`blocking_streams=True` where all streams are ones that do (made elsewhere, wrapped by `ExternalStream`).

Ownership (`alloc`, `map`, `free`, …) is the caller's to say, through `kv.log`; without it the order rules that need no
lives are judged all the same. Kernels that torch does not dispatch are told with `kv.launched`.

Not seen, and so a reason for alarms that are none: order made inside libraries (NCCL's work handles, CUDA graphs, the
allocator), and between host threads (say it with `signal` and `await`). The dispatch mode is one thread's: another
thread that launches enters `kv.listening()`. Index values on the device are fetched to see which slots are meant, which
takes time there and adds no order to the log.

Tested without a GPU, against a stand-in for `torch.cuda` with the same classes over queues of its own.
"""

from __future__ import annotations

import importlib
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any  # torch is not ours to import here

from kvsan.traces.engines.hooks import Names, Watch
from kvsan.traces.engines.torch_footprint import Layout
from kvsan.traces.record import Recorder

LEGACY = "default"
"""The name of the stream whose id is 0: PyTorch's default stream, CUDA's legacy default."""

Slots = tuple[str, int, int, int]
"""Pool, block, and its slots [lo, hi)."""

Copied = tuple[str, str, int, int, int, int]
"""Pools of source and target, their blocks, and the slots [lo, hi)."""


@dataclass(frozen=True)
class Accesses:
    """What one launch does to the blocks."""

    copies: tuple[Copied, ...] = ()
    writes: tuple[Slots, ...] = ()
    reads: tuple[Slots, ...] = ()


class Streams:
    """The streams of one `torch.cuda`, told to one log. `launched` and `sync` tell what no hook can see."""

    def __init__(self, log: Recorder, cuda: Any) -> None:
        self.log, self.cuda = log, cuda
        self.watch = Watch()
        self._streams = Names("s")
        self._devices: dict[str, int] = {}
        self._events: dict[int, str] = {}
        self._event_names = 0
        self._idle_names: list[str] = []
        self._launches = 0
        self._whose = threading.local()
        self.listening: Callable[[], AbstractContextManager[Any]] = nullcontext
        """Enter it in each further thread that launches: the dispatch mode sees its own thread only."""

    # --- who acts ---------------------------------------------------------------------------------------------------

    @contextmanager
    def acting(self, branch: str, upto: int | None = None) -> Iterator[None]:
        """In this thread, writes and copies are this branch's, until the end. Otherwise they are a transfer's.

        upto: a launch that reads any KV reads this branch's first `upto` tokens; else it reads the blocks it touches.
        """
        former = getattr(self._whose, "branch", None)
        self._whose.branch = (branch, upto)
        try:
            yield
        finally:
            self._whose.branch = former

    # --- launches ---------------------------------------------------------------------------------------------------

    def launched(self, accesses: Accesses, stream: Any = None) -> None:
        """A kernel was put on a stream (default: the current one): one launch."""
        with self.log.group():
            self._launches += 1
            where = {"op": f"k{self._launches}", "stream": self.name(stream or self.cuda.current_stream())}
            self._tell(accesses, where)

    def accessed(self, accesses: Accesses) -> None:
        """The host itself did it, at once."""
        with self.log.group():
            self._tell(accesses, {})

    def _tell(self, accesses: Accesses, where: dict[str, str]) -> None:
        branch, upto = getattr(self._whose, "branch", None) or (None, None)
        who = {"holder": "torch"} if branch is None else {"branch": branch}
        for src_pool, dst_pool, src, dst, lo, hi in accesses.copies:
            pools = {} if src_pool == dst_pool else {"src_pool": src_pool, "dst_pool": dst_pool}
            pools |= _pool(src_pool) if not pools else {}
            mine = {} if branch is None else who
            self.log.emit("copy", src=src, dst=dst, slots=[lo, hi], **where, **pools, **mine)
        if accesses.reads and upto is not None:
            self.log.emit("read", branch=branch, upto=upto, **where)
        else:
            for pool, block, lo, hi in accesses.reads:
                self.log.emit("read", holder="torch", block=block, slots=[lo, hi], **where, **_pool(pool))
        for pool, block, lo, hi in accesses.writes:
            self.log.emit("write", block=block, slots=[lo, hi], **where, **_pool(pool), **who)

    # --- streams and events -----------------------------------------------------------------------------------------

    def name(self, stream: Any) -> str:
        """Streams by order of appearance; the legacy default is `default` (of device 1: `default@1`)."""
        device = stream.device_index
        if stream.stream_id == 0:
            name = LEGACY if device == 0 else f"{LEGACY}@{device}"
        else:
            name = self._streams.of((device, stream.stream_id))
        self._devices.setdefault(name, device)
        return name

    def _event(self, event: Any) -> str:
        """The name of an event that is being recorded."""
        key = id(event)
        if key not in self._events:
            if self._idle_names:
                self._events[key] = self._idle_names.pop()
            else:
                self._events[key] = f"e{self._event_names}"
                self._event_names += 1
            weakref.finalize(event, self._forget, key).atexit = False
        return self._events[key]

    def _forget(self, key: int) -> None:
        """Nobody can wait for the event any more: its name may be recorded again, which overwrites it."""
        self._idle_names.append(self._events.pop(key))

    def _recorded(self, event: Any, stream: Any) -> None:
        self.log.emit("record", event=self._event(event), stream=self.name(stream or self.cuda.current_stream()))

    def _waited(self, event: Any, stream: Any) -> None:
        if id(event) in self._events:
            where = self.name(stream or self.cuda.current_stream())
            self.log.emit("wait", event=self._events[id(event)], stream=where)

    def _learned_event(self, event: Any) -> None:
        if id(event) in self._events:
            self.log.emit("sync", event=self._events[id(event)])

    def sync(self, stream: Any = None) -> None:
        """The host has waited for a stream (default: the current one)."""
        self.log.emit("sync", stream=self.name(stream or self.cuda.current_stream()))

    def _learned_device(self, device: Any) -> None:
        number = self.cuda.current_stream(device).device_index
        if set(self._devices.values()) <= {number}:
            self.log.emit("sync", device=True)
        else:
            for name in [name for name, at in self._devices.items() if at == number]:
                self.log.emit("sync", stream=name)

    # --- hooks ------------------------------------------------------------------------------------------------------

    @contextmanager
    def attached(self) -> Iterator[Streams]:
        """Wrap the streams and events of `cuda`, in every thread, until the end."""
        event, stream = self.cuda.Event, self.cuda.Stream
        undo = [
            _wrap(event, "record", self._ordered(lambda _, e, s=None: self._recorded(e, s))),
            _wrap(event, "wait", self._ordered(lambda _, e, s=None: self._waited(e, s))),
            _wrap(event, "synchronize", self._blocking(lambda e: self._learned_event(e))),
            _wrap(event, "query", self._ordered(lambda yes, e: self._learned_event(e) if yes else None)),
            _wrap(stream, "synchronize", self._blocking(lambda s: self.sync(s))),
            _wrap(stream, "query", self._ordered(lambda yes, s: self.sync(s) if yes else None)),
            _wrap(self.cuda, "synchronize", self._blocking(lambda device=None: self._learned_device(device))),
        ]
        try:
            yield self
        finally:
            for restore in reversed(undo):
                restore()

    def _ordered(self, tell: Callable[..., None]) -> Callable[..., Any]:
        """A call that returns at once: no other thread's event comes between it and its line."""

        def around(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            with self.log.group():
                result = original(*args, **kwargs)
                self.watch.run(lambda: tell(result, *args, *kwargs.values()))
            return result

        return around

    def _blocking(self, tell: Callable[..., None]) -> Callable[..., Any]:
        """A call that waits. Its line is written when it starts: then it is settled what is waited for.

        This thread says nothing until it returns, and other threads may go on, recording the event again even.
        """

        def around(original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            self.watch.run(lambda: tell(*args, *kwargs.values()))
            return original(*args, **kwargs)

        return around


def _pool(pool: str) -> dict[str, str]:
    return {} if pool == "gpu" else {"pool": pool}


def _wrap(owner: Any, name: str, around: Callable[..., Any]) -> Callable[[], None]:
    """Replace `owner.name`, for every caller. Returns what puts it back."""
    original, own = getattr(owner, name), name in vars(owner)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return around(original, *args, **kwargs)

    setattr(owner, name, wrapped)
    return lambda: setattr(owner, name, original) if own else delattr(owner, name)


@contextmanager
def record_streams(
    path: str | Path,
    caches: Sequence[tuple[Any, Layout]],
    *,
    discipline: str = "paged_cow",
    blocking_streams: bool = False,
    cuda: Any = None,
    on_device: Callable[[Any], bool] | None = None,
    **header: Any,
) -> Iterator[Streams]:
    """Record into `path` until the end: the streams of `cuda`, and this thread's operators on the KV tensors.

    caches: KV tensors, each with its layout; tensors of one pool share block ids, and how many blocks of how many slots
    they have. cuda: the module to wrap, `torch.cuda`. on_device: whether a tensor's operators run on a stream (default:
    CUDA tensors). header: further fields, `started` (default `mid_run`) and your own, whose names start with `x_`.

    Raises: ImportError without torch; ValueError where a layout does not fit its tensor or tensors of one pool differ;
    OSError where the path cannot be written.
    """
    ops = importlib.import_module("kvsan.traces.engines.torch_ops")
    torch = importlib.import_module("torch")
    tensors = [ops.KVTensor(tensor, layout) for tensor, layout in caches]
    fields = {"engine": "torch", "version": str(torch.__version__), "started": "mid_run"}
    fields |= pools_of((kv.layout.pool, kv.cache.blocks, kv.cache.slots) for kv in tensors)
    if blocking_streams:
        fields |= {"legacy_stream": LEGACY}
    with Recorder(path, discipline=discipline, **(fields | header)) as log:
        streams = Streams(log, cuda or torch.cuda)
        streams.listening = lambda: ops.listening(streams, tensors, on_device or (lambda tensor: tensor.is_cuda))
        with streams.attached(), streams.listening():
            yield streams


def pools_of(sizes: Iterable[tuple[str, int, int]]) -> dict[str, Any]:
    """The header's fields for pools of (name, blocks, slots a block)."""
    pools: dict[str, tuple[int, int]] = {}
    for name, blocks, slots in sizes:
        if pools.setdefault(name, (blocks, slots)) != (blocks, slots):
            raise ValueError(f"tensors of pool {name} differ in blocks or slots: {pools[name]} and {(blocks, slots)}")
    if "gpu" not in pools:
        raise ValueError("no KV tensor is of the pool gpu, whose size the header gives")
    (blocks, slots) = pools.pop("gpu")
    more = {name: {"blocks": count, "block_size": size} for name, (count, size) in pools.items()}
    return {"blocks": blocks, "block_size": slots} | ({"pools": more} if more else {})
