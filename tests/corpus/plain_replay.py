"""The discipline run over a small log as ordinary Python: no compiler, no checker, no reader of the format.

It shares nothing with `kvsan.checker` but the specification, so a log that both judge alike was not judged alike by
one mistake. It knows no taint, no gaps and no unknown past: only logs that start empty and stop at their first
violation.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from kvsan.spec.lang.surface import Scope, Sort, judged
from kvsan.spec.ownership import blocks, branches, contents, identities, quiescence
from kvsan.spec.ownership.disciplines import DISCIPLINES
from kvsan.spec.ownership.state import (
    Block,
    Branch,
    Digest,
    Holder,
    Identity,
    Kind,
    Mode,
    Ownership,
    Pool,
    Published,
)

S = TypeVar("S", bound=Sort)
Line = dict[str, Any]
Step = tuple[Callable[..., None], list[Any]]

POSITIONS = 8
MEMBERS = 12


@dataclass(frozen=True)
class Finding:
    """A rule (or a lint) that a line breaks; message is the obligation's, with its names not filled in."""

    rule: str
    line: int
    is_lint: bool
    message: str


class Names:
    """The members of the sorts, given out to the names of a log in the order they appear."""

    def __init__(self) -> None:
        self.known: dict[tuple[type[Sort], object], Sort] = {}
        self.counts: dict[type[Sort], int] = {}

    def of(self, sort: type[S], name: object) -> tuple[S, bool]:
        """The member for a name, and whether it is new."""
        new = (sort, name) not in self.known
        if new:
            self.known[sort, name] = sort(self.counts.get(sort, 0))
            self.counts[sort] = self.counts.get(sort, 0) + 1
        member = self.known[sort, name]
        assert isinstance(member, sort)
        return member, new


def as_list(field: Any) -> list[Any]:
    return field if isinstance(field, list) else [field]


class PlainReplay:
    """One log. `steps(line)` says which ownership events a line performs."""

    def __init__(self, header: Line) -> None:
        self.names = Names()
        size = header["block_size"]
        self.null = header.get("null_block")
        self.groups = {"0": size} | {g: info["block_size"] for g, info in header.get("groups", {}).items()}
        self.pools = {"gpu": (header["blocks"], size)}
        self.pools |= {p: (info["blocks"], info["block_size"]) for p, info in header.get("pools", {}).items()}
        slots = max([*self.groups.values(), *(size for _, size in self.pools.values())])
        self.state = Ownership(
            Scope(
                sorts={sort.__name__: MEMBERS for sort in (Block, Branch, Digest, Holder, Identity, Pool, Published)},
                limits={
                    "positions": POSITIONS,
                    "block_size": slots,
                    "tokens": POSITIONS * slots,
                    "branches": MEMBERS,
                    "count": 99,
                },
                constants={
                    **DISCIPLINES[header["discipline"]].constants,
                    "counts_pins": header.get("ref_counts") == "owners+pins",
                },
            )
        )
        for pool, (count, _) in self.pools.items():
            self.state.free[self.pool(pool)] = count - (pool == "gpu" and self.null is not None)

    def pool(self, name: str) -> Pool:
        return self.names.of(Pool, name)[0]

    def block(self, number: int, pool: str) -> Block:
        block, new = self.names.of(Block, (number, pool))
        if new:
            count, size = self.pools[pool]
            self.state.slots_of[block] = size
            self.state.pool_of[block] = self.pool(pool)
            self.state.imaginary[block] = number >= count or self.is_null(number, pool)
        return block

    def is_null(self, number: int | None, pool: str) -> bool:
        return number is None or (number == self.null and pool == "gpu")

    def row(self, branch: object, group: str) -> Branch:
        row, new = self.names.of(Branch, (branch, group))
        if new:
            self.state.block_size[row] = self.groups[group]
        return row

    def steps(self, line: Line) -> Iterator[Step]:
        kind, pool, group = line["ev"], line.get("pool", "gpu"), line.get("group", "0")
        if kind == "copy":
            src = self.block(line["src"], str(line.get("src_pool", pool)))
            dst = self.block(line["dst"], str(line.get("dst_pool", pool)))
            who = self.row(line["branch"], group) if "branch" in line else None
            yield contents.copy, [who, src, dst, *line["slots"]]
        elif kind == "step":
            yield from self.launch(line, pool, group)
        elif kind == "table":
            yield from self.view(line, pool, group)
        elif kind in {"kv_stored", "kv_removed"}:
            medium = line.get("medium", "gpu").lower()
            for name in as_list(line["hash"]):
                yield getattr(identities, kind), [self.names.of(Published, (medium, name, group))[0]]
        elif kind == "kv_cleared":
            for name in [name for sort, name in self.names.known if sort is Published]:
                yield identities.kv_cleared, [self.names.of(Published, name)[0]]
        elif kind == "quiescent":
            yield quiescence.quiescent, []
        elif kind == "pool":
            yield blocks.pool, [self.pool(pool), line["free"]]
        elif kind == "alloc_failed" or kind == "reserve":
            event = blocks.alloc_failed if kind == "alloc_failed" else branches.reserve
            yield event, [self.row(line["branch"], group), *([line["blocks"]] if kind == "reserve" else [])]
        elif "block" in line:
            for place, number in enumerate(as_list(line["block"])):
                yield from self.on_block(line, number, place, pool, group)
        elif "branch" in line:
            yield from self.on_branch(line, group)

    def on_branch(self, line: Line, group: str) -> Iterator[Step]:
        kind, branch = line["ev"], line["branch"]
        if kind == "window":
            yield branches.window, [self.row(branch, group), line["from"]]
        elif kind == "read":
            yield contents.read, [self.row(branch, group), line.get("upto")]
        else:
            for each in self.groups:
                row = self.row(branch, each)
                if kind == "fork":
                    yield branches.fork, [row, self.row(line["parent"], each), line.get("upto")]
                elif kind in {"finish", "cancel"}:
                    yield branches.finish, [row]
                elif kind == "preempt":
                    yield branches.preempt, [row]
                else:
                    tokens = line.get("tokens", 0 if kind == "admit" else 1)
                    yield getattr(branches, kind), [row, tokens]

    def on_block(self, line: Line, number: int | None, place: int, pool: str, group: str) -> Iterator[Step]:
        kind = line["ev"]
        row = self.row(line["branch"], group) if "branch" in line else None
        if kind in {"map", "unmap"} and self.is_null(number, pool):
            null_event = branches.map_null if kind == "map" else branches.unmap_null
            yield null_event, [row, line["pos"] + place]
            return
        assert number is not None
        b = self.block(number, pool)
        name = None
        if "hash" in line:
            name = self.names.of(Identity, (line["hash"], line.get("namespace"), group))[0]
        digest = self.names.of(Digest, line["digest"])[0] if "digest" in line else None
        holder = self.names.of(Holder, line["holder"])[0] if "holder" in line else None
        slots: Any = line.get("slots")
        if kind == "alloc":
            yield blocks.alloc, [b, row]
        elif kind == "free":
            yield blocks.free, [b]
        elif kind in {"map", "unmap"}:
            yield getattr(branches, kind), [row, line["pos"] + place, b]
        elif kind == "pin":
            mode, why = line.get("mode", "keep"), line.get("kind", "transfer")
            yield blocks.pin, [b, holder, Mode(mode.upper()), Kind(why.upper())]
        elif kind == "unpin":
            yield blocks.unpin, [b, holder, None, None]
        elif kind == "ref":
            if not self.is_null(number, pool):
                yield blocks.ref, [b, line["count"]]
        elif kind == "seal":
            published = self.names.of(Published, (pool, line.get("published", line["hash"]), group))[0]
            lo, hi = slots or [0, self.groups[group]]
            yield identities.seal, [b, name, row, lo, hi, digest, published]
        elif kind == "hit":
            yield identities.hit, [b, name, row, *(slots or [None, None]), digest]
        elif kind == "evict":
            yield identities.evict, [b, name]
        elif kind == "write" and row is not None:
            yield contents.write, [row, b, *line["slots"], *line.get("tokens", [None, None]), None]
        elif kind == "write":
            yield contents.write_inbound, [holder, b, *line["slots"]]
        elif kind == "read":
            yield contents.read_outbound, [holder, b]
        else:
            assert kind == "invalidate", kind
            yield contents.invalidate, [b, *(slots or [0, self.pools[pool][1]])]

    def launch(self, line: Line, pool: str, group: str) -> Iterator[Step]:
        for src, dst, lo, hi in line.get("copies", []):
            yield contents.copy, [None, self.block(src, pool), self.block(dst, pool), lo, hi]
        for branch, number, lo, hi in line.get("writes", []):
            yield contents.write, [self.row(branch, group), self.block(number, pool), lo, hi, None, None, None]
        for what in line.get("reads", []):
            branch, upto = what if isinstance(what, list) else (what, None)
            yield contents.read, [self.row(branch, group), upto]

    def view(self, line: Line, pool: str, group: str) -> Iterator[Step]:
        row, numbers = self.row(line["branch"], group), line["blocks"]
        for place, number in enumerate(numbers):
            if self.is_null(number, pool):
                yield branches.view_null, [row, place]
            else:
                yield branches.view_entry, [row, place, self.block(number, pool)]
        for place in range(len(numbers), POSITIONS):
            yield branches.view_end, [row, place]


def shows(lines: list[Line], *kinds: str) -> bool:
    """Some line is of one of these kinds, or is a step with such a part (`reads` for `read`)."""
    parts = {"write": "writes", "read": "reads"}
    return any(line["ev"] in kinds or any(line.get(parts.get(kind, "")) for kind in kinds) for line in lines)


@cache
def findings(log: Path) -> tuple[Finding, ...]:
    """What the specification, run as plain Python, says of a log."""
    header, *lines = [json.loads(line) for line in log.read_text().splitlines()]
    replay = PlainReplay(header)
    writes_shown, stream_shown = shows(lines, "write", "read"), shows(lines, "kv_stored", "kv_removed")
    found: dict[Finding, None] = {}
    for number, line in enumerate(lines, start=2):
        for event, arguments in replay.steps(line):
            for judgement in judged(event, replay.state, *arguments):
                unwritten = judgement.rule.name == "seal_is_earned" and "never written" in judgement.message
                unseen = (unwritten and not writes_shown) or (
                    judgement.rule.name == "events_match_cache" and not stream_shown
                )
                if not judgement.holds and not unseen:
                    rule = judgement.rule
                    found[Finding(rule.name, number, rule.kind == "lint", judgement.message)] = None
    return tuple(found)
