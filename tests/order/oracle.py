"""Every interleaving of a small log, by brute force: no clocks, no history, nothing of the checker.

Threads take their events in turn, streams run what was put on them in turn, and what waits in the log waits here for
what it waited for there. Of two accesses the later one (in the log) can come first if a state is reachable in which it
has happened and the other has not. For logs too long for that, `races_by_paths` says that it can where no way of waits
leads from the one to the other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

Event = dict[str, Any]


@dataclass(frozen=True)
class Touch:
    """An access: the line that makes it and that where its launch begins, its part (copies of a launch are parts of
    their own), slots, use and life."""

    line: int
    launch: int
    part: int
    block: int
    slots: frozenset[int]
    use: str
    life: int

    @property
    def writes(self) -> bool:
        return self.use in ("write", "target")


@dataclass
class Item:
    """Something on a stream. parts: copies to be made in any order before the rest. needs: items that must be done.
    launched: (thread, how many of its events), the launches that must have happened. line: of its first event."""

    stream: object
    index: int
    launched: tuple[object, int]
    line: int
    parts: int = 0
    needs: list[tuple[object, int]] = field(default_factory=list)


@dataclass
class Turn:
    """An event of a thread. needs: items that must be done first; after: (thread, count) that must have happened."""

    needs: list[tuple[object, int]] = field(default_factory=list)
    after: list[tuple[object, int]] = field(default_factory=list)


Where = tuple[str, object, int, int]
"""Where an access happens: ("host", thread, event) or ("item", stream, index), and the part (-1: after the copies)."""


Node = tuple[str, object, int]
"""An event of a thread, or an item of a stream."""


class Model:
    """What the log says about who waits for what, and what it touches."""

    def __init__(self, log: list[Event]) -> None:
        self.size = log[0]["block_size"]
        self.legacy = log[0].get("legacy_stream")
        self.threads: dict[object, list[Turn]] = {}
        self.streams: dict[object, list[Item]] = {}
        self.ops: dict[object, tuple[object, int]] = {}
        self.records: dict[object, tuple[object, int]] = {}
        self.signals: dict[object, list[tuple[object, int]]] = {}
        self.handed: dict[int, tuple[object, int]] = {}
        self.owed: dict[object, tuple[object, int]] = {}
        self.lives: dict[int, int] = {}
        self.tables: dict[object, dict[int, int]] = {}
        self.windows: dict[object, int] = {}
        self.touches: list[tuple[Touch, Where]] = []
        self.finished: set[object] = set()
        self.before: dict[Node, set[Node]] = {}
        for line, event in enumerate(log[1:], 2):
            self._add(line, event)
        self.touches.sort(key=lambda touched: (touched[0].launch, touched[0].line))
        self.unwritten = [*self._unwritten()]

    def _add(self, line: int, e: Event) -> None:
        thread = e.get("thread", "main")
        turns = self.threads.setdefault(thread, [])
        turn = Turn()
        if thread in self.owed:
            turn.needs.append(self.owed.pop(thread))
        turns.append(turn)
        here = (thread, len(turns))
        match e["ev"]:
            case "done":
                turn.needs.append(self.ops[e["op"]])
                self.finished.add(e["op"])
            case "record":
                self.records[e["event"]] = self._put(line, e["stream"], here)
            case "wait":
                self._put(line, e["stream"], here, [self.records[e["event"]]] if e["event"] in self.records else [])
            case "sync":
                turn.needs += self._synced(e)
            case "signal":
                self.signals.setdefault(e["channel"], []).append(here)
            case "await":
                turn.after += self.signals.get(e["channel"], [])
            case "alloc" | "free":
                b = e["block"]
                if b in self.handed:
                    turn.after.append(self.handed[b])
                self.handed[b] = here
                if e["ev"] == "alloc":
                    self.lives[b] = self.lives.get(b, 0) + 1
            case "map":
                self.tables.setdefault(e["branch"], {})[e["pos"]] = e["block"]
            case "unmap":
                del self.tables[e["branch"]][e["pos"]]
            case "window":
                self.windows[e["branch"]] = e["from"]
            case "finish" | "cancel":
                self.tables.pop(e["branch"], None)
            case "fork":
                self.windows[e["branch"]] = self.windows.get(e["parent"], 0)
                self.tables[e["branch"]] = dict(self.tables.get(e["parent"], {}))
            case "write" | "read" | "copy" | "step":
                self._launch(line, e, thread, here)
        self._place(("turn", thread, len(turns) - 1))

    def _place(self, node: Node) -> None:
        """All that must have happened before the node can."""
        direct = [other for other in self._waits_for(node) if other in self.before]
        self.before[node] = {*direct}.union(*(self.before[other] for other in direct))

    def _synced(self, e: Event) -> Iterator[tuple[object, int]]:
        if "event" in e:
            if e["event"] in self.records:
                yield self.records[e["event"]]
        else:
            real = [stream for stream in self.streams if not isinstance(stream, tuple)]
            joined = real if e.get("stream") == self.legacy else [e.get("stream"), self.legacy]
            for stream in joined if "stream" in e else real:
                if self.streams.get(stream):
                    yield stream, len(self.streams[stream]) - 1

    def _put(
        self, line: int, stream: object, here: tuple[object, int], needs: Sequence[tuple[object, int]] = ()
    ) -> tuple[object, int]:
        items = self.streams.setdefault(stream, [])
        item = Item(stream, len(items), here, line, needs=[*needs])
        for other, queue in self.streams.items():
            real = not isinstance(stream, tuple) and not isinstance(other, tuple)
            if other != stream and queue and real and self.legacy is not None and self.legacy in (stream, other):
                item.needs.append((other, len(queue) - 1))
        items.append(item)
        self._place(("turn", *self._turn_of(here)))
        self._place(("item", stream, item.index))
        return stream, item.index

    def _turn_of(self, here: tuple[object, int]) -> tuple[object, int]:
        return here[0], here[1] - 1

    def _launch(self, line: int, e: Event, thread: object, here: tuple[object, int]) -> None:
        op, stream = e.get("op"), e.get("stream")
        begun, copied = line, 0
        if op is None and stream is None:
            where: Where = ("host", thread, here[1], -1)
        else:
            item = self._goes_on(op, here)
            if item is None:
                alone = ("op", op, line)  # an op without a stream is on a stream of its own, which nobody else knows
                item = self._put(line, alone if stream is None else stream, here)
            if op is None:
                self.owed[thread] = item
            else:
                self.ops[op] = item
                self.finished.discard(op)
            put = self.streams[item[0]][item[1]]
            begun, copied = put.line, put.parts
            where = ("item", *item, -1)
        copies, rest = self._touched(line, begun, copied, e)
        for part, pair in enumerate(copies, copied):
            self.touches += [(touch, (*where[:3], part if where[0] == "item" else -1)) for touch in pair]
        self.touches += [(touch, where) for touch in rest]
        if where[0] == "item":
            put.parts += len(copies)

    def _goes_on(self, op: object, here: tuple[object, int]) -> tuple[object, int] | None:
        """The launch that an event is part of, if that has begun: nobody was told of its end, nor does its thread know
        of it."""
        if op not in self.ops or op in self.finished:
            return None
        node = ("turn", *self._turn_of(here))
        self._place(node)
        return None if ("item", *self.ops[op]) in self.before[node] else self.ops[op]

    def _touched(self, line: int, begun: int, copied: int, e: Event) -> tuple[list[list[Touch]], list[Touch]]:
        """The copies, each with its two accesses, and the other accesses."""
        copies: list[list[Touch]] = []
        rest: list[Touch] = []

        def touch(part: int, b: int, slots: Iterable[int], use: str) -> Touch:
            return Touch(line, begun, part, b, frozenset(slots), use, self.lives.get(b, 0))

        made = e.get("copies", ())
        if e["ev"] == "copy":
            made = [(e["src"], e["dst"], *e["slots"])]
        for part, (src, dst, lo, hi) in enumerate(made, copied):
            copies.append([touch(part, b, range(lo, hi), use) for b, use in ((src, "source"), (dst, "target"))])
        writes = [w[1:] for w in e.get("writes", ())]
        if e["ev"] == "write":
            blocks = e["block"] if isinstance(e["block"], list) else [e["block"]]
            writes += [(b, *e["slots"]) for b in blocks]
        rest += [touch(-1, b, range(lo, hi), "write") for b, lo, hi in writes]
        reads = list(e.get("reads", ()))
        if e["ev"] == "read" and "branch" in e:
            reads.append([e["branch"], e["upto"]])
        for branch, upto in reads:
            for p, b in self.tables[branch].items():
                slots = range(max(0, min(self.size, upto - p * self.size)))
                if slots and p >= self.windows.get(branch, 0):
                    rest.append(touch(-1, b, slots, "attention"))
        if e["ev"] == "read" and "holder" in e:
            rest.append(touch(-1, e["block"], range(*e["slots"]), "transfer"))
        return copies, rest

    def _unwritten(self) -> Iterator[tuple[int, int]]:
        """Attention to slots that no launch before it wrote, nor it itself: (line, block)."""
        written: dict[tuple[int, int], set[int]] = defaultdict(set)
        source: Touch | None = None
        for touch, _ in self.touches:
            mine = written[touch.block, touch.life]
            match touch.use:
                case "source":
                    source = touch
                case "target":
                    assert source is not None  # they come in pairs
                    brought = touch.slots & written[source.block, source.life]
                    mine -= touch.slots
                    mine |= brought
                case "write":
                    mine |= touch.slots
                case "attention" if not touch.slots <= mine:
                    yield touch.line, touch.block

    # --- the interleavings --------------------------------------------------------------------------------------------

    def states(self) -> Iterator[Any]:
        """Every reachable state: events done by each thread; of each stream the items done and the copies made of the
        next one."""
        threads, streams = list(self.threads), list(self.streams)
        start = (tuple(0 for _ in threads), tuple((0, frozenset()) for _ in streams))
        seen, todo = {start}, [start]
        while todo:
            state = todo.pop()
            yield state
            for after in self._steps(state, threads, streams):
                if after not in seen:
                    seen.add(after)
                    todo.append(after)

    def _steps(self, state: Any, threads: list[object], streams: list[object]) -> Iterator[Any]:
        told = dict(zip(threads, state[0], strict=True))
        ran = {stream: done for stream, (done, _) in zip(streams, state[1], strict=True)}

        def ready(needs: list[tuple[object, int]]) -> bool:
            return all(ran[stream] > index for stream, index in needs)

        for i, thread in enumerate(threads):
            n = state[0][i]
            if n < len(self.threads[thread]):
                turn = self.threads[thread][n]
                if ready(turn.needs) and all(told[other] >= count for other, count in turn.after):
                    yield (*state[0][:i], n + 1, *state[0][i + 1 :]), state[1]
        for i, stream in enumerate(streams):
            n, made = state[1][i]
            if n < len(self.streams[stream]):
                item = self.streams[stream][n]
                if told[item.launched[0]] >= item.launched[1] and ready(item.needs):
                    left = [p for p in range(item.parts) if p not in made]
                    afters = [(n, made | {p}) for p in left] or [(n + 1, frozenset())]
                    for after in afters:
                        yield state[0], (*state[1][:i], after, *state[1][i + 1 :])

    def races(self) -> dict[tuple[int, int], set[str]]:
        """(line, block) of every access that can come before a conflicting one from earlier in the log: the rules that
        name such a pair. Reads of unwritten slots are among them."""
        threads, streams = list(self.threads), list(self.streams)
        pairs = [pair for pair in combinations(self.touches, 2) if conflict(pair[0][0], pair[1][0])]
        open_pairs = set(range(len(pairs)))
        found: dict[tuple[int, int], set[str]] = {}
        for line, block in self.unwritten:
            found.setdefault((line, block), set()).add("read_is_initialised")
        for counts, queues in self.states():
            told = dict(zip(threads, counts, strict=True))
            ran = dict(zip(streams, queues, strict=True))
            for i in list(open_pairs):
                (earlier, where), (later, there) = pairs[i]
                if happened(there, told, ran) and not happened(where, told, ran):
                    open_pairs.discard(i)
                    found.setdefault((later.line, later.block), set()).add(rule_of(earlier, later))
        return found

    # --- paths --------------------------------------------------------------------------------------------------------

    def races_by_paths(self) -> dict[tuple[int, int], set[str]]:
        """What `races` finds, without any state: all waits lead from later events of the log to earlier ones."""
        found: dict[tuple[int, int], set[str]] = {}
        for line, block in self.unwritten:
            found.setdefault((line, block), set()).add("read_is_initialised")
        for (earlier, where), (later, there) in combinations(self.touches, 2):
            if conflict(earlier, later):
                one, other = node_at(where), node_at(there)
                unordered = earlier.part != later.part and -1 not in (earlier.part, later.part)
                if unordered if one == other else one not in self.before[other]:
                    found.setdefault((later.line, later.block), set()).add(rule_of(earlier, later))
        return found

    def _waits_for(self, node: Node) -> Iterator[Node]:
        kind, who, index = node
        yield kind, who, index - 1
        if kind == "turn":
            turn = self.threads[who][index]
            yield from (("turn", thread, count - 1) for thread, count in turn.after)
            needs = turn.needs
        else:
            item = self.streams[who][index]
            yield "turn", item.launched[0], item.launched[1] - 1
            needs = item.needs
        yield from (("item", stream, at) for stream, at in needs)


def node_at(where: Where) -> Node:
    kind, who, index, _ = where
    return ("turn", who, index - 1) if kind == "host" else ("item", who, index)


def conflict(one: Touch, other: Touch) -> bool:
    same = one.launch == other.launch
    if one.block != other.block or not one.slots & other.slots or not (one.writes or other.writes):
        return False
    return not same or (one.part >= 0 and other.part >= 0 and one.part != other.part)


def happened(where: Where, told: dict[object, int], ran: dict[object, tuple[int, frozenset[int]]]) -> bool:
    kind, who, index, part = where
    if kind == "host":
        return told[who] >= index
    done, made = ran[who]
    return done > index or (done == index and part >= 0 and part in made)


def rule_of(earlier: Touch, later: Touch) -> str:
    """The table of design section 3, once more."""
    if earlier.launch == later.launch:
        return "copy_precedes_use" if earlier.use == later.use else "source_stable"
    if earlier.life != later.life:
        return "no_reuse_in_flight"
    first = {"target": "copy_precedes_use", "source": "source_stable"}.get(earlier.use)
    return first or ("read_is_initialised" if later.use == "attention" else "accesses_ordered")
