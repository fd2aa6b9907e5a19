"""The words of a state in generated text: a name each, `w0`, `w1`, ...; of a wide state an array `w`.

Names become registers, and an entry whose word depends on an index a chain of choices between them. So the text grows
with the words, and it is an array where they are many: then a word's number is computed, and the text is of one length
whatever the scope.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kvsan.checker.explore.layout import Chunk, Field, Layout
from kvsan.checker.explore.writer import Writer


@dataclass(frozen=True)
class Words:
    """count: how many. array: they are one."""

    count: int
    array: bool

    @staticmethod
    def of(layout: Layout) -> Words:
        return Words(layout.words, layout.spread)

    def word(self, letter: str, number: int | str) -> str:
        """One word; number: maybe a text, of an array."""
        return f"{letter}[{number}]" if self.array else f"{letter}{number}"

    def names(self, letter: str, first: int = 0, stop: int | None = None) -> str:
        """All words, or some, in a call or on the left of one."""
        return letter if self.array else ", ".join(f"{letter}{n}" for n in range(first, stop or self.count))

    def parameters(self, letter: str, stop: int | None = None) -> str:
        return f"{letter}: Word" if self.array else self.names(letter, 0, stop)

    def begin(self, letters: str, out: Writer) -> None:
        """Arrays for these letters."""
        for letter in letters if self.array else "":
            out.line(f"{letter} = words({self.count})")

    def copy(self, target: str, source: str, out: Writer, stop: int | None = None) -> None:
        """Words 0 .. stop-1; target and source tell a word by `#`, as in `buf[n * WORDS + #]`."""
        stop = self.count if stop is None else stop
        if self.array:
            out.line(f"for j in range({stop}):")
            out.line(f"    {target.replace('#', 'j')} = {source.replace('#', 'j')}")
            return
        for n in range(stop):
            out.line(f"{target.replace('#', str(n))} = {source.replace('#', str(n))}")

    def each(self, letter: str) -> str:
        """A word as `copy` takes it."""
        return f"{letter}[#]" if self.array else f"{letter}#"


def computed(field: Field, entry: str) -> tuple[str, str]:
    """Of an even field, the number of an entry's word and its shift. entry: a name or a number."""
    first = field.chunks[0]
    if entry.isdigit():
        word, place = divmod(int(entry), field.even)
        return str(first.word + word), str(first.offset + place * field.bits)
    scaled = f"{entry} % {field.even} * {field.bits}"
    return f"{first.word} + {entry} // {field.even}", f"({scaled} + {first.offset})" if first.offset else f"({scaled})"


def runs(field: Field) -> Iterator[tuple[Chunk, int]]:
    """The chunks of a field, those of an even one that are alike as one: the first of them, and how many there are."""
    chunks = list(field.chunks)
    if not field.even:
        yield from ((chunk, 1) for chunk in chunks)
        return
    whole = [chunk for chunk in chunks if chunk.count == field.even]
    if whole:
        yield whole[0], len(whole)
    yield from ((chunk, 1) for chunk in chunks[len(whole) :])
