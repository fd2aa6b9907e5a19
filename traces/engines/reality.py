"""Does the verdict on a log agree with what the model computed? Forked runs of vLLM 0.6.2, against independent ones.

    python -m kvsan.traces.engines.reality fork_three --into DIR                    # as the engine is
    python -m kvsan.traces.engines.reality fork_three --without-copies --into DIR   # its worker forgets every copy
    python -m kvsan.traces.engines.reality fork_three --last-copy-first --into DIR  # copies of a launch, the last first
    python -m kvsan.traces.engines.reality --alone --into DIR                       # each output again, on its own

A run writes its log, and beside it what it put out: each sequence's tokens with their logprobs. `--alone` runs in a
process of its own, unrecorded, and computes the logprobs of the same tokens as one plain prompt: no fork, no shared
block, no copy. Logprobs are compared, not tokens: a wrong KV slot often leaves the most likely token what it was.

Copies of one launch run side by side on a GPU, so a launch is right only if their order does not matter. The kernel
that stands in here reads every source before it writes any target; `--last-copy-first` runs them one by one instead.
The log is the same: the fault is in what the engine asked for, whether it happens to bite or not (`chained_copies`).

The cache is zeroed at the start of each run, so that reading an unwritten slot gives the same wrong answer every time.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args  # Any: an engine's objects carry no types that we could import here

from kvsan.traces.engines import scenarios_live, standin_ops
from kvsan.traces.engines.output import HEADER, PATH, recording

COMMAND = "python -m kvsan.traces.engines.reality"
Copies = Literal["as-it-is", "without-copies", "last-copy-first"]
WAYS: tuple[Copies, ...] = get_args(Copies)
AS_IT_IS, WITHOUT, LAST_FIRST = WAYS
SAME_LOGPROB = 1e-3
"""Two ways to compute one logprob in float32 are closer than this; a wrong slot is not."""


@dataclass(frozen=True)
class Run:
    """What is asked of the engine: prompts of token ids, and how to sample."""

    prompts: tuple[list[int], ...]
    sampling: dict[str, Any]
    about: str
    caching: bool = False


RUNS = {
    "fork_three": Run((list(range(10, 16)),), {"n": 3, "max_tokens": 6}, "n=3 from a prompt with a partial tail"),
    "fork_five": Run((list(range(10, 16)),), {"n": 5, "max_tokens": 6}, "n=5 from a prompt with a partial tail"),
    "one_slot_tail": Run((list(range(10, 17)),), {"n": 3, "max_tokens": 4}, "n=3 from a tail with one free slot"),
    "two_prompts": Run(
        ([5, 6, 7, 8, 9, 10], [11, 12, 13, 14, 15]), {"n": 3, "max_tokens": 6}, "two prompts, n=3 each, in one batch"
    ),
    "beam_search": Run(
        (list(range(10, 16)),),
        {"n": 3, "best_of": 3, "use_beam_search": True, "temperature": 0.0, "max_tokens": 8},
        "beam search of width three: beams are forked and dropped between steps",
    ),
    "chained_copies": Run(
        (list(range(10, 17)), list(range(30, 36))),
        {"n": 2, "temperature": 0.06, "max_tokens": 3},
        "two branches fill a tail with the same token, a second pair copies: one launch copies out of and into a block",
        caching=True,
    ),
    "full_prompt": Run((list(range(10, 18)),), {"n": 3, "max_tokens": 4}, "n=3 from a full prompt: nothing to copy"),
}
REJECTED: dict[tuple[str, Copies], tuple[str, int]] = {
    ("fork_three", WITHOUT): ("read_is_initialised", 36),
    ("fork_five", WITHOUT): ("read_is_initialised", 60),
    ("one_slot_tail", WITHOUT): ("read_is_initialised", 36),
    ("two_prompts", WITHOUT): ("read_is_initialised", 68),
    ("beam_search", WITHOUT): ("read_is_initialised", 45),
    ("chained_copies", AS_IT_IS): ("source_stable", 54),
    ("chained_copies", WITHOUT): ("read_is_initialised", 54),
    ("chained_copies", LAST_FIRST): ("source_stable", 54),
}
"""Runs whose log breaks a rule, and the first line (a launch) where it does."""


def log_path(name: str, copies: Copies, folder: Path) -> Path:
    return folder / f"vllm-0.6.2-reality-{name.replace('_', '-')}{'' if copies == AS_IT_IS else '-' + copies}.jsonl"


def outputs_path(log: Path) -> Path:
    return log.with_suffix(".outputs.json")


def forked(name: str, copies: Copies, folder: Path) -> None:
    """Record one run into `folder`, and write its outputs beside the log."""
    run, log = RUNS[name], log_path(name, copies, folder)
    log.unlink(missing_ok=True)
    os.environ |= {PATH: str(log), HEADER: json.dumps(_header(name, copies))}
    importlib.import_module("vllm.plugins").load_general_plugins()
    with recording(), _copying(copies):
        llm = _engine(run.caching)
        results = scenarios_live.generate(llm, *run.prompts, logprobs=1, **run.sampling)
    temperature = run.sampling.get("temperature") or 1.0  # greedy search scores as 1
    outputs = [_said(result.prompt_token_ids, output, temperature) for result in results for output in result.outputs]
    outputs_path(log).write_text(json.dumps(outputs))


def _engine(caching: bool = False) -> Any:
    llm = scenarios_live.engine(caching=caching)
    for cache_engine in llm.llm_engine.model_executor.driver_worker.cache_engine:
        for layer in cache_engine.cpu_cache:
            layer.zero_()
    return llm


@contextmanager
def _copying(copies: Copies) -> Iterator[None]:
    """How the worker treats the copies that the scheduler asks for."""
    worker = importlib.import_module("vllm.worker.cpu_worker").CPUWorker
    execute, kernel = worker.execute_worker, standin_ops.copy_blocks

    def forgetful(self: Any, worker_input: Any) -> None:
        execute(self, replace(worker_input, blocks_to_copy=None))

    def one_by_one(key_caches: list[Any], value_caches: list[Any], block_mapping: Any) -> None:
        for pair in reversed(block_mapping.split(1)):
            kernel(key_caches, value_caches, pair)

    if copies == WITHOUT:
        worker.execute_worker = forgetful
    elif copies == LAST_FIRST:
        standin_ops.copy_blocks = one_by_one
    try:
        yield
    finally:
        worker.execute_worker, standin_ops.copy_blocks = execute, kernel


def _header(name: str, copies: Copies) -> dict[str, object]:
    expected: dict[str, object] = {"x_expect": "HOLDS"}
    if (name, copies) in REJECTED:
        rule, line = REJECTED[name, copies]
        expected = {"x_expect": "VIOLATED", "x_rule": rule, "x_line": line}
    return {
        "x_command": f"{COMMAND} {name}{'' if copies == AS_IT_IS else ' --' + copies}",
        "x_scenario": RUNS[name].about + WAYS_SAID[copies],
        "x_provenance": PROVENANCE[copies],
        "x_by": "recorded",
        **expected,
    }


WAYS_SAID: dict[Copies, str] = {
    AS_IT_IS: ".",
    WITHOUT: "; the worker runs none of the copies.",
    LAST_FIRST: "; the copies of a launch run one by one, the last first.",
}
PROVENANCE: dict[Copies, str] = {
    AS_IT_IS: "vLLM 0.6.2",
    WITHOUT: "vLLM 0.6.2, its worker made to forget the copies",
    LAST_FIRST: "vLLM 0.6.2, with another order of what runs side by side",
}


def _said(prompt: list[int], output: Any, temperature: float) -> dict[str, Any]:
    tokens = list(output.token_ids)
    logprobs = [step[token].logprob for token, step in zip(tokens, output.logprobs, strict=True)]
    return {"prompt": list(prompt), "tokens": tokens, "logprobs": logprobs, "temperature": temperature}


def alone(folder: Path) -> None:
    """Add to every output in `folder` the logprobs of its tokens in a run of their own, as `alone`."""
    os.environ.pop(PATH, None)
    llm = _engine()
    for path in sorted(folder.glob("*.outputs.json")):
        outputs = json.loads(path.read_text())
        for output in outputs:
            whole = output["prompt"] + output["tokens"]
            heat = output["temperature"]
            (result,) = scenarios_live.generate(llm, whole, max_tokens=1, prompt_logprobs=0, temperature=heat)
            scored = list(zip(whole, result.prompt_logprobs, strict=True))[len(output["prompt"]) :]
            output["alone"] = [step[token].logprob for token, step in scored]
        path.write_text(json.dumps(outputs))


@dataclass(frozen=True)
class Difference:
    """How far a run's logprobs are from those of independent runs of the same tokens.

    outputs: sequences put out, wrong: those with a logprob that differs, largest: the greatest distance (nats).
    """

    outputs: int
    wrong: int
    largest: float

    @property
    def differs(self) -> bool:
        return self.wrong > 0


def difference(log: Path) -> Difference:
    """Compare the outputs beside `log`. Needs `--alone` to have run. A logprob that is no number counts as wrong."""
    outputs = json.loads(outputs_path(log).read_text())
    gaps = [_gap(output) for output in outputs]
    return Difference(len(outputs), sum(not gap < SAME_LOGPROB for gap in gaps), max(gaps))


def _gap(output: dict[str, Any]) -> float:
    gaps = [abs(here - there) for here, there in zip(output["logprobs"], output["alone"], strict=True)]
    return max(gaps) if all(gap == gap for gap in gaps) else float("nan")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(RUNS)}")
    parser.add_argument("--into", type=Path, default=Path(), help="the folder of the logs and outputs")
    way = parser.add_mutually_exclusive_group()
    way.add_argument(f"--{WITHOUT}", action="store_const", const=WITHOUT, dest="copies", help="forget the copies")
    way.add_argument(f"--{LAST_FIRST}", action="store_const", const=LAST_FIRST, dest="copies", help="reverse them")
    parser.add_argument("--alone", action="store_true", help="compute every output in the folder again, on its own")
    args = parser.parse_args(argv)
    if args.alone == bool(args.names) or set(args.names) - RUNS.keys():
        parser.error(f"give --alone, or names of {', '.join(RUNS)}")
    for name in args.names:
        forked(name, args.copies or AS_IT_IS, args.into)
    if args.alone:
        alone(args.into)
    return 0


if __name__ == "__main__":
    sys.exit(main())
