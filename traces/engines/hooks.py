"""Listening to an engine from outside: wrap a method, and never let the recorder break the engine.

A hook that fails says so once on standard error and ends the recording; the engine goes on. The log then simply
stops, without the `quiescent` that a whole run ends with, and its header still says what it was.
"""

from __future__ import annotations

import functools
import sys
import traceback
from collections.abc import Callable
from typing import Any  # an engine's objects carry no types that we could import here


class Watch:
    """Whether the recording still runs. One for each engine process."""

    def __init__(self) -> None:
        self.broken = False

    def run(self, hook: Callable[..., Any], *args: Any) -> Any:
        """Call `hook`; on an error, report it once and end the recording. Returns None then."""
        if self.broken:
            return None
        try:
            return hook(*args)
        except Exception:
            self.broken = True
            print("kvsan: the recorder failed and has stopped; the engine goes on:", file=sys.stderr)
            traceback.print_exc()
            return None


WATCH = Watch()


def after(owner: Any, name: str, hook: Callable[..., Any]) -> None:
    """Call `hook(self, result, *args, **kwargs)` after `owner.name` returned."""

    def around(original: Callable[..., Any], self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        WATCH.run(functools.partial(hook, self, result, *args, **kwargs))
        return result

    wrap(owner, name, around)


def wrap(owner: Any, name: str, around: Callable[..., Any]) -> None:
    """Replace `owner.name` by `around(original, self, *args, **kwargs)`, once."""
    original = owner.__dict__[name]
    if getattr(original, "kvsan_hook", False):
        return

    @functools.wraps(original)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return around(original, self, *args, **kwargs)

    method.kvsan_hook = True  # type: ignore[attr-defined]  # a mark on a function object
    setattr(owner, name, method)


class Names:
    """Names by order of appearance, so that two runs of one scenario give one log."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.given: dict[Any, str] = {}
        self.count = 0

    def of(self, key: Any) -> str:
        if key not in self.given:
            self.given[key] = f"{self.prefix}{self.count}"
            self.count += 1
        return self.given[key]

    def known(self, key: Any) -> str | None:
        return self.given.get(key)

    def forget(self, key: Any) -> None:
        """The engine may use the key again, for something new."""
        self.given.pop(key, None)
