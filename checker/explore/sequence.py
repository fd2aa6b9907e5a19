"""A way through a design as a Mermaid sequence diagram: what a reviewer would draw on a whiteboard.

Participants are the host, the pool, and the branches, streams and blocks that the way touches, in that order: requests
on the left, memory on the right. A step of the design is a bar across the page; the ownership events that it performs
are the arrows below it. A design whose steps cannot be written as a log shows what each step changed instead.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any  # events of a log, JSON values

from kvsan.checker.explore.replay import LETTERS, Step
from kvsan.spec.lang import ir

HOST, POOL = "host", "pool"
GROUPS = (HOST, POOL, "branch", "holder", "stream", "block")
CHANGES = 4
"""Entries that a note shows; a step that changes more says how many."""


@dataclass
class Drawing:
    """The lines so far, and who takes part."""

    lines: list[str] = field(default_factory=list)
    parts: dict[tuple[str, str], None] = field(default_factory=dict)

    def part(self, group: str, name: str = "") -> str:
        self.parts.setdefault((group, name))
        return _id(group, name)

    def arrow(self, source: str, target: str, text: str) -> None:
        self.lines.append(f"{source}->>{target}: {escaped(text)}")

    def note(self, text: str, over: str = "") -> None:
        self.lines.append(f"Note over {over}: {escaped(text)}" if over else f"@{escaped(text)}")

    def text(self, title: str) -> str:
        """The diagram; a note over nobody spans all who take part."""
        ranked = sorted(self.parts, key=lambda p: (GROUPS.index(p[0]), _natural(p[1])))
        ids = [_id(*p) for p in ranked]
        across = ids[0] if len(ids) == 1 else f"{ids[0]},{ids[-1]}"
        out = [f"%% {line}" for line in title.splitlines()] + ["sequenceDiagram"]
        out += [f"    participant {_id(g, n)} as {_shown(g, n)}" for g, n in ranked]
        out += [f"    Note over {across}: {x[1:]}" if x.startswith("@") else f"    {x}" for x in self.lines]
        return "\n".join(out) + "\n"


def sequence(
    spec: ir.Spec, steps: Sequence[Step], title: str, events: Sequence[dict[str, Any]] = (), verdict: str = ""
) -> str:
    """The diagram. events: the way as a log, without its header; verdict: what the last step breaks."""
    drawing = Drawing()
    drawing.part(HOST)
    rest = list(events)
    if rest and rest[0].get("note") == "start":
        drawing.note("start")
    _events(rest, "start", drawing)
    for number, step in enumerate(steps, 1):
        drawing.note(f"{number}  {step.text}")
        if not events:
            _step(spec, step, drawing)
        _events(rest, step.text, drawing)
    if verdict:
        drawing.lines.append("rect rgb(255, 220, 220)")
        drawing.note(verdict)
        drawing.lines.append("end")
    return drawing.text(title)


def escaped(text: str) -> str:
    """Text that Mermaid takes as it stands: `;` and `#` end a statement there, `<` and `>` are markup."""
    return "".join(f"#{ord(c)};" if c in "#;<>" else c for c in text)


def _id(group: str, name: str) -> str:
    return group if not name else f"{group}_{''.join(c if c.isalnum() else '_' for c in name)}"


def _shown(group: str, name: str) -> str:
    return escaped({HOST: "host", POOL: "free pool"}.get(group, f"{group} {name}"))


def _natural(name: str) -> tuple[int, str]:
    return (len(name), name)


# --- from the steps alone ---------------------------------------------------------------------------------------------


def _step(spec: ir.Spec, step: Step, drawing: Drawing) -> None:
    """The host does it with the members that it names."""
    for param in spec.steps[step.action].params:
        kind = ir.bare(param.type)
        value = step.values[param.name]
        if isinstance(kind, ir.SortType) and kind.name in LETTERS and value is not None:
            drawing.arrow(HOST, drawing.part(kind.name.lower(), f"{LETTERS[kind.name]}{value}"), step.action)
    shown = [f"{c.entry} {c.before} -> {c.after}" for c in step.changes[:CHANGES]]
    more = len(step.changes) - CHANGES
    if shown:
        drawing.note(", ".join(shown) + (f", and {more} more" if more > 0 else ""), HOST)


# --- from the ownership events ----------------------------------------------------------------------------------------


def _events(rest: list[dict[str, Any]], note: str, drawing: Drawing) -> None:
    """Draw the events of one step, which stand first in `rest`; changed."""
    while rest and rest[0].get("note") == note:
        event = rest.pop(0)
        _event(event, drawing)


def _event(event: dict[str, Any], drawing: Drawing) -> None:
    kind, who = event["ev"], _who(event, drawing)
    if kind == "step":
        _launch(event, drawing)
        return
    source, target = _ends(event, drawing, who)
    text = f"{kind}{_details(event)}"
    if "stream" in event:
        stream = drawing.part("stream", str(event["stream"]))
        drawing.arrow(who, stream, text if not target else f"launch {kind}")
        source = source if kind == "copy" else stream
    elif not target:
        drawing.note(text, who)
    for end in target:
        drawing.arrow(source or end, end if source else drawing.part(POOL), text)


def _launch(event: dict[str, Any], drawing: Drawing) -> None:
    """A batch: its copies, then its writes, then its reads, all on their stream."""
    stream = drawing.part("stream", str(event["stream"]))
    drawing.arrow(HOST, stream, f"launch {event.get('op', 'step')}")
    for src, dst, low, high in event.get("copies", []):
        drawing.arrow(drawing.part("block", f"b{src}"), drawing.part("block", f"b{dst}"), f"copy slots [{low},{high})")
    for branch, block, low, high in event.get("writes", []):
        drawing.arrow(stream, drawing.part("block", f"b{block}"), f"{branch} writes slots [{low},{high})")
    for read in event.get("reads", []):
        branch, upto = read if isinstance(read, list) else (read, None)
        drawing.note(f"{branch} attends" + (f" to {upto} tokens" if upto is not None else ""), stream)


def _ends(event: dict[str, Any], drawing: Drawing, who: str) -> tuple[str, list[str]]:
    """Where an event's arrows begin ('': at each target, and they end in the pool), and their targets."""
    kind, blocks = event["ev"], list(_blocks(event, drawing))
    match kind:
        case "fork":
            return drawing.part("branch", str(event["parent"])), [who]
        case "copy":
            return drawing.part("block", f"b{event['src']}"), [drawing.part("block", f"b{event['dst']}")]
        case "alloc" | "hit":
            return drawing.part(POOL), blocks
        case "free" | "evict":
            return "", blocks
        case _:
            return who, blocks


def _who(event: dict[str, Any], drawing: Drawing) -> str:
    """The branch or holder that an event names, else the host."""
    for group in ("branch", "holder"):
        if group in event:
            return drawing.part(group, str(event[group]))
    return HOST


def _blocks(event: dict[str, Any], drawing: Drawing) -> Iterator[str]:
    named = event.get("block", [])
    for block in named if isinstance(named, list) else [named]:
        yield drawing.part("block", f"b{block}")


UNSAID = {"ev", "note", "block", "holder", "parent", "src", "dst", "stream"}
"""Fields that the arrow itself shows."""


def _details(event: dict[str, Any]) -> str:
    said = ""
    for name, value in event.items():
        if name in UNSAID or (name == "branch" and event["ev"] not in ("alloc", "hit")):
            continue
        ranged = name in ("slots", "tokens") and isinstance(value, list)
        plain = json.dumps(value) if isinstance(value, bool) else str(value)  # as the log has it
        said += f" {name} " + (f"[{value[0]},{value[1]})" if ranged else plain)
    return said
