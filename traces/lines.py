"""Plain bytes to blocks of whole lines, so that a block can be decoded in one call."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kvsan.traces.problem import Broken

UTF8_BOM = b"\xef\xbb\xbf"
UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True)
class Block:
    """Consecutive lines of one file. `first` is the number of the first, `count` how many there are.

    `data` ends with a newline unless `last_is_open`: the file ends there without one, as a cut file does.
    """

    data: bytes
    first: int
    count: int
    last_is_open: bool = False


def blocks(pieces: Iterable[bytes], line_bytes_max: int) -> Iterator[Block]:
    """Blocks of whole lines, in order. Raises Broken for a line that is too long, and what `pieces` raises.

    The first block holds a line that is not blank, where the file has one. When `pieces` raises, the lines that were
    complete before are yielded first; the open one is dropped.
    """
    line, rest = 1, bytearray()
    for piece in without_bom(pieces):
        end = piece.rfind(b"\n") + 1
        if not end or (line == 1 and is_blank(rest) and is_blank(piece[:end])):
            rest += piece
        else:
            data = bytes(rest) + piece[:end] if rest else piece[:end]
            count = data.count(b"\n")
            yield Block(data, line, count)
            line, rest = line + count, bytearray(piece[end:])
        if len(rest) > line_bytes_max:
            raise too_long(line, line_bytes_max)
    if rest:
        yield Block(bytes(rest), line, rest.count(b"\n") + (not rest.endswith(b"\n")), not rest.endswith(b"\n"))


def is_blank(data: bytes | bytearray) -> bool:
    return not data or data.isspace()


def too_long(line: int, line_bytes_max: int) -> Broken:
    what = f"line {line} is longer than {line_bytes_max} bytes"
    return Broken.of("limit", what, "write one event a line; is this a kvsan log?")


def without_bom(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The pieces without a byte order mark. UTF-16 is refused by name."""
    head, started = b"", False
    for piece in pieces:
        if started:
            yield piece
            continue
        head += piece
        if len(head) >= len(UTF8_BOM):
            started = True
            yield strip_bom(head)
    if not started and head:
        yield strip_bom(head)


def strip_bom(head: bytes) -> bytes:
    if head.startswith(UTF16_BOMS):
        raise Broken.of("malformed", "the file is UTF-16", "write the log as UTF-8")
    return head.removeprefix(UTF8_BOM)
