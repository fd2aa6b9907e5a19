"""States of one depth expanded by several threads, a chunk each, and stored by turns in the order of the chunks.

Expanding reads what was stored before and writes a buffer of the thread's own; storing is one thread's at a time. So
every state has the number, and every failure the place, that one thread alone would give it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any  # numpy arrays

from kvsan.checker.explore.emit import Model
from kvsan.checker.explore.module import Module
from kvsan.checker.explore.store import Store

MOMENT = 0.1
"""Seconds between two looks at the keyboard."""


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass
class Tally:
    """fan: states by how many successors they have. taken: transitions per action. judged: evaluations per judge.
    fail_at, fail_code: the state and the step of the first failure of each judge, -1 where there is none."""

    fan: Any
    taken: Any
    judged: Any
    fail_at: Any
    fail_code: Any

    @staticmethod
    def zero(np: Any, model: Model, judges: int) -> Tally:
        counts = (np.zeros(n, np.int64) for n in (model.fan + 1, len(model.actions), max(1, judges)))
        return Tally(*counts, *(np.full(max(1, judges), -1, np.int64) for _ in range(2)))

    @property
    def arrays(self) -> tuple[Any, ...]:
        return self.fan, self.taken, self.judged, self.fail_at, self.fail_code

    def begin(self, whole: Tally) -> None:
        """Count from zero; what has failed already is not looked for again."""
        for counts in (self.fan, self.taken, self.judged):
            counts[:] = 0
        self.fail_at[:], self.fail_code[:] = whole.fail_at, whole.fail_code

    def add(self, later: Tally) -> None:
        """Add what was counted after all that is counted here."""
        for here, there in zip(self.arrays[:3], later.arrays[:3], strict=True):
            here += there
        new = (self.fail_at < 0) & (later.fail_at >= 0)
        self.fail_at[new], self.fail_code[new] = later.fail_at[new], later.fail_code[new]


@dataclass
class Buffer:
    """Room for the successors of a chunk: their words, the codes of the steps, their hashes."""

    words: Any
    codes: Any
    hashes: Any

    @staticmethod
    def of(np: Any, model: Model, rows: int) -> Buffer:
        hashes = rows * (2 if model.layout.cut else 1)
        return Buffer(
            np.empty(rows * model.layout.words, np.int64), np.empty(rows, np.int64), np.empty(hashes, np.uint64)
        )

    @property
    def arrays(self) -> tuple[Any, ...]:
        return self.words, self.codes, self.hashes


@dataclass
class Worker:
    """What a thread writes to, kept from one depth to the next. addresses: of all its arrays."""

    buffer: Buffer
    tally: Tally
    addresses: tuple[int, ...]

    @staticmethod
    def of(np: Any, model: Model, judges: int) -> Worker:
        buffer, tally = Buffer.of(np, model, model.chunk * model.fan), Tally.zero(np, model, judges)
        return Worker(buffer, tally, tuple(a.ctypes.data for a in (*buffer.arrays, *tally.arrays)))


@dataclass
class Pieces:
    """The states `at` to `end`, in chunks. may_go_on: asked before a chunk of so many successors is stored.

    stored: up to where states are expanded and their successors stored.
    """

    module: Module
    model: Model
    store: Store
    tally: Tally
    at: int
    end: int
    may_go_on: Callable[[int], bool]

    def __post_init__(self) -> None:
        self.stored, self.over, self.error = self.at, False, list[BaseException]()
        self.turn = threading.Condition()

    def run(self, crew: Sequence[Worker], look: Callable[[], None]) -> int:
        """Expand them all, or up to the first chunk that may not go on. Returns `stored`. look: called now and then."""
        workers = [threading.Thread(target=self._work, args=(worker,), daemon=True) for worker in crew]
        for worker in workers:
            worker.start()
        try:
            while any(w.is_alive() for w in workers):
                with self.turn:
                    self.turn.wait_for(lambda: self.over or self.stored == self.end, MOMENT)
                if self.over or self.stored == self.end:
                    break
                look()
        finally:
            self._stop()
            for worker in workers:
                worker.join()
        if self.error:
            raise self.error[0]
        return self.stored

    def _stop(self) -> None:
        with self.turn:
            self.over = True
            self.turn.notify_all()

    def _work(self, worker: Worker) -> None:
        sets = self.store.sets.ctypes.data
        try:
            while (piece := self._next()) is not None:
                worker.tally.begin(self.tally)
                rows = self.module.spread(sets, *piece, *worker.addresses)
                if not self._keep(*piece, rows, worker):
                    return
        except BaseException as error:
            self.error.append(error)
            self._stop()

    def _next(self) -> tuple[int, int] | None:
        """The next chunk; chunks begin at multiples of their size, wherever the first state is."""
        with self.turn:
            if self.over or self.at >= self.end:
                return None
            at, size = self.at, self.model.chunk
            self.at = min(self.end, at - at % size + size)
            return at, self.at

    def _keep(self, at: int, stop: int, rows: int, worker: Worker) -> bool:
        """Wait for the chunk's turn and store what it led to. Returns whether there is more to do."""
        with self.turn:
            self.turn.wait_for(lambda: self.over or self.stored == at)
            if self.over:
                return False
        if not self.may_go_on(rows):  # nobody else stores before `stored` moves on
            self._stop()
            return False
        self.store.make_room(rows)
        self.module.keep(self.store.sets, worker.buffer.words, 0, rows, worker.buffer.hashes)
        self.tally.add(worker.tally)
        with self.turn:
            self.stored = stop
            self.turn.notify_all()
        return True
