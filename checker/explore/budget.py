"""How many blocks a design needs: peak, what is transient, the steady state, copies, and the smallest pool.

All of it is read off the reachable states and the steps between them. A block that is held and stands in no table is
*transient*: the target of a pending copy, a pinned source, a free that waits for a fence. A state is *steady* where
nothing is transient. A step *gives up* where it finishes, cancels or preempts a branch. A pool is *stuck* in a state
where a branch has room for a token and every step that is left gives up: with a larger pool there would be another.
It is stuck from the start where no step leads on from there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any  # numpy arrays

from kvsan.checker.explore.design import BadDesign, Design, Scoped, scoped
from kvsan.checker.explore.explore import Prepared, prepare
from kvsan.checker.explore.layout import Field
from kvsan.checker.explore.module import build
from kvsan.checker.explore.packed import entries, where
from kvsan.checker.explore.path import codes_to, successors
from kvsan.checker.explore.replay import perform
from kvsan.checker.explore.search import STOPPING, Failure, Limits, Search, search
from kvsan.spec.lang import ir
from kvsan.spec.lang.walk import all_statements

MOST = 200_000
"""States whose steps are looked at one by one."""
GIVES_UP, COPIES = {"finish", "preempt"}, {"copy"}


@dataclass(frozen=True)
class Figures:
    """Blocks at most, over all states. steady: while none is transient. copies: on one way that gives no branch up,
    None where there is no bound. stuck: a shortest way to a state in which the pool is stuck, () where that is the
    start, None where there is none.
    """

    states: int
    symmetry: str
    stopped: str
    peak: int
    tables: int
    transient: int
    steady: int
    copies: int | None
    stuck: tuple[str, ...] | None


@dataclass(frozen=True)
class Budget:
    """figures: those of the scope. pools: for each number of blocks that holds the start, whether it is stuck there."""

    design: str
    scoped: Scoped
    figures: Figures
    pools: tuple[tuple[int, Figures], ...]

    @property
    def smallest(self) -> int | None:
        """The smallest pool that is never stuck, and none above it that was searched; None where that is not known."""
        found = None
        for blocks, figures in reversed(self.pools):
            if figures.stuck is not None or figures.stopped:
                break
            found = blocks
        return found

    @property
    def full_copies(self) -> int | None:
        """Block copies if every branch but the first copied the whole prompt: (branches - 1) ceil(prompt / size)."""
        numbers = [self.scoped.settings.get(name) for name in ("branches", "prompt", "block_size")]
        match numbers:
            case [int(branches), int(prompt), int(size)]:
                return (branches - 1) * -(-prompt // size)
            case _:
                return None


def budget(
    design: Design,
    settings: dict[str, str],
    scope: str = "",
    symmetry: str = "full",
    tell: Callable[[str], None] = lambda _: None,
) -> Budget:
    """The figures of a scope, and of the same scope with every smaller pool. Raises BadDesign, NoCompiler."""
    chosen = scoped(design, settings, scope)
    blocks = chosen.settings.get("blocks")
    if not isinstance(blocks, int):
        raise BadDesign(f"{design.name} has no setting `blocks`: there is no pool to measure")
    pools = []
    for size in range(_least(chosen), blocks + 1):
        tell(f"a pool of {size}")
        smaller = scoped(design, {**settings, "blocks": str(size)}, scope)
        pools.append((size, figures(prepare(design, smaller, symmetry))))
    if not pools:
        raise BadDesign(f"a pool of {blocks} does not hold the prompt: raise --set blocks")
    return Budget(design.name, chosen, pools[-1][1], tuple(pools))


def _least(chosen: Scoped) -> int:
    """The blocks that one branch takes for the prompt: no smaller pool has a first state worth the name."""
    match chosen.settings.get("prompt"), chosen.settings.get("block_size"):
        case int(prompt), int(size):
            return max(1, -(-prompt // size))
        case _:
            return 1


def figures(prepared: Prepared) -> Figures:
    """The figures of one scope. Raises BadDesign, NoCompiler."""
    fields = prepared.model.layout.fields
    missing = [name for name in ("held", "table", "length") if name not in fields]
    if missing:
        raise BadDesign(
            f"{prepared.design.name} has no `{missing[0]}` on which a guard, a rule or a fact depends:"
            " a budget is read off the held, table and length of the ownership ledger"
        )
    module = build(prepared.generated.source)
    found = search(prepared.model, prepared.generated, module, [s.state for s in prepared.begun], Limits(states=MOST))
    broken = [j.rule for f in found.failures if (j := prepared.generated.judges[f.judge]).kind in STOPPING]
    if broken:
        raise BadDesign(f"{prepared.design.name} breaks {broken[0]} in this scope: mend that first")
    held, named = _held(prepared, found), _named(prepared, found)
    blocks, tables, transient = held.sum(1), named.sum(1), (held & ~named).sum(1)
    ways = _steps(prepared, found)
    return Figures(
        found.count,
        prepared.symmetry,
        found.stopped,
        int(blocks.max()),
        int(tables.max()),
        int(transient.max()),
        int(blocks[transient == 0].max(initial=0)),
        longest(ways, _actions(prepared, COPIES)),
        _stuck(prepared, found, ways),
    )


# --- states, all at once ----------------------------------------------------------------------------------------------


def _column(prepared: Prepared, found: Search, field: Field, entry: int) -> Any:
    """One entry in every state, as it is stored."""
    words = prepared.model.layout.words
    word, shift = where(field, entry)
    return (found.states[word : found.count * words : words] >> shift) & ((1 << field.bits) - 1)


def _held(prepared: Prepared, found: Search) -> Any:
    """State by block: whether it is held."""
    field = prepared.model.layout.fields["held"]
    return found.module.np.stack([_column(prepared, found, field, n) == 1 for n, _ in entries(field)], axis=1)


def _named(prepared: Prepared, found: Search) -> Any:
    """State by block: whether a table names it."""
    field, np = prepared.model.layout.fields["table"], found.module.np
    cells = np.stack([_column(prepared, found, field, n) for n, _ in entries(field)], axis=1)
    blocks = prepared.scoped.sizes.sorts["Block"]
    return np.stack([(cells == b + 1).any(axis=1) for b in range(blocks)], axis=1)  # 0 is None


def _room(prepared: Prepared, found: Search) -> Any:
    """State by branch: whether it is there and has room for a token."""
    field, np = prepared.model.layout.fields["length"], found.module.np
    lengths = np.stack([_column(prepared, found, field, n) for n, _ in entries(field)], axis=1)
    capacity = prepared.scoped.known.get("capacity")
    return (lengths > 0) & (lengths < (prepared.scoped.sizes.limits["tokens"] if capacity is None else capacity))


# --- steps ------------------------------------------------------------------------------------------------------------

Ways = list[list[tuple[str, int]]]
"""For each state the steps that give nothing up: action and next state."""


def _steps(prepared: Prepared, found: Search) -> Ways:
    width = prepared.model.layout.words
    rows = [tuple(found.states[n * width : (n + 1) * width].tolist()) for n in range(found.count)]
    numbers, gives_up = {row: n for n, row in enumerate(rows)}, _actions(prepared, GIVES_UP)
    ways: Ways = []
    for row in rows[: found.expanded]:
        out = []
        for code, _, orbit in successors(found, row):
            action = prepared.model.decode(code)[0].name
            to = numbers.get(tuple(orbit.tolist()))
            if action not in gives_up and to is not None:
                out.append((action, to))
        ways.append(out)
    return ways


def _actions(prepared: Prepared, events: set[str]) -> frozenset[str]:
    """The actions that perform one of these ownership events in this scope, through any number of calls."""
    spec = prepared.design.spec

    def performs(step: ir.Step) -> bool:
        calls = [s.step for s in all_statements(step.body) if isinstance(s, ir.CallStmt)]
        return any(name in events or performs(spec.steps[name]) for name in calls)

    return frozenset(a.name for a in prepared.model.actions if performs(spec.steps[a.name]))


def longest(ways: Ways, counted: frozenset[str]) -> int | None:
    """The most counted steps on one way; None where a way can take them for ever. Circles without one do not count."""
    import networkx as nx

    graph: Any = nx.DiGraph((n, to) for n, out in enumerate(ways) for _, to in out)
    graph.add_nodes_from(range(len(ways)))
    circles = nx.condensation(graph)
    part = circles.graph["mapping"]
    counts = {(part[n], part[to]) for n, out in enumerate(ways) for action, to in out if action in counted}
    if any(one == other for one, other in counts):
        return None
    best = dict.fromkeys(circles, 0)
    for one in nx.topological_sort(circles):
        for other in circles[one]:
            best[other] = max(best[other], best[one] + ((one, other) in counts))
    return max(best.values())


def _stuck(prepared: Prepared, found: Search, ways: Ways) -> tuple[str, ...] | None:
    waits, firsts = _room(prepared, found).any(axis=1), found.levels[1] if len(found.levels) > 1 else found.count
    at = next((n for n, out in enumerate(ways) if (waits[n] or n < firsts) and all(to == n for _, to in out)), None)
    if at is None:
        return None
    begun = [s.state for s in prepared.begun]
    start, codes = codes_to(found, Failure(-1, at, -1, 0), begun)
    steps = perform(prepared.design.spec, prepared.scoped, prepared.model, begun[start], codes)
    return tuple(s.text for s in steps)
