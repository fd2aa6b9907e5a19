"""The first line of a file: found, decoded, judged."""

from difflib import get_close_matches

import msgspec
from kvsan.traces.events import EVENT_TYPES
from kvsan.traces.explain import explain_header
from kvsan.traces.header import Trace
from kvsan.traces.lines import Block
from kvsan.traces.problem import Fault
from kvsan.traces.syntax import EXTENSION, UNDECODABLE, JsonObject, explain_twice


def split_first_line(block: Block) -> tuple[bytes, Block]:
    """The first line that is not blank, and the rest of the block. All blank: an empty line, and nothing."""
    data = block.data.lstrip(b" \t\r\n")
    line, _, rest = data.partition(b"\n")
    count = rest.count(b"\n") + (1 if block.last_is_open and rest else 0)
    return line, Block(rest, block.first + block.count - count, count, block.last_is_open)


def names_header(line: bytes) -> bool:
    """Whether a line is meant as a header."""
    try:
        raw = msgspec.json.decode(line)
    except UNDECODABLE:
        return False
    return isinstance(raw, dict) and raw.get("ev") == "trace"


def parse_header(line: bytes, is_open: bool) -> tuple[Trace, JsonObject] | Fault:
    """The header, and its fields as written, extensions included."""
    try:
        raw = msgspec.json.decode(line)
        if not isinstance(raw, dict):
            return explain_header(line, is_open)
        known = {name: value for name, value in raw.items() if not name.startswith(EXTENSION)}
        header = msgspec.convert(known, Trace)
    except UNDECODABLE:
        return explain_header(line, is_open)
    return explain_twice(line) or judge_header(header) or (header, raw)


def judge_header(header: Trace) -> Fault | None:
    """What a type cannot say of a header."""
    if header.null_block is not None and header.null_block >= header.blocks:
        what = f"null_block is {header.null_block}, and the pool has blocks 0 to {header.blocks - 1}"
        return Fault("null_block", what, "the null block is one of the pool's: correct it, or blocks")
    if "gpu" in (header.pools or {}):
        return Fault("pools.gpu", "pools names gpu", "blocks and block_size describe the gpu pool: leave it out here")
    for index, kind in enumerate(header.complete or ()):
        if kind not in EVENT_TYPES and not kind.startswith(EXTENSION):
            near = get_close_matches(kind, EVENT_TYPES, 1, 0.6)
            hint = f"did you mean {near[0]}?" if near else "list kinds of events"
            return Fault(f"complete[{index}]", f'complete lists "{kind}", which is no event', hint)
    return None


def same_log(one: Trace, other: Trace) -> bool:
    """Whether two headers can head two segments of one log: equal but for the evidence of when they were written."""
    return msgspec.structs.replace(one, seq=None, t=None, note=None) == msgspec.structs.replace(
        other, seq=None, t=None, note=None
    )
