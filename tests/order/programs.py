"""Random small logs that break no state rule: threads, streams, events, channels, blocks handed on, branches."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Event = dict[str, Any]
SIZE, BLOCKS = 2, 3
STREAMS = ("s", "t", "u")
HEADER = {
    "ev": "trace",
    "schema": "kvsan/1",
    "engine": "random",
    "version": "1",
    "discipline": "paged_cow",
    "block_size": SIZE,
    "blocks": BLOCKS,
}


class Program:
    """What a legal next event may be."""

    def __init__(self, draw: Any, threads: int, legacy: bool, spread: int) -> None:
        self.draw, self.spread = draw, spread
        self.threads = ["main", "other"][:threads]
        self.log: list[Event] = [{**HEADER, "legacy_stream": "s"} if legacy else dict(HEADER)]
        self.held: set[int] = set()
        self.lived: set[int] = set()
        self.tables: dict[str, list[int]] = {}
        self.ops: dict[str, dict[str, Any]] = {}
        self.names = 0

    def pick(self, options: Any) -> Any:
        return self.draw(st.sampled_from(list(options)))

    def owners(self, b: int) -> int:
        return sum(b in table for table in self.tables.values())

    def options(self) -> list[str]:
        found = ["record", "wait", "sync"][: max(1, len(self.log) - 5)]
        if len(self.held) < BLOCKS:
            found += ["alloc", "alloc"]
        if len(self.threads) > 1:
            found += ["signal", "await"]
        if self.loose():
            found += ["free", "map", "recycle", "recycle"]
        if [b for b in self.held if self.owners(b) <= 1]:
            found += ["write", "write", "transfer"]
        if len(self.held) > 1 and [b for b in self.held if self.owners(b) <= 1]:
            found += ["copy", "step"]
        if self.ops:
            found.append("done")
        if self.tables:
            found += ["attention", "attention", "finish", "fork", "unmap", "window"]
        return found

    def loose(self) -> list[int]:
        return sorted(b for b in self.held if not self.owners(b))

    def add(self, ev: str, **fields: Any) -> None:
        thread = self.pick(self.threads)
        self.log.append({"ev": ev, **fields, **({"thread": thread} if thread != "main" else {})})

    def launch(self) -> dict[str, Any]:
        """Where an access runs: mostly an op on a stream, sometimes synchronous, on the host, or on no stream. Or a
        former op, which goes on, or is launched once more."""
        how = self.pick(["op", "op", "op", "op", "waited", "host", "apart", *["more"] * self.spread])
        if how == "more" and self.ops:
            return self.ops[self.pick(self.ops)]
        fields: dict[str, Any] = {}
        if how in ("op", "apart", "more"):
            self.names += 1
            fields["op"] = f"o{self.names}"
        if how in ("op", "waited", "more"):
            fields["stream"] = self.pick(STREAMS)
        if "op" in fields:
            self.ops[fields["op"]] = fields
        return fields

    def queued(self) -> dict[str, Any]:
        """An op on a stream."""
        former = [fields for fields in self.ops.values() if "stream" in fields]
        if former and self.spread and self.pick(range(8)) < self.spread:
            return self.pick(former)  # type: ignore[no-any-return]  # one of them
        self.names += 1
        self.ops[f"o{self.names}"] = {"op": f"o{self.names}", "stream": self.pick(STREAMS)}
        return self.ops[f"o{self.names}"]

    def span(self) -> list[int]:
        return list(self.pick([(0, 1), (1, 2), (0, 2)]))

    def step(self) -> None:
        kind = self.pick(self.options())
        getattr(self, "do_" + kind)()

    def do_alloc(self) -> None:
        b = self.pick(sorted(set(range(BLOCKS)) - self.held))
        self.held.add(b)
        self.add("alloc", block=b)

    def do_free(self) -> None:
        b = self.pick(self.loose())
        self.held.discard(b)
        self.add("free", block=b)

    def do_recycle(self) -> None:
        """The next life of a block begins at once."""
        b = self.pick(self.loose())
        self.add("free", block=b)
        self.add("alloc", block=b)

    def do_map(self) -> None:
        b = self.pick(self.loose())
        branch = self.pick([*self.tables, "new"])
        if branch == "new":
            self.names += 1
            branch = f"r{self.names}"
            self.tables[branch] = []
            self.add("admit", branch=branch, tokens=0)
        self.tables[branch].append(b)
        self.add("map", branch=branch, pos=len(self.tables[branch]) - 1, block=b)

    def do_unmap(self) -> None:
        branch = self.pick(self.tables)
        if self.tables[branch]:
            b = self.tables[branch].pop()
            self.add("unmap", branch=branch, pos=len(self.tables[branch]), block=b)

    def do_window(self) -> None:
        """Positions go out of the window, or come back."""
        branch = self.pick(self.tables)
        self.add("window", branch=branch, **{"from": self.pick(range(len(self.tables[branch]) + 1))})

    def do_fork(self) -> None:
        parent = self.pick(self.tables)
        self.names += 1
        self.tables[f"r{self.names}"] = list(self.tables[parent])
        self.add("fork", branch=f"r{self.names}", parent=parent)

    def do_finish(self) -> None:
        branch = self.pick(self.tables)
        del self.tables[branch]
        self.add("finish", branch=branch)

    def sole(self) -> int:
        b: int = self.pick(sorted(b for b in self.held if self.owners(b) <= 1))
        return b

    def do_write(self) -> None:
        """Of one block, or the same slots of several."""
        sole = sorted(b for b in self.held if self.owners(b) <= 1)
        blocks = self.draw(st.lists(st.sampled_from(sole), min_size=1, max_size=2, unique=True))
        block = blocks[0] if len(blocks) == 1 else blocks
        self.add("write", holder="h", block=block, slots=self.span(), **self.launch())

    def do_transfer(self) -> None:
        self.add("read", holder="h", block=self.pick(sorted(self.held)), slots=self.span(), **self.launch())

    def do_copy(self) -> None:
        dst = self.sole()
        src = self.pick(sorted(self.held - {dst}))
        self.add("copy", src=src, dst=dst, slots=self.span(), **self.launch())

    def do_step(self) -> None:
        """Copies of one launch, each into another block, then a write of one branch, and attention of one."""
        copies = []
        targets = self.draw(st.lists(st.sampled_from(sorted(self.held)), min_size=1, max_size=2, unique=True))
        for dst in targets:
            if self.owners(dst) <= 1:
                copies.append([self.pick(sorted(self.held - {dst})), dst, *self.span()])
        fields: dict[str, Any] = {"copies": copies} if copies else {}
        own = [(r, b) for r, table in self.tables.items() for b in table if self.owners(b) == 1]
        if own and self.draw(st.booleans()):
            fields["writes"] = [[*self.pick(own), *self.span()]]
        if self.tables and self.draw(st.booleans()):
            branch = self.pick(self.tables)
            if self.tables[branch]:
                fields["reads"] = [[branch, self.pick(range(1, SIZE * len(self.tables[branch]) + 1))]]
        self.add("step", **self.queued(), **fields)

    def do_attention(self) -> None:
        branch = self.pick(self.tables)
        if self.tables[branch]:
            upto = self.pick(range(1, SIZE * len(self.tables[branch]) + 1))
            self.add("read", branch=branch, upto=upto, **self.launch())

    def do_done(self) -> None:
        self.add("done", op=self.pick(self.ops))

    def do_record(self) -> None:
        self.add("record", event=self.pick("ef"), stream=self.pick(STREAMS))

    def do_wait(self) -> None:
        self.add("wait", event=self.pick("ef"), stream=self.pick(STREAMS))

    def do_sync(self) -> None:
        what = self.pick(["stream", "event", "device"])
        named = {"stream": {"stream": self.pick(STREAMS)}, "event": {"event": self.pick("ef")}}
        self.add("sync", **named.get(what, {"device": True}))

    def do_signal(self) -> None:
        self.add("signal", channel="c")

    def do_await(self) -> None:
        self.add("await", channel="c")


@st.composite
def logs(draw: Any, events: int = 12) -> list[Event]:
    """A log of about so many events; two blocks are there, and often written, from the start. In half of the logs
    launches go on, the more often the higher `spread` is."""
    spread = draw(st.sampled_from([0, 0, 2, 4]))
    program = Program(draw, draw(st.integers(1, 2)), draw(st.integers(0, 5)) == 0, spread)
    program.do_alloc()
    program.do_alloc()
    for _ in range(draw(st.integers(events // 2, events))):
        program.step()
    return program.log
