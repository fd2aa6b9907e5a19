"""A proof as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any  # JSON values

from kvsan.checker.prove.example import Example
from kvsan.checker.prove.induction import Result
from kvsan.checker.prove.prove import Proof
from kvsan.spec.designs.settings import Settings, as_set
from kvsan.spec.lang import ir
from kvsan.spec.lang.walk import all_statements

EXITS = {"HOLDS": 0, "VIOLATED": 1, "UNKNOWN": 3}
MARKS = {"proved": "+", "untouched": ".", "failed": "FAILED", "unknown": "?"}
DEFINED = "the step is defined: no `some` of None, no index and no value past its range"
BOTH = ("how large a counter may grow", "lints")
OF_A_DESIGN = ("whether something can always happen", "whether what begins ends")
OF_EVENTS = ("engines that count pins among owners, `ref_counts` owners+pins",)


def as_json(proof: Proof) -> str:
    """One object, indented, in a fixed order of fields."""
    return json.dumps(as_object(proof), indent=2) + "\n"


def as_object(proof: Proof) -> dict[str, Any]:
    """The object of `--format json`."""
    return {
        "verdict": proof.verdict,
        "exit_code": EXITS[proof.verdict],
        "design": proof.system.design.name,
        "unbounded": ["Block", "Branch"],
        "fixed": fixed(proof),
        "actions": list(proof.asked) or [a.name for a in proof.system.actions],
        "rests_on": list(proof.lemmas),
        "initial": [{"fact": fact, "step": step, "scope": scope.settings} for fact, step, scope in proof.start],
        "initial_varies": [{"variable": name, "step": step} for name, step in proof.varying],
        "never_enabled": proof.never,
        "leaves_out": leaves_out(proof),
        "not_judged": not_judged(proof),
        "left": proof.left,
        "results": [result_object(proof, r) for r in proof.results],
        "explored": explored_object(proof),
        "seconds": round(proof.seconds, 2),
    }


def result_object(proof: Proof, r: Result) -> dict[str, Any]:
    """One rule at one action."""
    out: dict[str, Any] = {
        "rule": r.rule,
        "kind": r.kind,
        "action": r.action,
        "status": r.status,
        "by": "induction" if r.queries else "nothing that it reads changes",
        "queries": r.queries,
        "seconds": round(r.seconds, 2),
    }
    if r.example is not None:
        out["message"] = message(proof, r)
        out["counterexample"] = {
            "before": dict(r.example.before),
            "action": r.example.action,
            "after": dict(r.example.after),
        }
        out["reached"] = reached_text(proof, r)
    return out


def explored_object(proof: Proof) -> dict[str, Any] | None:
    reached = proof.reached
    if reached is None:
        return None
    return {
        "scope": reached.settings,
        "states": reached.states,
        "depth": reached.depth,
        "stopped": reached.stopped,
        "violations": [{"rule": rule, "steps": list(steps)} for rule, steps in reached.broken.items()],
    }


def fixed(proof: Proof) -> dict[str, int | bool | str]:
    """What the proof is for: the settings that are not a number of blocks or branches."""
    return {k: v for k, v in proof.system.scoped.settings.items() if k not in ("blocks", "branches")}


def leaves_out(proof: Proof) -> tuple[str, ...]:
    return (*BOTH, *(OF_EVENTS if proof.system.events else OF_A_DESIGN))


def not_judged(proof: Proof) -> list[str]:
    """The rules by which no step of the design is judged, nor a state: of these a proof says nothing."""
    made = proof.system
    judged = {s.rule for a in made.actions for s in all_statements(a.effects) if isinstance(s, ir.Obey)}
    judged |= {f.name for f in made.facts.all()}
    return [n for n, rule in made.design.spec.rules.items() if rule.kind != "lint" and n not in judged]


def message(proof: Proof, r: Result) -> str:
    """What the rule says there."""
    step = proof.system.design.spec.steps[r.action]
    for s in all_statements(step.effects):
        if isinstance(s, ir.Obey) and s.number == r.number and r.kind == "rule":
            return s.message.replace("{", "").replace("}", "")  # of whoever these names stand for
    fact = proof.system.design.spec.steps.get(r.rule)
    return fact.doc.strip().splitlines()[0] if fact is not None else DEFINED


# --- text -------------------------------------------------------------------------------------------------------------


def as_text(proof: Proof, replay: str) -> str:
    """For people."""
    return "\n".join(_lines(proof, replay)) + "\n"


def _lines(proof: Proof, replay: str) -> Iterator[str]:
    for r in proof.failed:
        yield from _failed(proof, r)
    yield f"{proof.system.design.name}  any number of blocks and branches; {as_set(fixed(proof))}"
    yield ""
    yield from _table(proof)
    yield ""
    for fact, step, scope in proof.start:
        yield f"  {fact} is false at the start, after {step}, with {_sizes(scope.settings)}"
    if not proof.start:
        yield f"  start         every fact holds; {_seen(proof)}"
    if proof.lemmas:
        counted = ", ".join(c.name.removesuffix("_counted") for c in proof.system.facts.counted)
        yield f"  rests on      the lemmas {' and '.join(proof.lemmas)} for what is counted: {counted}"
    if proof.system.events:
        yield "  assumes       that each event obeys its rules and stays within the ranges of its types"
    yield f"  leaves out    {'; '.join(leaves_out(proof))}"
    if unjudged := not_judged(proof):
        yield f"  says nothing  of {', '.join(unjudged)}: no step here is judged by it"
    if proof.never:
        yield f"  never         {', '.join(proof.never)}: not enabled in any state of these sizes"
    for action, why in proof.left.items():
        yield f"  left          {action}: {why}"
    queries = sum(r.queries for r in proof.results)
    yield f"  took          {proof.seconds:.1f} s, {queries} queries"
    yield _verdict(proof)
    if proof.verdict != "HOLDS":
        yield f"  replay        {replay}"


def _seen(proof: Proof) -> str:
    """How far the start is known."""
    sizes = _sizes(proof.system.base.settings)
    if proof.varying:
        names = ", ".join(dict.fromkeys(name for name, _ in proof.varying))
        return f"seen with {sizes or 'one number of members'}, and with more it leaves {names} otherwise"
    return f"seen with {sizes}, which stand for any number" if sizes else "it has no blocks and no branches"


def _sizes(settings: Settings) -> str:
    return ", ".join(f"{settings[n]} {n}" for n in ("branches", "blocks") if n in settings)


def _table(proof: Proof) -> Iterator[str]:
    """A line a rule: where it was proved, and in how many seconds."""
    rows: dict[tuple[str, str], list[Result]] = {}
    for r in proof.results:
        rows.setdefault((r.kind, r.rule), []).append(r)
    width = max((len(rule) for _, rule in rows), default=0)
    order = {"rule": 0, "defined": 1, "invariant": 2, "auxiliary": 3, "counted": 4}
    for (kind, rule), results in sorted(rows.items(), key=lambda x: order[x[0][0]]):
        proved = [r.action for r in results if r.status == "proved"]
        bad = [f"{MARKS[r.status]} {r.action}" for r in results if r.status in ("failed", "unknown")]
        said = [f"proved at {', '.join(proved)}"] if proved else []
        still = sum(r.status == "untouched" for r in results)
        if still and kind != "rule":
            said.append(f"untouched by {still} other action{'s' * (still > 1)}")
        seconds = sum(r.seconds for r in results)
        yield f"  {kind:<9}  {rule:<{width}}  {seconds:6.2f} s  {'; '.join([*bad, *said])}"


def _failed(proof: Proof, r: Result) -> Iterator[str]:
    yield f"not proved {r.rule} at {r.action}: {message(proof, r)}"
    if r.example is not None:
        yield from _example(r.example)
    yield f"  reached   {reached_text(proof, r)}"
    yield ""


def _example(e: Example) -> Iterator[str]:
    now = dict(e.after)
    yield "  before    " + "; ".join(f"{entry} = {value}" for entry, value in e.before)
    yield f"  step      {e.action}"
    changed = "; ".join(f"{entry} = {value}" for entry, value in now.items())
    yield f"  after     {changed or 'the same'}"


def reached_text(proof: Proof, r: Result) -> str:
    """What the explorer says of a failed step."""
    found = proof.reached
    if proof.system.events:
        return "not looked for: events come in any order"
    if found is None:
        return "not looked for"
    if found.stopped == "no compiler":
        return "not looked for: pip install 'kvsan[explore]'"
    scope = _sizes(found.settings)
    if r.started is not None:
        return f"yes, with {scope}: {'; '.join(r.started) or 'where it starts'}"
    if r.rule in found.broken:
        return f"perhaps from another start, with {scope}: {'; '.join(found.broken[r.rule])}"
    if found.broken:
        first = next(iter(found.broken))
        return f"with {scope} {first} is broken first: {'; '.join(found.broken[first])}"
    ended = f"up to depth {found.depth}, stopped by {found.stopped}" if found.stopped else "all of them"
    return f"no, not from the {found.states:,} states with {scope} ({ended}): a fact is missing"


def _verdict(proof: Proof) -> str:
    bad = [f"{r.rule} at {r.action}" for r in proof.results if r.status in ("failed", "unknown")]
    match proof.verdict:
        case "HOLDS":
            if proof.asked:
                return f"HOLDS at {', '.join(proof.asked)} alone, for any number of blocks and branches"
            return "HOLDS for any number of blocks and branches"
        case "VIOLATED":
            broken = list(proof.reached.broken) if proof.reached else []
            return f"VIOLATED: {', '.join(broken or [fact for fact, *_ in proof.start])}"
        case _:
            more = ["the start for any number"] if proof.varying else []
            return f"UNKNOWN: not proved: {', '.join([*more, *bad, *(f'everything at {a}' for a in proof.left)])}"
