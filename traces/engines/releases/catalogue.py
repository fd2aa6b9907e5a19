"""The public faults that have a log from a release: who has each, who is without, and what is driven.

The drive is the same for the faulty and for the fixed release. It makes the calls that the engine's scheduler would
make: an admission is asked for with `can_allocate` first, an append with `can_append_slot(s)`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kvsan.traces.engines.releases import nano, sglang, v0_drive, v1_drive, v1_late_drive, v1_transfer_drive
from kvsan.traces.engines.releases.ledger import Sink


@dataclass(frozen=True)
class Scenario:
    """One public fault: who has it, who is without, what is driven, and what the log must show."""

    issue: str  # where it was reported
    faulty: tuple[str, ...]  # releases, as build names them
    fixed: tuple[str, ...]
    rule: str  # broken by the faulty releases
    line: int  # of their logs, where it is broken first
    drive: Callable[[Sink], None]
    header: dict[str, Any]  # discipline, block_size, blocks and more
    packages: tuple[str, ...] = ("vllm",)  # whose __init__ is skipped, where the release has them
    unused: tuple[str, ...] = ()  # modules imported and never called
    corrected: Callable[[Sink], None] | None = None  # where no release is without the fault: drives it mended


SCENARIOS = {
    "nano-vllm-163": Scenario(
        issue="GeeeekExplorer/nano-vllm#163",
        faulty=("nano-vllm-npu-0.0.2",),
        fixed=("nano-vllm-fork-20260210",),
        rule="hit_is_live",
        line=42,
        drive=nano.same_block_under_another_prefix,
        header={"discipline": "append_only", "block_size": 4, "blocks": 5, "ref_counts": "owners"},
        packages=nano.PACKAGES,
    ),
    "sglang-40305": Scenario(
        issue="sgl-project/sglang#40305",
        faulty=("sglang-0.5.23",),
        fixed=(),
        rule="free_once",
        line=11,
        drive=lambda sink: sglang.freed_on_cancel_and_on_completion(sink, guarded=False),
        corrected=lambda sink: sglang.freed_on_cancel_and_on_completion(sink, guarded=True),
        header={"discipline": "page_tree", "block_size": 1, "blocks": 5, "null_block": 0},
        packages=sglang.PACKAGES,
    ),
    "vllm-1556": Scenario(
        issue="vllm-project/vllm#1556",
        faulty=("vllm-0.3.3",),
        fixed=("vllm-0.4.0",),
        rule="free_once",
        line=23,
        drive=v0_drive.ring_fork_then_free,
        header={"discipline": "paged_cow", "block_size": 4, "blocks": 8, "ref_counts": "owners"},
    ),
    "vllm-1556-leak": Scenario(
        issue="vllm-project/vllm#1556",
        faulty=("vllm-0.3.3",),
        fixed=("vllm-0.4.0",),
        rule="ref_count_agrees",
        line=14,
        drive=v0_drive.ring_fork_of_a_wrapped_table,
        header={"discipline": "paged_cow", "block_size": 4, "blocks": 8, "ref_counts": "owners"},
    ),
    "vllm-4764": Scenario(
        issue="vllm-project/vllm#4764",
        faulty=("vllm-0.4.2",),
        fixed=("vllm-0.4.3",),
        rule="hit_is_live",
        line=35,
        drive=v0_drive.evicted_block_keeps_its_hash,
        header={"discipline": "paged_cow", "block_size": 4, "blocks": 4, "ref_counts": "owners"},
    ),
    "vllm-6849": Scenario(
        issue="vllm-project/vllm#6849",
        faulty=("vllm-0.5.4",),
        fixed=("vllm-0.6.2",),
        rule="reservation_covers",
        line=39,
        drive=v0_drive.swap_in_of_cached_blocks,
        header={"discipline": "paged_cow", "block_size": 4, "blocks": 5, "ref_counts": "owners"},
        unused=v1_drive.UNUSED,
    ),
    "vllm-8824": Scenario(
        issue="vllm-project/vllm#8824",
        faulty=("vllm-0.6.2",),
        fixed=("vllm-0.6.3",),
        rule="reservation_covers",
        line=61,
        drive=v0_drive.swap_in_with_a_sampled_token,
        header={"discipline": "paged_cow", "block_size": 4, "blocks": 5, "ref_counts": "owners"},
        unused=v1_drive.UNUSED,
    ),
    "vllm-20512": Scenario(
        issue="vllm-project/vllm#20512",
        faulty=("vllm-0.6.2",),
        fixed=(),
        rule="entry_is_held",
        line=28,
        drive=lambda sink: v0_drive.fork_behind_a_window(sink, mended=False),
        corrected=lambda sink: v0_drive.fork_behind_a_window(sink, mended=True),
        header={"discipline": "paged_cow", "block_size": 4, "blocks": 8, "null_block": 0, "ref_counts": "owners"},
        unused=v1_drive.UNUSED,
    ),
    "vllm-11186": Scenario(
        issue="vllm-project/vllm#11186",
        faulty=("vllm-0.6.4.post1",),
        fixed=("vllm-0.6.5",),
        rule="hit_is_live",
        line=82,
        drive=v1_drive.full_hit_recomputes_one_token,
        header={"discipline": "append_only", "block_size": 16, "blocks": 32, "ref_counts": "owners"},
        unused=v1_drive.UNUSED,
    ),
    "vllm-11562": Scenario(
        issue="vllm-project/vllm#11562",
        faulty=("vllm-0.6.5",),
        fixed=("vllm-0.7.0",),
        rule="reservation_covers",
        line=70,
        drive=v1_drive.failed_admission_keeps_references,
        header={"discipline": "append_only", "block_size": 16, "blocks": 12, "ref_counts": "owners"},
        unused=v1_drive.UNUSED,
    ),
    "vllm-32255": Scenario(
        issue="vllm-project/vllm#32255",
        faulty=("vllm-0.15.0",),
        fixed=("vllm-0.16.0",),
        rule="free_once",
        line=18,
        drive=v1_transfer_drive.cancel_under_an_inbound_load,
        header={
            "discipline": "append_only",
            "block_size": 4,
            "blocks": 5,
            "null_block": 0,
            "ref_counts": "owners",
            "complete": v1_transfer_drive.COMPLETE,
        },
        packages=v1_late_drive.PACKAGES,
        unused=v1_late_drive.UNUSED,
    ),
    "vllm-42571": Scenario(
        issue="vllm-project/vllm#42571",
        faulty=("vllm-0.23.0",),
        fixed=("vllm-0.24.0",),
        rule="free_once",
        line=22,
        drive=v1_late_drive.store_names_a_block_twice,
        header={
            "discipline": "append_only",
            "block_size": 4,
            "blocks": 6,
            "null_block": 0,
            "ref_counts": "owners+pins",
        },
        packages=v1_late_drive.PACKAGES,
        unused=v1_late_drive.UNUSED,
    ),
    "vllm-44701": Scenario(
        issue="vllm-project/vllm#44701",
        faulty=("vllm-0.29.0",),
        fixed=("vllm-0.33.0",),
        rule="hit_is_live",
        line=22,
        drive=v1_late_drive.salt_that_names_an_adapter,
        header={"discipline": "append_only_cow", "block_size": 4, "blocks": 8, "null_block": 0, "ref_counts": "owners"},
        packages=v1_late_drive.PACKAGES,
        unused=v1_late_drive.UNUSED,
    ),
    "vllm-55092": Scenario(
        issue="vllm-project/vllm#55092",
        faulty=("vllm-0.33.0",),
        fixed=(),
        rule="events_match_cache",
        line=35,
        drive=v1_late_drive.evicting_one_of_two_copies,
        header={"discipline": "append_only_cow", "block_size": 4, "blocks": 6, "null_block": 0, "ref_counts": "owners"},
        packages=v1_late_drive.PACKAGES,
        unused=v1_late_drive.UNUSED,
        corrected=lambda sink: v1_late_drive.evicting_one_of_two_copies(v1_late_drive.Corrected(sink)),
    ),
}
