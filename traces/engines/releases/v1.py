"""vLLM V1 `KVCacheManager` and its block pool, from 0.6.4 to 0.33.

What is noted:

- `alloc`: what the pool's `get_new_blocks` returned, each after the `evict` of what it lost from the identity map;
- `hit`: a block touched for a request, or a `pin` where a connector touches it (`Pins`);
- `free`: a block linked into the free queue, once for each time it is linked;
- `seal`: an entry that the identity map has after the call and had not before.

Identities are the engine's own keys. Their `digest` is the recorder's: equal where the tokens from the first one to the
block's end are equal (and the adapter, if any), as the request has them. So a key that names other tokens shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kvsan.traces.engines.releases.hooks import around
from kvsan.traces.engines.releases.ledger import Call, Ledger, Note, Sink
from kvsan.traces.engines.releases.v1_parts import parts


class Watch:
    """Hooks on one manager; `ledger` takes the calls."""

    def __init__(self, manager: Any, sink: Sink, block_size: int) -> None:
        self.parts = parts(manager, block_size)
        self.requests: dict[str, Any] = {}  # admitted and not ended
        self.lengths: dict[str, int] = {}
        self.holders: Callable[[int], str] | None = None  # names the pin of a touched block; None: touches are hits
        self.sink = sink
        self._published = 0  # of the KV event queue, how many are in the log
        queue, null = self.parts.pool.free_block_queue, getattr(self.parts.pool, "null_block", None)
        counted = [block for block in self.parts.blocks if block is not null]
        self.ledger = Ledger(
            sink, self.tables, lambda: {b.block_id: b.ref_cnt for b in counted}, lambda: int(queue.num_free_blocks)
        )
        self._watch_pool(queue)
        self._watch_manager(manager)

    def tables(self) -> dict[str, list[int]]:
        return {
            name: [block.block_id for block in self.parts.rows.get(name, [])] for name in self.requests
        }  # an admitted request without a row has an empty table

    def label(self, request: Any, pos: int) -> dict[str, str]:
        """Digest and namespace of what `request` has, or looks for, at position `pos` of its table."""
        adapter, salt = getattr(request, "lora_request", None), getattr(request, "cache_salt", None)
        adapter = getattr(adapter, "lora_name", None)
        tokens = tuple(request.all_token_ids[: (pos + 1) * self.parts.block_size])
        space = [f"{kind}={name}" for kind, name in (("lora", adapter), ("salt", salt)) if name]
        return {"digest": self.ledger.name_of((tokens, adapter), "d")} | (
            {"namespace": " ".join(space)} if space else {}
        )

    def identity(self, key: Any) -> dict[str, str]:
        published = self.parts.published(key)
        hashed = {"hash": self.ledger.name_of(key)}
        return hashed if published is None else hashed | {"published": self.ledger.name_of(published, "p")}

    def take_published(self, notes: list[Note]) -> None:
        """Move what the engine queued for its KV event stream since last time to `notes`."""
        queue = getattr(self.parts.pool, "kv_event_queue", [])
        for event in queue[self._published :]:
            kind = {"BlockStored": "kv_stored", "BlockRemoved": "kv_removed", "AllBlocksCleared": "kv_cleared"}
            hashes = [self.ledger.name_of(one, "p") for one in getattr(event, "block_hashes", None) or []]
            fields: dict[str, Any] = {"hash": hashes} if hashes else {}
            if getattr(event, "parent_block_hash", None) is not None:
                fields["parent"] = self.ledger.name_of(event.parent_block_hash, "p")
            if getattr(event, "medium", None) is not None:
                fields["medium"] = event.medium
            notes.append(Note(kind[type(event).__name__], fields))
        self._published = len(queue)

    def _watch_pool(self, queue: Any) -> None:
        pool = self.parts.pool

        def get_new_blocks(original: Any, *args: Any) -> Any:
            before = self.parts.identities()
            blocks = original(*args)
            lost = before - self.parts.identities()
            for block in blocks:
                for key, held in sorted(lost, key=str):
                    if held == block.block_id:
                        self.ledger.note("evict", block=held, **self.identity(key))
            if self.ledger.call is not None:
                self.take_published(self.ledger.call.pool)
            for block in blocks:
                self.ledger.note("alloc", block=block.block_id)
            return blocks

        def touch(original: Any, blocks: Any) -> None:
            original(blocks)
            groups = blocks if isinstance(blocks, tuple) else (blocks,)
            for group in groups:
                for pos, block in enumerate(group):
                    self._note_touch(pos, block)

        def append(original: Any, block: Any) -> None:
            original(block)
            self.ledger.note("free", block=block.block_id)

        def append_n(original: Any, blocks: list[Any]) -> None:
            original(blocks)
            for block in blocks:
                self.ledger.note("free", block=block.block_id)

        around(pool, self.parts.method("get_new_blocks"), get_new_blocks)
        around(pool, self.parts.method("touch"), touch)
        around(queue, "append", append)
        for name in ("append_n", "prepend_n"):
            if hasattr(queue, name):
                around(queue, name, append_n)

    def _note_touch(self, pos: int, block: Any) -> None:
        call = self.ledger.call
        if getattr(block, "is_null", False) or call is None:
            return
        if self.holders is not None:
            self.ledger.note("pin", block=block.block_id, holder=self.holders(block.block_id), kind="transfer")
        elif call.branch is not None:
            name = self.ledger.name_of(block.block_hash)
            self.ledger.note("hit", block=block.block_id, hash=name, **self.label(self.requests[call.branch], pos))

    def _watch_manager(self, manager: Any) -> None:
        def allocate(original: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
            with self.calling(request) as call:
                blocks = original(request, *args, **kwargs)
                if blocks is None:
                    call.pool.append(Note("alloc_failed", {"branch": request.request_id}))
                return blocks

        def free(original: Any, request: Any, *args: Any) -> None:
            with self.calling(request) as call:
                call.ending = ending(request)
                original(request, *args)
                if call.ending != "preempt":
                    self.requests.pop(request.request_id, None)

        for name in ("allocate_slots", "append_slots"):
            if hasattr(manager, name):
                around(manager, name, allocate)
        around(manager, "free", free)

    def calling(self, request: Any) -> Any:
        """One engine call on account of `request`, who is admitted when first seen."""
        return _Calling(self, request)

    def admit(self, call: Call, request: Any) -> None:
        name, length = request.request_id, len(request.all_token_ids)
        if name not in self.requests:
            call.begins.append(Note("admit", {"branch": name, "tokens": length}))
            self.requests[name] = request
        elif length > self.lengths[name]:
            call.begins.append(Note("grow", {"branch": name, "tokens": length - self.lengths[name]}))
        self.lengths[name] = length

    def seals(self, before: set[tuple[Any, int]]) -> Iterable[Note]:
        """Identities that entered the map, by table position, under the name of the branch whose table has them."""
        new = {block: key for key, block in self.parts.identities() - before}
        for name, request in self.requests.items():
            for pos, block in enumerate(self.parts.rows.get(name, [])):
                key = new.pop(block.block_id, None)
                if key is not None:
                    yield Note(
                        "seal",
                        {"block": block.block_id, **self.identity(key), "branch": name} | self.label(request, pos),
                    )


class _Calling:
    """Admits the request, and finds the seals when the call is over."""

    def __init__(self, watch: Watch, request: Any) -> None:
        self._watch, self._request = watch, request

    def __enter__(self) -> Call:
        watch = self._watch
        self._context = watch.ledger.calling(self._request.request_id)
        self._call = self._context.__enter__()
        self._before = watch.parts.identities()
        watch.admit(self._call, self._request)
        return self._call

    def __exit__(self, *error: Any) -> None:
        self._call.seals.extend(self._watch.seals(self._before))
        self._watch.take_published(self._call.seals)
        self._context.__exit__(*error)


def ending(request: Any) -> str:
    """How a request whose blocks are freed ends: by its status, which the scheduler sets first unless it preempts."""
    if "ABORT" in request.status.name:
        return "cancel"
    return "finish" if request.is_finished() else "preempt"
