"""A small engine that only does what is right, and writes down what it does.

Its own bookkeeping alone decides: a pool, block tables, written lengths, a prefix cache, holds. It knows no rule. The
three generations differ as the engines do: `paged_cow` forks and gives lookahead blocks back, `append_only` shares full
blocks only, `append_only_cow` lets a cached partial tail be hit, and copies it before it appends.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from reference import Line

SIZE, BLOCKS = 4, 12
Content = tuple[object, ...]


@dataclass
class Request:
    """A branch. tokens: what it has, each a name. row: its block table. kept: positions below are out of the window."""

    tokens: list[object]
    row: list[int | None] = field(default_factory=list)
    waits: bool = False
    kept: int = 0


class Engine:
    """Draws `steps` operations; `log` is the header and the events."""

    def __init__(self, discipline: str, dice: random.Random, steps: int = 25) -> None:
        self.discipline, self.dice = discipline, dice
        self.pins_count = dice.random() < 0.3
        self.log: list[Line] = [
            {
                "ev": "trace", "schema": "kvsan/1", "engine": "model", "version": "1", "discipline": discipline,
                "block_size": SIZE, "blocks": BLOCKS, "ref_counts": "owners+pins" if self.pins_count else "owners",
            }
        ]  # fmt: skip
        self.free = set(range(BLOCKS))
        self.requests: dict[str, Request] = {}
        self.cache: dict[Content, int] = {}
        self.carried: dict[int, list[Content]] = {}
        self.holds: dict[str, tuple[int, str, str]] = {}
        self.names = 0
        operations = {
            self.admit: 5, self.append: 8, self.finish: 2, self.preempt: 1, self.resume: 2, self.hold: 2,
            self.let_go: 2, self.speculate: 2, self.count: 2, self.rest: 1, self.load: 1,
            self.fork if discipline == "paged_cow" else self.slide: 3,
        }  # fmt: skip
        for _ in range(steps):
            dice.choices(list(operations), list(operations.values()))[0]()
        for holder in list(self.holds):
            self.release(holder)
        for name in list(self.requests):
            self.end(name, "finish")
        self.emit("quiescent")
        self.emit("pool", free=BLOCKS)

    # --- the parts ----------------------------------------------------------------------------------------------------

    def emit(self, ev: str, **fields: object) -> None:
        self.log.append({"ev": ev, **fields})

    def fresh(self, stem: str) -> str:
        self.names += 1
        return f"{stem}{self.names}"

    def users(self, b: int) -> list[str]:
        return [name for name, request in self.requests.items() if b in request.row]

    def held(self, b: int) -> bool:
        return any(block == b for block, _, _ in self.holds.values())

    def frozen(self, b: int) -> bool:
        return any(block == b and mode == "freeze" for block, mode, _ in self.holds.values())

    def take(self, name: str | None = None) -> int:
        """A free block begins a new life: what the cache knew of it is gone."""
        b = self.dice.choice(sorted(self.free))
        self.free.discard(b)
        self.emit("alloc", block=b, **({"branch": name} if name and self.dice.random() < 0.7 else {}))
        for content in self.carried.pop(b, []):
            self.cache.pop(content, None)
        return b

    def give_back(self, b: int | None) -> None:
        if b is not None and not self.users(b) and not self.held(b) and b not in self.free:
            self.free.add(b)
            self.emit("free", block=b)

    def any_running(self) -> str | None:
        running = [name for name, request in self.requests.items() if not request.waits]
        return self.dice.choice(running) if running else None

    def content(self, request: Request, p: int, end: int | None = None) -> Content:
        """What a cached block is found by: every token up to its end."""
        return tuple(request.tokens[: (p + 1) * SIZE if end is None else end])

    def place_blocks(self, name: str, upto: int) -> None:
        """Entries for the first `upto` tokens."""
        request = self.requests[name]
        while len(request.row) * SIZE < upto:
            b = self.take(name)
            request.row.append(b)
            self.emit("map", branch=name, pos=len(request.row) - 1, block=b)

    def write(self, name: str, first: int, last: int) -> None:
        """Tokens [first, last) are computed."""
        request = self.requests[name]
        while first < last:
            p, lo = divmod(first, SIZE)
            hi = min(SIZE, lo + last - first)
            tokens = {"tokens": [first, first + hi - lo]} if self.dice.random() < 0.5 else {}
            self.emit("write", branch=name, block=request.row[p], slots=[lo, hi], **tokens)
            first += hi - lo

    def register(self, name: str, first: int) -> None:
        """Full blocks that hold tokens from `first` on, and now and then a partial tail, become findable."""
        request = self.requests[name]
        ends = [(p, (p + 1) * SIZE) for p in range(first // SIZE, len(request.tokens) // SIZE)]
        if self.discipline == "append_only_cow" and len(request.tokens) % SIZE and self.dice.random() < 0.5:
            ends.append((len(request.tokens) // SIZE, len(request.tokens)))
        for p, end in ends:
            b, content = request.row[p], self.content(request, p, end)
            if b is None or content in self.cache or content in self.carried.get(b, []):
                continue
            self.cache[content] = b
            self.carried.setdefault(b, []).append(content)
            by = {"branch": name} if self.dice.random() < 0.8 or end % SIZE else {}
            slots = {"slots": [0, end - p * SIZE]} if end % SIZE else {}
            self.emit("seal", block=b, hash=self.hash_of(content), **by, **slots)

    def hash_of(self, content: Content) -> str:
        return "/".join(map(str, content))

    def find(self, name: str) -> int:
        """Maps what the cache has of the request's tokens, all but the last; returns how many those are."""
        request = self.requests[name]
        have = 0
        while have < len(request.tokens) - 1:
            lengths = [have + SIZE, *range(have + SIZE - 1, have, -1)]
            found = next((n for n in lengths if n < len(request.tokens) and self.findable(request, n)), None)
            if found is None:
                break
            content = self.content(request, 0, found)
            b = self.cache[content]
            self.free.discard(b)
            self.emit(
                "hit", block=b, hash=self.hash_of(content), **({"branch": name} if self.dice.random() < 0.8 else {})
            )
            request.row.append(b)
            self.emit("map", branch=name, pos=have // SIZE, block=b)
            have = found
            if have % SIZE:
                break
        return have

    def findable(self, request: Request, n: int) -> bool:
        return self.content(request, 0, n) in self.cache

    def private_tail(self, name: str) -> bool:
        """Before an append: copies a tail that others see. False where that cannot be done now."""
        request = self.requests[name]
        p, lo = divmod(len(request.tokens), SIZE)
        if not lo:
            return True
        old = request.row[p]
        assert old is not None
        cached = self.discipline == "append_only_cow" and old in self.carried
        if len(self.users(old)) == 1 and not self.frozen(old) and not cached:
            return True
        if not self.free:
            return False
        new = self.take(name)
        endpoints = [self.fresh("copy") for _ in range(2)] if self.discipline == "append_only_cow" else []
        for holder, b in zip(endpoints, (old, new), strict=False):
            self.holds[holder] = (b, "keep", "copy")
            self.emit("pin", block=b, holder=holder, kind="copy")
        copy = {"branch": name, "src": old, "dst": new, "slots": [0, lo]}
        if copy_first := self.dice.random() < 0.5:
            self.emit("copy", **copy)
        request.row[p] = new
        self.emit("map", branch=name, pos=p, block=new)
        if not copy_first:
            self.emit("copy", **copy)
        self.give_back(old)
        return True

    # --- the operations -----------------------------------------------------------------------------------------------

    def admit(self) -> None:
        prompt, n = self.dice.choice("pq"), self.dice.randint(1, 9)
        name = self.fresh("r")
        request = Request([f"{prompt}{i}" for i in range(n)], waits=True)
        self.requests[name] = request
        self.emit("admit", branch=name, tokens=n)
        self.resume(name)

    def resume(self, name: str | None = None) -> None:
        """A waiting request is computed, from what the cache has of it."""
        waiting = [n for n, r in self.requests.items() if r.waits]
        name = name or (self.dice.choice(waiting) if waiting else None)
        if name is None or len(self.free) * SIZE < len(self.requests[name].tokens) + SIZE:
            return
        request = self.requests[name]
        request.waits, request.kept = False, 0
        have = self.find(name) if self.dice.random() < 0.7 else 0
        if have % SIZE:
            tokens, request.tokens = request.tokens, request.tokens[:have]
            self.private_tail(name)
            request.tokens = tokens
        self.place_blocks(name, len(request.tokens))
        early = self.dice.random() < 0.5
        if early:
            self.register(name, have)
        self.write(name, have, len(request.tokens))
        if not early:
            self.register(name, have)
        self.emit("read", branch=name)

    def append(self) -> None:
        name = self.any_running()
        if name is None or not self.free or not self.private_tail(name):
            return
        request = self.requests[name]
        n = len(request.tokens)
        if n >= len(request.row) * SIZE and not self.free:
            return
        self.emit("grow", branch=name, tokens=1)
        request.tokens.append(self.fresh("t"))
        self.place_blocks(name, n + 1)
        self.write(name, n, n + 1)
        self.register(name, n)
        self.emit("read", branch=name)

    def fork(self) -> None:
        parent = self.any_running()
        if parent is None:
            return
        child = self.fresh("f")
        request = self.requests[parent]
        self.requests[child] = Request(list(request.tokens), list(request.row))
        self.emit("fork", branch=child, parent=parent)

    def slide(self) -> None:
        """The first full block leaves the window."""
        name = self.any_running()
        if name is None:
            return
        request = self.requests[name]
        p = request.kept
        if (p + 1) * SIZE >= len(request.tokens):
            return
        self.emit("window", branch=name, **{"from": p + 1})
        b, request.row[p], request.kept = request.row[p], None, p + 1
        self.emit("unmap", branch=name, pos=p, block=b)
        self.give_back(b)

    def finish(self) -> None:
        if self.requests:
            self.end(self.dice.choice(list(self.requests)), self.dice.choice(["finish", "cancel"]))

    def preempt(self) -> None:
        name = self.any_running()
        if name is not None:
            self.end(name, "preempt")

    def end(self, name: str, kind: str) -> None:
        request = self.requests.pop(name)
        self.emit(kind, branch=name)
        if kind == "preempt":
            self.requests[name] = Request(request.tokens, waits=True)
        for b in request.row:
            self.give_back(b)

    def hold(self) -> None:
        """A transfer reads a block and keeps it meanwhile."""
        used = sorted(set(range(BLOCKS)) - self.free)
        if used:
            b, mode, holder = self.dice.choice(used), self.dice.choice(["keep", "freeze"]), self.fresh("h")
            self.holds[holder] = (b, mode, "transfer")
            self.emit("pin", block=b, holder=holder, mode=mode, kind="transfer")
            self.emit("read", holder=holder, block=b)

    def load(self) -> None:
        """A transfer fills a block of its own."""
        if self.free:
            b, holder = self.take(), self.fresh("h")
            self.holds[holder] = (b, "freeze", "transfer")
            self.emit("pin", block=b, holder=holder, mode="freeze", kind="transfer")
            self.emit("write", holder=holder, block=b, slots=[0, SIZE])

    def let_go(self) -> None:
        if self.holds:
            self.release(self.dice.choice(list(self.holds)))

    def release(self, holder: str) -> None:
        b, _, _ = self.holds.pop(holder)
        self.emit("unpin", block=b, holder=holder)
        self.give_back(b)

    def speculate(self) -> None:
        """Some draft tokens are computed; the first few of them stay."""
        name = self.any_running()
        if name is None or len(self.free) < 3 or not self.private_tail(name):
            return
        request, drafts = self.requests[name], self.dice.randint(1, 5)
        n, kept = len(request.tokens), self.dice.randint(0, drafts)
        self.emit("propose", branch=name, tokens=drafts)
        self.place_blocks(name, n + drafts)
        if any(b is not None and self.frozen(b) for b in request.row[n // SIZE :]):
            kept = 0
        else:
            self.write(name, n, n + drafts)
        self.emit("accept", branch=name, tokens=kept)
        request.tokens += [self.fresh("t") for _ in range(kept)]
        if self.discipline == "paged_cow":
            while len(request.row) * SIZE >= len(request.tokens) + SIZE:
                b = request.row.pop()
                self.emit("unmap", branch=name, pos=len(request.row), block=b)
                self.give_back(b)
        self.register(name, n)

    def count(self) -> None:
        """The engine's own counts and second views."""
        b = self.dice.randrange(BLOCKS)
        pins = [block for block, _, _ in self.holds.values()].count(b) if self.pins_count else 0
        self.emit("ref", block=b, count=len(self.users(b)) + pins)
        self.emit("pool", free=len(self.free))
        name = self.any_running()
        if name is not None:
            self.emit("table", branch=name, blocks=list(self.requests[name].row))

    def rest(self) -> None:
        """Nothing runs once the transfers are done."""
        for holder in list(self.holds):
            self.release(holder)
        self.emit("quiescent")


def engine_log(discipline: str, seed: int, steps: int = 25) -> list[Line]:
    """One run of the engine."""
    return Engine(discipline, random.Random(seed), steps).log
