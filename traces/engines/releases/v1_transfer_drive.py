"""Drives the scheduler of vLLM 0.15 and 0.16 with a connector that loads a prompt from elsewhere.

The connector is ours and does what a remote prefill does: it takes the blocks it is given, starts to write them, and
reports later that it is done. Its hold on them is the log's `pin`; the engine has no count of it.
"""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

from kvsan.traces.engines.releases.ledger import Ledger, Sink
from kvsan.traces.engines.releases.v1_late_drive import BLOCK_SIZE, Driver, cache_config, wanted

# The transfer's writes are in the log and those of the model are not.
# fmt: off
COMPLETE = (
    "admit", "grow", "alloc", "alloc_failed", "free", "map", "unmap", "finish", "cancel", "preempt", "pin", "unpin",
    "seal", "hit", "evict", "ref", "pool", "quiescent",
    "fork", "copy", "propose", "accept",  # this drive makes none
)
# fmt: on


class RemotePrefill:
    """Loads the prompts of the requests named in `remote`; one transfer a request."""

    def __init__(self, remote: set[str]) -> None:
        self.remote = remote
        self.ledger: Ledger | None = None
        self.running: dict[str, list[int]] = {}  # request: blocks being written

    def get_num_new_matched_tokens(self, request: Any, computed: int) -> tuple[int, bool]:
        if request.request_id not in self.remote or request.num_computed_tokens:
            return 0, False
        return request.num_tokens - computed, True

    def update_state_after_alloc(self, request: Any, blocks: Any, external: int) -> None:
        assert self.ledger is not None
        if not external:
            return
        name, (ids,) = request.request_id, blocks.get_block_ids()
        self.running[name] = ids
        with self.ledger.calling(None):
            for block in ids:
                self.ledger.note("pin", block=block, holder=f"load/{name}", kind="transfer")
            for block in ids:
                self.ledger.note("write", op=f"load/{name}", holder=f"load/{name}", block=block, slots=[0, BLOCK_SIZE])

    def arrived(self, name: str) -> Any:
        """The worker's report that the load of `name` is done."""
        assert self.ledger is not None
        with self.ledger.calling(None):
            self.ledger.note("done", op=f"load/{name}")
            for block in self.running.pop(name):
                self.ledger.note("unpin", block=block, holder=f"load/{name}")
        return SimpleNamespace(finished_recving={name}, finished_sending=None, invalid_block_ids=set())

    def request_finished(self, request: Any, block_ids: list[int]) -> tuple[bool, None]:
        return False, None

    def build_connector_meta(self, output: Any) -> None:
        return None

    def update_connector_output(self, output: Any) -> None:
        return None

    def take_events(self) -> tuple[()]:
        return ()


def scheduler(blocks: int, connector: RemotePrefill) -> Any:
    made = importlib.import_module("vllm.v1.core.sched.scheduler").Scheduler
    config = SimpleNamespace(
        scheduler_config=SimpleNamespace(
            max_num_seqs=8, max_num_batched_tokens=64, policy="fcfs", long_prefill_token_threshold=0,
            enable_chunked_prefill=True, async_scheduling=False, disable_hybrid_kv_cache_manager=True,
            max_num_encoder_input_tokens=0, encoder_cache_size=0, scheduler_reserve_full_isl=False,
        ),
        cache_config=SimpleNamespace(num_gpu_blocks=blocks, enable_prefix_caching=True, mamba_cache_mode="none"),
        model_config=SimpleNamespace(
            max_model_len=64, is_encoder_decoder=False, enable_return_routed_experts=False, is_multimodal_model=False
        ),
        parallel_config=SimpleNamespace(
            data_parallel_index=0, data_parallel_rank=0, decode_context_parallel_size=1,
            prefill_context_parallel_size=1, pipeline_parallel_size=1,
        ),
        observability_config=SimpleNamespace(kv_cache_metrics=False, enable_mfu_metrics=False),
        lora_config=None, kv_events_config=None, kv_transfer_config=None, ec_transfer_config=None,
        speculative_config=None,
    )  # fmt: skip
    offered = {
        "vllm_config": config,
        "kv_cache_config": cache_config(blocks),
        "structured_output_manager": None,
        "block_size": BLOCK_SIZE,
        "mm_registry": SimpleNamespace(supports_multimodal_inputs=lambda _: False),
    }
    built = made(**wanted(made, offered))
    built.connector = connector
    return built


def cancel_under_an_inbound_load(sink: Sink) -> None:
    """A request is cancelled while its prompt is being loaded; the next request is scheduled before the load ends."""
    connector = RemotePrefill({"remote"})
    scheduling = scheduler(5, connector)
    driver = Driver(scheduling.kv_cache_manager, sink)
    connector.ledger = driver.watch.ledger
    status = importlib.import_module("vllm.v1.request").RequestStatus
    scheduling.add_request(driver.request("remote", list(range(3 * BLOCK_SIZE))))
    scheduling.schedule()
    scheduling.finish_requests("remote", status.FINISHED_ABORTED)
    scheduling.add_request(driver.request("next", list(range(100, 100 + 3 * BLOCK_SIZE))))
    scheduling.schedule()
    scheduling._update_from_kv_xfer_finished(connector.arrived("remote"))
    scheduling.schedule()
    scheduling.finish_requests("next", status.FINISHED_ABORTED)
    driver.watch.ledger.quiescent()
