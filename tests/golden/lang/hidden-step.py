"""Bad on purpose: steps that are read past, where a design is read and not run."""

from __future__ import annotations

from kvsan.spec.lang import Map, Sort, State, action, event, obey, require, rule


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


@action
async def wait(s: Pool, b: Block) -> None:
    """A step that is no function."""
    require(not s.held[b])

    alloc(s, b)


if True:

    @action
    def take(s: Pool, b: Block) -> None:
        """A step that may not be there."""
        require(not s.held[b])

        alloc(s, b)


class More:
    """No state."""

    @action
    def give(s: "Pool", b: Block) -> None:  # noqa: UP037
        """A step of nothing."""
        require(s.held[b])

        s.held[b] = False
