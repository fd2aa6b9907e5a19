"""What is driven in each release, and the command line that records it.

    python -m kvsan.traces.engines.releases.scenarios vllm-4764 --engine-dir DIR/vllm-0.4.2 --out LOG

A scenario is the same calls for the faulty and for the fixed release. It drives what the engine's scheduler would
drive: an admission is asked for with `can_allocate` first, an append with `can_append_slot(s)`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvsan.traces.engines.releases import v0_drive, v1_drive
from kvsan.traces.engines.releases.build import split_release
from kvsan.traces.engines.releases.ledger import Sink
from kvsan.traces.engines.releases.standins import open_release
from kvsan.traces.record import Recorder


@dataclass(frozen=True)
class Scenario:
    """One public fault: who has it, who is without, what is driven, and what the log must show."""

    issue: str  # where it was reported
    faulty: tuple[str, ...]  # releases, as build names them
    fixed: tuple[str, ...]
    rule: str  # broken by the faulty releases
    drive: Callable[[Sink], None]
    header: dict[str, Any]  # discipline, block_size, blocks and more
    packages: tuple[str, ...] = ("vllm",)  # whose __init__ is skipped
    unused: tuple[str, ...] = ()  # modules imported and never called


SCENARIOS = {
    "vllm-1556": Scenario(
        issue="vllm-project/vllm#1556",
        faulty=("vllm-0.3.3",),
        fixed=("vllm-0.4.0",),
        rule="free_once",
        drive=v0_drive.ring_fork_then_free,
        header={"discipline": "paged_cow", "block_size": 4, "blocks": 8, "ref_counts": "owners"},
    ),
    "vllm-1556-leak": Scenario(
        issue="vllm-project/vllm#1556",
        faulty=("vllm-0.3.3",),
        fixed=("vllm-0.4.0",),
        rule="ref_count_agrees",
        drive=v0_drive.ring_fork_of_a_wrapped_table,
        header={"discipline": "paged_cow", "block_size": 4, "blocks": 8, "ref_counts": "owners"},
    ),
    "vllm-4764": Scenario(
        issue="vllm-project/vllm#4764",
        faulty=("vllm-0.4.2",),
        fixed=("vllm-0.4.3",),
        rule="hit_is_live",
        drive=v0_drive.evicted_block_keeps_its_hash,
        header={"discipline": "paged_cow", "block_size": 4, "blocks": 4, "ref_counts": "owners"},
    ),
    "vllm-11186": Scenario(
        issue="vllm-project/vllm#11186",
        faulty=("vllm-0.6.4.post1",),
        fixed=("vllm-0.6.5",),
        rule="hit_is_live",
        drive=v1_drive.full_hit_recomputes_one_token,
        header={"discipline": "append_only", "block_size": 16, "blocks": 32, "ref_counts": "owners"},
        unused=v1_drive.UNUSED,
    ),
    "vllm-11562": Scenario(
        issue="vllm-project/vllm#11562",
        faulty=("vllm-0.6.5",),
        fixed=("vllm-0.7.0",),
        rule="no_leak",
        drive=v1_drive.failed_admission_keeps_references,
        header={"discipline": "append_only", "block_size": 16, "blocks": 12, "ref_counts": "owners"},
        unused=v1_drive.UNUSED,
    ),
}


def record(name: str, engine_dir: Path, out: Path) -> None:
    """Drive scenario `name` in the release at `engine_dir` and write its log.

    Raises ValueError when the folder is no release this scenario is about.
    """
    scenario, release = SCENARIOS[name], engine_dir.name
    if release not in scenario.faulty + scenario.fixed:
        raise ValueError(f"{name} is about {', '.join(scenario.faulty + scenario.fixed)}, not {release}")
    engine, version = split_release(release)
    open_release(engine_dir, scenario.packages, scenario.unused)
    broken = release in scenario.faulty
    module = __spec__.name if __spec__ else __name__
    provenance: dict[str, Any] = {
        "x_provenance": scenario.issue,
        "x_command": f"python -m {module} {name} --engine-dir {release} --out {out.name}",
        "x_expect": "VIOLATED" if broken else "HOLDS",
        "x_rule": scenario.rule,
    }
    with Recorder(out, engine=engine, version=version, **scenario.header, **provenance) as recorder:
        scenario.drive(recorder)


def main() -> None:
    parser = argparse.ArgumentParser(description="Record one public fault, or its fix, from a release.")
    parser.add_argument("scenario", choices=sorted(SCENARIOS))
    parser.add_argument("--engine-dir", type=Path, required=True, help="folder made by the build command")
    parser.add_argument("--out", type=Path, required=True, help="log to write: .jsonl, .jsonl.gz or .jsonl.zst")
    arguments = parser.parse_args()
    record(arguments.scenario, arguments.engine_dir, arguments.out)


if __name__ == "__main__":
    main()
