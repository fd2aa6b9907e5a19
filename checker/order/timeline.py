"""Timelines, the places on them, and launches that stand at such a place."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

Known = dict[int, int]
"""Timeline -> the count up to which it is known."""

Here = tuple[int, int, Known]
"""A place: a timeline's number, the count there, and what was known there."""


class Timeline:
    """A host thread or a stream. `known` is copied before it changes once a snapshot of it was taken (`shared`)."""

    __slots__ = ("count", "heard", "known", "name", "number", "shared", "version")

    def __init__(self, number: int, name: str) -> None:
        self.number, self.name = number, name
        self.count = self.version = 0
        self.known: Known = {}
        self.shared = False
        self.heard = (-1, -1, -1)

    def learn(self, number: int, count: int, known: Known) -> None:
        """What follows comes after `count` of another timeline, and after all that it knew there."""
        if number == self.number:
            return
        mine = dict(self.known) if self.shared else self.known
        for timeline, seen in known.items():
            if mine.get(timeline, 0) < seen:
                mine[timeline] = seen
        if mine.get(number, 0) < count:
            mine[number] = count
        self.known, self.shared = mine, False
        self.version += 1


class Point(NamedTuple):
    """A place on a timeline, and what was known there."""

    number: int
    upto: int
    known: Known


class Op:
    """A launch that may still run, on the stream that its first event names.

    begins, last, apart: what a survey notes: the lines of its first event and of the last that no other access parts
    from that, and whether there was such an access since.
    """

    __slots__ = ("apart", "begins", "done", "last", "point", "stream")

    def __init__(self, point: Point, stream: Hashable | None) -> None:
        self.point, self.stream, self.done = point, stream, False
        self.begins, self.last, self.apart = 0, 0, False
