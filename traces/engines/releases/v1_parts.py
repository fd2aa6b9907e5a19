"""Where each vLLM V1 release keeps its pool, tables and identities: until 0.7 the manager is its own pool."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any


@dataclass
class Parts:
    """Where one release keeps what is watched."""

    pool: Any
    blocks: list[Any]
    rows: dict[str, list[Any]]  # request: its table
    block_size: int

    def method(self, name: str) -> str:
        return name if hasattr(self.pool, name) else f"_{name}"

    def identities(self) -> set[tuple[Any, int]]:
        """Every (key, block) of the identity map."""
        cached = self.pool.cached_block_hash_to_block
        found = set()
        for key, held in getattr(cached, "_cache", cached).items():
            found |= {(key, block) for block in held} if isinstance(held, dict) else {(key, held.block_id)}
        return found

    def published(self, key: Any) -> object | None:
        """The hash that the KV event stream has for `key`; None where nothing is published."""
        if not getattr(self.pool, "enable_kv_cache_events", False):
            return None
        utils = importlib.import_module("vllm.v1.core.kv_cache_utils")
        return utils.maybe_convert_block_hash(utils.get_block_hash(key))  # type: ignore[no-any-return]  # the engine's


def parts(manager: Any, block_size: int) -> Parts:
    if isinstance(manager.block_pool, list):  # to 0.7
        return Parts(manager, manager.block_pool, manager.req_to_blocks, block_size)
    (group,) = manager.coordinator.single_type_managers
    return Parts(manager.block_pool, manager.block_pool.blocks, group.req_to_blocks, block_size)
