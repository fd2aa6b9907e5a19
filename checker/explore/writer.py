"""Lines of generated source, with their indent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Writer:
    """`line` appends; `block` indents what is written inside it; `fresh` gives an unused name.

    inside: the open blocks, each by a number of its own.
    """

    lines: list[str] = field(default_factory=list)
    names: int = 0
    inside: list[int] = field(default_factory=list)
    blocks: int = 0

    @property
    def indent(self) -> int:
        return len(self.inside)

    def enter(self) -> None:
        """Begin a block; `leave` ends blocks down to a depth."""
        self.blocks += 1
        self.inside.append(self.blocks)

    def leave(self, depth: int) -> None:
        del self.inside[depth:]

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """`head:` and what follows inside; `pass` where nothing does."""
        self.line(head + ":")
        before = len(self.lines)
        depth = self.indent
        self.enter()
        yield
        if len(self.lines) == before:
            self.line("pass")
        self.leave(depth)

    def fresh(self, stem: str) -> str:
        self.names += 1
        return f"{stem}{self.names}"

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"
