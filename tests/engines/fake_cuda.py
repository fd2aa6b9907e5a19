"""A stand-in for `torch.cuda`'s streams and events, on a machine without a GPU. No torch.

Faithful in what orders work: each stream is a queue that the device works off from its head; a record captures its
stream at call time, and recording again makes another; a wait holds its stream until the record that was the event's
latest at call time is done, and an event never recorded holds nothing; the legacy default stream (id 0) starts an item
only when all earlier ones of blocking streams are done, and they wait for its earlier ones, and so does the host that
synchronizes or queries one of them ("standard default stream semantics" in CUDA's reference of cudaStreamSynchronize
and cudaStreamQuery); pool streams (`Stream()`) do not block, `ExternalStream()` here does. Python's layer over it has
the methods of `torch.cuda`, calling each other as there: `wait_stream` is a `record_event` and a `wait_event`, which
are `Event.record` and `Event.wait`.

When the device works, and on which stream, `choose` decides: the host waits only where it says so, and then the device
takes any step it may until the host's wish is met. `executions` tries every way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any  # the classes of each device are made at run time

Choose = Callable[[int], int]
"""Given how many streams can go on: which of them does."""

LEGACY = 0


@dataclass
class Mark:
    """One record of an event."""

    done: bool = False


@dataclass
class Item:
    number: int
    run: Callable[[], None] = lambda: None
    behind: Mark = field(default_factory=lambda: Mark(done=True))


class _Stream:
    cuda: FakeCuda
    blocking = False
    device_index = 0

    def __init__(self, stream_id: int | None = None) -> None:
        self.stream_id = next(self.cuda.ids) if stream_id is None else stream_id
        self.queue: deque[Item] = self.cuda.queues.setdefault(self.stream_id, deque())
        if self.blocking:
            self.cuda.blocking.add(self.stream_id)

    def wait_event(self, event: Any) -> None:
        event.wait(self)

    def wait_stream(self, stream: Any) -> None:
        self.wait_event(stream.record_event())

    def record_event(self, event: Any = None) -> Any:
        event = event or self.cuda.Event()
        event.record(self)
        return event

    def synchronize(self) -> None:
        joined = self.cuda.joined(self.stream_id)
        self.cuda.work(lambda: not any(joined))

    def query(self) -> bool:
        return not any(self.cuda.joined(self.stream_id))


class _Event:
    cuda: FakeCuda

    def __init__(self) -> None:
        self.latest: Mark | None = None

    def record(self, stream: Any = None) -> None:
        mark = self.latest = Mark()
        self.cuda.push(stream or self.cuda.current_stream(), lambda: setattr(mark, "done", True))

    def wait(self, stream: Any = None) -> None:
        if self.latest is not None:
            self.cuda.push(stream or self.cuda.current_stream(), lambda: None, self.latest)

    def synchronize(self) -> None:
        latest = self.latest
        self.cuda.work(lambda: latest is None or latest.done)

    def query(self) -> bool:
        return self.latest is None or self.latest.done


class FakeCuda:
    """One device. Its classes are its own, so that wrapping them touches no other."""

    def __init__(self, choose: Choose = lambda options: 0) -> None:
        self.choose = choose
        self.ids, self.numbers = count(1), count()
        self.queues: dict[int, deque[Item]] = {LEGACY: deque()}
        self.blocking: set[int] = {LEGACY}
        self.Stream: Any = type("Stream", (_Stream,), {"cuda": self})
        self.ExternalStream: Any = type("ExternalStream", (self.Stream,), {"blocking": True})
        self.Event: Any = type("Event", (_Event,), {"cuda": self})
        self._current = self.Stream(LEGACY)

    def current_stream(self, device: Any = None) -> Any:
        return self._current

    @contextmanager
    def stream(self, stream: Any) -> Iterator[None]:
        former, self._current = self._current, stream
        try:
            yield
        finally:
            self._current = former

    def launch(self, run: Callable[[], None]) -> None:
        """Put work on the current stream."""
        self.push(self._current, run)

    def synchronize(self, device: Any = None) -> None:
        self.work(lambda: not any(self.queues.values()))

    # --- the device -------------------------------------------------------------------------------------------------

    def push(self, stream: Any, run: Callable[[], None], behind: Mark | None = None) -> None:
        stream.queue.append(Item(next(self.numbers), run, behind or Mark(done=True)))

    def work(self, until: Callable[[], bool]) -> None:
        while not until():
            ready = [queue for number, queue in self.queues.items() if queue and self._can_start(number, queue[0])]
            queue = ready[self.choose(len(ready)) if len(ready) > 1 else 0]
            queue.popleft().run()

    def joined(self, stream: int) -> list[deque[Item]]:
        """The queues that are empty when a stream is synchronized."""
        if stream not in self.blocking:
            return [self.queues[stream]]
        return [self.queues[other] for other in (self.blocking if stream == LEGACY else {stream, LEGACY})]

    def _can_start(self, stream: int, item: Item) -> bool:
        if not item.behind.done:
            return False
        if stream not in self.blocking:
            return True
        others = self.blocking - {LEGACY} if stream == LEGACY else {LEGACY}
        return not any(self.queues[other] and self.queues[other][0].number < item.number for other in others)


def executions(program: Callable[[FakeCuda], Any], device: type[FakeCuda] = FakeCuda) -> Iterator[Any]:
    """What the program returns, once for every way in which the device may go about its work."""
    prefix: list[int] = []
    while True:
        taken: list[tuple[int, int]] = []

        def choose(options: int, prefix: list[int] = prefix, taken: list[tuple[int, int]] = taken) -> int:
            choice = prefix[len(taken)] if len(taken) < len(prefix) else 0
            taken.append((choice, options))
            return choice

        yield program(device(choose))
        while taken and taken[-1][0] + 1 == taken[-1][1]:
            taken.pop()
        if not taken:
            return
        prefix = [choice for choice, _ in taken[:-1]] + [taken[-1][0] + 1]
