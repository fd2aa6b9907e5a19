"""What recording and reading cost, as ratios to msgspec alone in the same run. `pytest -m bench -s tests/traces`.

Times are processor time of the calling thread, the best of many rounds, so that a busy machine changes them little.
"""

import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from kvsan.traces.decode import decoder
from kvsan.traces.read import open_log
from kvsan.traces.record import Recorder

RECORD_RATIO_MAX = 7.5
"""An event may cost 3 us, where a bare encode of its record takes 0.4 us."""

READ_RATIO_MAX = 6.0
EVENTS = 100_000

pytestmark = pytest.mark.bench


def seconds(work: Callable[[], object]) -> float:
    start = time.thread_time()
    work()
    return time.thread_time() - start


def recorder(path: Path) -> Recorder:
    return Recorder(path, engine="toy", version="1", discipline="paged_cow", block_size=16, blocks=16384)


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".jsonl.zst"])
def test_recording_costs_a_few_encodes(tmp_path: Path, suffix: str) -> None:
    """An event of four fields, against the bare encode of the same record."""
    encode, count, rounds = msgspec.json.Encoder().encode, 2_000, 40
    with recorder(tmp_path / f"run{suffix}") as log:

        def record() -> None:
            for i in range(count):
                log.emit("write", branch="req-17", block=i, slots=(3, 8), stream="compute")

        def bare() -> None:
            for i in range(count):
                encode({"ev": "write", "seq": i, "branch": "req-17", "block": i, "slots": (3, 8), "stream": "compute"})

        times = [(seconds(record), log.flush(), seconds(bare)) for _ in range(rounds)]
    recorded, encoded = (min(pick) / count * 1e6 for pick in ([t[0] for t in times], [t[2] for t in times]))
    print(f"\nrecord {suffix}: {recorded:.2f} us, {recorded / encoded:.1f} times a bare encode of {encoded:.2f} us")
    assert recorded / encoded <= RECORD_RATIO_MAX


def test_reading_costs_a_few_decodes(tmp_path: Path) -> None:
    """Common events, read with every check, against `decode_lines` of the same bytes into the same records."""
    path = tmp_path / "run.jsonl"
    with recorder(path) as log:
        for i in range(EVENTS // 5):
            branch, block = f"req-{i % 256}", i * 7 % 16384
            log.emit("alloc", block=block, branch=branch)
            log.emit("map", branch=branch, pos=i % 64, block=block)
            log.emit("grow", branch=branch, tokens=1)
            log.emit("write", branch=branch, block=block, slots=[i % 16, i % 16 + 1], stream="compute")
            log.emit("free", block=block)
    opened = open_log(path)
    pieces = path.read_bytes().splitlines(keepends=True)[1:-1]  # without the header and the recorder's end mark
    chunks = [b"".join(pieces[at : at + 4000]) for at in range(0, len(pieces), 4000)]

    def read() -> None:
        assert sum(len(batch) for batch in opened.batches()) == EVENTS

    def bare() -> None:
        for chunk in chunks:
            decoder.decode_lines(chunk)

    times = [(seconds(read), seconds(bare)) for _ in range(5)]
    whole, decoded = min(t[0] for t in times) / EVENTS * 1e6, min(t[1] for t in times) / EVENTS * 1e6
    print(
        f"\nread: {1 / whole:.2f} million events a second, {whole / decoded:.1f} times a bare decode ({decoded:.2f} us)"
    )
    assert whole / decoded <= READ_RATIO_MAX
