"""Programs of PyTorch operators over the stand-in for `torch.cuda`, for an interpreter that has torch and kvsan.

    python torch_programs.py FOLDER

records each program into FOLDER/NAME.jsonl and writes results.json: whether the tensors that it leaves are always the
same, whatever the device does within the order that the program made. KV tensors are CPU tensors that play device
memory: a mode below the recorder's queues every operator on the stand-in's streams instead of running it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any  # torch is not installed where the types of this file are checked

import torch
from fake_cuda import FakeCuda, executions
from kvsan.traces.engines.torch_footprint import Layout
from kvsan.traces.engines.torch_streams import Streams, record_streams
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

BLOCKS, SLOTS, HEADS, SIZE = 6, 4, 2, 8


class Queued(TorchDispatchMode):  # type: ignore[misc]  # torch's class
    """Operators on device memory run when the stand-in's device gets to them; a result is filled in then."""

    def __init__(self, cuda: FakeCuda, memory: set[int]) -> None:
        super().__init__()
        self.cuda, self.memory = cuda, memory

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        aliases = [argument.alias_info for argument in func._schema.arguments if argument.alias_info is not None]
        if not any(self._on_device(tensor) for tensor in args) or (aliases and not aliases[0].is_write):
            return func(*args, **kwargs)
        if func is torch.ops.aten._local_scalar_dense.default:
            self.cuda.work(lambda: not self.cuda.current_stream().queue)  # the operator's own wait
            return func(*args, **kwargs)
        if aliases:
            self.cuda.launch(lambda: func(*args, **kwargs))
            return args[0]
        result = func(*args, **kwargs)
        self.cuda.launch(lambda: result.copy_(func(*args, **kwargs)))
        return result

    def _on_device(self, tensor: Any) -> bool:
        return isinstance(tensor, torch.Tensor) and tensor.untyped_storage().data_ptr() in self.memory


class Device(FakeCuda):
    """The stand-in, working apart from the modes of the thread that waits for it."""

    def work(self, until: Callable[[], bool]) -> None:
        with _disable_current_modes():
            super().work(until)


class Program:
    """Keys and values [blocks, slots, heads, size], a host pool of the same shape, and two streams."""

    def __init__(self, cuda: FakeCuda, kv: Streams, keys: Any, values: Any, host: Any) -> None:
        self.cuda, self.kv, self.keys, self.values, self.host = cuda, kv, keys, values, host
        self.side: Any = cuda.Stream()
        self.main = cuda.current_stream()

    def token(self, number: float, tokens: int = 1) -> Any:
        return torch.full((tokens, HEADS, SIZE), float(number))


# --- which slots an operator touches ----------------------------------------------------------------------------------


def store_by_index(p: Program) -> None:
    """vLLM's `reshape_and_cache`: blocks and offsets of three tokens."""
    blocks, offsets = torch.tensor([1, 1, 3]), torch.tensor([2, 3, 0])
    p.keys[blocks, offsets] = p.token(5, 3)


def store_by_flat_slot(p: Program) -> None:
    """`index_copy_` into the view [blocks * slots, …]: slots 6, 7 and 12."""
    p.values.view(-1, HEADS, SIZE).index_copy_(0, torch.tensor([6, 7, 12]), p.token(5, 3))


def store_through_views(p: Program) -> None:
    p.keys[2, 1:3].copy_(p.token(1, 2))
    p.keys.select(0, 4).fill_(0)
    p.keys[:, :, 1].transpose(0, 1)[3, 5].zero_()
    p.values.view(torch.uint8)[5, 0, 0].zero_()


def read_by_index(p: Program) -> None:
    """Two blocks gathered, one slot, then a masked choice."""
    p.keys[torch.tensor([0, 2])]
    p.keys.index_select(1, torch.tensor([1]))
    p.values[3].clone()
    torch.empty_like(p.keys)


def copy_blocks(p: Program) -> None:
    """A whole block, two slots of one, keys to values of a block, and slots to other slots."""
    p.keys[4].copy_(p.keys[1])
    p.values[5, :2].copy_(p.values[0, :2])
    p.values[2].copy_(p.keys[2])
    p.keys[3, 0:2].copy_(p.keys[0, 2:4])


def swap_to_host(p: Program) -> None:
    p.host[2].copy_(p.keys[1], non_blocking=True)
    p.host[3].copy_(p.keys[1])
    with p.kv.acting("r0"):
        p.host[0].fill_(7)


def ask_for_a_number(p: Program) -> None:
    p.keys[1, 2, 0, 0].item()


# --- order ------------------------------------------------------------------------------------------------------------


def prefill(p: Program) -> None:
    p.keys.view(-1, HEADS, SIZE).index_copy_(0, torch.arange(4, 7), p.token(1, 3))


def copy_on_write(p: Program, wait: bool) -> None:
    """Block 1 is copied to block 2 on a side stream; then the tail slot is written and the block read."""
    prefill(p)
    p.side.wait_stream(p.main)
    with p.cuda.stream(p.side):
        p.keys[2].copy_(p.keys[1])
    if wait:
        p.main.wait_stream(p.side)
    p.keys[2, 3] = 9.0
    p.values[2].copy_(p.keys[2])


def copied_without_waiting(p: Program) -> None:
    copy_on_write(p, wait=False)


def copied_behind_an_event(p: Program) -> None:
    copy_on_write(p, wait=True)


def overwritten(p: Program, wait: bool) -> None:
    """The source of a copy to the host takes new tokens."""
    prefill(p)
    p.side.wait_stream(p.main)
    with p.cuda.stream(p.side):
        p.host[0].copy_(p.keys[1], non_blocking=True)
    saved = p.side.record_event()
    if wait:
        saved.synchronize()
    p.keys.index_put_((torch.tensor([1]), torch.tensor([0])), p.token(8))


def overwritten_under_the_copy(p: Program) -> None:
    overwritten(p, wait=False)


def overwritten_after_the_host_waited(p: Program) -> None:
    overwritten(p, wait=True)


def copied_by_a_blocking_call(p: Program) -> None:
    """`copy_` to the host without `non_blocking` waits; the stand-in's queue is worked off as torch would."""
    prefill(p)
    p.side.wait_stream(p.main)
    with p.cuda.stream(p.side):
        p.host[0].copy_(p.keys[1])
        type(p.side).__mro__[-2].synchronize(p.side)  # torch's own wait, inside the operator: the recorder sees none
    p.keys.index_put_((torch.tensor([1]), torch.tensor([0])), p.token(8))


TOUCHES = [
    store_by_index, store_by_flat_slot, store_through_views, read_by_index, copy_blocks, swap_to_host, ask_for_a_number,
]  # fmt: skip
ORDERS = [
    copied_without_waiting, copied_behind_an_event, overwritten_under_the_copy, overwritten_after_the_host_waited,
    copied_by_a_blocking_call,
]  # fmt: skip


def once(program: Callable[[Program], None], path: Path, cuda: FakeCuda) -> str:
    """Record the program; what its tensors hold in the end."""
    shape = (BLOCKS, SLOTS, HEADS, SIZE)
    keys, values, host = torch.zeros(shape), torch.zeros(shape), torch.zeros(shape)
    caches = [(keys, Layout()), (values, Layout()), (host, Layout(pool="cpu"))]
    memory = {tensor.untyped_storage().data_ptr() for tensor in (keys, values)}
    queued, listened = (
        Queued(cuda, memory),
        record_streams(path, caches, cuda=cuda, on_device=lambda t: t.untyped_storage().data_ptr() != host.data_ptr()),
    )
    with queued, listened as kv:
        program(Program(cuda, kv, keys, values, host))
    cuda.synchronize()
    return str([tensor[:, :, 0, 0].tolist() for tensor in (keys, values, host)])


def main(folder: Path) -> None:
    results = {}
    for program in TOUCHES + ORDERS:
        path = folder / f"{program.__name__}.jsonl"

        def run(cuda: FakeCuda, program: Callable[[Program], None] = program, path: Path = path) -> str:
            return once(program, path, cuda)

        ends = {run(Device())}
        if program in ORDERS:
            ends |= set(executions(run, Device))
        results[program.__name__] = len(ends) == 1
    (folder / "results.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
