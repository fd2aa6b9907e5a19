"""Why a line is malformed: found again by hand, slowly, so that the fast path need not know."""

import msgspec
from kvsan.traces.events import Event
from kvsan.traces.problem import Fault


def explain(data: bytes, is_open: bool) -> Fault:
    """What is wrong with a line that does not decode."""
    try:
        msgspec.json.decode(data, type=Event)
    except msgspec.MsgspecError as error:
        return Fault("", str(error), "see the format's table of events", "cut" if is_open else "malformed")
    raise AssertionError("explain is called for malformed lines only")
