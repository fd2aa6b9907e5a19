"""Entries of packed states in generated code, as they are stored: no checks, no decoding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from kvsan.checker.explore.emit_expr import shift_of
from kvsan.checker.explore.layout import WORD, Field, Layout
from kvsan.checker.explore.writer import Writer


@dataclass
class Raw:
    """Writes loops over the entries of fields, and their reads and writes, on words named by a prefix."""

    out: Writer
    layout: Layout

    def words(self, prefix: str) -> str:
        return ", ".join(f"{prefix}{n}" for n in range(self.layout.words))

    def load(self, array: str, row: str) -> None:
        for n in range(self.layout.words):
            self.out.line(f"w{n} = {array}[{row} * WORDS + {n}]")

    def save(self, array: str, row: str, prefix: str = "w") -> None:
        for n in range(self.layout.words):
            self.out.line(f"{array}[{row} * WORDS + {n}] = {prefix}{n}")

    def give(self) -> None:
        self.out.line(f"return {self.words('o')}")

    @contextmanager
    def indexes(self, field: Field, keep: int = -1) -> Iterator[tuple[list[str], str]]:
        """Loops over the entries: the index, and the number of the entry among those of one member of key `keep`."""
        depth, index, rest = self.out.indent, list[str](), ""
        for n, size in enumerate(field.shape):
            name = self.out.fresh("x")
            self.out.line(f"for {name} in range({size}):")
            self.out.enter()
            index.append(name)
            if n != keep:
                rest = f"({rest} * {size} + {name})" if rest else name
        yield index, rest or "0"
        self.out.leave(depth)

    def entry(self, field: Field, index: Sequence[str]) -> str:
        text = ""
        for part, size in zip(index, field.shape, strict=True):
            text = f"({text} * {size} + {part})" if text else part
        return text or "0"

    def get(self, field: Field, index: Sequence[str], prefix: str) -> str:
        """A name that holds the entry."""
        entry, name = self._named(self.entry(field, index)), self.out.fresh("g")
        chunks = field.chunks
        word = f"{prefix}{chunks[-1].word}"
        shift = shift_of(entry, chunks[-1].first, chunks[-1].offset, field.bits)
        for chunk in reversed(chunks[:-1]):
            inside = f"{entry} < {chunk.first + chunk.count}"
            word = f"({prefix}{chunk.word} if {inside} else {word})"
            shift = f"({shift_of(entry, chunk.first, chunk.offset, field.bits)} if {inside} else {shift})"
        self.out.line(f"{name} = ({word} >> {shift}) & {(1 << field.bits) - 1}")
        return name

    def add(self, field: Field, index: Sequence[str], value: str, prefix: str) -> None:
        """Put a value into an entry that is zero."""
        entry = self._named(self.entry(field, index))
        for n, chunk in enumerate(field.chunks):
            line = f"{prefix}{chunk.word} |= {value} << {shift_of(entry, chunk.first, chunk.offset, field.bits)}"
            if len(field.chunks) == 1:
                self.out.line(line)
                continue
            last = n == len(field.chunks) - 1
            test = "else" if last else f"{'elif' if n else 'if'} {entry} < {chunk.first + chunk.count}"
            with self.out.block(test):
                self.out.line(line)

    def untouched(self, fields: Sequence[Field]) -> None:
        """Begin the words `o` with what these fields have in the words `w`."""
        masks = [0] * self.layout.words
        for field in fields:
            for chunk in field.chunks:
                masks[chunk.word] |= ((1 << chunk.count * field.bits) - 1) << chunk.offset
        for n, mask in enumerate(masks):
            signed = mask - (1 << WORD) if mask >> (WORD - 1) else mask
            self.out.line(f"o{n} = w{n} & {signed}")

    def _named(self, text: str) -> str:
        if text.isidentifier() or text.isdigit():
            return text
        name = self.out.fresh("e")
        self.out.line(f"{name} = {text}")
        return name
