"""The events of one V1 cache manager with copy-on-write of partial tails (vLLM 0.32.0).

Beyond what `vllm_v1_recorder` says of the older generation:
- A block carries several identities, whole or of its first slots only (`prefix_match_unit`).
- A hit may end inside a block. The engine maps the shared block, then puts a private one in its place and queues a
  copy. It keeps both ends of the copy from the free queue: those holds are pins of kind `copy`. The call is cut there
  into the states that the engine itself goes through, so that its counts agree at each.
- A running request that outgrows a state block which carries an identity keeps it; the identity moves to a fresh block,
  which the queued copy fills. No table shows that block.
- Where a consumer's transfers may overtake running steps, blocks of ended requests wait for a step: pins of kind
  `step`.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from typing import Any  # an engine's objects carry no types that we could import here

from kvsan.traces.engines.callgroup import EngineCall, table_of
from kvsan.traces.engines.hooks import WATCH, Names
from kvsan.traces.engines.ownership_order import write
from kvsan.traces.engines.vllm_v1_recorder import MARK, V1Recorder

Hold = tuple[int, str]  # block, holder
CopyPair = tuple[int, int]  # source, target


@dataclass
class Allocation:
    """What one `allocate_slots` is about, and how much of it has been told."""

    request: Any
    hit: int
    scheduled: int
    hit_ends: dict[int, Any]  # block -> the identity by which a hit found it, where it is not the block's first

    @property
    def found(self) -> int:
        """The branch's tokens when its hits are mapped and nothing is scheduled yet."""
        return int(self.request.num_computed_tokens) + self.hit


class V1CowRecorder(V1Recorder):
    """Turns the calls of one cache manager into events. One log for each manager."""

    def __init__(self, manager: Any, version: str) -> None:
        self.managers = manager.coordinator.single_type_managers
        super().__init__(manager, version)
        self.holders = Names("hold")
        self.copy_holds: defaultdict[int, deque[str]] = defaultdict(deque)
        self.group_of_copy: dict[CopyPair, int] = {}
        self.late: dict[int, list[Hold]] = {}  # by id of the engine's list of blocks, which waits for its step
        self.waiting: list[Any] = []  # those lists, kept so that no id is used again
        self.reach: dict[Any, int] = {}  # identity -> tokens it covers
        self.gone: list[Any] = []  # identities dropped by the running call
        self.allocation: Allocation | None = None
        self.in_flight: set[str] = set()
        self.idle = True

    def header(self) -> dict[str, Any]:
        sizes = [manager.block_size for manager in self.managers]
        groups = {str(group): {"block_size": size} for group, size in enumerate(sizes) if group}
        fields = {"discipline": "append_only_cow", "block_size": sizes[0], "ref_counts": "owners+pins"}
        return fields | ({"groups": groups} if groups else {})

    # Groups of events --------------------------------------------------------------------------------------------

    def finish_call(self, call: EngineCall) -> None:
        self.calls.remove(call)
        for place in call.touched():
            call.counts[place] = self.pool.blocks[place[1]].ref_cnt
        for _, fields in (*call.before, *call.held):
            if isinstance(block := fields.get("block"), int):
                call.counts[("gpu", block)] = self.pool.blocks[block].ref_cnt
        if call.counts:
            call.free_counts["gpu"] = self.pool.get_num_free_blocks()
        with self.log.group():
            write(call, self.log)
        self._forget_dropped()
        self.rest()

    def cut(self, call: EngineCall) -> EngineCall:
        """Write what `call` has said so far; the rest of it goes on in a new call."""
        position = self.calls.index(call)
        after = EngineCall(self.book, call.branch, self.null)
        self.calls[position] = after
        with self.log.group():
            write(call, self.log)
        return after

    def rest(self) -> None:
        """Say so, once, when nothing runs any more."""
        held = self.late or any(self.copy_holds.values())
        if not (self.idle or self.calls or self.lengths or self.in_flight or held):
            self.idle = True
            self.log.emit("quiescent")

    def _forget_dropped(self) -> None:
        if self.calls:
            return
        for identity in self.gone:
            if self.pool.cached_block_hash_to_block.get_one_block(identity) is None:
                self.hashes.forget(identity)
                self.reach.pop(identity, None)
        self.gone.clear()

    # Identities --------------------------------------------------------------------------------------------------

    def hit(self, block: Any) -> None:
        identity = block.block_hash
        if self.allocation is not None:
            identity = self.allocation.hit_ends.get(block.block_id, identity)
        name = self.hashes.of(identity)
        self.fact(lambda call: call.found(("gpu", block.block_id), name))

    def sealed(self, block: Any, identity: Any, tokens: int | None, group: int, parent: Any) -> None:
        size = self.managers[group].block_size
        tokens = self.reach.setdefault(identity, tokens if tokens is not None else size)
        slots = tokens - (-(-tokens // size) - 1) * size
        name, before = self.hashes.of(identity), self.hashes.known(parent)
        covers = slots if slots < size else None
        self.fact(lambda call: call.sealed(("gpu", block.block_id), name, before, covers, group))

    def dropped(self, block: int, identities: list[tuple[Any, int]]) -> None:
        """identities: each with its cache group."""
        for identity, group in identities:
            name, place = self.hashes.of(identity), ("gpu", block)
            self.gone.append(identity)
            self.fact(lambda call, p=place, n=name, g=group: _drop(call, p, n, g))

    # Copies on write ---------------------------------------------------------------------------------------------

    def shared_tail(self) -> None:
        """The engine is about to put a private block in the place of the one that was hit: say the hit first."""
        if self.allocation is None or not self.calls:
            return
        call = self.calls[-1]
        self._admit(call, self.allocation.found)
        self._show(call)
        self.cut(call)

    def redirected(self, group: int, source: int, target: int) -> None:
        """The private block is in the table, and both ends of the copy are held."""
        call = self.calls[-1]
        call.before += [self._pin(source)]
        self._show(call)
        call.held.append(self._pin(target))
        self.group_of_copy[source, target] = group
        self.cut(call)

    def moving(self, group: int, source: int, target: int) -> None:
        """An identity moves from a running request's block to a fresh one, which a queued copy is to fill."""
        self._show(self.calls[-1])
        call = self.cut(self.calls[-1])
        call.before += [self._pin(source), self._pin(target)]
        self.group_of_copy[source, target] = group

    def _pin(self, block: int) -> tuple[str, dict[str, object]]:
        holder = f"copy{self.holders.count}"
        self.holders.count += 1
        self.copy_holds[block].append(holder)
        return "pin", {"block": block, "holder": holder, "kind": "copy"}

    def let_go(self, call: EngineCall, holds: list[Hold]) -> None:
        call.before += [("unpin", {"block": block, "holder": holder}) for block, holder in holds]

    def copies_let_go(self, blocks: list[Any]) -> list[Hold]:
        return [(block.block_id, self.copy_holds[block.block_id].popleft()) for block in blocks]

    def wait_for_step(self, blocks: list[Any], holds: list[Hold]) -> None:
        self.late[id(blocks)] = holds
        self.waiting.append(blocks)

    def waited(self, blocks: list[Any]) -> list[Hold]:
        self.waiting = [other for other in self.waiting if other is not blocks]
        return self.late.pop(id(blocks), [])

    # The manager's calls -----------------------------------------------------------------------------------------

    def allocated(self, call: EngineCall, request: Any) -> None:
        assert self.allocation is not None
        self._admit(call, self.allocation.found + self.allocation.scheduled)
        self._show(call)

    def denied(self, call: EngineCall, request: Any) -> None:
        if self.branches.known(request.request_id) in self.lengths:
            self._show(call)  # what fell below the window was given back all the same
        self.refused(call, request)

    def _admit(self, call: EngineCall, length: int) -> None:
        assert self.allocation is not None
        name = self.branches.of(self.allocation.request.request_id)
        if name not in self.lengths:
            call.begun.append(("admit", {"branch": name, "tokens": length}))
        elif length > self.lengths[name]:
            call.begun.append(("grow", {"branch": name, "tokens": length - self.lengths[name]}))
        self.idle = False
        self.lengths[name] = max(length, self.lengths.get(name, 0))

    def _show(self, call: EngineCall) -> None:
        assert self.allocation is not None
        request = self.allocation.request
        name = self.branches.of(request.request_id)
        for group, row in enumerate(self.rows(request)):
            table = table_of(name, group)
            start, told = _start(row), _start(self.book.rows.get(table, []))
            if start > told:
                call.windows.append((table, start))
            call.rows[table] = row


def recorder_of(owner: Any) -> V1CowRecorder | None:
    """The recorder of a manager or pool, while the recording runs."""
    return None if WATCH.broken else getattr(owner, MARK, None)


def _start(row: list[Any]) -> int:
    return next((pos for pos, place in enumerate(row) if place is not None), 0)


def _drop(call: EngineCall, place: tuple[str, int], name: str, group: int) -> None:
    """An identity that this very call registered has not been told yet, and never was one."""
    own = [seal for seal in call.seals if (seal.place, seal.hash) == (place, name)]
    if own:
        call.seals.remove(own[0])
    else:
        call.dropped(place, name, group)
