"""The events of one V1 cache manager. Tables are logged by difference.

What this engine does, and how it is told:
- A hash is published when its tokens are scheduled, before they are written: `map`, then `seal`; the writes follow.
- A hit is logged where the engine holds it (`touch`), together with the entries that it becomes.
- The null block stands for an entry without a block: never mapped, never counted. What falls out of a sliding window
  is `window` and `unmap`.
- A branch's length is what has been scheduled. Draft tokens are proposed; what the engine keeps of them is known when
  `num_computed_tokens` has been corrected, at the latest by the branch's next call.
- A hybrid model has one table for each branch and cache group, all over one pool.
- Lookahead blocks stay in the table after a rejected proposal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any  # an engine's objects carry no types that we could import here

from kvsan.traces.engines.callgroup import Book, EngineCall, Place, Row, table_of
from kvsan.traces.engines.hooks import Names
from kvsan.traces.engines.output import open_recorder
from kvsan.traces.engines.ownership_order import write

MARK = "kvsan_recorder"  # attribute on managers, pools and free queues


@dataclass
class Proposal:
    """Draft tokens of a branch that the engine has not judged yet."""

    base: int
    tokens: int


class V1Recorder:
    """Turns the calls of one cache manager into events. One log for each manager."""

    def __init__(self, manager: Any, version: str) -> None:
        self.manager = manager
        self.pool = manager.block_pool
        self.null: Place = ("gpu", self.pool.null_block.block_id)
        self.book = Book(groups=len(manager.kv_cache_config.kv_cache_groups))
        self.branches = Names("r")
        self.hashes = Names("h")
        self.lengths: dict[str, int] = {}
        self.proposals: dict[str, Proposal] = {}
        self.calls: list[EngineCall] = []
        self.launches = 0
        self.log = open_recorder(
            engine="vllm", version=version, blocks=self.pool.num_gpu_blocks, null_block=self.null[1], started="empty",
            **self.header(),
        )  # fmt: skip

    def header(self) -> dict[str, Any]:
        """The header fields that differ between generations."""
        groups: dict[str, object] = {str(group): {} for group in range(1, self.book.groups)}
        fields: dict[str, Any] = {
            "discipline": "append_only",
            "block_size": self.manager.block_size,
            "ref_counts": "owners",
        }
        return fields | ({"groups": groups} if groups else {})

    def start(self, branch: str | None) -> EngineCall:
        call = EngineCall(self.book, branch, self.null)
        self.calls.append(call)
        return call

    def finish_call(self, call: EngineCall) -> None:
        self.calls.remove(call)
        for place in call.touched():
            call.counts[place] = self.pool.blocks[place[1]].ref_cnt
        if call.counts:
            call.free_counts["gpu"] = self.pool.get_num_free_blocks()
        if any(kind != "preempt" for kind, _ in call.ended) and not self._busy(call):
            call.closing.append(("quiescent", {}))
        with self.log.group():
            write(call, self.log)

    def _busy(self, call: EngineCall) -> bool:
        ended = {branch for _, branch in call.ended}
        return any(branch not in ended for branch in self.lengths)

    def fact(self, say: Any) -> None:
        """Tell the running call; a fact outside of any call is a group of its own."""
        if self.calls:
            say(self.calls[-1])
            return
        call = self.start(None)
        say(call)
        self.finish_call(call)

    def rows(self, request: Any) -> list[Row]:
        """The tables of a request, one for each cache group."""
        groups = self.manager.coordinator.get_blocks(request.request_id)
        return [[None if block.is_null else ("gpu", block.block_id) for block in blocks] for blocks in groups]

    # The manager's calls ----------------------------------------------------------------------------------------

    def settle(self, request: Any, call: EngineCall) -> None:
        """Say how much of an outstanding proposal the engine has kept."""
        name = self.branches.known(request.request_id)
        proposal = self.proposals.pop(name, None) if name is not None else None
        if proposal is None or name is None:
            return
        kept = max(0, min(proposal.tokens, request.num_computed_tokens - proposal.base))
        call.before.append(("accept", {"branch": name, "tokens": kept}))
        self.lengths[name] = proposal.base + kept

    def scheduled(self, call: EngineCall, request: Any, scheduled: int, hit: int, drafts: int) -> None:
        name = self.branches.of(request.request_id)
        length = request.num_computed_tokens + hit + scheduled - drafts
        if name not in self.lengths:
            call.begun.append(("admit", {"branch": name, "tokens": length}))
        elif length > self.lengths[name]:
            call.begun.append(("grow", {"branch": name, "tokens": length - self.lengths[name]}))
        if drafts:
            call.begun.append(("propose", {"branch": name, "tokens": drafts}))
            self.proposals[name] = Proposal(length, drafts)
        self.lengths[name] = length + drafts
        for group, row in enumerate(self.rows(request)):
            table = table_of(name, group)
            before = self.book.rows.get(table, [])
            if _first_entry(row) > _first_entry(before):
                call.windows.append((table, _first_entry(row)))
            call.rows[table] = row

    def refused(self, call: EngineCall, request: Any) -> None:
        call.closing.append(("alloc_failed", {"branch": self.branches.of(request.request_id)}))

    def freed(self, call: EngineCall, request: Any) -> None:
        name = self.branches.of(request.request_id)
        status = request.status.name
        if not status.startswith("FINISHED"):
            call.ended.append(("preempt", name))
            self.lengths.pop(name, None)
            return
        call.ended.append(("cancel" if status == "FINISHED_ABORTED" else "finish", name))
        self.lengths.pop(name, None)
        self.branches.forget(request.request_id)


def _first_entry(row: Row) -> int:
    return next((pos for pos, place in enumerate(row) if place is not None), 0)


RECORDERS: list[V1Recorder] = []
"""The recorders of this process; a worker of the same process logs its launches to the latest."""
