"""Every design, its named scopes, and its mutants with the rule that catches each and after how many steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .settings import Settings


@dataclass(frozen=True)
class Mutant:
    """name: the value of the design's constant `mutant`, in small letters. rule: what catches it. steps: the length of
    its shortest counterexample in the named scope. A rule that is a lint is found by a search that keeps lints."""

    name: str
    rule: str
    steps: int
    scope: str


@dataclass(frozen=True)
class Design:
    """module, state: where its specification is. settings: its default scope. scopes: what named scopes change.

    pending: the helper that says whether something of a branch has begun and not ended. fair: the actions that the
    engine or the device takes of itself once they are possible; requests come and end as their clients like.
    drop_in: the scopes in which guards are dropped, one after the other ('': the default); none: in all of them."""

    name: str
    module: str
    state: str
    discipline: str
    settings: Settings
    scopes: Mapping[str, Settings] = field(default_factory=dict)
    mutants: tuple[Mutant, ...] = ()
    pending: str = ""
    fair: tuple[str, ...] = ()
    drop_in: tuple[str, ...] = ()

    def at(self, scope: str = "", **changes: int | bool | str) -> dict[str, int | bool | str]:
        """The settings of a named scope ('': the default), with changes. Raises KeyError for an unknown name."""
        return {**self.settings, **(self.scopes[scope] if scope else {}), **changes}


TAIL_COPY = Design(
    "tail_copy",
    "kvsan.spec.designs.tail_copy",
    "TailCopy",
    "paged_cow",
    {"branches": 3, "blocks": 5, "block_size": 2, "positions": 2, "prompt": 3, "mutant": "NONE"},
    {
        "two_branches": {"branches": 2, "blocks": 4},
        "four_branches": {"branches": 4, "blocks": 7},
        "three_positions": {"blocks": 6, "positions": 3},
        "full_prompt": {"prompt": 2},
        "one_slot_tail": {"blocks": 4, "prompt": 1},
        "wide_blocks": {"branches": 2, "blocks": 4, "block_size": 3, "prompt": 5},
    },
    (
        Mutant("append_without_copy", "exclusive_write", 3, "two_branches"),
        Mutant("share_empty_tail", "exclusive_write", 3, "full_prompt"),
        Mutant("publish_before_copy", "read_is_initialised", 4, "two_branches"),
        Mutant("copy_too_few", "private_copy_target", 3, "wide_blocks"),
        Mutant("copy_although_sole_owner", "needless_copy", 2, "two_branches"),
        Mutant("drop_source_before_copy", "entry_is_held", 10, "one_slot_tail"),
        Mutant("cancel_frees_shared", "free_once", 2, "two_branches"),
        Mutant("free_twice", "free_once", 4, "two_branches"),
        Mutant("fork_released_block", "entry_is_held", 7, "two_branches"),
    ),
    pending="append_is_pending",
    fair=("finish_copy", "publish_copy", "finish_write"),
)

PAGED_COW = Design(
    "paged_cow",
    "kvsan.spec.designs.paged_cow",
    "PagedCow",
    "paged_cow",
    {
        "branches": 2,
        "blocks": 4,
        "block_size": 2,
        "positions": 2,
        "prompt": 1,
        "schedule": "SAME_STREAM",
        "mutant": "NONE",
    },
    {
        "full_prompt": {"prompt": 2},
        "host_wait": {"schedule": "HOST_WAIT"},
        "event_wait": {"schedule": "EVENT_WAIT"},
        "unordered": {"schedule": "UNORDERED"},
        "two_blocks": {"blocks": 2},
        "host_wait_two_blocks": {"schedule": "HOST_WAIT", "blocks": 2},
        "event_wait_two_blocks": {"schedule": "EVENT_WAIT", "blocks": 2},
        "three_blocks": {"blocks": 3},
        "wide_blocks": {"blocks": 3, "block_size": 3, "prompt": 2},
        "host_wait_three_blocks": {"schedule": "HOST_WAIT", "blocks": 3},
        "event_wait_three_branches": {"schedule": "EVENT_WAIT", "branches": 3, "blocks": 3},
        "three_writers": {"branches": 3, "blocks": 5},
        "three_positions": {"branches": 3, "blocks": 6, "positions": 3},
    },
    (
        Mutant("append_without_copy", "exclusive_write", 6, "three_blocks"),
        Mutant("copy_although_sole_owner", "needless_copy", 5, "three_blocks"),
        Mutant("copy_too_few", "private_copy_target", 6, "wide_blocks"),
        Mutant("step_before_copy", "copy_precedes_use", 7, "host_wait_three_blocks"),
        Mutant("cancel_under_copy", "no_reuse_in_flight", 10, "host_wait_three_blocks"),
        Mutant("cancel_frees_shared", "free_once", 6, "three_blocks"),
        Mutant("free_on_completion_too", "free_once", 8, "host_wait_three_blocks"),
        Mutant("copy_keeps_source", "no_leak", 11, "host_wait_three_blocks"),
        Mutant("cancel_keeps_target", "no_leak", 10, "host_wait_three_blocks"),
        Mutant("stale_check_copies", "no_leak", 11, "three_blocks"),
        Mutant("stale_check_appends", "exclusive_write", 7, "three_blocks"),
        Mutant("preempt_frees_shared", "free_once", 6, "three_blocks"),
        Mutant("preempt_keeps_blocks", "no_leak", 7, "three_blocks"),
        Mutant("prefill_last_token_only", "read_is_initialised", 3, "full_prompt"),
        Mutant("fork_under_prefill", "read_is_initialised", 4, "three_blocks"),
        Mutant("drop_source_under_copy", "no_reuse_in_flight", 10, "host_wait_three_blocks"),
        Mutant("copy_ignores_steps", "no_reuse_in_flight", 9, "event_wait_three_branches"),
    ),
    pending="work_is_pending",
    fair=(
        "take_block",
        "prefill",
        "finish_copy",
        "finish_step",
        "end_doomed",
        "learn_late_step",
        "learn_late_copy",
    ),
    drop_in=("two_blocks", "host_wait_two_blocks", "event_wait_two_blocks"),
)

PREFIX_APPEND_ONLY = Design(
    "prefix_append_only",
    "kvsan.spec.designs.prefix_append_only",
    "PrefixAppendOnly",
    "append_only",
    {
        "branches": 2,
        "blocks": 4,
        "block_size": 2,
        "positions": 2,
        "prompt": 3,
        "identities": 2,
        "mutant": "NONE",
    },
    {
        "full_prompt": {"prompt": 4, "positions": 3},
        "three_blocks": {"blocks": 3},
        "two_hits": {"blocks": 6, "block_size": 1, "positions": 3},
    },
    (
        Mutant("hit_not_held", "entry_is_held", 8, ""),
        Mutant("alloc_keeps_identity", "hit_is_live", 10, ""),
        Mutant("seal_partial", "seal_is_earned", 4, ""),
        Mutant("seal_beyond_tokens", "seal_is_earned", 4, ""),
        Mutant("seal_hits_again", "sealed_twice", 8, ""),
        Mutant("launch_late", "read_is_initialised", 9, ""),
        Mutant("deduplicate", "append_only_table", 10, ""),
        Mutant("recompute_hits", "recomputed_sealed", 8, ""),
        Mutant("end_frees_shared", "free_once", 7, ""),
        Mutant("end_keeps_blocks", "no_leak", 7, ""),
    ),
    pending="work_is_pending",
    fair=("find_block", "take_block", "schedule_prefill", "finish_step", "learn_late"),
    drop_in=("three_blocks", "full_prompt", "two_hits"),
)

SPECULATIVE = Design(
    "speculative",
    "kvsan.spec.designs.speculative",
    "Speculative",
    "paged_cow",
    {
        "branches": 2,
        "blocks": 4,
        "block_size": 2,
        "positions": 3,
        "capacity": 4,
        "prompt": 1,
        "identities": 2,
        "lookahead": 1,
        "window_size": 0,
        "failures": 0,
        "discipline": "PAGED_COW",
        "mutant": "NONE",
    },
    {
        "append_only": {"discipline": "APPEND_ONLY", "blocks": 3, "failures": 1},
        "one_branch": {"branches": 1, "blocks": 2},
        "one_branch_append_only": {"branches": 1, "blocks": 2, "discipline": "APPEND_ONLY"},
        "one_block": {"blocks": 1, "failures": 1},
        "reuse_after_cancel": {"blocks": 2},
        "three_blocks": {"blocks": 3},
        "forks": {"branches": 3, "blocks": 3},
        "full_prompt": {"prompt": 2},
        "full_prompt_append_only": {"positions": 4, "capacity": 6, "prompt": 4, "discipline": "APPEND_ONLY"},
        "one_slot_tail": {"blocks": 3, "positions": 4, "capacity": 6, "prompt": 3},
        "across_blocks": {"branches": 1, "blocks": 3, "positions": 4, "capacity": 6, "prompt": 2, "lookahead": 2},
        "short_of_blocks": {
            "branches": 1,
            "blocks": 2,
            "positions": 4,
            "capacity": 6,
            "prompt": 2,
            "lookahead": 2,
            "failures": 1,
            "discipline": "APPEND_ONLY",
        },
        "window": {"branches": 1, "blocks": 2, "prompt": 2, "window_size": 3, "discipline": "APPEND_ONLY"},
        "two_hits": {
            "branches": 1,
            "blocks": 3,
            "positions": 4,
            "capacity": 6,
            "prompt": 5,
            "discipline": "APPEND_ONLY",
        },
    },
    (
        Mutant("rollback_keeps_blocks", "rollback_exact", 11, "across_blocks"),
        Mutant("rollback_drops_tail", "rollback_exact", 10, "one_branch"),
        # vllm#47728: the window advances on drafts, and their rejection moves it back below blocks that are gone
        Mutant("window_on_drafts", "read_is_initialised", 10, "window"),
        # vllm#16370: drafts get no slots, and are written past the table
        Mutant("lookahead_not_mapped", "write_within_table", 6, "one_branch"),
        # as sglang#35270, which enters a block into the cache whose contents are not final
        Mutant("seal_proposed", "seal_is_earned", 10, "one_branch_append_only"),
        Mutant("seal_rejected", "rollback_exact", 11, "one_branch_append_only"),
        Mutant("read_rejected", "rollback_exact", 11, "one_branch"),
        Mutant("accept_one_more", "rollback_exact", 8, "one_branch"),
        Mutant("accept_after_cancel", "rollback_exact", 5, "one_branch"),
        Mutant("promise_without_copy", "reservation_covers", 6, "reuse_after_cancel"),
        # vllm#8824: who asks whether a sequence fits forgets its lookahead slots
        Mutant("promise_without_lookahead", "reservation_covers", 6, "one_branch"),
        # as vllm#6849, which counts the same free blocks twice
        Mutant("promise_twice", "reservation_covers", 4, "one_block"),
        Mutant("fork_as_accepted", "rollback_exact", 10, "three_blocks"),
        # vLLM V0: copy-on-write looks at the token that is appended, so that forks write one lookahead block
        Mutant("fork_shares_lookahead", "exclusive_write", 10, "three_blocks"),
        Mutant("drafts_without_copy", "exclusive_write", 7, "three_blocks"),
        # vllm#11562: an allocation that fails keeps what it took before
        Mutant("failure_keeps_blocks", "reservation_covers", 9, "short_of_blocks"),
        # as TensorRT-LLM#12933, where a sequence that is removed leaves blocks allocated
        Mutant("cancel_keeps_lookahead", "no_leak", 10, "one_branch"),
        Mutant("cancel_keeps_taken", "no_leak", 4, "one_branch"),
    ),
    pending="step_is_pending",
    fair=(
        "find_block",
        "take_block",
        "find_pool_empty",
        "launch_in_place",
        "launch_in_copy",
        "verify",
        "learn_late",
    ),
    drop_in=(
        "one_branch",
        "one_branch_append_only",
        "two_hits",
        "window",
        "one_block",
        "reuse_after_cancel",
        "three_blocks",
        "append_only",
    ),
)

TRANSFERS = Design(
    "transfers",
    "kvsan.spec.designs.transfers",
    "Transfers",
    "append_only",
    {
        "branches": 2,
        "blocks": 3,
        "block_size": 2,
        "positions": 2,
        "prompt": 3,
        "identities": 1,
        "holders": 1,
        "tier_blocks": 0,
        "mutant": "NONE",
    },
    {
        "one_block": {"branches": 1, "blocks": 1, "positions": 1, "prompt": 1},
        "full_prompt": {"branches": 1, "blocks": 1, "positions": 1, "block_size": 1, "prompt": 1},
        "several_handles": {"branches": 1, "blocks": 2},
        "two_tiers": {"branches": 1, "tier_blocks": 1},
        "one_token": {"branches": 1, "tier_blocks": 1, "prompt": 1},
        "two_stores": {"branches": 1, "holders": 2, "tier_blocks": 1},
        "tiers_raced": {"blocks": 4, "holders": 2, "tier_blocks": 1},
        "two_transfers": {"blocks": 4, "holders": 2},
    },
    (
        Mutant("pin_not_taken", "no_reuse_in_flight", 7, "full_prompt"),
        Mutant("pin_taken_twice", "pins_balanced", 8, "several_handles"),
        Mutant("never_released", "pins_balanced", 8, "several_handles"),
        Mutant("released_twice", "pins_balanced", 4, "full_prompt"),
        Mutant("release_unheld", "pins_balanced", 8, "several_handles"),
        Mutant("release_keeps_blocks", "no_leak", 6, "full_prompt"),
        Mutant("release_at_first_handle", "read_is_initialised", 6, "several_handles"),
        Mutant("cancel_frees_at_once", "free_once", 4, "full_prompt"),
        Mutant("free_again_on_completion", "free_once", 5, "full_prompt"),
        Mutant("read_failed_load", "read_is_initialised", 7, "several_handles"),
        Mutant("resume_at_last_failure", "read_is_initialised", 7, "several_handles"),
        Mutant("seal_before_load", "seal_is_earned", 5, "full_prompt"),
        Mutant("step_under_load", "read_is_initialised", 5, "several_handles"),
        Mutant("end_under_step", "no_reuse_in_flight", 9, ""),
        Mutant("never_times_out", "pins_balanced", 6, "full_prompt"),
        Mutant("time_out_under_load", "accesses_ordered", 6, "full_prompt"),
        Mutant("time_out_under_send", "no_reuse_in_flight", 11, "full_prompt"),
        Mutant("load_over_hits", "sealed_is_immutable", 10, "several_handles"),
        Mutant("append_under_send", "exclusive_write", 6, "one_block"),
        Mutant("send_under_step", "accesses_ordered", 4, "full_prompt"),
        Mutant("store_not_pinned", "entry_is_held", 8, "two_tiers"),
        Mutant("seal_store_at_launch", "seal_is_earned", 10, "two_tiers"),
        Mutant("seal_failed_store", "seal_is_earned", 10, "two_tiers"),
        Mutant("lookup_not_pinned", "hit_is_live", 12, "tiers_raced"),
        Mutant("source_freed_at_launch", "no_reuse_in_flight", 13, "tiers_raced"),
    ),
    pending="work_is_pending",
    fair=(
        "find_block",
        "take_block",
        "finish_step",
        "end_after_step",
        "launch_store",
        "launch_fetch",
        "finish_handle",
        "fail_handle",
        "time_out",
    ),
    drop_in=("full_prompt", "one_block", "one_token", "several_handles", "two_tiers", "two_stores", ""),
)

PREFIX_COW = Design(
    "prefix_cow",
    "kvsan.spec.designs.prefix_cow",
    "PrefixCow",
    "append_only_cow",
    {
        "branches": 2,
        "blocks": 3,
        "block_size": 3,
        "positions": 2,
        "shared": 1,
        "prompt": 2,
        "capacity": 3,
        "identities": 2,
        "holders": 1,
        "ahead": True,
        "connector": False,
        "states": False,
        "mutant": "NONE",
    },
    {
        "two_slot_tail": {"shared": 2, "prompt": 3},
        "full_prompt": {"block_size": 2, "capacity": 4},
        "behind_a_full_block": {"blocks": 4, "block_size": 2, "shared": 3, "prompt": 4, "capacity": 4},
        "three_positions": {"blocks": 4, "block_size": 2, "positions": 3, "shared": 3, "prompt": 4, "capacity": 5},
        "three_writers": {"branches": 3, "blocks": 4},
        "connector": {"connector": True},
        "states": {"states": True},
        "states_connector": {"states": True, "connector": True},
        "states_behind_a_full_block": {
            "states": True,
            "blocks": 4,
            "block_size": 3,
            "shared": 4,
            "prompt": 5,
            "capacity": 6,
        },
        "in_step": {"ahead": False},
    },
    (
        Mutant("append_without_copy", "exclusive_write", 8, ""),
        Mutant("source_not_retained", "entry_is_held", 14, ""),
        Mutant("target_not_retained", "copy_precedes_use", 11, "states"),
        Mutant("copy_ends_not_fenced", "no_reuse_in_flight", 14, "connector"),
        Mutant("pin_twice", "pins_balanced", 13, ""),
        Mutant("unpin_twice", "pins_balanced", 8, ""),
        Mutant("fence_never_done", "pins_balanced", 7, "connector"),
        Mutant("fence_too_early", "no_reuse_in_flight", 12, "connector"),
        Mutant("end_frees_at_once", "no_reuse_in_flight", 9, "connector"),
        Mutant("cancel_under_load", "no_reuse_in_flight", 8, "connector"),
        Mutant("chain_copies", "source_stable", 13, ""),
        Mutant("copy_before_write", "read_is_initialised", 7, ""),
        Mutant("copy_after_step", "read_is_initialised", 8, ""),
        Mutant("copy_too_few", "private_copy_target", 8, "two_slot_tail"),
        Mutant("seal_beyond_tokens", "seal_is_earned", 3, ""),
        Mutant("evict_keeps_identity", "hit_is_live", 10, ""),
        Mutant("hit_not_held", "hit_is_live", 8, ""),
        Mutant("preempt_scheduled", "seal_is_earned", 8, ""),
        Mutant("end_frees_shared", "free_once", 7, ""),
        Mutant("end_keeps_blocks", "no_leak", 4, ""),
    ),
    pending="work_is_pending",
    fair=(
        "find_block",
        "find_tail",
        "take_block",
        "schedule_prefill",
        "schedule_behind_copy",
        "give_up",
        "finish_load",
        "launch_built",
        "process_step",
        "end_doomed",
    ),
    drop_in=(
        "two_slot_tail",
        "full_prompt",
        "behind_a_full_block",
        "states",
        "connector",
        "states_behind_a_full_block",
    ),
)

ALL = (TAIL_COPY, PAGED_COW, PREFIX_APPEND_ONLY, SPECULATIVE, TRANSFERS, PREFIX_COW)
DESIGNS = {design.name: design for design in ALL}
