"""The reader gives back what the recorder wrote."""

from pathlib import Path

import pytest
from kvsan.traces.events import Alloc, Map
from kvsan.traces.read import open_log
from kvsan.traces.record import Recorder

HEADER = {"engine": "toy", "version": "1", "discipline": "paged_cow", "block_size": 4, "blocks": 8}


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".jsonl.zst"])
def test_a_recorded_log_reads_back_twice(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"run{suffix}"
    with Recorder(path, **HEADER) as recorder:  # type: ignore[arg-type]
        recorder.emit("alloc", block=3, branch="r0")
        recorder.emit("map", branch="r0", pos=0, block=[3, 4])
    log = open_log(path)
    for _ in range(2):
        items = [item for batch in log.batches() for item in batch]
        assert items == [(2, Alloc(seq=1, block=3, branch="r0")), (3, Map(seq=2, branch="r0", pos=0, block=(3, 4)))]
        assert log.problem is None
