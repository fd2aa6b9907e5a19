"""One name for each thing of a module, apart from the words of its language."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass
class Names:
    """Names that are taken. A new one that is taken already gets a number."""

    taken: set[str] = field(default_factory=set)

    def new(self, wanted: str) -> str:
        name, n = wanted, 1
        while name in self.taken:
            n += 1
            name = f"{wanted}_{n}"
        self.taken.add(name)
        return name

    def all(self, wanted: Iterable[str]) -> dict[str, str]:
        return {w: self.new(w) for w in wanted}

    def inner(self) -> Names:
        """For names that end with a step: what it takes is free again outside."""
        return Names(set(self.taken))
