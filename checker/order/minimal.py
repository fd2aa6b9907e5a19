"""Fewer events that show the same, and the events of a launch together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set

from kvsan.traces import events as ev

from .schedule import Line, op_of

TRIALS, EFFORT = 2000, 2_000_000
"""Replays that the minimisation may take, and events that they may replay."""

Lines = list[Line]

Name = tuple[str, object]
"""A block, or a branch."""


class Minimal:
    """Makes lines fewer as long as they are the same, but for those that `stay`. begins: where their launches begin."""

    def __init__(self, same: Callable[[Lines], bool], stay: Set[int], begins: Set[int]) -> None:
        self.judge, self.stay, self.first = same, stay, stay | begins
        self.trials = self.effort = 0

    @property
    def spent(self) -> bool:
        return self.trials >= TRIALS or self.effort >= EFFORT

    def same(self, lines: Lines) -> bool:
        self.trials, self.effort = self.trials + 1, self.effort + len(lines)
        return self.judge(lines)

    def of(self, lines: Lines) -> Lines:
        """Few of the lines, those of each launch together where that makes no difference."""
        few = self._smaller(self._about(lines))
        closer = self._gathered(few)
        return few if closer is few else self._smaller(closer)

    def _about(self, lines: Lines) -> Lines:
        """What has to do with the blocks and branches of the lines that stay, and its ends, if that is enough."""
        names = [{*names_of(event)} for _, event in lines]
        known = {name for (line, _), mine in zip(lines, names, strict=True) if line in self.first for name in mine}
        branches = {name for name in known if name[0] == "branch"}
        known = known.union(*(mine for mine in names if mine & branches))
        about = {line for (line, _), mine in zip(lines, names, strict=True) if line in self.first or mine & known}
        ops = {op_of(event) for line, event in lines if line in about}
        few = [(n, e) for n, e in lines if n in about or (isinstance(e, ev.Done) and e.op in ops)]
        return few if not self.spent and self.same(few) else lines

    def _gathered(self, lines: Lines) -> Lines:
        for i, (_, event) in enumerate(lines):
            op = op_of(event)
            former = [j for j in range(i) if op is not None and op_of(lines[j][1]) == op]
            if former and former[-1] < i - 1 and not self.spent and not isinstance(event, ev.Done):
                at = former[-1] + 1
                closer = [*lines[:at], lines[i], *lines[at:i], *lines[i + 1 :]]
                lines = closer if self.same(closer) else lines
        return lines

    def _smaller(self, lines: Lines) -> Lines:
        """Without events, taken out in ever smaller pieces."""
        size = max(1, len(lines) // 2)
        while True:
            at, smaller = 0, False
            while at < len(lines) and not self.spent:
                stay = [one for one in lines[at : at + size] if one[0] in self.stay]
                fewer = [*lines[:at], *stay, *lines[at + size :]]
                if len(fewer) < len(lines) and self.same(fewer):
                    lines, smaller, at = fewer, True, at + len(stay)
                else:
                    at += size
            if (size == 1 and not smaller) or self.spent:
                return lines
            size = max(1, size // 2)


def names_of(event: ev.Event) -> Iterator[Name]:
    """The blocks and branches that an event names."""
    for field in ("block", "src", "dst", "blocks"):
        named = getattr(event, field, None)
        for block in named if isinstance(named, tuple) else (named,) if field != "blocks" else ():
            if block is not None:
                yield "block", block
    for field in ("branch", "parent"):
        if getattr(event, field, None) is not None:
            yield "branch", getattr(event, field)
    if isinstance(event, ev.Step):
        for src, dst, _, _ in event.copies:
            yield from (("block", src), ("block", dst))
        for branch, block, _, _ in event.writes:
            yield from (("branch", branch), ("block", block))
        for what in event.reads:
            yield "branch", what[0] if isinstance(what, tuple | list) else what
