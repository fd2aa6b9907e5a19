"""Wrapping an engine's own methods from outside."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def around(owner: Any, name: str, wrapper: Callable[..., Any]) -> None:
    """Replace the method `owner.name` by `wrapper(original, *args)`; `owner` is a class or one object."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return wrapper(original, *args, **kwargs)

    setattr(owner, name, wrapped)


class WatchedDict(dict[Any, Any]):
    """A dict that tells what is stored (and what was there) and what is dropped: an engine's map from hash to block."""

    def __init__(
        self, old: dict[Any, Any], stored: Callable[[Any, Any, Any], None], dropped: Callable[[Any, Any], None]
    ) -> None:
        super().__init__(old)
        self._stored, self._dropped = stored, dropped

    def __setitem__(self, key: Any, value: Any) -> None:
        before = self.get(key)
        super().__setitem__(key, value)
        self._stored(key, value, before)

    def __delitem__(self, key: Any) -> None:
        value = self[key]
        super().__delitem__(key)
        self._dropped(key, value)

    def pop(self, key: Any, *default: Any) -> Any:
        present = key in self
        value = super().pop(key, *default)
        if present:
            self._dropped(key, value)
        return value
