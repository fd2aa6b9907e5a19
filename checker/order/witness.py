"""A witness of a race: the events of the log that matter, in an order that all recorded order allows, and in which the
two accesses happen the wrong way round. `run` events mark where launches happen.

What can come first is said in `reordered`. Of that, events are taken out as long as the replay reports the breach, and
no other that it did not report before. Where a thread makes the earlier access, or waits for it at once, it comes last
in the witness, and the replay reports the block there. Where other races of theirs are told first, the two accesses are
shown without what else they do.

Where nothing orders the later access behind the begin of its life either, as a third thread's into a block that two
others handed on, no order has the two in their two lives: if it comes first, it comes before that begin. So they come
in one life, under the rule for that. Where the block is free in that order, or has no entry or contents yet, the order
breaks the rule for that, and that is reported. Slots that nobody wrote need no other order: the witness is what of the
log is needed to read them.

What is before a gap is not known at the breach, so the witness begins after it, mid-run. So does that of a long log: it
begins with the life of the block in which the earlier access is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from kvsan.checker.replay.check import check
from kvsan.checker.replay.kinds import names_threads, occurring_kinds
from kvsan.checker.replay.outcome import Violation
from kvsan.checker.replay.recorded import recorded_kinds
from kvsan.checker.replay.replay import Replay
from kvsan.traces import events as ev
from kvsan.traces.read import Log
from msgspec import structs

from .analysis import Order
from .minimal import Lines, Minimal
from .reordered import Cut, possible_first
from .said import ORDER_NAMES, Replays, Said
from .schedule import Impossible, NoWitness, op_of, ran, scheduled


@dataclass(frozen=True)
class Witness:
    """A log: its header, its events, and the lines that those have in the log it is from, 0 for a `run`."""

    header: ev.Trace
    events: list[ev.Event]
    lines: list[int]


def witness(log: Log, found: Violation) -> Witness:
    """The witness of a breach of an order rule that `check` found in the log. Raises NoWitness."""
    header = log.header
    if header is None or found.rule not in ORDER_NAMES:
        raise NoWitness(f"{found.rule} is not about order")
    occurring, reads = occurring_kinds(log, lambda _: False)
    recorded = recorded_kinds(occurring, header.complete, reads)
    one_thread = not names_threads(log)

    def fresh(begun: ev.Trace = header, hears: Callable[..., Order] = Order) -> Replay:
        return Replay(begun, recorded, occurring, one_thread=one_thread, hears=hears)

    cut = possible_first(log, found, fresh)
    header = structs.replace(header, seq=None, started="mid_run" if cut.mid_run else header.started)
    replays = Replays(fresh, header)
    lines, aim = shown(cut, found, replays.said)
    told = replays.said(lines)

    def same(lines: Lines) -> bool:
        now = replays.said(lines) if cut.in_place(lines) else set()
        return aim in now and now <= told

    pair = {found.line, found.earlier or 0}
    lines = Minimal(same, pair, {*map(cut.begins, pair)}).of(lines)
    lines = plain_names(scheduled(lines, cut.behind), cut)
    return confirmed(header, lines, aim, fresh())


def shown(cut: Cut, found: Violation, said: Callable[[Lines], set[Said]]) -> tuple[Lines, Said]:
    """Events in an order that breaks a rule at the two accesses, and how that is told. Raises NoWitness."""
    tried: list[tuple[Lines, set[Said]]] = []
    for lines in cut.orders(found.block):
        tried.append((lines, said(lines)))
        aims = [aim for aim in tried[-1][1] if aim.turned(found, cut)]
        if aims:
            return lines, min(aims, key=lambda aim: (aim.rule != found.rule, aim))
    for lines, told in tried:
        aims = [aim for aim in told if aim.instead(found, cut)]
        if aims:
            return lines, min(aims)
    begins = "from where its log has to begin, " if cut.mid_run else ""
    what = "the read" if found.earlier is None else "the other order of the two accesses"
    raise NoWitness(f"{begins}{what} is not reported as a breach")


def plain_names(lines: Lines, cut: Cut) -> Lines:
    """Launches go by the ids of the log, where only one of several that had one is left."""
    ids = {launch.name: op_of(event) for _, event, launch in cut.kept if launch is not None}
    left = Counter(ids.get(name) for name in {op_of(event) for _, event in lines})
    alone = {name: op for name, op in ids.items() if left[op] == 1}
    return [
        (line, structs.replace(event, op=alone[op_of(event)]) if op_of(event) in alone else event)
        for line, event in lines
    ]


def confirmed(header: ev.Trace, lines: Lines, aim: Said, whole: Replay) -> Witness:
    """The witness, if a check of it finds the breach; if need be its header says what the log records, of which few
    kinds are left. whole: a replay of the log. Raises NoWitness."""
    events = [structs.replace(event, seq=None) for _, event in lines]
    try:
        ran(events, header.legacy_stream)
    except Impossible as reason:
        raise NoWitness(f"recorded order forbids the events that show it: {reason}") from reason
    lacking = {kind for kinds in whole.silenced.values() for kind in kinds}
    complete = structs.replace(header, complete=tuple(sorted(ev.EVENT_TYPES.keys() - lacking)))
    old = [0, 0, *(line for line, _ in lines)]
    for begun in (header, complete):
        if any(Said.of(v, old[v.line], old[v.earlier or 0]) == aim for v in check([begun, *events]).violations):
            return Witness(begun, events, [line for line, _ in lines])
    raise NoWitness("the few events that show it show too little of the engine to be judged alone")
