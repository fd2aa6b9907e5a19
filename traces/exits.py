"""How a process may end, and what its recorders do then: exit, signals, fork.

Handlers of a signal that were there before are called after the flush, as if we were not there. Signals can only be
caught if a recorder is opened in the main thread, and not if their handler was set outside of Python.
"""

import atexit
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Protocol

SIGNALS = (signal.SIGTERM, signal.SIGINT)
FLUSH_SECONDS_MAX = 5.0


class Recording(Protocol):
    """An open recorder, as seen from the end of its process."""

    def flush_at_signal(self, timeout: float) -> None: ...

    def close_at_exit(self) -> None: ...

    def forget_at_fork(self) -> None: ...


Handler = Callable[[int, FrameType | None], object] | int | None
"""What `signal.getsignal` returns: a function, SIG_DFL or SIG_IGN, or None for a handler from outside of Python."""

open_recordings: set[Recording] = set()

process = [os.getpid()]
"""The process whose recorders these are."""


@dataclass(frozen=True)
class FlushFirst:
    """A signal handler that flushes, then does what would have been done without us.

    Each knows the handler it replaced, so that a handler of somebody else's that lies between two of ours, and calls
    the one before it, is called once.
    """

    earlier: Handler

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() == process[0]:  # else this is a child that is still being forked, without a writer
            for recording in list(open_recordings):
                recording.flush_at_signal(FLUSH_SECONDS_MAX)
        if callable(self.earlier):
            self.earlier(number, frame)
        elif self.earlier == signal.SIG_DFL:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)


def watch(recording: Recording) -> None:
    """Flush this recorder when the process ends or is told to."""
    open_recordings.add(recording)
    if threading.current_thread() is not threading.main_thread():
        return
    for number in SIGNALS:
        handler = signal.getsignal(number)
        if handler is not None and not isinstance(handler, FlushFirst):
            signal.signal(number, FlushFirst(handler))


def unwatch(recording: Recording) -> None:
    """A recorder has been closed. With the last one the earlier signal handlers return, unless ours was replaced."""
    open_recordings.discard(recording)
    if open_recordings or threading.current_thread() is not threading.main_thread():
        return
    for number in SIGNALS:
        handler = signal.getsignal(number)
        if isinstance(handler, FlushFirst):
            signal.signal(number, handler.earlier)


def on_exit() -> None:
    for recording in list(open_recordings):
        recording.close_at_exit()


def on_fork() -> None:
    """In the child: the parent's recorders are not ours."""
    for recording in list(open_recordings):
        recording.forget_at_fork()
    open_recordings.clear()
    process[0] = os.getpid()


atexit.register(on_exit)
os.register_at_fork(after_in_child=on_fork)
