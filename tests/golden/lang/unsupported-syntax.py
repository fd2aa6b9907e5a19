"""Bad on purpose: Python that the language leaves out."""

from __future__ import annotations

from kvsan.spec.lang import Map, Sort, State, event, obey, rule


class Block(Sort):
    """A physical block."""


class Pool(State):
    """What is known of blocks."""

    held: Map[Block, bool]


@rule
def alloc_from_free() -> None:
    """An allocated block was free.

    Source: ours.
    Catches: a block handed out twice.
    Except: nowhere.
    Deviates: nowhere.
    """


@event
def alloc(s: Pool, b: Block) -> None:
    """The pool hands out a block."""
    obey(alloc_from_free, not s.held[b], "block {b} is not free")
    s.held[b] = True


@event
def probe(s: Pool, b: Block) -> None:
    """A step with a mistake."""
    while s.held[b]:
        pass
    f = lambda: True
    try:
        pass
    finally:
        pass
    def inner() -> None:
        pass
    assert s.held[b]
    del s.held[b]
    names = [b]
    pair = (b, b)
    words = f'{b}'
    x: bool = True
    with s.held[b]:
        pass
    match b:
        case _:
            pass
    raise ValueError
    import os
    s.held[b] = {b} == {b: b}
    s.held[b] = (y := True)
    s.held[b] = 1.5 == 'one'
    for i in range(3):
        continue
    z = -b
