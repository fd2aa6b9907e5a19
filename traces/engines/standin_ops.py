"""Plain PyTorch in place of vLLM's compiled cache and attention kernels, for a machine without them.

For 0.6.2 four ops: `reshape_and_cache`, `copy_blocks`, and the two paged attentions. Norm, rotary embedding and
activation have native forms in vLLM itself (`VLLM_TEST_COMPILE_NO_CUSTOM_OPS=1`). Same arguments and effects as the
kernels; slow.

For 0.9.1's V1, whose CPU attention needs a library of its own, the whole attention of a layer: write, then read.

Shapes: key cache [blocks, heads, head_size / x, block_size, x], value cache [blocks, heads, head_size, block_size],
keys and values [tokens, heads, head_size], slot mapping [tokens] with -1 for padding.
"""

from __future__ import annotations

import importlib
from typing import Any  # torch is the engine's, not ours

NATIVE = "VLLM_TEST_COMPILE_NO_CUSTOM_OPS"


_kept: list[Any] = []


def install() -> None:
    """Replace the kernels of `vllm._custom_ops`."""
    ops: Any = importlib.import_module("vllm._custom_ops")
    ops.reshape_and_cache = reshape_and_cache
    ops.copy_blocks = copy_blocks
    ops.paged_attention_v1 = paged_attention_v1
    ops.paged_attention_v2 = paged_attention_v2


def install_v1() -> None:
    """Replace the attention of 0.9.1's CPU backend. The activation layer only looks its kernel up."""
    if not _kept:
        library = importlib.import_module("torch").library.Library("_C", "FRAGMENT")
        library.define("silu_and_mul(Tensor! out, Tensor input) -> ()")
        _kept.append(library)  # a library that is collected takes its operators along
    importlib.import_module("vllm.attention.backends.torch_sdpa").TorchSDPABackendImpl.forward = attention_v1


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


def attention_v1(
    self: Any, layer: Any, query: Any, key: Any, value: Any, kv_cache: Any, attn_metadata: Any, output: Any = None
) -> Any:
    """Write the batch's keys and values, then attend causally over each request's blocks."""
    if attn_metadata is None:  # a warm-up
        return query
    paged = importlib.import_module("vllm.attention.ops.ipex_attn").PagedAttention
    queries = query.view(-1, self.num_heads, self.head_size)
    key_cache, value_cache = paged.split_kv_cache(kv_cache, self.num_kv_heads, self.head_size)
    shape = (-1, self.num_kv_heads, self.head_size)
    reshape_and_cache(key.view(shape), value.view(shape), key_cache, value_cache, attn_metadata.slot_mapping)
    out = queries.clone()
    for start, end, length, blocks in _requests(attn_metadata, value_cache.shape[3]):
        keys, values = _gather(key_cache, value_cache, blocks, length)
        repeat = self.num_heads // self.num_kv_heads
        keys, values = keys.repeat_interleave(repeat, dim=0), values.repeat_interleave(repeat, dim=0)
        for number in range(start, end):
            seen = length - (end - start) + (number - start) + 1
            scores = self.scale * (queries[number][:, None, :] * keys[:, :seen]).sum(-1)
            out[number] = (scores.softmax(-1)[:, :, None] * values[:, :seen]).sum(1)
    return out.view(-1, self.num_heads * self.head_size)


def _requests(meta: Any, block_size: int) -> list[tuple[int, int, int, Any]]:
    """Each request of the batch: its tokens [start, end), its length with them, and its blocks."""
    found = []
    starts, lengths = meta.prefill_query_start_loc.tolist(), meta.kv_start_loc.diff().tolist()
    for number in range(meta.num_prefills):
        found.append((starts[number], starts[number + 1], lengths[number], meta.prefill_block_tables[number]))
    for number in range(meta.num_decode_tokens):
        start = meta.num_prefill_tokens + number
        found.append((start, start + 1, int(meta.seq_lens_tensor[number]), meta.block_tables[number]))
    return [(start, end, length, row[: -(-length // block_size)].long()) for start, end, length, row in found]
