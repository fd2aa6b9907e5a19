"""What is wrong with a log, as data: where, which field, what, and how to mend it. Rendering is one function."""

from dataclasses import dataclass
from typing import Literal, Self

Kind = Literal["unreadable", "malformed", "cut", "limit"]
"""`unreadable`: the file itself; `malformed`: a line; `cut`: the end is missing; `limit`: refused as too large."""


@dataclass(frozen=True)
class Fault:
    """A fault in one line: the field's path (`copies[2][3]`, or "" for the line itself), what, and the remedy."""

    path: str
    what: str
    remedy: str
    kind: Kind = "malformed"


@dataclass(frozen=True)
class LogProblem:
    """Why reading a log stopped. `line` counts from 1 in `file`, and is None where the file itself is at fault."""

    kind: Kind
    file: str
    line: int | None
    path: str
    what: str
    remedy: str

    @property
    def place(self) -> str:
        """`file:line`, as editors link it."""
        return self.file if self.line is None else f"{self.file}:{self.line}"

    def __str__(self) -> str:
        return render_problem(self)


@dataclass(frozen=True)
class Gap:
    """Events are missing in the log: `missing` numbers lie between those of two lines (counted as the log counts).

    Stands in a batch where the missing events would. `after` is the line of the last numbered event before them, None
    where the log begins with them; `before` is the line of the first numbered event after them.
    """

    after: int | None
    before: int
    missing: int


class Broken(Exception):
    """A source cannot be read on; what was delivered before stands. Raised and caught inside this package."""

    def __init__(self, fault: Fault, line: int | None = None) -> None:
        super().__init__(fault.what)
        self.fault, self.line = fault, line

    @classmethod
    def of(cls, kind: Kind, what: str, remedy: str) -> Self:
        """A break that no line is to blame for."""
        return cls(Fault("", what, remedy, kind))


WORDS: dict[Kind, str] = {
    "unreadable": "unreadable log",
    "malformed": "malformed line",
    "cut": "log cut short",
    "limit": "log refused",
}


def render_problem(problem: LogProblem) -> str:
    """The problem as text: what happened, where, and how to mend it."""
    where = f"{problem.place}    {problem.path}" if problem.path else problem.place
    return f"{WORDS[problem.kind]}: {problem.what}\n  at        {where}\n  fix       {problem.remedy}"
