"""Plain PyTorch in place of vLLM 0.6.2's compiled cache and attention kernels, for a machine without them.

Four ops: `reshape_and_cache`, `copy_blocks`, and the two paged attentions. Norm, rotary embedding and activation have
native forms in vLLM itself (`VLLM_TEST_COMPILE_NO_CUSTOM_OPS=1`). Same arguments and effects as the kernels; slow.

Shapes: key cache [blocks, heads, head_size / x, block_size, x], value cache [blocks, heads, head_size, block_size],
keys and values [tokens, heads, head_size], slot mapping [tokens] with -1 for padding.
"""

from __future__ import annotations

import importlib
from typing import Any  # torch is the engine's, not ours

NATIVE = "VLLM_TEST_COMPILE_NO_CUSTOM_OPS"


def install() -> None:
    """Replace the kernels of `vllm._custom_ops`."""
    ops: Any = importlib.import_module("vllm._custom_ops")
    ops.reshape_and_cache = reshape_and_cache
    ops.copy_blocks = copy_blocks
    ops.paged_attention_v1 = paged_attention_v1
    ops.paged_attention_v2 = paged_attention_v2


def reshape_and_cache(key: Any, value: Any, key_cache: Any, value_cache: Any, slot_mapping: Any, *_: Any) -> None:
    slots = slot_mapping.flatten()
    kept = slots >= 0
    size = value_cache.shape[3]
    blocks, offsets = slots[kept] // size, slots[kept] % size
    tokens, heads, parts, lane = int(kept.sum()), key_cache.shape[1], key_cache.shape[2], key_cache.shape[4]
    key_cache[blocks, :, :, offsets, :] = key[kept].view(tokens, heads, parts, lane)
    value_cache[blocks, :, :, offsets] = value[kept]


def copy_blocks(key_caches: list[Any], value_caches: list[Any], block_mapping: Any) -> None:
    """All pairs at once: every source is read before any target is written."""
    sources, targets = block_mapping[:, 0], block_mapping[:, 1]
    for cache in (*key_caches, *value_caches):
        cache[targets] = cache[sources].clone()


def paged_attention_v1(
    out: Any, query: Any, key_cache: Any, value_cache: Any, num_kv_heads: int, scale: float, block_tables: Any,
    seq_lens: Any, block_size: int, *_: Any,
) -> None:  # fmt: skip
    for number, length in enumerate(seq_lens.tolist()):
        blocks = block_tables[number, : -(-length // block_size)].long()
        keys, values = _gather(key_cache, value_cache, blocks, length)
        repeat = query.shape[1] // num_kv_heads
        scores = scale * (query[number][:, None, :] * keys.repeat_interleave(repeat, dim=0)).sum(-1)
        out[number] = (scores.softmax(-1)[:, :, None] * values.repeat_interleave(repeat, dim=0)).sum(1)


def paged_attention_v2(out: Any, _exp_sum: Any, _max_logits: Any, _tmp_out: Any, *args: Any) -> None:
    paged_attention_v1(out, *args)


def _gather(key_cache: Any, value_cache: Any, blocks: Any, length: int) -> tuple[Any, Any]:
    """Keys and values of one sequence, each [heads, length, head_size]."""
    keys = key_cache[blocks].permute(1, 0, 3, 2, 4).flatten(3).flatten(1, 2)
    values = value_cache[blocks].permute(1, 0, 3, 2).flatten(1, 2)
    return keys[:, :length], values[:, :length]
