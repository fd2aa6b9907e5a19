"""The material of a review as a document: its summary, its parts in order, and what none of them shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kvsan.checker.explore.explore import Exploration

from .blocks import Block, Heading, Items, Run, Verdict
from .evidence import bugs, explored, measured, mutants, proved
from .material import Material, Shown, settings
from .subject import design, rules


def title(material: Material) -> str:
    return f"Design review: {material.design.name}"


def document(material: Material) -> tuple[Block, ...]:
    """The whole review."""
    return tuple(_document(material))


def _document(m: Material) -> Iterator[Block]:
    yield Heading(1, title(m), "top")
    yield Run(m.run)
    yield from _summary(m)
    for part in (design, rules, explored, proved, mutants, measured, bugs):
        yield from part(m)
    yield Heading(2, "What is not covered", "open")
    yield Items(tuple(_gaps(m)))


def _summary(m: Material) -> Iterator[Block]:
    yield Heading(2, "In short", "short")
    states = sum(found.states for _, found in m.scopes)
    scopes = f"{len(m.scopes)} scope{'s' * (len(m.scopes) != 1)}"
    every = "in every state of" if not any(found.stopped for _, found in m.scopes) else "in what was reached of"
    yield Verdict(
        verdict_of([found for _, found in m.scopes]),
        f"{every} {scopes}: {states:,} states, one of each orbit where a symmetry is proved",
    )
    if isinstance(m.proof, str):
        yield Verdict("UNPROVED", f"beyond these scopes. {m.proof}")
    else:
        held = (
            "" if m.proof["verdict"] == "HOLDS" else "; not every step is proved, so nothing follows beyond the scopes"
        )
        of = f"by induction, for any number of blocks and branches, with {settings(m.proof['fixed'])}{held}"
        yield Verdict(str(m.proof["verdict"]), of)
    caught = [s for s in m.mutants if s.caught.agrees]
    if m.mutants:
        how = ", by the rule and after the steps that each is pinned to" if m.mutants[0].caught.pinned else ""
        verdict = "CAUGHT" if len(caught) == len(m.mutants) else "MISSED"
        yield Verdict(verdict, f"{len(caught)} of {len(m.mutants)} wrong decisions are caught{how}")
    else:
        yield Verdict("UNTRIED", m.no_mutants)


def shortfalls(m: Material) -> Iterator[tuple[str, str]]:
    """What keeps a review from showing that the design is right: a verdict and why, each."""
    for scope, found in m.scopes:
        if found.verdict != "HOLDS":
            broken = ", ".join(dict.fromkeys(v.rule for v in found.violations))
            yield found.verdict, f"{broken or f'the search ended early, {found.stopped}'}, in {scope}"
    if not isinstance(m.proof, str) and m.proof["verdict"] != "HOLDS":
        yield m.proof["verdict"], "the proof: `kvsan prove` tells at which step"
    for shown in m.mutants:
        if not shown.caught.agrees:
            early = shown.caught.finding is None and shown.caught.found.stopped
            how = f"the search ended early, {early}" if early else f"it {_uncaught(shown)}"
            yield "UNKNOWN" if early else "VIOLATED", f"the wrong decision {shown.caught.name}: {how}"


def _uncaught(shown: Shown) -> str:
    return "is not caught" if shown.caught.pinned is None else "is not caught as pinned"


def verdict_of(found: Sequence[Exploration]) -> str:
    """The worst of several, UNKNOWN where there is none."""
    verdicts = {f.verdict for f in found}
    return next((v for v in ("VIOLATED", "UNKNOWN") if v in verdicts), "HOLDS" if verdicts else "UNKNOWN")


def _gaps(m: Material) -> Iterator[str]:
    yield from _unexplored(m)
    for shown in m.mutants:
        if not shown.caught.agrees:
            yield f"The wrong decision `{shown.caught.name}` {_uncaught(shown)}."
    if not m.mutants:
        yield m.no_mutants
    yield from _unproved(m)
    if m.judged.get("view_intact"):
        yield "Contents are ghosts: no key and no value is modelled, only for which branch and place a slot is right."
    else:
        yield "No `view_intact` is judged: no ghost contents show that each branch reads what it is meant to read."
    yield "What no rule, guard, invariant or witness depends on is not searched: past its range it goes unseen."
    yield "Whether what has begun ends: `kvsan explore --liveness` asks that of small scopes."
    yield "One cache group; blocks of one size."
    yield "An engine may do what its design does not say: `kvsan check` on its recorded logs answers that."


def _unexplored(m: Material) -> Iterator[str]:
    judged = m.judged
    yield "Larger scopes than those explored, and settings beside those they name."
    for scope, found in m.scopes:
        if found.stopped:
            yield f"The search of {scope} ended early: {found.stopped}."
    for scope, changed in m.wrong_scopes:
        yield f"The scope {scope} ({changed}) is not explored as right: it is the design with a decision taken wrong."
    taken = {a for _, found in m.scopes for a, count in found.actions.items() if count}
    idle = [s.name for s in m.design.spec.of_kind("action") if s.name not in taken]
    if idle:
        yield f"Steps that no scope enables: {', '.join(idle)}."
    seen = {name for _, found in m.scopes for name, depth in found.witnesses.items() if depth is not None}
    unseen = [s.name for s in m.design.spec.of_kind("witness") if s.name not in seen]
    if unseen:
        yield f"What the design says it can do, and no scope shows: {', '.join(unseen)}."
    unjudged = [n for n, r in m.design.spec.rules.items() if r.kind != "lint" and not judged.get(n)]
    if unjudged:
        yield f"Rules that no step of these scopes is judged by: {', '.join(f'`{n}`' for n in unjudged)}."


def _unproved(m: Material) -> Iterator[str]:
    if isinstance(m.proof, str):
        yield f"Nothing is proved beyond the scopes that were explored. {m.proof}"
        return
    open_ = [f"`{r['rule']}` at {r['action']}" for r in m.proof["results"] if r["status"] in ("failed", "unknown")]
    if open_:
        yield f"Not proved: {', '.join(open_)}."
    for action, why in m.proof["left"].items():
        yield f"The proof did not try the step {action}: {why}."
    for fact in m.proof["initial"]:
        yield f"The start {fact['step']} breaks the fact `{fact['fact']}`, with {settings(fact['scope'])}."
    for varied in m.proof["initial_varies"]:
        yield (
            f"Of other numbers of blocks and branches nothing is proved: with more, {varied['step']} leaves"
            f" {varied['variable']} otherwise."
        )
    if m.proof["never_enabled"]:
        yield f"The sizes of the proof never enable {', '.join(m.proof['never_enabled'])}: of these it says nothing."
    yield f"The proof is for {settings(m.proof['fixed'])}, with no decision taken wrong; other settings are not proved."
    yield f"The proof leaves out {', '.join(m.proof['leaves_out'])}."
