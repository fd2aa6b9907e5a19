"""An exploration as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any  # JSON values

from kvsan.checker.explore.coverage import GuardCount
from kvsan.checker.explore.explore import Exploration, Finding
from kvsan.checker.explore.replay import Step
from kvsan.checker.explore.simulate import Walks
from kvsan.spec.designs.settings import as_set

from .coverage import coverage_lines, coverage_object

EXITS = {"HOLDS": 0, "VIOLATED": 1, "UNKNOWN": 3}


def as_json(found: Exploration, guards: Sequence[GuardCount] = ()) -> str:
    """One object, indented, in a fixed order of fields. guards: their counts, where they were counted."""
    return json.dumps(as_object(found, guards), indent=2) + "\n"


def as_object(found: Exploration, guards: Sequence[GuardCount] = ()) -> dict[str, Any]:
    """The object of `--format json`."""
    return {
        "verdict": found.verdict,
        "exit_code": EXITS[found.verdict],
        "design": found.design,
        "scope": found.scoped.settings,
        "symmetry": found.symmetry,
        "symmetry_note": found.symmetry_note,
        "states": found.states,
        "transitions": found.transitions,
        "depth": found.depth,
        "seconds": round(found.seconds, 3),
        "stopped": found.stopped,
        "violations": [finding_object(v) for v in found.violations],
        "lints": [finding_object(v) for v in found.lints],
        "coverage": {
            "actions": found.actions,
            "rules": found.judged,
            "witnesses": found.witnesses,
            "ends": found.ends,
            "deadlocks": "unknown" if found.deadlocks is None else found.deadlocks,
            **coverage_object(found, guards),
            "successors": {str(n): count for n, count in found.fan.items()},
            "levels": [b - a for a, b in zip(found.levels, (*found.levels[1:], found.states), strict=True)],
        },
        "bits": found.bits,
        "bytes_per_state": round(found.bytes / max(found.states, 1), 1),
    }


def finding_object(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "message": finding.message,
        "steps": [s.text for s in finding.steps],
        "changes": [{c.entry: [c.before, c.after] for c in s.changes} for s in finding.steps],
    }


def as_text(found: Exploration, replay: str, guards: Sequence[GuardCount] = ()) -> str:
    """For people; the last line of a failure is the command that replays it."""
    return "\n".join(_lines(found, replay, guards)) + "\n"


def _lines(found: Exploration, replay: str, guards: Sequence[GuardCount]) -> Iterator[str]:
    for finding in found.violations:
        yield from _finding("violated", finding)
    for finding in found.lints:
        yield from _finding("lint", finding)
    yield f"{found.design}  {as_set(found.scoped.settings)}"
    note = f" ({found.symmetry_note})" if found.symmetry_note else ""
    yield f"  symmetry      {found.symmetry}{note}"
    steps = f"{found.transitions:,} transitions, depth {found.depth}"
    yield f"  states        {found.states:,} in {found.bits} bits, {steps}"
    yield f"  successors    {_fan(found)}"
    yield f"  levels        {_levels(found)}"
    yield f"  steps         {_counts(found.actions)}"
    if found.judged:
        yield f"  judged        {_counts(found.judged)}"
    seen = [f"{name} at depth {depth}" for name, depth in found.witnesses.items() if depth is not None]
    if seen:
        yield f"  seen          {', '.join(seen)}"
    yield from _never(found)
    measured = f", {found.bytes / max(found.states, 1):.0f} bytes a state" if found.bytes else ""  # whole pages
    yield f"  took          {found.seconds:.2f} s{measured}"
    if guards:
        yield from coverage_lines(found, guards)
    yield _verdict(found)
    if found.verdict == "VIOLATED":
        yield f"  replay        {replay}"


def _fan(found: Exploration) -> str:
    expanded = sum(found.fan.values())
    if not expanded:
        return "none"
    mean = sum(n * count for n, count in found.fan.items()) / expanded
    ends = f"; {_ends(found)}" if found.ends else ""
    return f"{min(found.fan)} to {max(found.fan)}, {mean:.1f} on average{ends}"


def _ends(found: Exploration) -> str:
    """States without a step, and whether the design may be at rest there."""
    none = f"{found.ends:,} {'state has' if found.ends == 1 else 'states have'} none"
    if found.deadlocks is None:
        return f"{none} (a deadlock, unless a witness `can_rest` of the design says that it may rest there)"
    return f"{none}, {found.deadlocks:,} of them a deadlock" if found.deadlocks else f"{none}, at rest"


def _levels(found: Exploration) -> str:
    """How many states each depth has."""
    sizes = [b - a for a, b in zip(found.levels, (*found.levels[1:], found.states), strict=True)]
    widest = max(range(len(sizes)), key=sizes.__getitem__, default=0)
    return f"the widest is depth {widest} with {sizes[widest]:,} states" if sizes else "none"


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items() if count) or "none"


def _never(found: Exploration) -> Iterator[str]:
    """What this search says nothing about."""
    never = [f"{name} is never enabled" for name, count in found.actions.items() if not count]
    never += [f"{name} is never judged" for name, count in found.judged.items() if not count]
    never += [f"{name} is never true" for name, depth in found.witnesses.items() if depth is None]
    if never:
        yield f"  never         {', '.join(never)}"


def _verdict(found: Exploration) -> str:
    match found.verdict:
        case "VIOLATED":
            return f"VIOLATED: {', '.join(v.rule for v in found.violations)}"
        case "UNKNOWN":
            depth = f", all of those up to depth {found.depth - 1}" if found.depth > 0 else ""
            why = found.stopped if found.stopped == "interrupted" else f"stopped by {found.stopped}"
            return f"UNKNOWN: {why}; nothing is violated in the {sum(found.fan.values()):,} states expanded{depth}"
        case _:
            return "HOLDS in every state of this scope"


def _finding(word: str, finding: Finding) -> Iterator[str]:
    yield f"{word} {finding.rule}: {finding.message}"
    width = max((len(s.text) for s in finding.steps), default=0)
    for n, step in enumerate(finding.steps, 1):
        yield f"  {n:>3}  {step.text:<{width}}  {_changes(step)}".rstrip()
    yield ""


def _changes(step: Step) -> str:
    return "; ".join(f"{c.entry} {c.before} -> {c.after}" for c in step.changes)


def walks_json(done: Walks) -> str:
    """Random walks as one object."""
    found = [finding_object(done.found)] if done.found else []
    verdict = "VIOLATED" if found else "UNKNOWN"
    return (
        json.dumps({"verdict": verdict, "walks": done.walks, "steps": done.steps, "violations": found}, indent=2) + "\n"
    )


def walks_text(done: Walks, seed: int) -> str:
    """Random walks for people."""
    lines = list(_finding("violated", done.found)) if done.found else []
    verdict = f"VIOLATED: {done.found.rule}" if done.found else "UNKNOWN: nothing failed, and walks prove nothing"
    return (
        "\n".join([*lines, f"{done.walks} walk{'s' * (done.walks != 1)}, {done.steps} steps, seed {seed}", verdict])
        + "\n"
    )
