"""Entries of packed states in generated code, as they are stored: no checks, no decoding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from kvsan.checker.explore.emit_expr import shift_of, signed
from kvsan.checker.explore.layout import Field, Layout
from kvsan.checker.explore.words import Words, computed, runs
from kvsan.checker.explore.writer import Writer


@dataclass
class Raw:
    """Writes loops over the entries of fields, and their reads and writes, on words named by a prefix."""

    out: Writer
    layout: Layout

    @property
    def words(self) -> Words:
        return Words.of(self.layout)

    def load(self, array: str, row: str) -> None:
        self.words.copy(self.words.each("w"), f"{array}[{row} * WORDS + #]", self.out)

    def save(self, array: str, row: str, prefix: str = "w") -> None:
        self.words.copy(f"{array}[{row} * WORDS + #]", self.words.each(prefix), self.out)

    @contextmanager
    def function(self, name: str, parameters: str) -> Iterator[None]:
        """A function that makes words `o` from words `w`: returns them, or sets them where they are an array."""
        into = ", o: Word" if self.words.array else ""
        with self.out.block(f"def {name}({self.words.parameters('w')}{into}, {parameters})"):
            yield
            if not self.words.array:
                self.out.line(f"return {self.words.names('o')}")
        self.out.line("\n")

    def apply(self, name: str, source: str, target: str, parameters: str) -> None:
        """A call of such a function."""
        given, made = self.words.names(source), self.words.names(target)
        self.out.line(
            f"{name}({given}, {made}, {parameters})" if self.words.array else f"{made} = {name}({given}, {parameters})"
        )

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
        mask = (1 << field.bits) - 1
        if field.even:
            number, shift = computed(field, entry)
            self.out.line(f"{name} = ({prefix}[{number}] >> {shift}) & {mask}")
            return name
        chunks, of = field.chunks, self.words
        word = of.word(prefix, chunks[-1].word)
        shift = shift_of(entry, chunks[-1].first, chunks[-1].offset, field.bits)
        for chunk in reversed(chunks[:-1]):
            inside = f"{entry} < {chunk.first + chunk.count}"
            word = f"({of.word(prefix, chunk.word)} if {inside} else {word})"
            shift = f"({shift_of(entry, chunk.first, chunk.offset, field.bits)} if {inside} else {shift})"
        self.out.line(f"{name} = ({word} >> {shift}) & {mask}")
        return name

    def add(self, field: Field, index: Sequence[str], value: str, prefix: str) -> None:
        """Put a value into an entry that is zero."""
        entry = self._named(self.entry(field, index))
        if field.even:
            number, shift = computed(field, entry)
            self.out.line(f"{prefix}[{number}] |= {value} << {shift}")
            return
        for n, chunk in enumerate(field.chunks):
            shift = shift_of(entry, chunk.first, chunk.offset, field.bits)
            line = f"{self.words.word(prefix, chunk.word)} |= {value} << {shift}"
            if len(field.chunks) == 1:
                self.out.line(line)
                continue
            last = n == len(field.chunks) - 1
            test = "else" if last else f"{'elif' if n else 'if'} {entry} < {chunk.first + chunk.count}"
            with self.out.block(test):
                self.out.line(line)

    def untouched(self, fields: Sequence[Field]) -> None:
        """Begin the words `o` with what these fields have in the words `w`."""
        if self.words.array:
            self._untouched(fields)
            return
        masks = [0] * self.layout.words
        for field in fields:
            for chunk in field.chunks:
                masks[chunk.word] |= ((1 << chunk.count * field.bits) - 1) << chunk.offset
        for n, mask in enumerate(masks):
            self.out.line(f"o{n} = w{n} & {signed(mask)}")

    def _untouched(self, fields: Sequence[Field]) -> None:
        self.words.copy("o[#]", "0", self.out)
        for field in fields:
            for chunk, alike in runs(field):
                mask = signed(((1 << chunk.count * field.bits) - 1) << chunk.offset)
                self.out.line(f"for j in range({chunk.word}, {chunk.word + alike}):")
                self.out.line(f"    o[j] |= w[j] & {mask}")

    def _named(self, text: str) -> str:
        if text.isidentifier() or text.isdigit():
            return text
        name = self.out.fresh("e")
        self.out.line(f"{name} = {text}")
        return name
