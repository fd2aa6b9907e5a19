"""Valid lines: every kind of the format's table with all its fields, and with as few as it may have."""

from typing import Any

COMMON = {"seq": 4, "t": 1_700_000_000_000, "thread": "worker", "pool": "gpu", "group": "0", "note": "by hand"}

FULL: list[dict[str, Any]] = [  # Any: JSON
    {"ev": "alloc", "block": [3, 4], "branch": "r0"},
    {"ev": "free", "block": 3, "branch": "r0"},
    {"ev": "alloc_failed", "branch": "r0", "blocks": 2},
    {"ev": "admit", "branch": 0, "tokens": 5},
    {"ev": "grow", "branch": "r0", "tokens": 1},
    {"ev": "fork", "branch": "r1", "parent": "r0", "upto": 5},
    {"ev": "map", "branch": "r0", "pos": 0, "block": [3, None, 4]},
    {"ev": "unmap", "branch": "r0", "pos": 0, "block": 3},
    {"ev": "window", "branch": "r0", "from": 1},
    {"ev": "finish", "branch": "r0"},
    {"ev": "cancel", "branch": "r0"},
    {"ev": "preempt", "branch": "r0"},
    {"ev": "pin", "block": 3, "holder": "dma", "mode": "freeze", "kind": "transfer"},
    {"ev": "unpin", "block": [3], "holder": "dma", "mode": "keep", "kind": "cache"},
    {
        "ev": "seal",
        "block": 3,
        "hash": "h",
        "branch": "r0",
        "namespace": "lora1",
        "slots": [0, 4],
        "parent": "g",
        "digest": "d",
        "published": 7,
    },
    {
        "ev": "hit",
        "block": 3,
        "hash": 2**255,
        "branch": "r0",
        "namespace": 1,
        "slots": [0, 2],
        "parent": -5,
        "digest": 6,
        "published": "p",
    },
    {
        "ev": "evict",
        "block": 3,
        "hash": "h",
        "branch": "r0",
        "namespace": "n",
        "slots": [1, 4],
        "parent": "g",
        "digest": "d",
        "published": "p",
    },
    {"ev": "ref", "block": 3, "count": -3},
    {"ev": "pool", "free": 7},
    {"ev": "table", "branch": "r0", "blocks": [3, None], "view": "worker"},
    {"ev": "propose", "branch": "r0", "tokens": 3, "step": 9},
    {"ev": "accept", "branch": "r0", "tokens": 0, "step": "s9"},
    {"ev": "reserve", "branch": "r0", "blocks": 4},
    {
        "ev": "copy",
        "op": "c1",
        "branch": "r0",
        "src": 3,
        "dst": 0,
        "slots": [0, 3],
        "stream": "s",
        "src_pool": "gpu",
        "dst_pool": "cpu",
    },
    {"ev": "write", "op": "w1", "branch": "r0", "block": 3, "slots": [0, 1], "tokens": [4, 5], "stream": "s"},
    {"ev": "read", "op": "a1", "branch": "r0", "upto": 5, "stream": "s"},
    {
        "ev": "step",
        "op": "s1",
        "stream": "s",
        "copies": [[3, 4, 0, 3]],
        "writes": [["r0", 3, 0, 1]],
        "reads": ["r0", ["r1", 5]],
    },
    {"ev": "invalidate", "block": 3, "slots": [0, 2]},
    {"ev": "done", "op": "s1", "ok": False},
    {"ev": "record", "event": "e", "stream": "s"},
    {"ev": "wait", "event": "e", "stream": "s"},
    {"ev": "sync", "stream": "s"},
    {"ev": "signal", "channel": "q"},
    {"ev": "await", "channel": "q"},
    {"ev": "run", "op": "s1"},
    {"ev": "kv_stored", "hash": ["h", 2], "parent": "g", "medium": "GPU", "namespace": "n", "stream_seq": 0},
    {"ev": "kv_removed", "hash": "h", "parent": "g", "medium": "GPU", "namespace": "n", "stream_seq": 1},
    {"ev": "kv_cleared", "medium": "GPU", "namespace": "n", "stream_seq": 2},
    {"ev": "quiescent"},
]
"""Every kind with the fields of the format's table, in its order."""

OTHER: list[dict[str, Any]] = [
    {"ev": "write", "holder": "dma", "block": 3, "slots": [0, 4]},
    {"ev": "read", "holder": "dma", "block": 3, "slots": [0, 4]},
    {"ev": "read", "branch": "r0", "block": None},
    {"ev": "sync", "event": "e"},
    {"ev": "sync", "device": True},
    {"ev": "map", "branch": "r0", "pos": 0, "block": None},
    {"ev": "table", "branch": "r0", "blocks": []},
    {"ev": "step", "op": 1, "stream": 0},
    {"ev": "alloc", "block": 3, "x_own": {"any": ["thing"]}},
    {"ev": "x_own", "block": "anything", "seq": 3},
]

TRACE = {
    "ev": "trace",
    "schema": "kvsan/1",
    "engine": "vllm",
    "version": "0.9.1",
    "discipline": "paged_cow",
    "block_size": 16,
    "blocks": 1024,
}

HEADERS: list[dict[str, Any]] = [
    TRACE,
    TRACE
    | {
        "null_block": 0,
        "ref_counts": "owners+pins",
        "started": "mid_run",
        "complete": ["alloc", "x_own"],
        "pools": {"cpu": {"blocks": 512, "block_size": 16}, "disk": {"blocks": 9}},
        "groups": {"1": {"block_size": 64}},
        "legacy_stream": 0,
        "rank": 3,
        "clock": "monotonic",
        "note": "by hand",
        "x_command": "python run.py",
    },
]

VALID = [*FULL, *[line | COMMON for line in FULL], *OTHER, *HEADERS]
