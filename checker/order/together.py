"""A log with the events of each launch together, as witnesses are made of it: nothing else is moved."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import count

from kvsan.checker.replay.outcome import Violation
from kvsan.checker.replay.replay import Replay
from kvsan.traces import events as ev
from kvsan.traces.read import Gap, Log

from .schedule import NoWitness
from .spread import Spread, Survey

Line = tuple[int, ev.Event | Gap]


class Together:
    """The events of a log, those of each launch where it stands in the order, in lines that are counted anew.

    fresh: makes a replay of the log. Raises NoWitness where there are too many to be moved.
    """

    def __init__(self, log: Log, fresh: Callable[..., Replay]) -> None:
        self.log, spread = log, Spread()
        survey = fresh(hears=partial(Survey, spread))
        for batch in log.batches():
            survey.perform(batch)
        if spread.full:
            raise NoWitness("too much of its launches is spread over the log")
        self.begun = spread.begun
        self.late: dict[int, list[Line]] = {}
        for line, event in self._lines():
            if line in self.begun:
                self.late.setdefault(self.begun[line], []).append((line, event))

    def _lines(self) -> Iterator[Line]:
        for batch in self.log.batches():
            yield from batch

    def _moved(self) -> Iterator[Line]:
        """In the new order, with their old lines."""
        for line, event in self._lines():
            if line not in self.begun:
                yield line, event
                yield from self.late.get(line, ())

    def batches(self) -> Iterator[Sequence[Line]]:
        """As `Log.batches`."""
        for line, (_, event) in zip(count(2), self._moved(), strict=False):
            yield [(line, event)]

    def found(self, breach: Violation) -> Violation:
        """A breach that was found in the log, at its new lines."""
        new = {
            old: line
            for line, (old, _) in zip(count(2), self._moved(), strict=False)
            if old in (breach.line, breach.earlier)
        }
        return replace(breach, line=new[breach.line], earlier=None if breach.earlier is None else new[breach.earlier])
