"""A random Llama small enough for a test, as a folder that an engine can load. No download."""

from __future__ import annotations

import json
from pathlib import Path

VOCABULARY = 128
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 128,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-5,
    "hidden_act": "silu",
    "torch_dtype": "float32",
    "bos_token_id": 1,
    "eos_token_id": 2,
    "tie_word_embeddings": False,
}
"""Heads of 64, the smallest that vLLM's paged attention takes."""


TOKENIZER = {
    "version": "1.0",
    "added_tokens": [],
    "pre_tokenizer": {"type": "Whitespace"},
    "model": {"type": "WordLevel", "vocab": {f"t{n}": n for n in range(VOCABULARY)}, "unk_token": "t0"},
}
"""One word a token. Scenarios pass token ids; V1 insists on a tokenizer all the same."""


def write_config(folder: Path) -> Path:
    """Put configuration and tokenizer into `folder`; the weights are the engine's own dummies. Returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))
    return folder
