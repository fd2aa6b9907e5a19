"""What the model computes for a request whose partial tail is copied: as the engine is, alone, and without the copies.

    python -m kvsan.traces.engines.reality_cow

Prints one JSON object: for each of the three runs the logprobs of the second request's tokens, the same tokens in all
of them. `alone` computes the whole sequence at once, in an engine that has cached nothing.
"""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any  # an engine's objects carry no types that we could import here

from kvsan.traces.engines.scenarios_live_v1_cow import generate, hybrid, tokens
from kvsan.traces.engines.tiny_model import HYBRID, write_config

SECOND = [*tokens(98), 101, 102, 103]


def write_weights(folder: Path) -> None:
    """Random weights, so large that what a request reads shows in its logprobs; the engine's dummies are not."""
    torch, transformers = (importlib.import_module(name) for name in ("torch", "transformers"))
    torch.manual_seed(7)
    write_config(folder, {**HYBRID, "initializer_range": 0.2})
    model = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.from_pretrained(folder))
    model.to(torch.bfloat16).save_pretrained(folder)
    write_config(folder, HYBRID)


def logprobs(rows: list[Any], chosen: list[int]) -> list[float]:
    return [float(row[token].logprob) for row, token in zip(rows, chosen, strict=True)]


def after_a_hit(folder: Path, forced: list[int] | None = None) -> tuple[list[int], list[float]]:
    """The second request hits the first one's tail. Returns its first token and its logprob."""
    llm = hybrid(weights=folder)
    generate(llm, tokens(105), max_tokens=4)
    allowed: dict[str, Any] = {} if forced is None else {"allowed_token_ids": forced}
    (output,) = generate(llm, SECOND, max_tokens=1, temperature=0.0, logprobs=1, **allowed)
    chosen = list(output.outputs[0].token_ids)
    return chosen, logprobs(output.outputs[0].logprobs, chosen)


def alone(folder: Path, chosen: list[int]) -> list[float]:
    (output,) = generate(hybrid(weights=folder), [*SECOND, *chosen], max_tokens=1, temperature=0.0, prompt_logprobs=1)
    return logprobs(output.prompt_logprobs[len(SECOND) :], chosen)


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_weights(folder)
        chosen, copied = after_a_hit(folder)
        right = alone(folder, chosen)
        worker: Any = importlib.import_module("vllm.v1.worker.gpu_model_runner")
        worker.copy_kv_cache_blocks_inplace = lambda *_: None
        forgotten = after_a_hit(folder, chosen)[1]
        print(json.dumps({"copied": copied, "forgotten": forgotten, "alone": right}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
