"""Stored bytes to plain bytes: gzip members, zstd frames, or nothing to undo. Bounded, and honest about a cut."""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import zstandard
from kvsan.traces.problem import Broken
from kvsan.traces.sources import Source

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"

PLAIN_PIECE = 1 << 18
ZSTD_PIECE = 1 << 11
"""A zstd block of four bytes can stand for 128 KiB; a piece of 2 KiB gives 64 MiB at the very worst."""


@dataclass(frozen=True)
class Limits:
    """What is refused, so that a small hostile file takes neither the memory nor the day.

    `line_bytes`: the longest line. `ratio`: plain bytes a stored byte, judged once `ratio_from` plain bytes have come;
    logs reach some hundred at most. `window_log`: the largest zstd window, as a power of two.
    """

    line_bytes: int = 1 << 24
    ratio: int = 1000
    ratio_from: int = 1 << 28
    window_log: int = 27


def plain_bytes(source: Source, limits: Limits) -> Iterator[bytes]:
    """The plain bytes of a source, in pieces. Raises Broken, after what could be read."""
    head = next(source.pieces(4), b"")
    if head.startswith(GZIP_MAGIC):
        return gunzip(source, limits)
    if head == ZSTD_MAGIC:
        return unzstd(source, limits)
    return source.pieces(PLAIN_PIECE)


class Meter:
    """Counts stored and plain bytes against the limit."""

    def __init__(self, limits: Limits) -> None:
        self.limits, self.stored, self.plain = limits, 0, 0

    def charged(self, plain: bytes) -> Iterator[bytes]:
        """Plain bytes in pieces of the usual size, each charged."""
        for start in range(0, len(plain), PLAIN_PIECE):
            yield self.charge(plain[start : start + PLAIN_PIECE])

    def charge(self, plain: bytes) -> bytes:
        self.plain += len(plain)
        if self.plain > self.limits.ratio_from and self.plain > self.stored * self.limits.ratio:
            what = f"{self.stored} bytes unpack to more than {self.limits.ratio} times as many"
            raise Broken.of("limit", what, "unpack the file yourself and check that, if you trust it")
        return plain


def gunzip(source: Source, limits: Limits) -> Iterator[bytes]:
    """The members of a gzip file, one after the other, as `gzip -d` reads them."""
    meter, member = Meter(limits), zlib.decompressobj(wbits=31)
    try:
        for piece in source.pieces(PLAIN_PIECE):
            meter.stored += len(piece)
            while piece:
                if member.eof:
                    member = zlib.decompressobj(wbits=31)
                yield meter.charge(member.decompress(piece, PLAIN_PIECE))
                piece = member.unused_data.lstrip(b"\0") if member.eof else member.unconsumed_tail
        if not member.eof:
            yield meter.charge(member.flush())
    except zlib.error as error:
        raise damaged("gzip", error) from error
    if not member.eof:
        raise cut("gzip")


def unzstd(source: Source, limits: Limits) -> Iterator[bytes]:
    """The frames of a zstd file, one after the other, as `zstd -d` reads them."""
    meter, unpacker = Meter(limits), zstandard.ZstdDecompressor(max_window_size=1 << limits.window_log)
    frame, fresh = unpacker.decompressobj(), True
    try:
        for piece in source.pieces(ZSTD_PIECE):
            meter.stored += len(piece)
            while piece:
                if frame.eof:
                    frame = unpacker.decompressobj()
                yield from meter.charged(frame.decompress(piece))
                piece, fresh = frame.unused_data if frame.eof else b"", frame.eof
    except zstandard.ZstdError as error:
        raise damaged("zstd", error) from error
    if not fresh:
        raise cut("zstd")


def damaged(form: str, error: Exception) -> Broken:
    return Broken.of("unreadable", f"the {form} data is damaged: {error}", "copy or record the log again")


def cut(form: str) -> Broken:
    what = f"the {form} data ends in the middle of a frame" if form == "zstd" else f"the {form} data ends too soon"
    return Broken.of("cut", what, "copy the whole file; if its recorder was killed, what was read is all there is")
