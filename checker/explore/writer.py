"""Lines of generated source, with their indent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Writer:
    """`line` appends; `block` indents what is written inside it; `fresh` gives an unused name."""

    lines: list[str] = field(default_factory=list)
    indent: int = 0
    names: int = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """`head:` and what follows inside; `pass` where nothing does."""
        self.line(head + ":")
        before = len(self.lines)
        self.indent += 1
        yield
        if len(self.lines) == before:
            self.line("pass")
        self.indent -= 1

    def fresh(self, stem: str) -> str:
        self.names += 1
        return f"{stem}{self.names}"

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"
